package substrate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/longshore/longshore/limits"
)

// publishWith publishes one message with options.
func publishWith(t *testing.T, l *Log, payload string, o MessageOptions) Receipt {
	t.Helper()
	m := l.newMessage(testTopic, payload)
	m.Options = o
	receipts, err := l.Publish(t.Context(), m)
	require.NoError(t, err)
	return receipts[0]
}

func TestOptions(t *testing.T) {
	t.Run("ComeBackAsGivenAndHaveOneEncoding", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			l := openLog(t, dir)
			o := MessageOptions{TTL: time.Hour, Deadline: time.UnixMilli(time.Now().UnixMilli()).Add(time.Minute), IdempotencyKey: "k", Principal: "p"}
			publishWith(t, l, "a", o)
			require.Equal(t, o, claimOne(t, l, testTopic).Message.Options)
			require.Equal(t, o, claimOne(t, reopenCrashed(t, dir), testTopic).Message.Options)
			require.Empty(t, (&MessageOptions{}).Encode())
			changed := o
			changed.TTL++
			require.NotEqual(t, o.Encode(), changed.Encode())
		})
	})

	t.Run("BadOnesAreRefusedByName", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		long := strings.Repeat("k", limits.KeyBytes+1)
		for _, c := range []struct {
			o    MessageOptions
			want string
		}{
			{MessageOptions{Delay: -1}, "delay"},
			{MessageOptions{Delay: limits.OptionDuration + 1}, "delay"},
			{MessageOptions{TTL: -1}, "ttl"},
			{MessageOptions{TTL: limits.OptionDuration + 1}, "ttl"},
			{MessageOptions{Deadline: time.Unix(-1, 0)}, "deadline"},
			{MessageOptions{Principal: "p"}, "principal"},
			{MessageOptions{IdempotencyKey: long}, "idempotency key"},
			{MessageOptions{IdempotencyKey: "k", Principal: long}, "principal"},
			{MessageOptions{OrderingKey: long}, "ordering key"},
			{MessageOptions{OrderingKey: "\xff"}, "ordering key"},
			{MessageOptions{Target: long}, "target"},
			{MessageOptions{ReplyTo: long}, "reply-to"},
			{MessageOptions{Fence: Fence{Key: long, Token: 1}}, "fence"},
			{MessageOptions{Fence: Fence{Token: 1}}, "fence"},
			{MessageOptions{RequiredFeatures: make([]string, limits.RequiredFeatures+1)}, "required features"},
			{MessageOptions{RequiredFeatures: []string{""}}, "required features"},
			{MessageOptions{RequiredFeatures: []string{strings.Repeat("f", limits.FeatureBytes+1)}}, "required features"},
		} {
			m := l.newMessage(testTopic, "x")
			m.Options = c.o
			_, err := l.Publish(t.Context(), m)
			require.ErrorContains(t, err, c.want)
		}
		require.Empty(t, l.Topics())
		publishWith(t, l, "x", MessageOptions{Delay: limits.OptionDuration, TTL: limits.OptionDuration})
	})

	t.Run("OfANewerProgramAreRefused", func(t *testing.T) {
		_, err := decodeOptions([]byte{0xff, 0xff, 0x01})
		require.ErrorContains(t, err, "newer program")
	})
}

