package signedctx

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore/longshore/limits"
)

// Claim is one claim of the producer's own; it goes into the token under "ext".
type Claim struct{ Key, Value string }

// Principal is who publishes.
type Principal struct {
	Tenant  string
	Subject string  // such as "local:1000"; at most limits.KeyBytes
	Claims  []Claim // distinct keys, whatever their case; at most limits.TokenClaims and limits.TokenClaimsBytes
}

// Binding is the message that a context is sealed to: the seal covers every field of it. An empty content type or
// parent is the same as none.
type Binding struct {
	MessageID   string
	Tenant      string
	Topic       string
	ContentType string
	Metadata    [][2]string // key and value, in the order of the message
	Payload     []byte
	Options     []byte // the encoded publish options
	Parent      string // id of the message whose handling published this one
	Hops        uint32 // publications from message to message before this one
}

// Verified is what an accepted envelope says.
type Verified struct {
	Tenant   string
	Subject  string
	Issuer   string
	TokenID  string
	IssuedAt time.Time // of the token, to the second
	SealedAt time.Time // when the message was published, to the millisecond
	Claims   []Claim   // sorted by key
}

// Context mints and verifies the signed contexts of one issuer. It is safe for concurrent use.
type Context struct {
	issuer  string
	now     func() time.Time
	current atomic.Pointer[ring]

	mu     sync.Mutex
	signed map[string]time.Time // when a key of Reload's, by kind and id, signed last
}

// ring is a keyring with what is known under it: nothing of one outlives it.
type ring struct {
	*Keyring
	minted   *cache[string, *token]            // by principal
	verified *cache[[sha256.Size]byte, claims] // by hash of the token
	recent   recent                            // some of verified
}

func newRing(k *Keyring) *ring {
	return &ring{
		Keyring: k, minted: newCache[string, *token](limits.VerifiedTokens),
		verified: newCache[[sha256.Size]byte, claims](limits.VerifiedTokens),
	}
}

// token is one that was minted or verified. It is shared, and never changed.
type token struct {
	raw    string
	hash   [sha256.Size]byte
	claims claims
}

// New returns a Context. The issuer names the host or fleet, in at most limits.KeyBytes; an envelope of another issuer
// doesn't verify. The clock is time.Now outside of tests; only Seal reads it.
func New(k *Keyring, issuer string, now func() time.Time) (*Context, error) {
	if k == nil || now == nil {
		return nil, errors.New("signed context: a keyring and a clock are needed")
	}
	if issuer == "" || checkText(issuer) != nil {
		return nil, fmt.Errorf("signed context: issuer %.80q: give the host or fleet a name of valid UTF-8", issuer)
	}
	if err := limits.Check(limits.NameKeyBytes, int64(len(issuer)), limits.KeyBytes); err != nil {
		return nil, fmt.Errorf("signed context: issuer: %w", err)
	}
	c := &Context{issuer: issuer, now: now, signed: map[string]time.Time{}}
	c.current.Store(newRing(k))
	return c, nil
}

// Keys returns the keyring that is used now.
func (c *Context) Keys() *Keyring { return c.current.Load().Keyring }

// Reload makes k the keyring of all calls that begin from now on: what it doesn't hold doesn't verify any more, and tokens
// are minted anew. Calls under way end with the one they began with.
func (c *Context) Reload(k *Keyring) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.current.Swap(newRing(k))
	for _, was := range before.infos {
		if was.Signs {
			c.signed[string(was.Kind)+was.ID] = c.now()
		}
	}
}

// LastSigned returns until when a key may have signed or sealed by this Context: now if it does, and the zero time if it never
// did.
func (c *Context) LastSigned(kind Kind, id string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(c.Keys().infos, func(k KeyInfo) bool { return k.Signs && k.Kind == kind && k.ID == id }) {
		return c.now()
	}
	return c.signed[string(kind)+id]
}

// Seal returns the envelope that binds p to the message b. The envelope belongs to the caller, and is at most
// limits.EnvelopeBytes long. An error is a fault of the caller: a principal of another tenant than the message's, a
// message without id, or claims over their limits (*limits.Error).
func (c *Context) Seal(p Principal, b Binding) ([]byte, error) {
	if p.Tenant != b.Tenant {
		return nil, fmt.Errorf("seal: principal of tenant %.80q, message of tenant %.80q: they must be the same",
			p.Tenant, b.Tenant)
	}
	if b.MessageID == "" || b.Topic == "" {
		return nil, errors.New("seal: the message needs its id and topic before it is sealed")
	}
	now := c.now()
	if ms := now.UnixMilli(); ms < 0 || ms > maxMillis {
		return nil, fmt.Errorf("seal: the clock says %v: set it", now)
	}
	r := c.current.Load()
	key := r.sealer
	if key == nil || r.signer == nil {
		return nil, errors.New("seal: this host holds public keys only, which verify: give it a token key and a seal key with their secrets")
	}
	t, err := c.token(r, p, now)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	e := envelope{token: []byte(t.raw), keyID: []byte(key.id), sealed: now.UnixMilli(), binding: b.digest()}
	var room [maxSealBytes]byte
	e.seal = key.seal(e, t.hash, room[:0])
	return e.encode(), nil
}

