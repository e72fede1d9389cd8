package signedctx

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func mustLoad(t *testing.T, dir string) *Keyring {
	t.Helper()
	k, err := LoadOrCreate(dir)
	require.NoError(t, err)
	return k
}

func writeKey(t *testing.T, dir, name string, k Key) {
	t.Helper()
	raw, err := json.Marshal(newJWK(k))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), raw, 0o600))
}

func TestLoadOrCreate(t *testing.T) {
	t.Run("MakesOwnerOnlyFilesOnFirstStart", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "data", "keys")
		mustLoad(t, dir)
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 2) // and no drafts
		for i, name := range []string{"seal-000001.jwk", "token-000001.jwk"} {
			require.Equal(t, name, entries[i].Name())
			info, err := entries[i].Info()
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode())
		}
	})
	t.Run("TheNextStartVerifiesWhatTheFirstSealed", func(t *testing.T) {
		dir := t.TempDir()
		first, second := mustLoad(t, dir), mustLoad(t, dir)
		require.Equal(t, first.TokenKeyID(), second.TokenKeyID())
		require.Equal(t, first.SealKeyID(), second.SealKeyID())
		e := mustSeal(t, newContext(t, first, newClock()), principal(), binding())
		_, err := newContext(t, second, newClock()).Verify(e, binding())
		require.NoError(t, err)
	})
	t.Run("TwoFoldersHaveDifferentKeys", func(t *testing.T) {
		e := mustSeal(t, newContext(t, mustLoad(t, t.TempDir()), newClock()), principal(), binding())
		_, err := newContext(t, mustLoad(t, t.TempDir()), newClock()).Verify(e, binding())
		requireRefusal(t, ClassUnknownKey, err)
	})
	t.Run("TheGreatestNumberSignsAndAllVerify", func(t *testing.T) {
		dir := t.TempDir()
		stored := mustSeal(t, newContext(t, mustLoad(t, dir), newClock()), principal(), binding())
		token, seal := newKey(t, HS256), newKey(t, HS256)
		writeKey(t, dir, "token-000010.jwk", token)
		writeKey(t, dir, "token-000009.jwk", newKey(t, EdDSA))
		writeKey(t, dir, "seal-000002.jwk", seal)
		k := mustLoad(t, dir)
		require.Equal(t, token.ID, k.TokenKeyID())
		require.Equal(t, seal.ID, k.SealKeyID())
		_, err := newContext(t, k, newClock()).Verify(stored, binding())
		require.NoError(t, err)
	})
	t.Run("StartsAtOnceAgreeOnTheKeys", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "keys")
		ids := make([]string, 8)
		var wg sync.WaitGroup
		for i := range ids {
			wg.Go(func() {
				k, err := LoadOrCreate(dir)
				if err != nil {
					ids[i] = err.Error()
					return
				}
				ids[i] = k.TokenKeyID() + " " + k.SealKeyID()
			})
		}
		wg.Wait()
		for _, id := range ids {
			require.Equal(t, ids[0], id)
		}
	})
	t.Run("ADraftThatACrashLeftIsIgnored", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".token-000001.jwk.0011223344556677"), []byte("{"), 0o600))
		mustLoad(t, dir)
		require.FileExists(t, filepath.Join(dir, "token-000001.jwk"))
	})
	t.Run("AKeyOfOneKindIsMadeBesideTheOther", func(t *testing.T) {
		dir := t.TempDir()
		first := mustLoad(t, dir)
		require.NoError(t, os.Remove(filepath.Join(dir, "seal-000001.jwk")))
		second := mustLoad(t, dir)
		require.Equal(t, first.TokenKeyID(), second.TokenKeyID())
		require.NotEqual(t, first.SealKeyID(), second.SealKeyID())
	})
}

