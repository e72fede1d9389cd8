package signedctx

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// goldenKeys are the keys of testdata/envelope-v1.hex: counting bytes, from 0 and from 64.
func goldenKeys(t *testing.T) *Keyring {
	t.Helper()
	token := Key{ID: "token-1", Algorithm: HS256, Secret: make([]byte, 32)}
	seal := Key{ID: "seal-1", Algorithm: HS256, Secret: make([]byte, 32)}
	for i := range byte(32) {
		token.Secret[i], seal.Secret[i] = i, 64+i
	}
	return newKeyring(t, []Key{token}, []Key{seal})
}

// TestFormat holds an envelope that another program made from the drawing in the package comment. Messages that are
// stored with it must verify for as long as version 1 is read.
func TestFormat(t *testing.T) {
	text, err := os.ReadFile("testdata/envelope-v1.hex")
	require.NoError(t, err)
	golden, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	require.NoError(t, err)
	clock := newClock()
	clock.advance(1234 * time.Millisecond)
	c := newContext(t, goldenKeys(t), clock)

	t.Run("VerifiesTheStoredEnvelope", func(t *testing.T) {
		got, err := c.Verify(golden, binding())
		require.NoError(t, err)
		require.Equal(t, Verified{
			Tenant: "acme", Subject: "local:1000", Issuer: "harbour", TokenID: "000102030405060708090a0b0c0d0e0f",
			IssuedAt: time.Unix(start.Unix(), 0), SealedAt: clock.now(), Claims: []Claim{{"role", "clerk"}},
		}, got)
	})
	t.Run("WritesTheSameBytes", func(t *testing.T) {
		e, err := decodeEnvelope(golden)
		require.NoError(t, err)
		require.Equal(t, golden, forge(t, c, string(e.token), binding(), clock.now()))
	})
}
