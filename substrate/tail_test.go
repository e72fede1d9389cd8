package substrate

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/longshore/longshore/limits"
)

func newTail(t *testing.T, l *Log, after uint64) *Tail {
	t.Helper()
	tail, err := l.Tail(t.Context(), testTenant, testTopic, TailOptions{After: after})
	require.NoError(t, err)
	t.Cleanup(tail.Close)
	return tail
}

func nextEvent(t *testing.T, tail *Tail) TailEvent {
	t.Helper()
	e, err := tail.Next(t.Context())
	require.NoError(t, err)
	return e
}

// nextN returns the payloads of the next events, none of which follows a loss.
func nextN(t *testing.T, tail *Tail, n int) (seen []string) {
	t.Helper()
	for range n {
		e := nextEvent(t, tail)
		require.Nil(t, e.Gap)
		require.Zero(t, e.Dropped)
		seen = append(seen, string(e.Message.Payload))
	}
	return seen
}

// idle checks that there is no event now, and none that was dropped.
func idle(t *testing.T, tail *Tail) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := tail.Next(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Zero(t, tail.dropped)
}

func tailNumbered(from, to int) (s []string) {
	for i := from; i < to; i++ {
		s = append(s, fmt.Sprintf("m%06d", i))
	}
	return s
}

