package signedctx

import (
	"crypto/hmac"
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDesk(t *testing.T) {
	secret := []byte(strings.Repeat("s", minSecretBytes))
	for _, a := range []Algorithm{HS256, EdDSA} {
		t.Run("HoldsTheTextAndTheSealOfTheLongestKeyID/"+string(a), func(t *testing.T) {
			k := newSealKey(Key{ID: strings.Repeat("k", maxKeyIDBytes), Algorithm: a, Secret: secret})
			require.True(t, keyIDForm.MatchString(k.id))
			require.False(t, keyIDForm.MatchString(k.id+"k"))
			var d desk
			e := envelope{keyID: []byte(k.id), sealed: maxMillis}
			text := k.sealed(e, tokenHash("token"), d.text[:0])
			require.Len(t, text, maxSealedBytes)
			require.Same(t, &d.text[0], &text[0])
			room := make([]byte, maxSealBytes)
			require.Same(t, &room[0], &k.seal(e, tokenHash("token"), room[:0])[0])
		})
	}
	t.Run("KeepsNothingOfTheSealBefore", func(t *testing.T) {
		k := newSealKey(Key{ID: "k", Algorithm: HS256, Secret: secret})
		for _, text := range []string{"a long text before a short one", "", "short", "a long text before a short one"} {
			m := hmac.New(sha256.New, secret)
			m.Write([]byte(text))
			require.Equal(t, m.Sum(nil), k.make([]byte(text)))
			require.True(t, k.made([]byte(text), m.Sum(nil)))
			require.False(t, k.made([]byte(text+"."), m.Sum(nil)))
		}
	})
}
