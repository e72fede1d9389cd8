package signedctx

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fleet returns two hosts that sign their seals, each trusting the other's public keys alone.
func fleet(t *testing.T) (one, other *Context, dirs [2]string) {
	t.Helper()
	dirs = [2]string{t.TempDir(), t.TempDir()}
	folders := [2]Folder{{Dir: dirs[0], Seal: EdDSA}, {Dir: dirs[1], Seal: EdDSA}}
	var contexts [2]*Context
	for i, f := range folders {
		own, err := f.Load()
		require.NoError(t, err)
		set := filepath.Join(dirs[1-i], "peer.json")
		require.NoError(t, os.WriteFile(set, own.JWKS(), 0o600))
		folders[1-i].Trust = []string{set}
	}
	for i, f := range folders {
		keys, err := f.Load()
		require.NoError(t, err)
		contexts[i] = newContext(t, keys, newClock())
	}
	return contexts[0], contexts[1], dirs
}

func TestSignedSeals(t *testing.T) {
	t.Run("AHostVerifiesWhatAnotherSealed", func(t *testing.T) {
		one, other, _ := fleet(t)
		e := mustSeal(t, one, principal(), binding())
		got, err := other.Verify(e, binding())
		require.NoError(t, err)
		require.Equal(t, principal().Subject, got.Subject)
		_, seal := KeysOf(e)
		require.Equal(t, one.Keys().SealKeyID(), seal, "the seal names its own key")
	})
	t.Run("EveryCutAndEveryFlippedBitIsRefused", func(t *testing.T) {
		one, other, _ := fleet(t)
		e := mustSeal(t, one, principal(), binding())
		for i := range e {
			_, err := other.Verify(e[:i], binding())
			require.Error(t, err)
			bad := append([]byte(nil), e...)
			bad[i] ^= 1
			_, err = other.Verify(bad, binding())
			require.Error(t, err)
		}
	})
	t.Run("APublicKeyDoesntSeal", func(t *testing.T) {
		seal, token := newKey(t, EdDSA), newKey(t, EdDSA)
		half := func(k Key) Key { return Key{ID: k.ID, Algorithm: EdDSA, Public: k.public()} }
		verifier := newContext(t, newKeyring(t, []Key{half(token)}, []Key{half(seal)}), newClock())
		_, err := verifier.Seal(principal(), binding())
		require.ErrorContains(t, err, "public keys only")
		require.Empty(t, verifier.Keys().SealKeyID()+verifier.Keys().TokenKeyID())
		minter := newContext(t, newKeyring(t, []Key{token}, []Key{seal}), newClock())
		_, err = verifier.Verify(mustSeal(t, minter, principal(), binding()), binding())
		require.NoError(t, err)
	})
	t.Run("APublicKeyAsASecretIsAForgery", func(t *testing.T) {
		seal, token := newKey(t, EdDSA), newKey(t, EdDSA)
		honest := newContext(t, newKeyring(t, []Key{token}, []Key{seal}), newClock())
		forger := newContext(t, newKeyring(t, []Key{token}, []Key{publicAsSecret(seal)}), newClock())
		_, err := honest.Verify(mustSeal(t, forger, principal(), binding()), binding())
		requireRefusal(t, ClassSignature, err)
	})
	t.Run("AFleetsSetMayHoldOurOwnKeys", func(t *testing.T) {
		dir := t.TempDir()
		own, err := Folder{Dir: dir, Seal: EdDSA}.Load()
		require.NoError(t, err)
		set := filepath.Join(dir, "all.json")
		require.NoError(t, os.WriteFile(set, own.JWKS(), 0o600))
		again, err := Folder{Dir: dir, Seal: EdDSA, Trust: []string{set}}.Load()
		require.NoError(t, err)
		require.Equal(t, own.Keys(), again.Keys())
	})
	t.Run("APublicKeyFileVerifiesAndDoesntSign", func(t *testing.T) {
		dir := t.TempDir()
		own := mustLoad(t, dir)
		k := newKey(t, EdDSA)
		writeKey(t, dir, "token-000009.jwk", Key{ID: k.ID, Algorithm: EdDSA, Public: k.public()})
		again := mustLoad(t, dir)
		require.Equal(t, own.TokenKeyID(), again.TokenKeyID())
		require.Contains(t, again.Keys(), KeyInfo{ID: k.ID, Kind: TokenKind, Algorithm: EdDSA})
	})
}