func TestTail(t *testing.T) {
	t.Run("TellsOfWhatIsPublishedFromNowOnInOrder", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "before")
		tail, second := newTail(t, l, 0), newTail(t, l, 0)
		publish(t, l, "other", "x")
		publish(t, l, testTopic, "a", "b")
		e := nextEvent(t, tail)
		require.Equal(t, "a", string(e.Message.Payload))
		require.EqualValues(t, 3, e.Position)
		require.Equal(t, testTopic, e.Message.Topic)
		require.False(t, e.Delayed)
		require.Equal(t, []string{"b"}, nextN(t, tail, 1))
		idle(t, tail)
		require.Equal(t, []string{"a", "b"}, nextN(t, second, 2), "each tail has its own place")
	})

	t.Run("OfATopicThatDoesNotExistYetMakesNone", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		tail := newTail(t, l, 0)
		require.Empty(t, l.Topics())
		publish(t, l, testTopic, "a")
		require.Equal(t, []string{"a"}, nextN(t, tail, 1))
	})

	t.Run("WaitsForTheNext", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			tail := newTail(t, l, 0)
			for i := range 3 {
				got := make(chan TailEvent)
				go func() { got <- nextEvent(t, tail) }()
				synctest.Wait()
				publish(t, l, testTopic, fmt.Sprint(i))
				require.Equal(t, fmt.Sprint(i), string((<-got).Message.Payload))
			}
			tail.Close()
		})
	})

	t.Run("TellsOfAnOutbox", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, "source", "x")
		tail := newTail(t, l, 0)
		d := claimOne(t, l, "source")
		require.NoError(t, l.Settle(t.Context(), []Settlement{{Lease: d.Lease, Verdict: Ack}}, []Message{l.newMessage(testTopic, "out")}))
		require.Equal(t, []string{"out"}, nextN(t, tail, 1))
	})

	t.Run("TellsOfADelayedMessageOnceAtPublish", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			tail := newTail(t, l, 0)
			publishWith(t, l, "later", MessageOptions{Delay: time.Second})
			publish(t, l, testTopic, "a")
			e := nextEvent(t, tail)
			require.True(t, e.Delayed)
			require.Zero(t, e.Position)
			require.Equal(t, "later", string(e.Message.Payload))
			require.Equal(t, []string{"a"}, nextN(t, tail, 1))
			time.Sleep(2 * time.Second)
			require.EqualValues(t, 2, stats(t, l, testTopic).Ready)
			idle(t, tail)
			tail.Close()
		})
	})

	t.Run("DoesNotTellOfADuplicateOrOfWhatWasRefused", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		tail := newTail(t, l, 0)
		depth := int64(2)
		require.NoError(t, l.SetPolicy(t.Context(), testTenant, testTopic, Policy{MaxDepth: &depth}))
		publishWith(t, l, "a", MessageOptions{IdempotencyKey: "k"})
		publishWith(t, l, "again", MessageOptions{IdempotencyKey: "k"})
		publish(t, l, testTopic, "b")
		_, err := l.Publish(t.Context(), l.newMessage(testTopic, "refused"))
		require.Error(t, err)
		require.Equal(t, []string{"a", "b"}, nextN(t, tail, 2))
		idle(t, tail)
	})

	t.Run("TellsOfARelaxedTopicWhenItIsAnswered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			many := int64(100)
			require.NoError(t, l.SetPolicy(t.Context(), testTenant, testTopic, Policy{MaxUnflushed: &many}))
			tail := newTail(t, l, 0)
			flushes, _ := l.JournalStats()
			publish(t, l, testTopic, "a")
			require.Equal(t, []string{"a"}, nextN(t, tail, 1))
			after, _ := l.JournalStats()
			require.Equal(t, flushes, after)
			tail.Close()
		})
	})

	t.Run("ASlowOneLosesTheOldestAndIsToldHowMany", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		slow, fast := newTail(t, l, 0), newTail(t, l, 0)
		publishN(t, l, testTopic, limits.TailRingEvents)
		require.Equal(t, tailNumbered(0, limits.TailRingEvents), nextN(t, fast, limits.TailRingEvents))
		require.Equal(t, tailNumbered(0, 3), nextN(t, slow, 3), "it is as far behind as it may be")
		publishN(t, l, testTopic, limits.TailRingEvents)
		require.Equal(t, tailNumbered(0, limits.TailRingEvents), nextN(t, fast, limits.TailRingEvents), "the others lose nothing")
		e := nextEvent(t, slow)
		require.EqualValues(t, limits.TailRingEvents-3, e.Dropped)
		require.Equal(t, "m000000", string(e.Message.Payload))
		require.Equal(t, tailNumbered(1, limits.TailRingEvents), nextN(t, slow, limits.TailRingEvents-1))
		idle(t, slow)
	})

	t.Run("TheRingIsBoundedInBytesToo", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		tail := newTail(t, l, 0)
		payload := strings.Repeat("x", limits.TailRingBytes/16)
		for range 20 {
			publish(t, l, testTopic, payload)
		}
		require.Less(t, tail.ring.bytes, limits.TailRingBytes)
		e := nextEvent(t, tail)
		require.EqualValues(t, 5, e.Dropped, "15 fit, with what is beside their payloads")
		require.Len(t, nextN(t, tail, 14), 14)
		idle(t, tail)
	})

	t.Run("OneThatLeavesGivesTheRingBack", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		require.Nil(t, l.tails.rings)
		a, b := newTail(t, l, 0), newTail(t, l, 0)
		require.Same(t, a.ring, b.ring)
		a.Close()
		a.Close()
		require.NotNil(t, l.tails.rings)
		b.Close()
		require.Nil(t, l.tails.rings)
		require.Zero(t, l.tails.open)
	})

	t.Run("ThereAreNoMoreThanTheBound", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		for range limits.TailSubscribers - 1 {
			newTail(t, l, 0)
		}
		last := newTail(t, l, 0)
		_, err := l.Tail(t.Context(), testTenant, "other", TailOptions{})
		require.ErrorIs(t, err, &limits.Error{Name: limits.NameTails})
		last.Close()
		_, err = l.Tail(t.Context(), testTenant, "other", TailOptions{})
		require.NoError(t, err)
	})

	t.Run("Refuses", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "a")
		var name *NameError
		_, err := l.Tail(t.Context(), "No", testTopic, TailOptions{})
		require.ErrorAs(t, err, &name)
		var future *PositionError
		_, err = l.Tail(t.Context(), testTenant, testTopic, TailOptions{After: 2})
		require.ErrorAs(t, err, &future)
		require.Equal(t, PositionError{Position: 2, Next: 2}, *future)
		require.Zero(t, l.tails.open)
	})

	t.Run("EndsWithItsContextWithCloseAndWithTheLog", func(t *testing.T) {
		leaks := goleak.IgnoreCurrent()
		l, err := Open(t.Context(), Options{Dir: filepath.Join(t.TempDir(), "log"), SegmentBytes: testSegment})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		open := func(ctx context.Context) *Tail {
			tail, err := l.Tail(ctx, testTenant, testTopic, TailOptions{})
			require.NoError(t, err)
			return tail
		}
		ended := func(tail *Tail) chan error {
			c := make(chan error, 1)
			go func() {
				_, err := tail.Next(t.Context())
				c <- err
			}()
			return c
		}
		withContext := ended(open(ctx))
		closed := open(t.Context())
		withClose, withLog := ended(closed), open(t.Context())
		atLog := ended(withLog)
		cancel()
		require.ErrorIs(t, <-withContext, ErrTailClosed)
		closed.Close()
		require.ErrorIs(t, <-withClose, ErrTailClosed)
		require.NoError(t, l.Close())
		require.ErrorIs(t, <-atLog, ErrClosed)
		withLog.Close()
		_, err = l.Tail(t.Context(), testTenant, testTopic, TailOptions{})
		require.ErrorIs(t, err, ErrClosed)
		require.Zero(t, l.tails.open)
		goleak.VerifyNone(t, leaks)
	})

	t.Run("EndsWhenTheLogFails", func(t *testing.T) {
		l, err := Open(t.Context(), Options{Dir: t.TempDir(), SegmentBytes: testSegment})
		require.NoError(t, err)
		tail := newTail(t, l, 0)
		go l.fault(context.DeadlineExceeded)
		_, err = tail.Next(t.Context())
		require.ErrorIs(t, err, ErrClosed)
		require.Error(t, l.Close())
	})

	t.Run("AMessageIsTheCallers", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		tail, other := newTail(t, l, 0), newTail(t, l, 0)
		publish(t, l, testTopic, "a")
		nextEvent(t, tail).Message.Payload[0] = '!'
		require.Equal(t, []string{"a"}, nextN(t, other, 1))
		require.Equal(t, "a", string(claimOne(t, l, testTopic).Message.Payload))
	})
}

