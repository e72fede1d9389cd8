package substrate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestPublish(t *testing.T) {
	t.Run("IsDurableWhenItReturns", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		receipts := publish(t, l, testTopic, "a")
		require.Equal(t, uint64(1), receipts[0].Position)
		require.Equal(t, []string{"a"}, payloads(claim(t, reopenCrashed(t, dir), testTopic, 10)))
	})

	t.Run("KeepsAMessageAsGiven", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		m := l.newMessage(testTopic, "payload")
		m.ContentType = "text/plain"
		m.Metadata = []Pair{{"b", "1"}, {"a", "2"}, {"b", ""}}
		m.Envelope = []byte{0, 1, 2, 0xff}
		m.Parent, m.Hops = l.MintID(), 7
		_, err := l.Publish(t.Context(), m)
		require.NoError(t, err)
		require.Equal(t, m, claimOne(t, l, testTopic).Message)
		require.Equal(t, m, claimOne(t, reopenCrashed(t, dir), testTopic).Message)
	})

	t.Run("TakesAnEmptyPayload", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "", "x", "")
		require.Equal(t, []string{"", "x", ""}, payloads(claim(t, l, testTopic, 10)))
	})

	t.Run("StoresABatchOverSeveralTopicsInOrder", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		receipts, err := l.Publish(t.Context(), l.newMessage("a", "1"), l.newMessage("b", "2"), l.newMessage("a", "3"))
		require.NoError(t, err)
		require.Equal(t, []uint64{1, 2, 3}, []uint64{receipts[0].Position, receipts[1].Position, receipts[2].Position})
		require.Equal(t, []string{"1", "3"}, payloads(claim(t, l, "a", 10)))
		require.Equal(t, []string{"2"}, payloads(claim(t, l, "b", 10)))
	})

	t.Run("StoresNothingOfABatchWithOneBadMessage", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		bad := l.newMessage(testTopic, "")
		bad.Topic = "no//such"
		_, err := l.Publish(t.Context(), l.newMessage(testTopic, "a"), bad)
		var name *NameError
		require.ErrorAs(t, err, &name)
		require.ErrorContains(t, err, "message 2 of 2")
		require.Empty(t, l.Topics())
	})

	t.Run("RefusesABatchThatIsTooLargeUpFront", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		half := strings.Repeat("x", testSegment/2)
		_, err := l.Publish(t.Context(), l.newMessage(testTopic, half), l.newMessage(testTopic, half))
		require.ErrorIs(t, err, &limits.Error{Name: limits.NameBatchBytes})
		require.Empty(t, l.Topics())
		publish(t, l, testTopic, half)
	})

	t.Run("OfNothingIsANoOp", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		receipts, err := l.Publish(t.Context())
		require.NoError(t, err)
		require.Empty(t, receipts)
	})

	t.Run("CancelledMayStillStoreTheWholeBatch", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := l.Publish(ctx, l.newMessage(testTopic, "a"), l.newMessage(testTopic, "b"))
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
		storeUpToDate(t, l)
		if s, exists := l.Stats(testTenant, testTopic); exists {
			require.Equal(t, int64(2), s.Ready)
		}
	})

	t.Run("RefusesEachBoundOfAMessageAndTakesWhatIsJustInside", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		for _, c := range []struct {
			name  limits.Name
			grow  func(m *Message, n int)
			limit int
		}{
			{limits.NameMetadataPairs, func(m *Message, n int) { m.Metadata = make([]Pair, n) }, limits.MetadataPairs},
			{limits.NameMetadataBytes, func(m *Message, n int) { m.Metadata = []Pair{{"k", strings.Repeat("v", n-1)}} }, limits.MetadataBytes},
			{limits.NameKeyBytes, func(m *Message, n int) { m.ContentType = strings.Repeat("t", n) }, limits.KeyBytes},
			{"envelope bytes", func(m *Message, n int) { m.Envelope = make([]byte, n) }, limits.EnvelopeBytes},
		} {
			inside, outside := l.newMessage(testTopic, ""), l.newMessage(testTopic, "")
			c.grow(&inside, c.limit)
			c.grow(&outside, c.limit+1)
			_, err := l.Publish(t.Context(), inside)
			require.NoError(t, err, c.name)
			_, err = l.Publish(t.Context(), outside)
			require.ErrorIs(t, err, &limits.Error{Name: c.name})
		}
	})

	t.Run("PositionsFollowTheOrderOfCommits", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		var wg sync.WaitGroup
		var mu sync.Mutex
		seen := map[uint64]bool{}
		for range 8 {
			wg.Go(func() {
				for range 50 {
					receipts, err := l.Publish(t.Context(), l.newMessage(testTopic, "x"))
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					seen[receipts[0].Position] = true
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		require.Len(t, seen, 400)
		require.True(t, seen[1] && seen[400])
	})
}

func TestConcurrentPublishersShareFlushes(t *testing.T) {
	l := openLog(t, t.TempDir())
	publish(t, l, testTopic, "first")
	before, _ := l.JournalStats()
	planning, gate := make(chan struct{}), make(chan struct{})
	held := &request{plan: func(time.Time) (frame, error) {
		close(planning)
		<-gate
		return nil, nil
	}}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := l.submit(t.Context(), held); err != nil {
			t.Error(err)
		}
	})
	<-planning // the committer is busy: everybody else queues up behind it
	const publishers = 64
	for range publishers {
		wg.Go(func() {
			if _, err := l.Publish(t.Context(), l.newMessage(testTopic, "x")); err != nil {
				t.Error(err)
			}
		})
	}
	for l.queue.len() < publishers {
		time.Sleep(time.Millisecond)
	}
	close(gate)
	wg.Wait()
	after, _ := l.JournalStats()
	require.Equal(t, uint64(1), after-before, "one flush for all that waited")
}

