package telemetry

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/substrate"
)

func expiredLetters(n int) []substrate.DeadLetter {
	out := make([]substrate.DeadLetter, n)
	for i := range out {
		out[i] = substrate.DeadLetter{ID: fmt.Sprint("m", i), Tenant: "default", Topic: "t\nx", Reason: substrate.ReasonTTLExpired, Attempts: 2}
	}
	return out
}

func TestExpiries(t *testing.T) {
	t.Run("AreCountedAndListedEach", func(t *testing.T) {
		var out bytes.Buffer
		logger, err := NewLogger(&out, "info", "json")
		require.NoError(t, err)
		m := NewMetrics(Build{})
		e := NewExpiries(m, logger)
		letters := expiredLetters(3)
		letters[2].Reason = substrate.ReasonDeadline
		e.Report(letters)
		e.Close()
		require.Equal(t, 3, strings.Count(out.String(), "\n"), out.String())
		require.Contains(t, out.String(),
			`"tenant":"default","topic":"t\nx","message":"m0","attempt":2,"verdict":"bury","reason":"ttl-expired"`)
		require.Contains(t, out.String(), `"message":"m2","attempt":2,"verdict":"bury","reason":"deadline-exceeded"`)
		got := scrape(t, m)
		require.Contains(t, got, `longshore_messages_buried_total{consumer="",reason="ttl-expired",tenant="default"} 2`)
		require.Contains(t, got, `longshore_messages_buried_total{consumer="",reason="deadline-exceeded",tenant="default"} 1`)
	})
	t.Run("NeverWaitForTheLogger", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := &stuckWriter{stuck: make(chan struct{})}
			logger, err := NewLogger(w, "info", "json")
			require.NoError(t, err)
			m := NewMetrics(Build{})
			e := NewExpiries(m, logger)
			e.Report(expiredLetters(1))
			synctest.Wait() // the logger has it, and is stuck
			const more = 5
			for range expiryBatches + more {
				e.Report(expiredLetters(2)) // a wait would be a deadlock
			}
			close(w.stuck)
			e.Close()
			require.Equal(t, 1+2*expiryBatches, strings.Count(w.String(), `"message expired"`), "what there was room for")
			require.Contains(t, w.String(), fmt.Sprintf(`"messages":%d`, 2*more))
			require.Contains(t, scrape(t, m), fmt.Sprintf(`reason="ttl-expired",tenant="default"} %d`, 1+2*(expiryBatches+more)))
		})
	})
}

// stuckWriter takes nothing until its channel is closed.
type stuckWriter struct {
	stuck chan struct{}
	bytes.Buffer
}

func (w *stuckWriter) Write(p []byte) (int, error) {
	<-w.stuck
	return w.Buffer.Write(p)
}