func TestTailResumes(t *testing.T) {
	ackAll := func(t *testing.T, l *Log) {
		t.Helper()
		consume(t.Context(), l)
		storeUpToDate(t, l)
	}

	t.Run("WithWhatIsStoredAndThenGoesLive", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publishN(t, l, testTopic, 2*limits.ReplayPageMessages)
		tail := newTail(t, l, 1)
		require.Equal(t, tailNumbered(1, 2*limits.ReplayPageMessages), nextN(t, tail, 2*limits.ReplayPageMessages-1))
		idle(t, tail)
		publish(t, l, testTopic, "live")
		require.Equal(t, []string{"live"}, nextN(t, tail, 1))
		require.False(t, tail.catching)
	})

	t.Run("WithTheRingsEventsThatAreNotStoredAnyMore", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "stored", "stored too")
		newTail(t, l, 0)
		publishN(t, l, testTopic, 10)
		publish(t, l, "other", "x")
		held := claim(t, l, testTopic, 2)
		ackAll(t, l)
		require.Len(t, held, 2)
		require.Equal(t, append([]string{"stored too"}, tailNumbered(0, 10)...), nextN(t, newTail(t, l, 1), 11), "what is stored before them, first")
		require.Equal(t, tailNumbered(0, 10), nextN(t, newTail(t, l, 2), 10))
		require.Equal(t, tailNumbered(4, 10), nextN(t, newTail(t, l, 6), 6))
		idle(t, newTail(t, l, 12))
	})

	t.Run("AfterWhatIsNotHeldWithAGap", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "a", "b")
		publish(t, l, "other", "x")
		publish(t, l, testTopic, "c", "d")
		d := claim(t, l, testTopic, 3)
		settle(t, l, d[0], Ack, "")
		settle(t, l, d[2], Ack, "")
		storeUpToDate(t, l)
		for after, want := range map[uint64]Gap{1: {1, 2}, 3: {3, 5}, 4: {4, 5}} {
			tail := newTail(t, l, after)
			e := nextEvent(t, tail)
			require.Equal(t, TailEvent{Gap: &want}, e)
			require.Equal(t, want.To, nextEvent(t, tail).Position, "it goes on there")
		}
		require.Equal(t, []string{"d"}, nextN(t, newTail(t, l, 2), 1), "it is held; what was after it and is done is not told of")

		ring := newTail(t, l, 0)
		publish(t, l, "other", "x")
		publish(t, l, testTopic, "e")
		require.Equal(t, []string{"e"}, nextN(t, ring, 1))
		tail := newTail(t, l, 6)
		require.Equal(t, &Gap{6, 7}, nextEvent(t, tail).Gap, "another topic's, in the range of the ring")
		require.Equal(t, []string{"e"}, nextN(t, tail, 1))
		publish(t, l, "other", "x")
		require.Equal(t, &Gap{8, 9}, nextEvent(t, newTail(t, l, 8)).Gap, "nothing is after it yet")
		nothing, err := l.Tail(t.Context(), testTenant, "nothing", TailOptions{After: 3})
		require.NoError(t, err)
		require.Equal(t, &Gap{3, 9}, nextEvent(t, nothing).Gap)
		nothing.Close()
	})

	t.Run("AfterAMessageThatDoesNotCheckAndCountsThoseAfterIt", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		publish(t, l, testTopic, "broken", "broken", "c")
		storeUpToDate(t, l)
		broken := crash(t, dir)
		for position := range uint64(2) {
			overwrite(t, broken, l.find(TopicName{testTenant, testTopic}).key().Message(position+1))
		}
		e := nextEvent(t, newTail(t, openLog(t, broken), 1))
		require.Nil(t, e.Gap)
		require.EqualValues(t, 1, e.Dropped)
		require.Equal(t, "c", string(e.Message.Payload))
	})

	t.Run("WithDelayedMessagesWhereTheyAreKnown", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			publish(t, l, testTopic, "a")
			publishWith(t, l, "visible", MessageOptions{Delay: time.Second})
			time.Sleep(2 * time.Second)
			ring := newTail(t, l, 0)
			publishWith(t, l, "first", MessageOptions{Delay: 3 * time.Second})
			publish(t, l, testTopic, "b")
			publishWith(t, l, "hidden", MessageOptions{Delay: time.Second})
			publish(t, l, testTopic, "c")
			time.Sleep(2 * time.Second)
			publish(t, l, testTopic, "d")
			tail := newTail(t, l, 1)
			require.Equal(t, []string{"visible", "first", "b", "hidden", "c", "d"}, nextN(t, tail, 6), "each once")
			tail.Close()
			tail = newTail(t, l, 2)
			require.Equal(t, []string{"b", "hidden", "c", "d"}, nextN(t, tail, 4), "what came before the ring's first other one may have been seen")
			tail.Close()
			ring.Close()
			tail = newTail(t, l, 1)
			require.Equal(t, []string{"visible", "b", "c", "hidden", "d"}, nextN(t, tail, 5), "without a ring, where they became visible")
			tail.Close()
		})
	})

	t.Run("AndIsToldWhatItMissedWhileItCaughtUp", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			publishN(t, l, testTopic, 3)
			tail := newTail(t, l, 1)
			publishN(t, l, testTopic, 5)
			publishWith(t, l, "later", MessageOptions{Delay: time.Second})
			ackAll(t, l) // the first 8 are gone when the tail looks
			publishWith(t, l, "soon", MessageOptions{Delay: time.Millisecond})
			time.Sleep(2 * time.Millisecond)
			publishN(t, l, testTopic, limits.TailRingEvents+2)
			time.Sleep(2 * time.Second)
			e := nextEvent(t, tail)
			require.EqualValues(t, 0, e.Dropped)
			require.Equal(t, "m000000", string(e.Message.Payload), "the store has those that the ring dropped and nobody acknowledged")
			require.Equal(t, tailNumbered(1, 2), nextN(t, tail, 1))
			e = nextEvent(t, tail)
			require.Equal(t, "m000002", string(e.Message.Payload))
			require.EqualValues(t, 7, e.Dropped, "5 that were acknowledged, and the delayed ones")
			require.Equal(t, tailNumbered(3, limits.TailRingEvents+2), nextN(t, tail, limits.TailRingEvents-1))
			idle(t, tail)
			tail.Close()
		})
	})
}

