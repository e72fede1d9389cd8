package signedctx

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// publicOf returns a key that only verifies what k signs.
func publicOf(k Key) Key { return Key{ID: k.ID, Algorithm: EdDSA, Public: k.public()} }

func TestSealGuards(t *testing.T) {
	t.Run("ATokenIsReusedForTheSameClaimsOnly", func(t *testing.T) {
		c, _ := generated(t, HS256)
		for _, claims := range [][]Claim{{{"a", "x"}}, {{"a", "y"}}, {{"b", "y"}}, nil, {{"b", "y"}, {"c", "z"}}, {{"b", "y"}}} {
			p := principal()
			p.Claims = claims
			v, err := c.Verify(mustSeal(t, c, p, binding()), binding())
			require.NoError(t, err)
			require.Equal(t, claims, v.Claims)
		}
	})
	t.Run("ItNeedsTheSecretsOfBothKinds", func(t *testing.T) {
		token, seal := newKey(t, EdDSA), newKey(t, EdDSA)
		for name, keys := range map[string]*Keyring{
			"OfTokens": newKeyring(t, []Key{token}, []Key{publicOf(seal)}), "OfSeals": newKeyring(t, []Key{publicOf(token)}, []Key{seal}),
		} {
			_, err := newContext(t, keys, newClock()).Seal(principal(), binding())
			require.ErrorContains(t, err, "public keys only", name)
		}
		c := newContext(t, newKeyring(t, []Key{token}, []Key{publicOf(seal)}), newClock())
		_, err := c.SealOperator(Operator{Act: "local:0", At: start}, nil, binding())
		require.ErrorContains(t, err, "public keys only")
	})
	t.Run("AClockThatNoDateNamesIsRefused", func(t *testing.T) {
		for _, at := range []time.Time{time.UnixMilli(-1), time.UnixMilli(maxMillis + 1)} {
			k := newKeyring(t, []Key{newKey(t, HS256)}, []Key{newKey(t, HS256)})
			c, err := New(k, "harbour", func() time.Time { return at })
			require.NoError(t, err)
			_, err = c.Seal(principal(), binding())
			require.ErrorContains(t, err, "set it")
		}
	})
}

func TestVerifyGuards(t *testing.T) {
	t.Run("TheAlgorithmIsComparedBeforeTheSignatureIsLookedAt", func(t *testing.T) {
		c, _ := generated(t, EdDSA)
		header := goodHeader(c)
		header["alg"] = "HS256"
		_, err := c.Verify(forge(t, c, sign(t, c, toJSON(t, header), toJSON(t, goodBody())), binding(), start), binding())
		require.Equal(t, ClassSignature, classOf(err))
		require.ErrorContains(t, err, "algorithm is not that of key")
	})
	t.Run("AProducersClaimsAreTexts", func(t *testing.T) {
		c, _ := generated(t, HS256)
		for _, value := range []any{1, map[string]string{"a": "b"}, map[string]string{}} {
			body := goodBody()
			body["ext"] = map[string]any{"role": value}
			_, err := c.Verify(forge(t, c, sign(t, c, toJSON(t, goodHeader(c)), toJSON(t, body)), binding(), start), binding())
			requireRefusal(t, ClassMalformed, err)
		}
		for _, ext := range []any{"role", 7} {
			body := goodBody()
			body["ext"] = ext
			_, err := c.Verify(forge(t, c, sign(t, c, toJSON(t, goodHeader(c)), toJSON(t, body)), binding(), start), binding())
			requireRefusal(t, ClassMalformed, err)
		}
	})
	t.Run("ASealNamesItsKeyEvenIfAnotherIsTheSame", func(t *testing.T) {
		one := newKey(t, HS256)
		two := Key{ID: "0000000000000002", Algorithm: HS256, Secret: bytes.Clone(one.Secret)}
		c := newContext(t, newKeyring(t, []Key{newKey(t, HS256)}, []Key{one, two}), newClock())
		sealed := mustSeal(t, c, principal(), binding())
		require.Equal(t, 1, bytes.Count(sealed, []byte(two.ID)))
		_, err := c.Verify(bytes.Replace(sealed, []byte(two.ID), []byte(one.ID), 1), binding())
		requireRefusal(t, ClassSignature, err)
		record, err := c.SealOperator(Operator{Act: "local:0", At: start}, sealed, binding())
		require.NoError(t, err)
		_, err = c.VerifyOperator(strings.Replace(record, two.ID, one.ID, 1), sealed, binding())
		requireRefusal(t, ClassSignature, err)
	})
	t.Run("AnOperatorWithoutANameIsNoneThoughTheSealIsGenuine", func(t *testing.T) {
		c, _ := generated(t, HS256)
		o, key := Operator{At: time.UnixMilli(start.UnixMilli())}, c.Keys().sealer
		seal := encodeSegment(key.make(o.sealed(key.id, nil, binding())))
		_, err := c.VerifyOperator(strings.Join([]string{"", "1796040000000", "", key.id, seal}, operatorSeparator), nil, binding())
		requireRefusal(t, ClassMalformed, err)
	})
}

