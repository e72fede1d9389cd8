package crashtest

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestKilledDuringStartUp(t *testing.T) {
	const (
		rounds   = 10
		messages = 50
		least    = 5 * time.Millisecond
		most     = 50 * time.Millisecond
	)
	f := newOpenFolder(t)
	r := newRandom(t)
	killStarting(t, f, r, rounds, least, most) // of the very first start, which makes the files
	started := time.Now()
	h := f.startReady(t, none)
	ready := time.Since(started)
	var want []string
	for n := range messages {
		payload := strconv.Itoa(n)
		_, err := post(t.Context(), http.DefaultClient, h.address, openTenant, openTopic, payload)
		require.NoError(t, err)
		want = append(want, payload)
	}
	h.kill(t)
	http.DefaultClient.CloseIdleConnections()

	killStarting(t, f, r, rounds, least, most)
	killStarting(t, f, r, rounds, least, max(ready, most)) // wherever it is on this machine, up to being ready
	h = f.startReady(t, none)
	requireStored(t, h.admin, want)
	h.kill(t)
}

// killStarting starts a host and kills it so long after, again and again.
func killStarting(t *testing.T, f folder, r *rand.Rand, rounds int, least, most time.Duration) {
	t.Helper()
	for range rounds {
		h := f.start(t, none)
		time.Sleep(between(r, least, most))
		h.kill(t)
	}
}