func TestTailUnderLoad(t *testing.T) {
	const messages, publishers = 10_000, 50
	load := func(t *testing.T, l *Log, before func()) (wait func()) {
		t.Helper()
		var all sync.WaitGroup
		for range publishers {
			all.Go(func() {
				for range messages / publishers {
					before()
					_, err := l.Publish(t.Context(), l.newMessage(testTopic, "x"))
					require.NoError(t, err)
				}
			})
		}
		return all.Wait
	}

	t.Run("AFastOneSeesEachMessageOnceInOrder", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		tail := newTail(t, l, 0)
		behind := make(chan struct{}, limits.TailRingEvents) // it is fast: never further behind than it may be
		wait := load(t, l, func() { behind <- struct{}{} })
		for i := range messages {
			e := nextEvent(t, tail)
			require.Zero(t, e.Dropped)
			require.EqualValues(t, i+1, e.Position)
			<-behind
		}
		wait()
		idle(t, tail)
	})

	t.Run("OneThatNeverReadsHoldsNobodyUp", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		tail := newTail(t, l, 0)
		load(t, l, func() {})()
		require.EqualValues(t, messages-limits.TailRingEvents, nextEvent(t, tail).Dropped)
	})

	t.Run("WhatASlowOneSeesAndWhatItIsToldItLostIsAll", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		tail := newTail(t, l, 0)
		wait := load(t, l, func() {})
		for last := uint64(0); last < messages; {
			e := nextEvent(t, tail)
			require.Equal(t, last+1+e.Dropped, e.Position)
			last = e.Position
			if last%50 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		wait()
	})

	t.Run("OneThatResumesHasNoGapAndNoDuplicateAtTheSeam", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "x")
		wait := load(t, l, func() {})
		var tails sync.WaitGroup
		for i := range 8 {
			tails.Go(func() {
				after := uint64(1)
				tail := newTail(t, l, after)
				for n := 0; after < messages+1; n++ {
					e := nextEvent(t, tail)
					require.Nil(t, e.Gap)
					require.Equal(t, after+1+e.Dropped, e.Position)
					if e.Dropped > 0 {
						require.False(t, tail.catching, "all is stored: only a live one loses any")
					}
					after = e.Position
					if n%(200+i) == 0 {
						tail.Close()
						tail = newTail(t, l, after)
					}
				}
			})
		}
		wait()
		tails.Wait()
	})
}
