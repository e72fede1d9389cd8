package signedctx

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"regexp"
	"sync"

	"github.com/golang-jwt/jwt/v5"
)

// Algorithm says what a key is for, in the words of JWT.
type Algorithm string

// Algorithms of keys. A seal key is always HS256.
const (
	EdDSA Algorithm = "EdDSA" // Ed25519
	HS256 Algorithm = "HS256" // HMAC-SHA-256
)

const (
	minSecretBytes = 32 // of an HMAC key: 256 bits
	maxSecretBytes = 64 // the block of SHA-256; a longer key would be hashed down
	keyIDBytes     = 8  // random bytes of a generated id
)

// keyIDForm is what a key id may be. It is safe in a file, a log line and a URL.
var keyIDForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// Key is a private key with its id. It prints without its secret.
type Key struct {
	ID        string    // 1 to 64 letters, digits, '.', '_' or '-'
	Algorithm Algorithm // EdDSA or HS256
	Secret    []byte    `json:"-"` // EdDSA: the seed, 32 bytes; HS256: 32 to 64 bytes
}

// String names the key, without its secret.
func (k Key) String() string { return fmt.Sprintf("%s key %q", k.Algorithm, k.ID) }

// GoString is String, so that %#v doesn't show the secret either.
func (k Key) GoString() string { return k.String() }

// GenerateKey makes a random key with a random id.
func GenerateKey(a Algorithm) (Key, error) {
	k := Key{Algorithm: a, Secret: make([]byte, minSecretBytes)}
	_, _ = rand.Read(k.Secret) // never fails: crypto/rand ends the process instead
	k.ID = randomID(keyIDBytes)
	return k, k.check()
}

// check says what is wrong with the key.
func (k Key) check() error {
	if !keyIDForm.MatchString(k.ID) {
		return fmt.Errorf("key id %.80q: use 1 to 64 letters, digits, '.', '_' or '-'", k.ID)
	}
	switch k.Algorithm {
	case EdDSA:
		if len(k.Secret) != ed25519.SeedSize {
			return fmt.Errorf("%v has a seed of %d bytes: an Ed25519 seed has %d", k, len(k.Secret), ed25519.SeedSize)
		}
	case HS256:
		if len(k.Secret) < minSecretBytes || len(k.Secret) > maxSecretBytes {
			return fmt.Errorf("%v has %d bytes: use %d to %d", k, len(k.Secret), minSecretBytes, maxSecretBytes)
		}
	default:
		return fmt.Errorf("key %q has the algorithm %.20q: use %s or %s", k.ID, string(k.Algorithm), EdDSA, HS256)
	}
	return nil
}

// Keyring holds the keys of one issuer: the last of each kind signs, all verify. It is immutable, and safe for
// concurrent use.
type Keyring struct {
	tokens map[string]*tokenKey
	seals  map[string]*sealKey
	signer *tokenKey // of tokens
	sealer *sealKey
}

// tokenKey is a key as golang-jwt wants it.
type tokenKey struct {
	id      string
	method  jwt.SigningMethod
	private any
	public  any
}

// sealKey makes seals. The MACs are pooled because a keyed one is dear to set up.
type sealKey struct {
	id   string
	macs sync.Pool // of hash.Hash
}

// NewKeyring makes a keyring of at least one token key and at least one seal key, oldest first. Ids are unique among
// the keys of a kind. The keys are copied.
func NewKeyring(tokens, seals []Key) (*Keyring, error) {
	if len(tokens) == 0 || len(seals) == 0 {
		return nil, errors.New("a keyring needs at least one token key and one seal key")
	}
	r := &Keyring{tokens: make(map[string]*tokenKey), seals: make(map[string]*sealKey)}
	for _, k := range tokens {
		if err := k.check(); err != nil {
			return nil, fmt.Errorf("token keys: %w", err)
		}
		if r.tokens[k.ID] != nil {
			return nil, fmt.Errorf("token keys: two have the id %q", k.ID)
		}
		r.signer = newTokenKey(k)
		r.tokens[k.ID] = r.signer
	}
	for _, k := range seals {
		if err := k.check(); err != nil {
			return nil, fmt.Errorf("seal keys: %w", err)
		}
		if k.Algorithm != HS256 || r.seals[k.ID] != nil {
			return nil, fmt.Errorf("seal keys: %v: all must be %s, with different ids", k, HS256)
		}
		r.sealer = newSealKey(k)
		r.seals[k.ID] = r.sealer
	}
	return r, nil
}

// TokenKeyID returns the id of the key that signs tokens.
func (r *Keyring) TokenKeyID() string { return r.signer.id }

// SealKeyID returns the id of the key that seals.
func (r *Keyring) SealKeyID() string { return r.sealer.id }

func newTokenKey(k Key) *tokenKey {
	if k.Algorithm == EdDSA {
		private := ed25519.NewKeyFromSeed(k.Secret)
		return &tokenKey{id: k.ID, method: jwt.SigningMethodEdDSA, private: private, public: private.Public()}
	}
	secret := append([]byte(nil), k.Secret...)
	return &tokenKey{id: k.ID, method: jwt.SigningMethodHS256, private: secret, public: secret}
}

func newSealKey(k Key) *sealKey {
	secret := append([]byte(nil), k.Secret...)
	return &sealKey{id: k.ID, macs: sync.Pool{New: func() any { return hmac.New(sha256.New, secret) }}}
}

// mac returns the HMAC-SHA-256 of text.
func (k *sealKey) mac(text []byte) []byte {
	m := k.macs.Get().(hash.Hash)
	defer k.macs.Put(m)
	m.Reset()
	_, _ = m.Write(text) // a hash never returns an error
	return m.Sum(nil)
}

// randomID returns n random bytes in hexadecimal.
func randomID(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b)
}