func TestDelay(t *testing.T) {
	t.Run("HidesAMessageUntilItIsDueAndThenGivesItItsPosition", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			require.Zero(t, publishWith(t, l, "late", MessageOptions{Delay: time.Minute}).Position)
			publish(t, l, testTopic, "now")
			require.Equal(t, int64(1), stats(t, l, testTopic).Delayed)
			time.Sleep(time.Minute - time.Nanosecond)
			require.Equal(t, []string{"now"}, payloads(claim(t, l, testTopic, 10)))
			require.NoError(t, l.WaitReady(t.Context(), testTenant, testTopic, ""))
			d := claimOne(t, l, testTopic)
			require.Equal(t, "late", string(d.Message.Payload))
			require.Equal(t, uint64(2), d.Lease.Position)
		})
	})

	t.Run("NearerOnesComeBeforeFartherOnesAcrossACrash", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			l := openLog(t, dir)
			for _, n := range []int{5, 1, 4, 2, 3} {
				publishWith(t, l, fmt.Sprint(n), MessageOptions{Delay: time.Duration(n) * time.Minute})
				if n == 4 {
					storeUpToDate(t, l)
				}
			}
			l = reopenCrashed(t, dir)
			require.Equal(t, int64(5), stats(t, l, testTopic).Delayed)
			for n := 1; n <= 5; n++ {
				start := time.Now()
				require.NoError(t, l.WaitReady(t.Context(), testTenant, testTopic, ""))
				d := claimOne(t, l, testTopic)
				require.Equal(t, fmt.Sprint(n), string(d.Message.Payload))
				settle(t, l, d, Ack, "")
				require.LessOrEqual(t, time.Since(start), time.Minute)
			}
		})
	})

	t.Run("WhatBecameVisibleIsThereAfterACrashWhetherStoredBeforeOrAfter", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			l := openLog(t, dir)
			publishWith(t, l, "stored while hidden", MessageOptions{Delay: time.Minute})
			storeUpToDate(t, l)
			time.Sleep(time.Minute - 10*time.Millisecond)
			publishWith(t, l, "never stored hidden", MessageOptions{Delay: 10 * time.Millisecond})
			require.NoError(t, l.WaitReady(t.Context(), testTenant, testTopic, ""))
			time.Sleep(time.Nanosecond)
			want := []string{"stored while hidden", "never stored hidden"}
			require.ElementsMatch(t, want, payloads(claim(t, reopenCrashed(t, dir), testTopic, 10)))
			storeUpToDate(t, l)
			require.ElementsMatch(t, want, payloads(claim(t, reopenCrashed(t, dir), testTopic, 10)))
			require.ElementsMatch(t, want, payloads(claim(t, l, testTopic, 10)))
		})
	})

	t.Run("CountsToTheDepth", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		setPolicy(t, l, policyOf(1, 0, 0))
		publishWith(t, l, "a", MessageOptions{Delay: time.Hour})
		_, err := l.Publish(t.Context(), l.newMessage(testTopic, "b"))
		require.Error(t, err)
	})
}

func TestExpiry(t *testing.T) {
	dead := func(t *testing.T, l *Log) (found []string) {
		t.Helper()
		for _, d := range deadLetters(t, l, DeadLetterFilter{}) {
			found = append(found, fmt.Sprintf("%s after %d", d.Reason, d.Attempts))
		}
		return found
	}

	t.Run("BuriesWithinASecondThoughNobodyClaimsAndTellsSo", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			told := make(chan []DeadLetter, 9)
			l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: testSegment, Expired: func(d []DeadLetter) { told <- d }})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, l.Close()) })
			publishWith(t, l, "longer", MessageOptions{TTL: time.Hour})
			publishWith(t, l, "ttl", MessageOptions{TTL: time.Minute})
			publishWith(t, l, "deadline", MessageOptions{TTL: time.Hour, Deadline: time.Now().Add(2 * time.Minute)})
			publish(t, l, testTopic, "for ever")
			time.Sleep(2*time.Minute + time.Second)
			require.Equal(t, []string{"ttl-expired after 0", "deadline-exceeded after 0"}, dead(t, l))
			require.Len(t, told, 2)
			require.Equal(t, ReasonTTLExpired, (<-told)[0].Reason)
			require.Equal(t, []string{"longer", "for ever"}, payloads(claim(t, reopenCrashed(t, dir), testTopic, 10)))
			require.Equal(t, []string{"longer", "for ever"}, payloads(claim(t, l, testTopic, 10)))
		})
	})

	t.Run("TTLCountsFromWhenTheMessageBecameVisible", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			publishWith(t, l, "a", MessageOptions{Delay: time.Hour, TTL: time.Minute})
			time.Sleep(time.Hour + 59*time.Second)
			require.Equal(t, int64(1), stats(t, l, testTopic).Ready)
			time.Sleep(2 * time.Second)
			require.Equal(t, []string{"ttl-expired after 0"}, dead(t, l))
		})
	})

	t.Run("IsCheckedBetweenAttemptsAndDoesNotCutARunningOne", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			publishWith(t, l, "runs", MessageOptions{TTL: 30 * time.Second})
			publishWith(t, l, "waits", MessageOptions{TTL: 30 * time.Second})
			d := claim(t, l, testTopic, 2)
			require.NoError(t, l.Settle(t.Context(), []Settlement{{Lease: d[1].Lease, Verdict: Retry, Delay: time.Hour}}, nil))
			time.Sleep(40 * time.Second)
			require.Equal(t, []string{"ttl-expired after 1"}, dead(t, l), "the one that waits")
			settle(t, l, d[0], Retry, "again")
			time.Sleep(time.Second)
			require.Equal(t, []string{"ttl-expired after 1", "ttl-expired after 1"}, dead(t, l))
		})
	})

	t.Run("OfALeaseThatRanOutIsSeenToThoughNobodyClaims", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			publishWith(t, l, "a", MessageOptions{TTL: 30 * time.Second})
			claimOne(t, l, testTopic) // for a minute
			time.Sleep(time.Minute + time.Second)
			require.Equal(t, []string{"ttl-expired after 1"}, dead(t, l))
		})
	})

	t.Run("ARedriveResetsIt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			l := openLog(t, dir)
			publishWith(t, l, "a", MessageOptions{TTL: time.Second})
			publish(t, l, testTopic, "b")
			time.Sleep(2 * time.Second)
			_, err := l.Redrive(t.Context(), testTenant, testTopic, Redrive{})
			require.NoError(t, err)
			time.Sleep(time.Hour)
			require.ElementsMatch(t, []string{"a", "b"}, payloads(claim(t, reopenCrashed(t, dir), testTopic, 10)), "each once")
			require.ElementsMatch(t, []string{"a", "b"}, payloads(claim(t, l, testTopic, 10)))
		})
	})

	t.Run("OfManyInTheMiddleOfABacklogLeavesTheOthers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			l := openLog(t, dir)
			const n = 3 * limits.WindowMessages
			var want []string
			for start := 0; start < n; start += 256 {
				var msgs []Message
				for i := start; i < start+256; i++ {
					m := l.newMessage(testTopic, fmt.Sprintf("m%06d", i))
					if i%3 == 1 {
						m.Options.TTL = time.Minute
					} else {
						want = append(want, string(m.Payload))
					}
					msgs = append(msgs, m)
				}
				_, err := l.Publish(t.Context(), msgs...)
				require.NoError(t, err)
			}
			time.Sleep(2 * time.Minute)
			require.Equal(t, int64(len(want)), stats(t, l, testTopic).Ready)
			for _, log := range []*Log{reopenCrashed(t, dir), l} {
				var got []string
				for {
					d := claim(t, log, testTopic, 100)
					if len(d) == 0 {
						break
					}
					got = append(got, payloads(d)...)
				}
				require.Equal(t, want, got)
			}
		})
	})
}

