package crashtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What an idle host may have more than before, for connections that end a little later and for memory that is given back slowly.
const (
	idleGoroutines = 4
	idleBytes      = 64 << 20
	idleRatio      = 1.25
	idlePoll       = 250 * time.Millisecond
	idleAtLeast    = 3 * time.Second
)

// usage is what a process has.
type usage struct {
	goroutines int
	resident   int64 // bytes that are no file's; 0 if the system doesn't say
}

// idle waits until the host, which has nothing to do, is at rest: until it has no more than before, if that is given, or else for a
// while.
func (s *soak) idle(t *testing.T, before *usage) (now usage) {
	t.Helper()
	if before == nil {
		for began := time.Now(); time.Since(began) < idleAtLeast; time.Sleep(idlePoll) {
			now = s.usage(t)
		}
		return now
	}
	most := usage{before.goroutines + idleGoroutines, int64(idleRatio*float64(before.resident)) + idleBytes}
	require.Eventually(t, func() bool {
		now = s.usage(t)
		return now.goroutines <= most.goroutines && now.resident <= most.resident
	}, soakIdle, idlePoll, "idle, the host has more than before: it had %+v", *before)
	fmt.Println("figure soak_goroutines_over_base", now.goroutines-before.goroutines)
	if before.resident > 0 {
		fmt.Printf("figure soak_resident_over_base %.2f\n", float64(now.resident)/float64(before.resident))
	}
	t.Logf("idle: %+v before, %+v now", *before, now)
	return now
}

func (s *soak) usage(t *testing.T) usage {
	t.Helper()
	return usage{goroutines: s.goroutines(t), resident: resident(t, s.host.cmd.Process.Pid)}
}

// goroutines reads how many there are from the host's metrics.
func (s *soak) goroutines(t *testing.T) int {
	t.Helper()
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", s.folder.file("data/admin.sock"))
	}}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/metrics", nil)
	require.NoError(t, err)
	resp, err := c.Do(r)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^go_goroutines (\d+)$`).FindSubmatch(text)
	require.NotNil(t, found)
	n, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	return n
}

// resident reads the memory of a process that is no file's. Pages of the store's files come and go as the system likes.
func resident(t *testing.T, pid int) (bytes int64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if os.IsNotExist(err) {
		return 0 // there is no such thing here
	}
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)^Rss(?:Anon|Shmem):\s+(\d+) kB$`).FindAllSubmatch(status, -1) {
		kib, err := strconv.ParseInt(string(m[1]), 10, 64)
		require.NoError(t, err)
		bytes += kib << 10
	}
	return bytes
}
