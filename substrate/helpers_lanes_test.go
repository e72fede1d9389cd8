package substrate

import (
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/substrate/internal/store"
)

// scene is a test's place in a bubble: a log of its own, and its folder.
type scene struct {
	t   *testing.T
	dir string
	l   *Log
}

// inALog runs a test in a bubble, on a log of its own.
func inALog(t *testing.T, name string, test func(scene)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			test(scene{t, dir, openLog(t, dir)})
		})
	})
}

// eachly yields a log as a crash would leave it now, as a crash would leave it once the store is up to date, and the log
// itself, which may be changed.
func eachly(t *testing.T, dir string, l *Log) iter.Seq[*Log] {
	t.Helper()
	return func(yield func(*Log) bool) {
		if !yield(reopenCrashed(t, dir)) {
			return
		}
		storeUpToDate(t, l)
		if yield(reopenCrashed(t, dir)) {
			yield(l)
		}
	}
}

func makeGroup(t *testing.T, l *Log, name string, o GroupOptions) {
	t.Helper()
	_, made, err := l.CreateGroup(t.Context(), testTenant, testTopic, name, o)
	require.NoError(t, err)
	require.True(t, made)
}

func makeGroups(t *testing.T, l *Log, names ...string) {
	t.Helper()
	for _, name := range names {
		makeGroup(t, l, name, GroupOptions{})
	}
}

func groupNamed(t *testing.T, l *Log, name string) Group {
	t.Helper()
	groups, err := l.Groups(testTenant, testTopic)
	require.NoError(t, err)
	for _, g := range groups {
		if g.Name == name {
			return g
		}
	}
	require.Fail(t, "no group "+name)
	return Group{}
}

func laneRequest(lane string, n int) ClaimRequest {
	r := claimRequest(testTopic, n)
	r.Lane = lane
	return r
}

func claimFrom(t *testing.T, l *Log, lane string, n int) []Delivery {
	t.Helper()
	r, err := l.Claim(t.Context(), laneRequest(lane, n))
	require.NoError(t, err)
	require.Empty(t, r.Buried)
	return r.Deliveries
}

// settleAll ends deliveries in one commit.
func settleAll(t *testing.T, l *Log, deliveries []Delivery, v Verdict) {
	t.Helper()
	var s []Settlement
	for _, d := range deliveries {
		s = append(s, Settlement{Lease: d.Lease, Verdict: v})
	}
	require.NoError(t, l.Settle(t.Context(), s, nil))
}

// emptyLane claims and acknowledges all that a lane has, and returns the payloads.
func emptyLane(t *testing.T, l *Log, lane string) (got []string) {
	t.Helper()
	for {
		d := claimFrom(t, l, lane, 100)
		if len(d) == 0 {
			return got
		}
		got = append(got, payloads(d)...)
		settleAll(t, l, d, Ack)
	}
}

// publishKeyed publishes payloads whose first letter is their ordering key.
func publishKeyed(t *testing.T, l *Log, payloads ...string) {
	t.Helper()
	for _, p := range payloads {
		publishWith(t, l, p, MessageOptions{OrderingKey: p[:1]})
	}
}

// rows counts what the store has under a prefix, once it is up to date.
func rows(t *testing.T, l *Log, prefix []byte) (n int) {
	t.Helper()
	storeUpToDate(t, l)
	require.NoError(t, l.store.Keys(prefix, prefix, func([]byte) bool {
		n++
		return true
	}))
	return n
}

func testKey() store.Topic { return store.TopicOf(testTenant, testTopic) }

// stored counts the messages that are stored, once what nobody needs is gone.
func stored(t *testing.T, l *Log) int {
	t.Helper()
	time.Sleep(3 * time.Second)
	return rows(t, l, testKey().Messages())
}

// waits reports whether a claimer of a lane has to wait. It is called in a bubble.
func waits(t *testing.T, l *Log, lane string) bool {
	t.Helper()
	select {
	case err := <-waiter(t, l, lane):
		require.NoError(t, err)
		return false
	default:
		return true
	}
}

// waiter waits for a lane in a goroutine, which has begun to do so when waiter returns. It is called in a bubble.
func waiter(t *testing.T, l *Log, lane string) <-chan error {
	t.Helper()
	woken := make(chan error, 1)
	go func() { woken <- l.WaitReady(t.Context(), testTenant, testTopic, lane) }()
	synctest.Wait()
	return woken
}

func setMode(t *testing.T, l *Log, mode LaneMode) int64 {
	t.Helper()
	dropped, err := l.SetLaneMode(t.Context(), testTenant, testTopic, mode)
	require.NoError(t, err)
	return dropped
}

func ptr(v int64) *int64 { return &v }