func TestIdempotency(t *testing.T) {
	key := func(k, principal string) MessageOptions {
		return MessageOptions{IdempotencyKey: k, Principal: principal}
	}

	t.Run("ASecondPublishStoresNothingAndGetsTheFirstReceipt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			l := openLog(t, dir)
			first := publishWith(t, l, "a", key("k", "p"))
			require.False(t, first.Duplicate)
			want := Receipt{ID: first.ID, Position: first.Position, Duplicate: true}
			require.Equal(t, want, publishWith(t, l, "b", key("k", "p")))
			require.Equal(t, want, publishWith(t, reopenCrashed(t, dir), "c", key("k", "p")))
			storeUpToDate(t, l)
			require.Equal(t, want, publishWith(t, reopenCrashed(t, dir), "c", key("k", "p")))
			require.Equal(t, int64(1), stats(t, l, testTopic).Ready)
			settle(t, l, claimOne(t, l, testTopic), Ack, "")
			require.True(t, publishWith(t, l, "d", key("k", "p")).Duplicate, "also when the first is done")
		})
	})

	t.Run("IsOfAPrincipalAndATopic", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publishWith(t, l, "a", key("k", "p"))
		require.False(t, publishWith(t, l, "b", key("k", "q")).Duplicate)
		require.False(t, publishWith(t, l, "c", key("K", "p")).Duplicate)
		require.False(t, publishWith(t, l, "d", key("pk", "")).Duplicate)
		other := l.newMessage("other", "e")
		other.Options = key("k", "p")
		receipts, err := l.Publish(t.Context(), other)
		require.NoError(t, err)
		require.False(t, receipts[0].Duplicate)
	})

	t.Run("EndsWithItsWindow", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			l := openLog(t, dir)
			publishWith(t, l, "a", key("k", "p"))
			storeUpToDate(t, l)
			time.Sleep(limits.IdempotencyWindow - time.Nanosecond)
			require.True(t, publishWith(t, l, "b", key("k", "p")).Duplicate)
			time.Sleep(time.Nanosecond)
			second := publishWith(t, l, "c", key("k", "p"))
			require.False(t, second.Duplicate)
			require.Equal(t, second.ID, publishWith(t, reopenCrashed(t, dir), "d", key("k", "p")).ID)
			require.Len(t, l.find(TopicName{testTenant, testTopic}).keys.order, 1)
		})
	})

	t.Run("HoldsWithinABatchAndForADelayedMessage", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		a, b := l.newMessage(testTopic, "a"), l.newMessage(testTopic, "b")
		a.Options, b.Options = key("k", "p"), key("k", "p")
		a.Options.Delay = time.Hour
		receipts, err := l.Publish(t.Context(), a, b)
		require.NoError(t, err)
		require.Equal(t, []Receipt{{ID: a.ID}, {ID: a.ID, Duplicate: true}}, receipts)
		require.Equal(t, uint64(1), stats(t, l, testTopic).Published)
	})

	t.Run("InAnOutboxIsDroppedAndTheAckStands", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		m := l.newMessage("out", "a")
		m.Options = key("k", "p")
		_, err := l.Publish(t.Context(), m)
		require.NoError(t, err)
		publish(t, l, testTopic, "x")
		again := l.newMessage("out", "b")
		again.Options = key("k", "p")
		again.Reservation, err = l.Reserve(testTenant, "out", 1)
		require.NoError(t, err)
		d := claimOne(t, l, testTopic)
		require.NoError(t, l.Settle(t.Context(), []Settlement{{Lease: d.Lease, Verdict: Ack}}, []Message{again}))
		require.Equal(t, int64(1), stats(t, l, "out").Ready)
		require.Empty(t, l.admission.reserved)
	})

	t.Run("OverKeysAreForgottenThoughNobodyPublishes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			l := openLog(t, dir)
			const n = 3 * limits.SweepPositions
			for range n / 512 {
				msgs := make([]Message, 512)
				for i := range msgs {
					msgs[i] = l.newMessage(testTopic, "x")
					msgs[i].Options = key(msgs[i].ID, "p")
				}
				_, err := l.Publish(t.Context(), msgs...)
				require.NoError(t, err)
			}
			storeUpToDate(t, l)
			remembered := func(l *Log) int {
				tp := l.find(TopicName{testTenant, testTopic})
				l.mu.Lock()
				defer l.mu.Unlock()
				return len(tp.keys.byHash)
			}
			require.Equal(t, n, remembered(l))
			time.Sleep(limits.IdempotencyWindow + 3*limits.SweepInterval)
			require.Zero(t, remembered(l))
			storeUpToDate(t, l)
			require.Zero(t, remembered(reopenCrashed(t, dir)))
		})
	})

	t.Run("ManyOverKeysNeverOutgrowATransaction", func(t *testing.T) {
		s := newState()
		tp := s.topic(TopicName{testTenant, testTopic})
		for i := range 100_000 {
			o := key(fmt.Sprint(i), "p")
			s.remember(tp, &firstUse{hash: hashKey(&o), until: 2, stored: true}, 1)
		}
		s.effects = newEffects()
		late := key("late", "p")
		s.remember(tp, &firstUse{hash: hashKey(&late), until: 9}, 8)
		(&sweepFrame{name: tp.name, keys: 8}).apply(s, 1)
		require.Less(t, s.effects.ops(), 2*limits.SweepPositions)
	})

	t.Run("KeysAreBounded", func(t *testing.T) {
		s := newState()
		tp := s.topic(TopicName{testTenant, testTopic})
		for i := range limits.IdempotencyKeys + 2 {
			o := key(fmt.Sprint(i), "p")
			s.remember(tp, &firstUse{hash: hashKey(&o), until: 2}, 1)
		}
		require.Len(t, tp.keys.byHash, limits.IdempotencyKeys)
		require.Len(t, tp.keys.order, limits.IdempotencyKeys)
		oldest := key("1", "p")
		require.Nil(t, tp.keys.find(hashKey(&oldest), 1))
	})
}