func TestJWKS(t *testing.T) {
	t.Run("HoldsNoSecret", func(t *testing.T) {
		dir := t.TempDir()
		k, err := Folder{Dir: dir, Seal: EdDSA}.Load()
		require.NoError(t, err)
		hs := newKey(t, HS256)
		writeKey(t, dir, "seal-000003.jwk", hs)
		writeKey(t, dir, "token-000003.jwk", hs)
		k2 := mustLoad(t, dir)
		require.Len(t, k2.Keys(), 4)
		var set struct{ Keys []map[string]string }
		require.NoError(t, json.Unmarshal(k2.JWKS(), &set))
		require.Len(t, set.Keys, 2)
		for _, member := range set.Keys {
			require.NotContains(t, member, "d")
			require.NotContains(t, member, "k")
			require.Contains(t, []string{k.TokenKeyID(), k.SealKeyID()}, member["kid"])
		}
		require.NotContains(t, string(k2.JWKS()), encodeSegment(hs.Secret))
	})
	t.Run("IsAnEmptyListWithoutPublicKeys", func(t *testing.T) {
		k := newKeyring(t, []Key{newKey(t, HS256)}, []Key{newKey(t, HS256)})
		require.JSONEq(t, `{"keys":[]}`, string(k.JWKS()))
	})
}

func TestTrustRefuses(t *testing.T) {
	k := newKey(t, EdDSA)
	good := string(jwkSet{Keys: []jwk{newPublicJWK(k.ID, SealKind, k.public())}}.encode())
	_, err := parseTrusted([]byte(good))
	require.NoError(t, err)
	but := func(old, with string) string {
		require.Contains(t, good, old)
		return strings.Replace(good, old, with, 1)
	}
	for name, tt := range map[string]struct{ text, want string }{
		"NoJSON":            {"{", "not a JSON Web Key Set"},
		"NoKeys":            {`{"keys":[]}`, "has 0 keys"},
		"TooManyKeys":       {`{"keys":[` + strings.Repeat("{},", maxTrustedKeys) + `{}]}`, "has 1025 keys"},
		"ASecret":           {but(`"use"`, `"d":"AAAA","use"`), "has more than"},
		"AnHMACKey":         {but(`"EdDSA"`, `"HS256"`), "no Ed25519 key"},
		"AnotherCurve":      {but(`"Ed25519"`, `"X25519"`), "no Ed25519 key"},
		"AKeyToEncryptWith": {but(`"sig"`, `"enc"`), "no Ed25519 key"},
		"AnUnknownKind":     {but(`"longshore":"seal"`, `"longshore":"other"`), "has a longshore"},
		"NoKind":            {but(`,"longshore":"seal"`, ``), "has no longshore"},
		"AShortKey":         {but(encodeSegment(k.public()), "AAAA"), "public half of 3 bytes"},
		"ADuplicateMember":  {but(`"use"`, `"kid":"a","use"`), "same key twice"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseTrusted([]byte(tt.text))
			require.ErrorContains(t, err, tt.want)
		})
	}
	t.Run("ALargeFile", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "set.json")
		require.NoError(t, os.WriteFile(file, make([]byte, maxTrustedBytes+1), 0o600))
		_, err := Folder{Dir: t.TempDir(), Trust: []string{file}}.Load()
		require.ErrorContains(t, err, "is over 1048576 bytes")
	})
}
