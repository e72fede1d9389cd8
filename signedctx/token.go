package signedctx

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/longshore/longshore/limits"
)

// jwtType is the typ of our tokens. No other JWT that the same key may have signed passes for one.
const jwtType = "longshore-ctx+jwt"

const tokenIDBytes = 16

// claims are what a token says.
type claims struct {
	issuer, audience, tenant, subject, id string
	issued, expires                       int64 // seconds since 1970
	own                                   []Claim
}

// mint signs a token for p that is valid from now for limits.TokenWindow.
func mint(k *tokenKey, issuer string, p Principal, now time.Time) (string, claims, error) {
	if err := checkPrincipal(p); err != nil {
		return "", claims{}, err
	}
	c := claims{
		issuer: issuer, audience: p.Tenant, tenant: p.Tenant, subject: p.Subject, id: randomID(tokenIDBytes),
		issued: now.Unix(), expires: now.Add(limits.TokenWindow).Unix(),
	}
	own := make(map[string]string, len(p.Claims))
	for _, o := range p.Claims {
		own[o.Key] = o.Value
	}
	t := jwt.NewWithClaims(k.method, jwt.MapClaims{
		"iss": c.issuer, "aud": c.audience, "tnt": c.tenant, "sub": c.subject, "jti": c.id,
		"iat": c.issued, "exp": c.expires, "ext": own,
	})
	t.Header["typ"] = jwtType
	t.Header["kid"] = k.id
	raw, err := t.SignedString(k.private)
	if err != nil {
		return "", claims{}, fmt.Errorf("sign a token with key %q: %w", k.id, err)
	}
	return raw, c, limits.Check(limits.NameTokenBytes, int64(len(raw)), limits.TokenBytes)
}

// checkPrincipal says why p can't have a token.
func checkPrincipal(p Principal) error {
	if p.Tenant == "" || p.Subject == "" {
		return errors.New("principal: tenant and subject must not be empty")
	}
	if err := limits.Check(limits.NameKeyBytes, int64(max(len(p.Tenant), len(p.Subject))), limits.KeyBytes); err != nil {
		return fmt.Errorf("principal: %w", err)
	}
	if err := errors.Join(checkText(p.Tenant), checkText(p.Subject)); err != nil {
		return fmt.Errorf("principal: %w", err)
	}
	return checkClaims(p.Claims)
}

// checkClaims says which bound the producer's own claims break.
func checkClaims(own []Claim) error {
	if err := limits.Check(limits.NameTokenClaims, int64(len(own)), limits.TokenClaims); err != nil {
		return fmt.Errorf("claims: %w", err)
	}
	size := 0
	for i, o := range own {
		size += len(o.Key) + len(o.Value)
		if err := errors.Join(checkText(o.Key), checkText(o.Value)); err != nil {
			return fmt.Errorf("claim %d: %w", i, err)
		}
		if slices.ContainsFunc(own[:i], func(e Claim) bool { return strings.EqualFold(e.Key, o.Key) }) {
			return fmt.Errorf("claim %d has the key of an earlier one, up to case: use distinct keys", i)
		}
	}
	if err := limits.Check(nameClaimsBytes, int64(size), limits.TokenClaimsBytes); err != nil {
		return fmt.Errorf("claims: %w", err)
	}
	return nil
}

// nameClaimsBytes names limits.TokenClaimsBytes.
const nameClaimsBytes limits.Name = "token claims bytes"

// verifyToken checks form, key and signature of a token, and returns what it says. It doesn't compare the claims with
// anything. Every error is a *Refusal.
func (r *Keyring) verifyToken(raw string) (claims, error) {
	if err := limits.Check(limits.NameTokenBytes, int64(len(raw)), limits.TokenBytes); err != nil {
		return claims{}, &Refusal{Class: ClassMalformed, Err: err}
	}
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		return claims{}, refuse(ClassMalformed, "the token has %d parts: a JWT has 3", len(parts))
	}
	algorithm, keyID, err := parseHeader(parts[0])
	if err != nil {
		return claims{}, refuse(ClassMalformed, "the token's header %w", err)
	}
	c, err := parseClaims(parts[1])
	if err != nil {
		return claims{}, refuse(ClassMalformed, "the token's body %w", err)
	}
	if _, err := decodeSegment(parts[2]); err != nil {
		return claims{}, refuse(ClassMalformed, "the token's signature %w", err)
	}
	key := r.tokens[keyID]
	if key == nil {
		return claims{}, refuse(ClassUnknownKey, "no token key has the id %q", keyID)
	}
	if algorithm != key.method.Alg() {
		return claims{}, refuse(ClassSignature, "the token's algorithm is not that of key %q", keyID)
	}
	return c, key.verify(raw)
}

