package substrate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestExpiryOfALeasedMessage(t *testing.T) {
	t.Run("CountsAtOnceWhenACrashVoidsTheLease", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			l := openLog(t, dir)
			publishWith(t, l, "a", MessageOptions{TTL: time.Second})
			claimOne(t, l, testTopic) // for a minute
			l = reopenCrashed(t, dir)
			time.Sleep(2 * time.Second)
			require.Equal(t, int64(1), stats(t, l, testTopic).DeadLetters)
		})
	})

	t.Run("CountsAtTheEndOfALeaseThatWasCutShort", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			publishWith(t, l, "a", MessageOptions{TTL: time.Second})
			_, err := l.Extend(t.Context(), claimOne(t, l, testTopic).Lease, 2*time.Second)
			require.NoError(t, err)
			time.Sleep(3 * time.Second)
			require.Equal(t, int64(1), stats(t, l, testTopic).DeadLetters)
		})
	})
}