// token returns a token of p whose window holds now, from the cache if there is one.
func (c *Context) token(r *ring, p Principal, now time.Time) (*token, error) {
	var room [128]byte
	id := p.appendID(room[:0])
	if t, ok := getText(r.minted, id); ok && now.Unix() >= t.claims.issued && now.Unix() < t.claims.expires {
		return t, nil
	}
	raw, cl, err := mint(r.signer, c.issuer, p, now)
	if err != nil {
		return nil, err
	}
	t := &token{raw: raw, hash: tokenHash(raw), claims: cl}
	r.minted.put(string(id), t)
	return t, nil
}

// appendID appends what no other principal has.
func (p Principal) appendID(b []byte) []byte {
	b = appendText(b, p.Tenant)
	b = appendText(b, p.Subject)
	for _, o := range p.Claims {
		b = appendText(b, o.Key)
		b = appendText(b, o.Value)
	}
	return b
}

// Verify accepts an envelope that was sealed for exactly the message b, and says who published it. Every error is a
// *Refusal. It keeps none of its arguments.
func (c *Context) Verify(sealed []byte, b Binding) (Verified, error) {
	if len(sealed) == 0 {
		return Verified{}, refuse(ClassMissing, "the message has no envelope")
	}
	e, err := decodeEnvelope(sealed)
	if err != nil {
		return Verified{}, &Refusal{Class: ClassMalformed, Err: err}
	}
	r := c.current.Load()
	t, err := r.known(e.token)
	if err != nil {
		return Verified{}, err
	}
	cl := &t.claims
	if err := r.checkSeal(e, t.hash); err != nil {
		return Verified{}, err
	}
	if err := c.checkBinding(e, cl, b); err != nil {
		return Verified{}, err
	}
	return Verified{
		Tenant: cl.tenant, Subject: cl.subject, Issuer: cl.issuer, TokenID: cl.id,
		IssuedAt: time.Unix(cl.issued, 0), SealedAt: time.UnixMilli(e.sealed), Claims: slices.Clone(cl.own),
	}, nil
}

// known returns what a token says, if it is genuine. Only genuine ones are kept.
func (r *ring) known(raw []byte) (*token, error) {
	if t := r.recent.get(raw); t != nil {
		return t, nil
	}
	t := &token{hash: sha256.Sum256(raw)}
	var ok bool
	if t.claims, ok = r.verified.get(t.hash); !ok {
		var err error
		if t.claims, err = r.verifyToken(string(raw)); err != nil {
			return nil, err
		}
		r.verified.put(t.hash, t.claims)
	}
	t.raw = string(raw)
	r.recent.put(t)
	return t, nil
}

// checkSeal refuses an envelope whose seal a holder of the key didn't make for this token, time and binding.
func (r *ring) checkSeal(e envelope, hash [sha256.Size]byte) error {
	key := r.seals[string(e.keyID)]
	switch {
	case key == nil && !keyIDForm.Match(e.keyID):
		return refuse(ClassMalformed, "the seal's key id is none that a key can have")
	case key == nil:
		return refuse(ClassUnknownKey, "no seal key has the id %q", e.keyID)
	case !key.check(e, hash):
		return refuse(ClassSignature, "the seal isn't made by key %q", e.keyID)
	}
	return nil
}

// checkBinding refuses a genuine envelope that belongs elsewhere.
func (c *Context) checkBinding(e envelope, cl *claims, b Binding) error {
	switch {
	case cl.issuer != c.issuer:
		return refuse(ClassMismatch, "the token is of another issuer than this host")
	case cl.tenant != b.Tenant || cl.audience != b.Tenant:
		return refuse(ClassMismatch, "the token is of another tenant than the message")
	case e.binding != b.digest():
		return refuse(ClassMismatch, "the envelope was sealed for another message, or the message was changed")
	case !cl.covers(e.sealed):
		return refuse(ClassExpired, "sealed outside the window of the token")
	}
	return nil
}