// inBubble runs f under virtual time, and passes on what it panics with, which is how rapid learns of a failure.
func inBubble(t *testing.T, f func(*testing.T)) {
	t.Helper()
	var failure any
	synctest.Test(t, func(t *testing.T) {
		defer func() { failure = recover() }()
		f(t)
	})
	if failure != nil {
		panic(failure)
	}
}

// timedMessage is what the model knows of a message with options, in virtual time.
type timedMessage struct {
	visible, expires time.Time // expires is zero for never
	state            string    // "fresh" (or hidden), "waiting", "leased", "dead"
	lease            Lease
}

func TestOptionsAgreeWithAModelThroughCrashes(t *testing.T) {
	lowerChecks(t, 15)
	rapid.Check(t, func(rt *rapid.T) {
		inBubble(t, func(t *testing.T) { //nolint:thelper // it is the test
			dir := t.TempDir()
			l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: testSegment})
			require.NoError(rt, err)
			defer func() { require.NoError(rt, l.Close()) }()
			messages := map[string]*timedMessage{}
			settleOne := func(rt *rapid.T, v Verdict) {
				var leased []string
				for id, m := range messages {
					if m.state == "leased" {
						leased = append(leased, id)
					}
				}
				if len(leased) == 0 {
					rt.Skip("nothing is leased")
				}
				slices.Sort(leased)
				id := rapid.SampledFrom(leased).Draw(rt, "id")
				require.NoError(rt, l.Settle(t.Context(), []Settlement{{Lease: messages[id].lease, Verdict: v}}, nil))
				messages[id].state = "waiting"
				if v == Ack {
					delete(messages, id)
				}
			}
			seconds := func(rt *rapid.T, name string) time.Duration {
				return time.Duration(rapid.IntRange(0, 20).Draw(rt, name)) * time.Second
			}
			rt.Repeat(map[string]func(*rapid.T){
				"publish": func(rt *rapid.T) {
					m := l.newMessage(testTopic, "x")
					m.Options = MessageOptions{Delay: seconds(rt, "delay"), TTL: seconds(rt, "ttl")}
					_, err := l.Publish(t.Context(), m)
					require.NoError(rt, err)
					known := &timedMessage{state: "fresh", visible: time.Now().Add(m.Options.Delay)}
					if m.Options.TTL > 0 {
						known.expires = known.visible.Add(m.Options.TTL)
					}
					messages[m.ID] = known
				},
				"claim": func(rt *rapid.T) {
					r := claimRequest(testTopic, rapid.IntRange(1, 3).Draw(rt, "n"))
					r.Lease, r.MaxAttempts = time.Hour, 1_000
					got, err := l.Claim(t.Context(), r)
					require.NoError(rt, err)
					claimable := 0
					for _, m := range messages {
						if (m.state == "fresh" && !m.visible.After(time.Now())) || m.state == "waiting" {
							claimable++
						}
					}
					require.Len(rt, got.Deliveries, min(claimable, r.MaxMessages))
					for _, d := range got.Deliveries {
						m := messages[d.Message.ID]
						require.Contains(rt, []string{"fresh", "waiting"}, m.state)
						require.False(rt, m.visible.After(time.Now()))
						m.state, m.lease = "leased", d.Lease
					}
				},
				"ack":   func(rt *rapid.T) { settleOne(rt, Ack) },
				"retry": func(rt *rapid.T) { settleOne(rt, Retry) },
				"sleep": func(rt *rapid.T) { time.Sleep(seconds(rt, "for")) },
				"redrive": func(rt *rapid.T) {
					_, err := l.Redrive(t.Context(), testTenant, testTopic, Redrive{})
					if len(messages) > 0 {
						require.NoError(rt, err)
					}
					for _, m := range messages {
						if m.state == "dead" {
							m.state, m.expires = "waiting", time.Time{}
						}
					}
				},
				"crash": func(rt *rapid.T) {
					to := crash(t, dir)
					require.NoError(rt, l.Close())
					l, err = Open(t.Context(), Options{Dir: to, SegmentBytes: testSegment})
					require.NoError(rt, err)
					dir = to
					for _, m := range messages {
						if m.state == "leased" {
							m.state = "waiting"
						}
					}
				},
				"": func(rt *rapid.T) {
					time.Sleep(time.Millisecond) // the sweep has had its turn
					storeErr := l.submit(t.Context(), &request{})
					require.NoError(rt, storeErr)
					counts := map[string]int64{}
					for _, m := range messages {
						open := m.state == "fresh" || m.state == "waiting"
						if open && !m.expires.IsZero() && !m.expires.After(time.Now()) {
							m.state = "dead"
						}
						state := m.state
						if state == "fresh" && m.visible.After(time.Now()) {
							state = "hidden"
						}
						counts[state]++
					}
					s, _ := l.Stats(testTenant, testTopic)
					require.Equal(rt, counts["fresh"], s.Ready, "ready")
					require.Equal(rt, counts["hidden"]+counts["waiting"], s.Delayed, "delayed")
					require.Equal(rt, counts["leased"], s.Leased, "leased")
					require.Equal(rt, counts["dead"], s.DeadLetters, "dead")
				},
			})
		})
	})
}