// verify checks the signature of a token that names this key and its algorithm.
func (k *tokenKey) verify(raw string) error {
	parser := jwt.NewParser(jwt.WithValidMethods([]string{k.method.Alg()}), jwt.WithStrictDecoding(),
		jwt.WithoutClaimsValidation()) // the window is compared with the sealed time
	if _, err := parser.Parse(raw, func(*jwt.Token) (any, error) { return k.public, nil }); err != nil {
		return refuse(ClassSignature, "the token isn't signed by key %q", k.id)
	}
	return nil
}

// parseHeader reads a header that holds alg, kid and typ and nothing else: no crit, no key and no place of a key.
func parseHeader(segment string) (algorithm, keyID string, err error) {
	raw, err := decodeSegment(segment)
	if err != nil {
		return "", "", err
	}
	o, err := parseObject(raw)
	if err != nil {
		return "", "", err
	}
	if err := o.only("alg", "kid", "typ"); err != nil {
		return "", "", err
	}
	algorithm, algErr := o.text("alg")
	keyID, kidErr := o.text("kid")
	if err := errors.Join(algErr, kidErr); err != nil {
		return "", "", err
	}
	switch {
	case o["typ"] != jwtType:
		return "", "", fmt.Errorf("has a typ other than %q", jwtType)
	case algorithm != string(EdDSA) && algorithm != string(HS256):
		return "", "", fmt.Errorf("has an alg other than %s and %s", EdDSA, HS256)
	case !keyIDForm.MatchString(keyID):
		return "", "", errors.New("has a kid that no key can have")
	}
	return algorithm, keyID, nil
}

// parseClaims reads the body of a token.
func parseClaims(segment string) (claims, error) {
	raw, err := decodeSegment(segment)
	if err != nil {
		return claims{}, err
	}
	o, err := parseObject(raw)
	if err != nil {
		return claims{}, err
	}
	if err := o.only("iss", "aud", "tnt", "sub", "jti", "iat", "exp", "ext"); err != nil {
		return claims{}, err
	}
	var c claims
	var errs [8]error
	c.issuer, errs[0] = o.text("iss")
	c.audience, errs[1] = o.text("aud")
	c.tenant, errs[2] = o.text("tnt")
	c.subject, errs[3] = o.text("sub")
	c.id, errs[4] = o.text("jti")
	c.issued, errs[5] = o.seconds("iat")
	c.expires, errs[6] = o.seconds("exp")
	c.own, errs[7] = o.claims("ext")
	if err := errors.Join(errs[:]...); err != nil {
		return claims{}, err
	}
	if c.expires <= c.issued {
		return claims{}, errors.New("has an exp that is not after iat")
	}
	return c, nil
}

// claims returns a member that must be an object of strings, sorted by key.
func (o object) claims(name string) ([]Claim, error) {
	inner, ok := o[name].(object)
	if !ok {
		return nil, fmt.Errorf("%s is not an object", name)
	}
	var own []Claim
	for key, value := range inner {
		s, ok := value.(string)
		if !ok {
			return nil, fmt.Errorf("%s has a value that is not a string", name)
		}
		own = append(own, Claim{Key: key, Value: s})
	}
	slices.SortFunc(own, func(a, b Claim) int { return cmp.Compare(a.Key, b.Key) })
	return own, nil
}

// covers reports whether the token may seal at that time, give or take limits.TokenLeeway.
func (c claims) covers(sealedMillis int64) bool {
	leeway := limits.TokenLeeway.Milliseconds()
	return sealedMillis >= c.issued*1000-leeway && sealedMillis < c.expires*1000+leeway
}

// tokenHash identifies a token, signature included.
func tokenHash(raw string) [sha256.Size]byte { return sha256.Sum256([]byte(raw)) }
