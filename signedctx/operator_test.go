package signedctx

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestOperator(t *testing.T) {
	why := Operator{Act: "local:1000", At: start.Add(time.Millisecond), Why: "the \"fix\" is <out>"}

	for name, key := range map[string]Key{"MAC": newKey(t, HS256), "Signature": newKey(t, EdDSA)} {
		c := newContext(t, newKeyring(t, []Key{newKey(t, EdDSA)}, []Key{key}), newClock())
		envelope := mustSeal(t, c, principal(), binding())
		text, err := c.SealOperator(why, envelope, binding())
		require.NoError(t, err)

		t.Run(name+"ComesBackAsItWasWritten", func(t *testing.T) {
			got, err := c.VerifyOperator(text, envelope, binding())
			require.NoError(t, err)
			require.Equal(t, why, got)
			require.Equal(t, why, ParseOperator(text))
		})
		t.Run(name+"EveryFlippedBitAndEveryCutIsRefused", func(t *testing.T) {
			for i := range text {
				_, err := c.VerifyOperator(text[:i], envelope, binding())
				require.Error(t, err, i)
				for bit := range 8 {
					b := []byte(text)
					b[i] ^= 1 << bit
					_, err := c.VerifyOperator(string(b), envelope, binding())
					require.Error(t, err, "bit %d of byte %d", bit, i)
				}
			}
		})
		t.Run(name+"BelongsToOneMessageAndItsEnvelope", func(t *testing.T) {
			other := binding()
			other.MessageID = "1796040000000-00000000000000a2"
			_, err := c.VerifyOperator(text, envelope, other)
			requireRefusal(t, ClassSignature, err)
			_, err = c.VerifyOperator(text, mustSeal(t, c, Principal{Tenant: "acme", Subject: "x"}, binding()), binding())
			requireRefusal(t, ClassSignature, err)
			_, err = c.VerifyOperator(text, nil, binding())
			requireRefusal(t, ClassSignature, err)
		})
		t.Run(name+"IsNoEnvelopesSeal", func(t *testing.T) {
			_, err := c.Verify([]byte(text), binding())
			require.Error(t, err)
		})
		t.Run(name+"ANewKeySealsAndTheOldOneVerifies", func(t *testing.T) {
			next := newContext(t, newKeyring(t, []Key{newKey(t, EdDSA)}, []Key{newKey(t, HS256), key}), newClock())
			_, err := next.VerifyOperator(text, envelope, binding())
			require.NoError(t, err)
			gone := newContext(t, newKeyring(t, []Key{newKey(t, EdDSA)}, []Key{newKey(t, HS256)}), newClock())
			_, err = gone.VerifyOperator(text, envelope, binding())
			requireRefusal(t, ClassUnknownKey, err)
		})
	}

	c, _ := generated(t, EdDSA)
	t.Run("OneWithoutASealIsReadAndNotBelieved", func(t *testing.T) {
		old := strings.Join([]string{why.Act, "1796040000001", why.Why}, operatorSeparator)
		require.Equal(t, why.Act, ParseOperator(old).Act)
		_, err := c.VerifyOperator(old, nil, binding())
		requireRefusal(t, ClassMalformed, err)
		_, err = c.VerifyOperator("", nil, binding())
		requireRefusal(t, ClassMissing, err)
	})
	t.Run("TheLongestFits", func(t *testing.T) {
		long := Key{ID: strings.Repeat("k", 64), Algorithm: EdDSA, Secret: newKey(t, EdDSA).Secret}
		c := newContext(t, newKeyring(t, []Key{newKey(t, EdDSA)}, []Key{long}), newClock())
		o := Operator{Act: strings.Repeat("a", limits.KeyBytes), At: time.UnixMilli(maxMillis), Why: strings.Repeat("w", limits.OperatorWhyBytes)}
		text, err := c.SealOperator(o, nil, binding())
		require.NoError(t, err)
		require.LessOrEqual(t, len(text), limits.OperatorBytes)
		o.Why += "x"
		_, err = c.SealOperator(o, nil, binding())
		require.ErrorContains(t, err, "bytes of why")
	})
	t.Run("RefusesWhatIsNoRecord", func(t *testing.T) {
		for _, o := range []Operator{{}, {Act: strings.Repeat("a", limits.KeyBytes+1)}, {Act: "\xff"}, {Act: "a", Why: "\xff"}, {Act: "a\x1fb"}, {Act: "a", Why: "two\nlines"}} {
			_, err := c.SealOperator(o, nil, binding())
			require.Error(t, err)
		}
		require.Zero(t, ParseOperator("local:1000"))
		require.Zero(t, ParseOperator(""))
	})
}
