package signedctx

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	maxTrustedBytes = 1 << 20 // of a key set
	maxTrustedKeys  = 1024
)

// jwk is a key as JSON Web Key (RFC 7517, 8037).
type jwk struct {
	KeyType   string    `json:"kty"`
	Curve     string    `json:"crv,omitempty"`
	Algorithm Algorithm `json:"alg"`
	ID        string    `json:"kid"`
	Public    string    `json:"x,omitempty"`
	Private   string    `json:"d,omitempty"`
	Symmetric string    `json:"k,omitempty"`

	// In a set only. Readers ignore members that they don't know (RFC 7517, section 4).
	Use  string `json:"use,omitempty"`
	Kind Kind   `json:"longshore,omitempty"`
}

// jwkSet is a JSON Web Key Set.
type jwkSet struct {
	Keys []jwk `json:"keys"`
}

func (s jwkSet) encode() []byte {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // a struct of strings
	}
	return append(raw, '\n')
}

func newJWK(k Key) jwk {
	if k.Algorithm == EdDSA {
		out := jwk{KeyType: "OKP", Curve: "Ed25519", Algorithm: k.Algorithm, ID: k.ID, Public: encodeSegment(k.public())}
		if k.Secret != nil {
			out.Private = encodeSegment(k.Secret)
		}
		return out
	}
	return jwk{KeyType: "oct", Algorithm: k.Algorithm, ID: k.ID, Symmetric: encodeSegment(k.Secret)}
}

// newPublicJWK is a key of a set.
func newPublicJWK(id string, kind Kind, public ed25519.PublicKey) jwk {
	k := newJWK(Key{ID: id, Algorithm: EdDSA, Public: public})
	k.Use, k.Kind = "sig", kind
	return k
}

// parseKey reads a JSON Web Key, of exactly the members that newJWK writes. Errors don't quote it.
func parseKey(raw []byte) (Key, error) {
	o, err := parseObject(raw)
	if err != nil {
		return Key{}, err
	}
	members, secret := []string{"kty", "alg", "kid", "k"}, "k"
	if o["kty"] == "OKP" {
		members, secret = []string{"kty", "crv", "alg", "kid", "x", "d"}, "d"
		if _, private := o["d"]; !private {
			members, secret = members[:5], "x"
		}
	}
	if err := o.only(members...); err != nil {
		return Key{}, err
	}
	text := make(map[string]string, len(members))
	for _, name := range members {
		if text[name], err = o.text(name); err != nil {
			return Key{}, err
		}
	}
	k := Key{ID: text["kid"], Algorithm: Algorithm(text["alg"])}
	bytes, err := decodeSegment(text[secret])
	if err != nil {
		return Key{}, fmt.Errorf("%s %w", secret, err)
	}
	if secret == "x" {
		k.Public = bytes
	} else {
		k.Secret = bytes
	}
	if err := k.check(); err != nil {
		return Key{}, err
	}
	if want := newJWK(k); text["kty"] != want.KeyType || text["crv"] != want.Curve || text["x"] != want.Public {
		return Key{}, errors.New("kty, crv and x must agree with alg and the private key")
	}
	return k, nil
}

// readTrusted reads a set of public keys, by kind.
func readTrusted(file string) (map[Kind][]Key, error) {
	f, err := os.Open(file) // the operator names it
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, maxTrustedBytes+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxTrustedBytes {
		return nil, fmt.Errorf("is over %d bytes: want a key set as a host serves it at /.well-known/jwks.json", maxTrustedBytes)
	}
	return parseTrusted(raw)
}

// parseTrusted reads a set as Keyring.JWKS writes it, and refuses any other.
func parseTrusted(raw []byte) (map[Kind][]Key, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &set); err != nil {
		return nil, errors.New("is not a JSON Web Key Set")
	}
	if len(set.Keys) == 0 || len(set.Keys) > maxTrustedKeys {
		return nil, fmt.Errorf("has %d keys: want 1 to %d", len(set.Keys), maxTrustedKeys)
	}
	out := map[Kind][]Key{}
	for i, member := range set.Keys {
		kind, k, err := parseMember(member)
		if err != nil {
			return nil, fmt.Errorf("key %d %w", i, err)
		}
		out[kind] = append(out[kind], k)
	}
	return out, nil
}

// parseMember reads one public key of a set.
func parseMember(raw []byte) (Kind, Key, error) {
	o, err := parseObject(raw)
	if err != nil {
		return "", Key{}, err
	}
	if err := o.only("kty", "crv", "alg", "kid", "x", "use", "longshore"); err != nil {
		return "", Key{}, err
	}
	kind, _ := o["longshore"].(string)
	if kind != string(TokenKind) && kind != string(SealKind) {
		return "", Key{}, fmt.Errorf("has a longshore other than %q and %q", TokenKind, SealKind)
	}
	id, _ := o["kid"].(string)
	x, _ := o["x"].(string)
	public, err := decodeSegment(x)
	if err != nil {
		return "", Key{}, fmt.Errorf("x %w", err)
	}
	k := Key{ID: id, Algorithm: EdDSA, Public: public}
	if err := k.check(); err != nil {
		return "", Key{}, err
	}
	if want := newPublicJWK(id, Kind(kind), public); o["kty"] != want.KeyType || o["crv"] != want.Curve ||
		o["alg"] != string(want.Algorithm) || o["use"] != want.Use {
		return "", Key{}, errors.New("is no Ed25519 key that signs")
	}
	return Kind(kind), k, nil
}

// encodeSegment encodes in base64url, as JWT and JWK do.
func encodeSegment(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
