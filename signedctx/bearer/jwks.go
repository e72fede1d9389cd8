package bearer

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"github.com/longshore/longshore/limits"
)

// Bits of the modulus of an RSA key.
const (
	minRSABits = 2048
	maxRSABits = 8192
)

// parseSet reads the public keys of a JSON Web Key Set that can verify an algorithm, by kid. Keys for another use or of
// another type are left out, as RFC 7517 has it; one that holds a secret, or that is broken, is an error.
func parseSet(raw []byte, algorithm string) (map[string]any, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &set); err != nil || set.Keys == nil {
		return nil, errors.New("is no JSON Web Key Set")
	}
	if len(set.Keys) > limits.KeySetKeys {
		return nil, fmt.Errorf("the key set has %d keys: at most %d are taken", len(set.Keys), limits.KeySetKeys)
	}
	keys := map[string]any{}
	for i, member := range set.Keys {
		o, err := strictObject(member)
		if err != nil {
			return nil, fmt.Errorf("key %d of the key set %w", i, err)
		}
		if o["d"] != nil || o["k"] != nil {
			return nil, fmt.Errorf("key %d of the key set holds a secret: its issuer gave away what signs", i)
		}
		id, _ := o["kid"].(string)
		if id == "" || !usable(o, algorithm) {
			continue
		}
		if keys[id] != nil {
			return nil, fmt.Errorf("key %d of the key set has the kid of an earlier one", i)
		}
		if keys[id], err = publicKey(o, algorithm); err != nil {
			return nil, fmt.Errorf("key %d of the key set: %w", i, err)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("the key set has no key with a kid for %s", algorithm)
	}
	return keys, nil
}

// usable reports whether a key says that it verifies signatures of an algorithm.
func usable(o map[string]any, algorithm string) bool {
	types := map[string]string{"EdDSA": "OKP", "ES256": "EC", "RS256": "RSA"}
	if use, given := o["use"]; given && use != "sig" {
		return false
	}
	if alg, given := o["alg"]; given && alg != algorithm && (algorithm != "EdDSA" || alg != "Ed25519") {
		return false
	}
	if curve, given := o["crv"]; given && curve != "Ed25519" && curve != "P-256" {
		return false
	}
	return o["kty"] == types[algorithm]
}

// publicKey returns a key as golang-jwt wants it.
func publicKey(o map[string]any, algorithm string) (any, error) {
	number := func(name string) ([]byte, error) {
		text, _ := o[name].(string)
		b, err := decodeSegment(text)
		if err != nil || len(b) == 0 {
			return nil, fmt.Errorf("its %s is not base64url", name)
		}
		return b, nil
	}
	switch algorithm {
	case "EdDSA":
		x, err := number("x")
		if err != nil || len(x) != ed25519.PublicKeySize || o["crv"] != "Ed25519" {
			return nil, errors.New("is no key of Ed25519")
		}
		return ed25519.PublicKey(x), nil
	case "ES256":
		x, errX := number("x")
		y, errY := number("y")
		if err := errors.Join(errX, errY); err != nil || len(x) != 32 || len(y) != 32 || o["crv"] != "P-256" {
			return nil, errors.New("is no key of P-256")
		}
		return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
	}
	n, errN := number("n")
	e, errE := number("e")
	if err := errors.Join(errN, errE); err != nil {
		return nil, err
	}
	return rsaKey(new(big.Int).SetBytes(n), new(big.Int).SetBytes(e))
}

func rsaKey(n, e *big.Int) (*rsa.PublicKey, error) {
	if n.BitLen() < minRSABits || n.BitLen() > maxRSABits {
		return nil, fmt.Errorf("has a modulus of %d bits: want %d to %d", n.BitLen(), minRSABits, maxRSABits)
	}
	if e.BitLen() > 31 || e.Int64() < 3 || e.Bit(0) == 0 {
		return nil, errors.New("has an exponent that is none: want an odd number from 3")
	}
	return &rsa.PublicKey{N: n, E: int(e.Int64())}, nil
}
