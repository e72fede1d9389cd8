package signedctx

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/golang-jwt/jwt/v5"
)

// Keyring holds the keys of one issuer: of each kind, the last that has a secret signs, and all verify. It is immutable,
// and safe for concurrent use.
type Keyring struct {
	tokens map[string]*tokenKey
	seals  map[string]*sealKey
	signer *tokenKey // of tokens; nil if none has a secret
	sealer *sealKey  // nil if none has a secret
	infos  []KeyInfo
}

// KeyInfo describes a key of a keyring, without the key.
type KeyInfo struct {
	ID        string
	Kind      Kind
	Algorithm Algorithm
	Signs     bool // what is sealed now names it
	Secret    bool // it could sign; false of a key that only verifies
}

// tokenKey is a key as golang-jwt wants it.
type tokenKey struct {
	id      string
	method  jwt.SigningMethod
	private any // nil if it only verifies
	public  any
}

// sealKey makes and checks seals: MACs, or signatures if public is set.
type sealKey struct {
	id      string
	desks   sync.Pool // of *desk
	private ed25519.PrivateKey
	public  ed25519.PublicKey
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
		r.addToken(k)
	}
	for _, k := range seals {
		if err := k.check(); err != nil {
			return nil, fmt.Errorf("seal keys: %w", err)
		}
		if r.seals[k.ID] != nil {
			return nil, fmt.Errorf("seal keys: two have the id %q", k.ID)
		}
		r.addSeal(k)
	}
	for i, info := range r.infos {
		r.infos[i].Signs = info.Secret && (info.Kind == TokenKind && r.signer.id == info.ID || info.Kind == SealKind && r.sealer.id == info.ID)
	}
	return r, nil
}

func (r *Keyring) addToken(k Key) {
	key := newTokenKey(k)
	r.tokens[k.ID] = key
	if k.Secret != nil {
		r.signer = key
	}
	r.infos = append(r.infos, KeyInfo{ID: k.ID, Kind: TokenKind, Algorithm: k.Algorithm, Secret: k.Secret != nil})
}

func (r *Keyring) addSeal(k Key) {
	key := newSealKey(k)
	r.seals[k.ID] = key
	if k.Secret != nil {
		r.sealer = key
	}
	r.infos = append(r.infos, KeyInfo{ID: k.ID, Kind: SealKind, Algorithm: k.Algorithm, Secret: k.Secret != nil})
}

// Keys describes the keys: those of tokens and then those of seals, oldest first.
func (r *Keyring) Keys() []KeyInfo { return slices.Clone(r.infos) }

// TokenKeyID returns the id of the key that signs tokens, "" if none does.
func (r *Keyring) TokenKeyID() string {
	if r.signer == nil {
		return ""
	}
	return r.signer.id
}

// SealKeyID returns the id of the key that seals, "" if none does.
func (r *Keyring) SealKeyID() string {
	if r.sealer == nil {
		return ""
	}
	return r.sealer.id
}

// JWKS returns the public keys as a JSON Web Key Set (RFC 7517), sorted by id: see Folder.Trust for who reads it. A key that
// has no public half is not in it.
func (r *Keyring) JWKS() []byte {
	set := jwkSet{Keys: []jwk{}}
	for id, k := range r.tokens {
		if public, ok := k.public.(ed25519.PublicKey); ok {
			set.Keys = append(set.Keys, newPublicJWK(id, TokenKind, public))
		}
	}
	for id, k := range r.seals {
		if k.public != nil {
			set.Keys = append(set.Keys, newPublicJWK(id, SealKind, k.public))
		}
	}
	slices.SortFunc(set.Keys, func(a, b jwk) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind)) })
	return set.encode()
}

func newTokenKey(k Key) *tokenKey {
	if k.Algorithm == EdDSA {
		key := &tokenKey{id: k.ID, method: jwt.SigningMethodEdDSA, public: k.public()}
		if k.Secret != nil {
			key.private = ed25519.NewKeyFromSeed(k.Secret)
		}
		return key
	}
	secret := bytes.Clone(k.Secret)
	return &tokenKey{id: k.ID, method: jwt.SigningMethodHS256, private: secret, public: secret}
}

func newSealKey(k Key) *sealKey {
	key := &sealKey{id: k.ID}
	if k.Algorithm == EdDSA {
		key.public = k.public()
		if k.Secret != nil {
			key.private = ed25519.NewKeyFromSeed(k.Secret)
		}
		key.desks.New = func() any { return new(desk) }
		return key
	}
	secret := bytes.Clone(k.Secret)
	key.desks.New = func() any { return &desk{mac: hmac.New(sha256.New, secret)} }
	return key
}