func TestKeyGuards(t *testing.T) {
	t.Run("ASeedOfAnotherLengthIsRefused", func(t *testing.T) {
		good := newKey(t, HS256)
		for _, bad := range []Key{
			{ID: "a", Algorithm: EdDSA, Secret: make([]byte, 31)},
			{ID: "a", Algorithm: EdDSA, Secret: make([]byte, 64)},
			{ID: "a", Algorithm: EdDSA, Secret: make([]byte, 31), Public: make([]byte, 32)},
			{ID: "a", Algorithm: EdDSA, Public: make([]byte, 31)},
			{ID: "a", Algorithm: EdDSA},
		} {
			_, err := NewKeyring([]Key{bad}, []Key{good})
			require.Error(t, err)
			_, err = NewKeyring([]Key{good}, []Key{bad})
			require.Error(t, err)
		}
	})
	t.Run("WhichKeySignsIsSaidOfItsKindOnly", func(t *testing.T) {
		token, seal := newKey(t, HS256), newKey(t, HS256)
		first, second := token, seal
		first.ID, second.ID = seal.ID, token.ID // the ids of each kind are those of the other, in the other order
		r := newKeyring(t, []Key{token, first}, []Key{seal, second})
		var signs []string
		for _, k := range r.Keys() {
			if k.Signs {
				signs = append(signs, string(k.Kind)+" "+k.ID)
			}
		}
		require.Equal(t, []string{"token " + r.TokenKeyID(), "seal " + r.SealKeyID()}, signs)
	})
}

func TestPublicKeysAlone(t *testing.T) {
	from, dir := t.TempDir(), t.TempDir()
	_, err := Folder{Dir: from, Seal: EdDSA}.Load()
	require.NoError(t, err)
	for _, name := range []string{"token-000001.jwk", "seal-000001.jwk"} {
		raw, err := os.ReadFile(filepath.Join(from, name))
		require.NoError(t, err)
		k, err := parseKey(raw)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(toJSON(t, newJWK(publicOf(k)))), 0o600))
	}
	k, err := Folder{Dir: dir, Token: EdDSA, Seal: EdDSA}.Load()
	require.NoError(t, err, "a host that only verifies")
	require.Empty(t, k.TokenKeyID()+k.SealKeyID(), "and none is made for it")
}

func TestTrustGuards(t *testing.T) {
	own := t.TempDir()
	mine, err := Folder{Dir: own, Seal: EdDSA}.Load()
	require.NoError(t, err)
	trust := func(set string) (*Keyring, error) {
		file := filepath.Join(t.TempDir(), "set.json")
		require.NoError(t, os.WriteFile(file, []byte(set), 0o600))
		return Folder{Dir: own, Seal: EdDSA, Trust: []string{file}}.Load()
	}
	t.Run("OurOwnKeysInTheSetOfTheFleetAreLeftOut", func(t *testing.T) {
		got, err := trust(string(mine.JWKS()))
		require.NoError(t, err)
		require.Equal(t, mine.Keys(), got.Keys())
	})
	t.Run("OurKeyUnderAnotherIDIsOneOfTheirs", func(t *testing.T) {
		got, err := trust(strings.ReplaceAll(string(mine.JWKS()), mine.SealKeyID(), "theirs"))
		require.NoError(t, err)
		require.NotNil(t, got.seals["theirs"])
	})
	t.Run("AnotherKeyUnderOurIDIsRefused", func(t *testing.T) {
		other, err := Folder{Dir: t.TempDir(), Seal: EdDSA}.Load()
		require.NoError(t, err)
		for _, ids := range [][2]string{{other.SealKeyID(), mine.SealKeyID()}, {other.TokenKeyID(), mine.TokenKeyID()}} {
			_, err = trust(strings.ReplaceAll(string(other.JWKS()), ids[0], ids[1]))
			require.ErrorContains(t, err, "two have the id")
		}
	})
	for member, wrong := range map[string]string{
		`"kty":"OKP"`: `"kty":"EC"`, `"crv":"Ed25519"`: `"crv":"P-256"`, `"alg":"EdDSA"`: `"alg":"ES256"`, `"use":"sig"`: `"use":"enc"`,
		`"longshore":"seal"`: `"longshore":"data"`,
	} {
		t.Run("RefusesAKeyWith "+wrong, func(t *testing.T) {
			set := string(mine.JWKS())
			require.Contains(t, set, member)
			_, err := trust(strings.Replace(set, member, wrong, 1))
			require.Error(t, err)
		})
	}
}
