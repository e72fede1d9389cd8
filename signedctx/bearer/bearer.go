package bearer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/longshore/longshore/limits"
)

// Issuer is who may say who somebody is, for one tenant.
type Issuer struct {
	Tenant    string
	Name      string // begins the subjects of its tokens, as in "idp:alice"
	Issuer    string // what iss has to be
	Audience  string // what aud has to be or hold; (Issuer, Audience) is unique
	Algorithm string // what alg has to be: one of Algorithms
	JWKS      string // where its keys are: a path, or a URL of http or https
}

// Algorithms returns those that an issuer may have. None is symmetric: whoever verifies can't mint.
func Algorithms() []string { return []string{"EdDSA", "ES256", "RS256"} }

// Identity is who a token says that its bearer is.
type Identity struct {
	Tenant  string
	Subject string // the issuer's name, ':', and the token's sub
}

// Errors of Verify. Neither quotes the token.
var (
	ErrRefused     = errors.New("the bearer token is refused")
	ErrUnavailable = errors.New("the keys of the token's issuer can't be had")
)

// Verifier verifies tokens of its issuers. It is safe for concurrent use.
type Verifier struct {
	issuers []*issuer
	now     func() time.Time
}

// issuer is an Issuer with its keys.
type issuer struct {
	Issuer
	method jwt.SigningMethod
	keys   *keySet
}

// Options are what a Verifier uses of the world. The zero value is the real one.
type Options struct {
	Now       func() time.Time  // nil is time.Now
	Transport http.RoundTripper // of fetches; nil is http.DefaultTransport
}

// New returns a Verifier. Key sets are read when they are first needed: an issuer that is down stops no host.
func New(issuers []Issuer, o Options) (*Verifier, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	v := &Verifier{now: o.Now}
	for i, is := range issuers {
		method, ok := methods()[is.Algorithm]
		if !ok {
			return nil, fmt.Errorf("issuer %d: algorithm %.20q: use one of %v", i, is.Algorithm, Algorithms())
		}
		if is.Tenant == "" || is.Name == "" || is.Issuer == "" || is.Audience == "" || is.JWKS == "" {
			return nil, fmt.Errorf("issuer %d: tenant, name, issuer, audience and jwks must not be empty", i)
		}
		for _, other := range v.issuers {
			if other.Issuer.Issuer == is.Issuer && other.Audience == is.Audience {
				return nil, fmt.Errorf("issuer %d: an earlier one has the same issuer and audience: whose tenant's would its tokens be?", i)
			}
		}
		v.issuers = append(v.issuers, &issuer{Issuer: is, method: method, keys: newKeySet(is.JWKS, is.Algorithm, o)})
	}
	return v, nil
}

func methods() map[string]jwt.SigningMethod {
	return map[string]jwt.SigningMethod{
		"EdDSA": jwt.SigningMethodEdDSA, "ES256": jwt.SigningMethodES256, "RS256": jwt.SigningMethodRS256,
	}
}

// Verify returns whose token raw is. Its error is ErrRefused or ErrUnavailable, with what was wrong.
func (v *Verifier) Verify(ctx context.Context, raw string) (Identity, error) {
	t, err := parse(raw)
	if err != nil {
		return Identity{}, fmt.Errorf("%w: it %w", ErrRefused, err)
	}
	is, err := v.issuer(t)
	if err != nil {
		return Identity{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if t.algorithm != is.Algorithm {
		return Identity{}, fmt.Errorf("%w: its algorithm is not that of issuer %s", ErrRefused, is.Name)
	}
	if err := t.current(v.now()); err != nil {
		return Identity{}, fmt.Errorf("%w: it %w", ErrRefused, err)
	}
	key, err := is.keys.find(ctx, t.keyID)
	if err != nil {
		return Identity{}, err
	}
	if err := is.method.Verify(t.signed, t.signature, key); err != nil {
		return Identity{}, fmt.Errorf("%w: it isn't signed by the key that it names", ErrRefused)
	}
	return Identity{Tenant: is.Tenant, Subject: is.Name + ":" + t.subject}, nil
}

// issuer returns the one issuer that a token claims to be of.
func (v *Verifier) issuer(t token) (*issuer, error) {
	var found *issuer
	for _, is := range v.issuers {
		if is.Issuer.Issuer != t.issuer || !t.isFor(is.Audience) {
			continue
		}
		if found != nil {
			return nil, errors.New("its audiences are those of more than one tenant or issuer here")
		}
		found = is
	}
	if found == nil {
		return nil, errors.New("its issuer and audience are none that this host knows")
	}
	return found, nil
}

// current checks the times of a token.
func (t token) current(now time.Time) error {
	leeway, at := int64(limits.TokenLeeway/time.Second), now.Unix()
	switch {
	case at >= t.expires+leeway:
		return errors.New("has expired")
	case t.issued > at+leeway || t.notBefore > at+leeway:
		return errors.New("is not valid yet")
	}
	return nil
}

// FromHeader returns the token of an Authorization header.
func FromHeader(value string) (string, error) {
	scheme, raw, ok := strings.Cut(value, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || raw == "" {
		return "", fmt.Errorf("%w: Authorization is not \"Bearer\" and a token", ErrRefused)
	}
	return raw, nil
}
