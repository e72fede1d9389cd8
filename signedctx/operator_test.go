package signedctx

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestOperator(t *testing.T) {
	t.Run("ComesBackAsItWasWritten", func(t *testing.T) {
		o := Operator{Act: "local:1000", At: start.Add(time.Millisecond), Why: "the \"fix\" is <out>"}
		text, err := o.Encode()
		require.NoError(t, err)
		require.Equal(t, o, ParseOperator(text))
	})
	t.Run("TheLongestFits", func(t *testing.T) {
		o := Operator{Act: strings.Repeat("a", limits.KeyBytes), At: time.UnixMilli(maxMillis), Why: strings.Repeat("w", limits.OperatorWhyBytes)}
		text, err := o.Encode()
		require.NoError(t, err)
		require.LessOrEqual(t, len(text), limits.OperatorBytes)
		o.Why += "x"
		_, err = o.Encode()
		require.ErrorContains(t, err, "bytes of why")
	})
	t.Run("RefusesWhatIsNoRecord", func(t *testing.T) {
		for _, o := range []Operator{{}, {Act: strings.Repeat("a", limits.KeyBytes+1)}, {Act: "\xff"}, {Act: "a", Why: "\xff"}, {Act: "a\x1fb"}, {Act: "a", Why: "two\nlines"}} {
			_, err := o.Encode()
			require.Error(t, err)
		}
		require.Zero(t, ParseOperator("local:1000"))
		require.Zero(t, ParseOperator(""))
	})
}
