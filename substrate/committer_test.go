package substrate

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// group holds the committer while queue queues requests, so that these become one group.
func group(t *testing.T, l *Log, queue func()) {
	t.Helper()
	busy, gate, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- l.submit(context.WithoutCancel(t.Context()), probe(func(uint64) {
			close(busy)
			<-gate
		}))
	}()
	<-busy
	func() {
		defer close(gate)
		queue()
	}()
	require.NoError(t, <-done)
}

// queued waits until n requests wait for the committer.
func queued(t *testing.T, l *Log, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return l.queue.len() == n }, 10*time.Second, time.Millisecond)
}

// probe is a request that makes its group durable, and whose prompt is told what is durable before.
func probe(prompt func(durable uint64)) *request {
	return &request{
		plan: func(time.Time) (frame, error) {
			return &topicFrame{name: TopicName{testTenant, "probe"}}, nil
		},
		prompt: func(durable uint64) bool {
			prompt(durable)
			return false
		},
	}
}

func TestAClaimIsAnsweredBeforeTheFlushOfItsGroup(t *testing.T) {
	l := openLog(t, t.TempDir())
	publish(t, l, testTopic, "a", "b")
	claimed, answered := make(chan []Delivery, 1), make(chan error, 1)
	group(t, l, func() {
		go func() {
			r, err := l.Claim(t.Context(), claimRequest(testTopic, 10))
			if err != nil {
				t.Error(err)
			}
			claimed <- r.Deliveries
		}()
		queued(t, l, 1)
		go func() {
			before, _ := l.JournalStats()
			answered <- l.submit(t.Context(), probe(func(uint64) {
				select {
				case d := <-claimed:
					claimed <- d
				case <-time.After(10 * time.Second):
					t.Error("the claim waits for the flush")
				}
				if now, _ := l.JournalStats(); now != before+1 {
					t.Errorf("%d flushes: want that of the group before, and no more", now-before)
				}
			}))
		}()
		queued(t, l, 2)
	})
	require.NoError(t, <-answered)
	require.Equal(t, []string{"a", "b"}, payloads(<-claimed))
}

func TestAClaimWaitsForTheFlush(t *testing.T) {
	fresh := taken{position: 5, attempt: 1, fresh: true}
	for name, c := range map[string]struct {
		frame claimFrame
		want  bool
	}{
		"NotIfAllItTakesIsDurable":   {claimFrame{taken: []taken{{position: 4, fresh: true}, fresh}}, true},
		"OfAMessageThatIsNotDurable": {claimFrame{taken: []taken{fresh, {position: 6, fresh: true}}}, false},
		"OfADeliveryThatCameBack":    {claimFrame{taken: []taken{fresh, {position: 4, attempt: 2}}}, false},
		"OfABurial":                  {claimFrame{taken: []taken{fresh}, buried: []buried{{position: 3}}}, false},
		"OfNothingButBurials":        {claimFrame{buried: []buried{{position: 3}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := claimPlan{claimFrame: &c.frame}
			require.Equal(t, c.want, p.prompt(6))
		})
	}
}

func TestOnlyAFlushMakesMessagesCountAsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLog(t, t.TempDir())
		n := int64(100)
		require.NoError(t, l.SetPolicy(t.Context(), testTenant, "relaxed", Policy{MaxUnflushed: &n}))
		durable := func() (position uint64) {
			require.NoError(t, l.submit(t.Context(), probe(func(durable uint64) { position = durable })))
			return position
		}
		strict := publish(t, l, testTopic, "x")[0].Position
		require.Greater(t, durable(), strict)
		relaxed := publish(t, l, "relaxed", "x")[0].Position
		require.LessOrEqual(t, durable(), relaxed, "it is written, and not flushed yet")
		require.Greater(t, durable(), relaxed, "the group before was flushed")
	})
}
