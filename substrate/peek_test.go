package substrate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestPeekAfterAnExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "a")
		publishWith(t, l, "expires", MessageOptions{TTL: time.Second})
		publish(t, l, testTopic, "b")
		time.Sleep(2 * time.Second)
		peek := func() (seen []string) {
			peeked, err := l.Peek(t.Context(), testTenant, testTopic, "", 0, limits.DeadLetterPage)
			require.NoError(t, err)
			for _, p := range peeked {
				seen = append(seen, p.State+" "+string(p.Message.Payload))
			}
			return seen
		}
		require.Equal(t, []string{"ready a", "ready b"}, peek(), "what is dead is not ready")
		_, err := l.Redrive(t.Context(), testTenant, testTopic, Redrive{})
		require.NoError(t, err)
		require.Equal(t, []string{"ready expires", "ready a", "ready b"}, peek(), "each once")
	})
}

func TestOldestAfterAnExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		for range 2 * oldestReads {
			publishWith(t, l, "expires", MessageOptions{TTL: 2 * time.Second})
		}
		time.Sleep(time.Second)
		publish(t, l, testTopic, "stays")
		stays := time.Now()
		l = reopenCrashed(t, dir)
		require.Equal(t, stays.Add(-time.Second), stats(t, l, testTopic).Oldest)
		time.Sleep(2 * time.Second)
		require.Equal(t, stays, stats(t, l, testTopic).Oldest, "what is dead is not the oldest")
		require.Equal(t, stays, stats(t, reopenCrashed(t, dir), testTopic).Oldest)
	})
}