func TestLoadOrCreateRefuses(t *testing.T) {
	edDSA, hs256 := newKey(t, EdDSA), newKey(t, HS256)
	text := func(k Key) string { return toJSON(t, newJWK(k)) }
	tests := []struct{ name, file, content, want string }{
		{"ATruncatedFile", "token-000002.jwk", text(edDSA)[:50], "is not JSON"},
		{"AnEmptyFile", "token-000002.jwk", "", "is not JSON"},
		{"ALargeFile", "token-000002.jwk", strings.Repeat(" ", maxKeyFileBytes+1), "not a key"},
		{"AMisnamedKey", "token-2.jwk", text(edDSA), "six digits"},
		{"AnUnknownKind", "other-000001.jwk", text(edDSA), "six digits"},
		{"AnUnknownMember", "token-000002.jwk", strings.Replace(text(edDSA), `"d"`, `"e"`, 1), "has more than"},
		{"AnotherPublicHalf", "token-000002.jwk", strings.Replace(text(edDSA), `"x":"`, `"x":"A`, 1), "must agree"},
		{"AnotherCurve", "token-000002.jwk", strings.Replace(text(edDSA), "Ed25519", "X25519", 1), "must agree"},
		{"AnotherType", "token-000002.jwk", strings.Replace(text(hs256), "HS256", "EdDSA", 1), "must agree"},
		{"AnUnknownType", "token-000002.jwk", strings.Replace(text(hs256), `"oct"`, `"RSA"`, 1), "must agree"},
		{"AnotherAlgorithm", "token-000002.jwk", strings.Replace(text(hs256), "HS256", "HS512", 1), "use EdDSA or HS256"},
		{"AShortSecret", "token-000002.jwk", text(Key{ID: "a", Algorithm: HS256, Secret: make([]byte, 31)}), "32 to 64"},
		{"ALongSecret", "token-000002.jwk", text(Key{ID: "a", Algorithm: HS256, Secret: make([]byte, 65)}), "32 to 64"},
		{"ABadID", "token-000002.jwk", text(Key{ID: "a b", Algorithm: HS256, Secret: hs256.Secret}), "key id"},
		{"ANumberAsID", "token-000002.jwk", strings.Replace(text(hs256), toJSON(t, hs256.ID), "7", 1), "kid is not"},
		{"BadBase64", "token-000002.jwk", strings.Replace(text(hs256), `"k":"`, `"k":"=`, 1), "canonical base64url"},
		{"OneIDTwice", "token-000002.jwk", "", "two have the id"}, // the content is set below
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			first := mustLoad(t, dir)
			if tt.name == "OneIDTwice" {
				tt.content = text(Key{ID: first.TokenKeyID(), Algorithm: HS256, Secret: hs256.Secret})
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, tt.file), []byte(tt.content), 0o600))
			_, err := LoadOrCreate(dir)
			require.ErrorContains(t, err, tt.want)
			for _, secret := range [][]byte{edDSA.Secret, hs256.Secret} {
				require.NotContains(t, err.Error(), encodeSegment(secret)[:8])
			}
		})
	}
	t.Run("AFileThatOthersCanRead", func(t *testing.T) {
		dir := t.TempDir()
		mustLoad(t, dir)
		require.NoError(t, os.Chmod(filepath.Join(dir, "seal-000001.jwk"), 0o640))
		_, err := LoadOrCreate(dir)
		require.ErrorContains(t, err, "set 0600")
	})
	t.Run("AFileInPlaceOfTheFolder", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "keys")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		_, err := LoadOrCreate(file)
		require.ErrorContains(t, err, "is not a folder")
	})
	t.Run("ALinkOutOfTheFolder", func(t *testing.T) {
		dir, outside := t.TempDir(), t.TempDir()
		writeKey(t, outside, "token-000001.jwk", edDSA)
		require.NoError(t, os.Symlink(filepath.Join(outside, "token-000001.jwk"), filepath.Join(dir, "token-000001.jwk")))
		_, err := LoadOrCreate(dir)
		require.ErrorContains(t, err, "escapes")
	})
}

func TestKey(t *testing.T) {
	t.Run("ReadsThePublishedExample", func(t *testing.T) { // RFC 8037, appendix A
		raw := `{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","kid":"rfc8037",` +
			`"d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`
		_, err := parseKey([]byte(raw))
		require.NoError(t, err)
	})
	t.Run("PrintsWithoutItsSecret", func(t *testing.T) {
		k := Key{ID: "k1", Algorithm: HS256, Secret: []byte("a secret that must not be printed")}
		want := fmt.Sprintf("%v", k)
		require.Equal(t, `HS256 key "k1"`, want)
		for _, format := range []string{"%v", "%+v", "%s", "%#v"} {
			require.Equal(t, want, fmt.Sprintf(format, k))
		}
		require.NotContains(t, toJSON(t, k), "secret")
	})
	t.Run("AKeyringNeedsOneOfEachKind", func(t *testing.T) {
		k := []Key{newKey(t, HS256)}
		for _, kinds := range [][2][]Key{{nil, k}, {k, nil}, {nil, nil}} {
			_, err := NewKeyring(kinds[0], kinds[1])
			require.ErrorContains(t, err, "at least one")
		}
	})
	t.Run("AnIDIsUniqueAmongTheKeysOfAKind", func(t *testing.T) {
		one, other := newKey(t, HS256), newKey(t, HS256)
		_, err := NewKeyring([]Key{one}, []Key{one})
		require.NoError(t, err)
		_, err = NewKeyring([]Key{one}, []Key{one, other, one})
		require.ErrorContains(t, err, "two have the id")
		_, err = NewKeyring([]Key{one, other, one}, []Key{one})
		require.ErrorContains(t, err, "two have the id")
	})
	t.Run("AKeyringKeepsItsOwnCopy", func(t *testing.T) {
		token, seal := newKey(t, HS256), newKey(t, HS256)
		c := newContext(t, newKeyring(t, []Key{token}, []Key{seal}), newClock())
		before := mustSeal(t, c, principal(), binding())
		token.Secret[0]++
		seal.Secret[0]++
		again := newContext(t, c.Keys(), newClock())
		_, err := again.Verify(before, binding())
		require.NoError(t, err)
	})
}