func TestMessageIDs(t *testing.T) {
	t.Run("AreOfTheFormThatSorts", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		a, b := l.MintID(), l.MintID()
		require.Regexp(t, `^[0-9]{13}-[0-9a-f]{16}$`, a)
		require.Less(t, a, b)
	})

	t.Run("AreUsedOnce", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		m := l.newMessage(testTopic, "a")
		_, err := l.Publish(t.Context(), m)
		require.NoError(t, err)
		_, err = l.Publish(t.Context(), m)
		require.ErrorContains(t, err, "not published before")
		twice := l.newMessage(testTopic, "b")
		_, err = l.Publish(t.Context(), twice, twice)
		require.ErrorContains(t, err, "not published before")
		_, err = l.Publish(t.Context(), twice)
		require.NoError(t, err, "a refused batch uses up no id")
	})

	t.Run("OfAnotherOpeningOrMadeUpAreRefused", func(t *testing.T) {
		dir := t.TempDir()
		old := openLog(t, dir).MintID()
		l := reopenCrashed(t, dir)
		for _, id := range []string{old, "", "x", "0000000000001-0000000000000001", l.MintID()[:13] + "-00000000000000AB", l.MintID() + "0"} {
			_, err := l.Publish(t.Context(), Message{ID: id, Tenant: testTenant, Topic: testTopic})
			var name *NameError
			require.ErrorAs(t, err, &name, "%q", id)
		}
	})

	t.Run("GoStaleAfterManyYoungerOnes", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		first, second := l.newMessage(testTopic, "a"), l.newMessage(testTopic, "b")
		for range limits.MintedIDs - 1 {
			l.mint.issued.Add(1)
		}
		_, err := l.Publish(t.Context(), second)
		require.NoError(t, err)
		_, err = l.Publish(t.Context(), first)
		require.ErrorContains(t, err, "one of the last")
	})
}

func TestNames(t *testing.T) {
	for _, good := range []string{"a", "a/b", "A.b_c-9", "..a", strings.Repeat("x", 200)} {
		require.NoError(t, ValidTopic(good), "%q", good)
	}
	for _, bad := range []string{"", "/", "a/", "/a", "a//b", ".", "..", "a/../b", "a b", "a:b", "ä", "a\x00", strings.Repeat("x", 201)} {
		require.Error(t, ValidTopic(bad), "%q", bad)
	}
	for _, good := range []string{"a", "acme-2", strings.Repeat("x", 63)} {
		require.NoError(t, ValidTenant(good), "%q", good)
	}
	for _, bad := range []string{"", "A", "a_b", "a/b", strings.Repeat("x", 64)} {
		require.Error(t, ValidTenant(bad), "%q", bad)
	}
	require.NotContains(t, ValidTopic("a\x1b[31m").Error(), "\x1b")
}

func TestTopicsNeverTouchEachOther(t *testing.T) {
	l := openLog(t, t.TempDir())
	names := []TopicName{{"a", "b"}, {"a", "b/b"}, {"ab", "b"}, {"a", "ab"}, {"a", "a/b"}, {"a-b", "c"}, {"a", "b-c"}, {"a", "b.L"}}
	for i, n := range names {
		_, err := l.Publish(t.Context(), Message{ID: l.MintID(), Tenant: n.Tenant, Topic: n.Topic, Payload: fmt.Append(nil, i)})
		require.NoError(t, err)
	}
	storeUpToDate(t, l)
	for i, n := range names {
		r := claimRequest(n.Topic, 10)
		r.Tenant = n.Tenant
		got, err := l.Claim(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, []string{fmt.Sprint(i)}, payloads(got.Deliveries))
		settle(t, l, got.Deliveries[0], Ack, "")
	}
}

func TestTopicsOfATenantAreBounded(t *testing.T) {
	l := openLog(t, t.TempDir())
	l.state.tenant(testTenant).topics = limits.TopicsPerTenant - 1
	publish(t, l, "last", "x")
	_, err := l.Publish(t.Context(), l.newMessage("one-more", "x"))
	require.ErrorIs(t, err, &limits.Error{Name: limits.NameTopics})
	require.ErrorIs(t, l.Pause(t.Context(), testTenant, "one-more", true), &limits.Error{Name: limits.NameTopics})
	publish(t, l, "last", "y")
}

func TestClosedLogAnswersWithErrClosed(t *testing.T) {
	l, err := Open(t.Context(), Options{Dir: t.TempDir(), SegmentBytes: testSegment})
	require.NoError(t, err)
	m := l.newMessage(testTopic, "a")
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	_, err = l.Publish(t.Context(), m)
	require.True(t, errors.Is(err, ErrClosed))
	require.ErrorIs(t, l.WaitReady(t.Context(), testTenant, testTopic, ""), ErrClosed)
}
