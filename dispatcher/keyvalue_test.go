package dispatcher

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

const stock = "stock"

// keeps is a guest that works on the values of its store.
func keeps(f func(s messaging.Store, call *messaging.Call) runtime.Outcome) guestFunc {
	return func(_ context.Context, call *messaging.Call) runtime.Outcome { return f(call.Store(), call) }
}

// read returns a value, "" if there is none.
func read(s messaging.Store, key string) string {
	value, _, err := s.Get(stock, key)
	if err != nil {
		panic(err)
	}
	return string(value)
}

func write(s messaging.Store, key, value string) {
	if err := s.Set(stock, key, []byte(value)); err != nil {
		panic(err)
	}
}

// value is what the log has under a key.
func (h *house) value(key string) string {
	h.t.Helper()
	value, _, err := h.log.GetValue(tenant, stock, key)
	require.NoError(h.t, err)
	return string(value)
}

// put sets a value as another consumer of the tenant would.
func (h *house) put(key, value string) {
	h.t.Helper()
	h.publish("others", 1)
	got, err := h.log.Claim(h.t.Context(), substrate.ClaimRequest{
		Tenant: tenant, Topic: "others", MaxMessages: 1, MaxBytes: 100, Lease: time.Minute, MaxAttempts: 1,
	})
	require.NoError(h.t, err)
	require.Len(h.t, got.Deliveries, 1)
	require.NoError(h.t, h.log.SettleValues(h.t.Context(), []substrate.Settlement{{Lease: got.Deliveries[0].Lease, Verdict: substrate.Ack}}, nil,
		substrate.ValueChanges{Writes: []substrate.ValueWrite{{Bucket: stock, Key: key, Data: []byte(value)}}}))
}

func keeper(g Guest) Consumer {
	c := realConsumer("keeper", topic, g)
	c.Buckets = []string{stock}
	return c
}

func any1(Receipt) bool { return true }

func TestValuesOfAGuest(t *testing.T) {
	t.Run("AreCommittedWithItsAcknowledgement", func(t *testing.T) {
		h := newHouse(t)
		h.publish(topic, 1)
		stop := h.run(h.log, keeper(keeps(func(s messaging.Store, _ *messaging.Call) runtime.Outcome {
			write(s, "a", "1")
			write(s, "b", "2")
			if read(s, "a") != "1" || s.Delete(stock, "b") != nil {
				panic("it doesn't read what it wrote")
			}
			if _, found, _ := s.Get(stock, "b"); found || h.value("a") != "" {
				panic("others see it, or it is not deleted")
			}
			return ok()
		})))
		defer stop()
		require.Equal(t, "ack", h.next(any1).Verdict)
		require.Equal(t, "1", h.value("a"))
		require.Empty(t, h.value("b"))
	})
	t.Run("AreForgottenIfItFails", func(t *testing.T) {
		for name, end := range map[string]runtime.Outcome{
			"Trap":  {Class: runtime.Trap, Detail: "unreachable"},
			"Error": {Class: runtime.GuestError, Detail: "other"},
			"Retry": {Class: runtime.OK, Answers: []messaging.Answer{{Case: messaging.AnswerRetry}}},
			"Skip":  {Class: runtime.OK, Answers: []messaging.Answer{{Case: messaging.AnswerSkip}}},
		} {
			t.Run(name, func(t *testing.T) {
				h := newHouse(t)
				h.publish(topic, 1)
				stop := h.run(h.log, keeper(keeps(func(s messaging.Store, _ *messaging.Call) runtime.Outcome {
					write(s, "a", read(s, "a")+"1")
					return end
				})))
				require.NotEqual(t, "ack", h.next(any1).Verdict)
				require.NotEqual(t, "ack", h.next(any1).Verdict)
				stop()
				require.Empty(t, h.value("a"))
			})
		}
	})
	t.Run("AreOfTheBucketsThatItIsGranted", func(t *testing.T) {
		h := newHouse(t)
		h.publish(topic, 1)
		var mine, other *messaging.StoreError
		stop := h.run(h.log, keeper(keeps(func(s messaging.Store, _ *messaging.Call) runtime.Outcome {
			mine, other = s.Open(stock), s.Open("secrets")
			return ok()
		})))
		h.next(any1)
		stop()
		require.Nil(t, mine)
		require.Equal(t, &messaging.StoreError{Case: messaging.StoreAccessDenied}, other)
	})
	t.Run("AreThoseOfItsTenant", func(t *testing.T) {
		h := newHouse(t)
		h.put("a", "acme's")
		m := substrate.Message{ID: h.log.MintID(), Tenant: "globex", Topic: topic, Payload: []byte("payload")}
		_, err := h.log.Publish(t.Context(), sealed(t, h.context, m))
		require.NoError(t, err)
		var seen string
		c := keeper(keeps(func(s messaging.Store, _ *messaging.Call) runtime.Outcome {
			seen = read(s, "a")
			write(s, "a", "globex's")
			return ok()
		}))
		c.Tenant = "globex"
		stop := h.run(h.log, c)
		require.Equal(t, "ack", h.next(any1).Verdict)
		stop()
		require.Empty(t, seen)
		require.Equal(t, "acme's", h.value("a"))
	})
	t.Run("AreNotThereWithoutAGrant", func(t *testing.T) {
		h := newHouse(t)
		h.publish(topic, 1)
		var store messaging.Store
		stop := h.run(h.log, realConsumer("c", topic, keeps(func(s messaging.Store, _ *messaging.Call) runtime.Outcome {
			store = s
			return ok()
		})))
		h.next(any1)
		stop()
		require.Nil(t, store)
	})
	t.Run("OfABatchAreCommittedOnce", func(t *testing.T) {
		h := newHouse(t)
		h.publish(topic, 4)
		c := keeper(keeps(func(s messaging.Store, call *messaging.Call) runtime.Outcome {
			n, _ := strconv.Atoi(read(s, "n"))
			write(s, "n", strconv.Itoa(n+len(call.Messages())))
			return ok()
		}))
		c.Batch, c.Concurrency = Batch{Max: 4, Window: time.Second}, 4
		stop := h.run(h.log, c)
		for range 4 {
			require.Equal(t, "ack", h.next(any1).Verdict)
		}
		stop()
		require.Equal(t, "4", h.value("n"))
	})
}

func TestAConflict(t *testing.T) {
	t.Run("RunsTheGuestAgainAndChargesNobody", func(t *testing.T) {
		h := newHouse(t)
		h.put("n", "1")
		h.publish(topic, 1)
		var runs atomic.Int64
		c := keeper(keeps(func(s messaging.Store, call *messaging.Call) runtime.Outcome {
			seen := read(s, "n")
			if runs.Add(1) <= limits.StoreReruns {
				h.put("n", seen+"x")
			}
			write(s, "n", seen+"!")
			return ok()
		}))
		c.MaxAttempts = 1
		stop := h.run(h.log, c)
		r := h.next(any1)
		stop()
		require.Equal(t, "ack", r.Verdict)
		require.Equal(t, 1, r.Attempt)
		require.EqualValues(t, 1+limits.StoreReruns, runs.Load())
		require.Equal(t, "1xxx!", h.value("n"))
		require.EqualValues(t, 1, h.stats(topic).Acked)
	})
	t.Run("ThatNeverEndsGivesTheMessageBack", func(t *testing.T) {
		h := newHouse(t)
		h.publish(topic, 1)
		var runs atomic.Int64
		c := keeper(keeps(func(s messaging.Store, call *messaging.Call) runtime.Outcome {
			seen := read(s, "n")
			if n := runs.Add(1); n <= 2*(1+limits.StoreReruns) {
				h.put("n", fmt.Sprint(n))
			}
			write(s, "n", seen+"!")
			return ok()
		}))
		c.MaxAttempts = 1
		stop := h.run(h.log, c)
		for range 2 {
			r := h.next(any1)
			require.Equal(t, "release", r.Verdict)
			require.Equal(t, ReasonKeyvalueConflict, r.Reason)
			require.Equal(t, 1, r.Attempt)
		}
		require.Equal(t, "ack", h.next(any1).Verdict)
		stop()
		require.EqualValues(t, 2*(1+limits.StoreReruns)+1, runs.Load())
		require.Equal(t, fmt.Sprint(2*(1+limits.StoreReruns))+"!", h.value("n"))
		require.Zero(t, h.stats(topic).DeadLetters)
	})
	t.Run("IsOfAGuestThatSawTwoValuesOfOneKey", func(t *testing.T) {
		h := newHouse(t)
		h.publish(topic, 1)
		var once sync.Once
		stop := h.run(h.log, keeper(keeps(func(s messaging.Store, _ *messaging.Call) runtime.Outcome {
			before := read(s, "n")
			once.Do(func() { h.put("n", "1") })
			write(s, "sum", before+read(s, "n"))
			return ok()
		})))
		require.Equal(t, "ack", h.next(any1).Verdict)
		stop()
		require.Equal(t, "11", h.value("sum"))
	})
	t.Run("GivesBackTheRoomThatTheRunBeforeReserved", func(t *testing.T) {
		h := newHouse(t)
		depth := int64(1)
		require.NoError(t, h.log.SetPolicy(t.Context(), tenant, relayTopic, substrate.Policy{MaxDepth: &depth}))
		module := h.module("relay", relay(), limits.DefaultGuest())
		h.publish(topic, 1)
		var once sync.Once
		stop := h.run(h.log, keeper(guestFunc(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
			read(call.Store(), "n")
			once.Do(func() { h.put("n", "1") })
			return module.Invoke(ctx, call)
		})))
		require.Equal(t, "ack", h.next(any1).Verdict)
		stop()
		require.EqualValues(t, 1, h.stats(relayTopic).Published)
	})
	t.Run("NeverLosesAnUpdate", func(t *testing.T) {
		h := newHouse(t)
		h.publish(topic, 40)
		c := keeper(keeps(func(s messaging.Store, _ *messaging.Call) runtime.Outcome {
			n, _ := strconv.Atoi(read(s, "n"))
			write(s, "n", strconv.Itoa(n+1))
			return ok()
		}))
		c.Concurrency, c.MaxAttempts = 8, 1
		stop := h.run(h.log, c)
		for range 40 {
			h.next(func(r Receipt) bool { return r.Verdict == "ack" })
		}
		stop()
		require.Equal(t, "40", h.value("n"))
		require.Zero(t, h.stats(topic).DeadLetters)
	})
}

func TestAGuestListsWhatItWrote(t *testing.T) {
	h := newHouse(t)
	for i := range 3 {
		h.put(fmt.Sprintf("k%d", i), "")
	}
	c := &consumer{Consumer: keeper(nil), shared: shared{queue: h.log}}
	v := c.newView()
	list := func(after string) (keys []string) {
		for {
			page, more, err := v.List(t.Context(), stock, after)
			require.Nil(t, err)
			keys = append(keys, page...)
			if !more {
				return keys
			}
			require.LessOrEqual(t, len(page), limits.StorePageKeys)
			after = page[len(page)-1]
		}
	}
	require.Equal(t, []string{"k0", "k1", "k2"}, list(""))
	require.Nil(t, v.Delete(stock, "k1"))
	write(v, "a", "")
	write(v, "k0", "again")
	write(v, "z", "")
	require.Equal(t, []string{"a", "k0", "k2", "z"}, list(""))
	require.Equal(t, []string{"k2", "z"}, list("k0"))
	var want []string
	for i := range 2*limits.StorePageKeys + 1 {
		want = append(want, fmt.Sprintf("m%04d", i))
		write(v, want[i], "")
	}
	require.Equal(t, slices.Concat([]string{"a", "k0", "k2"}, want, []string{"z"}), list(""))
}

func TestValuesOfAGuestAreBounded(t *testing.T) {
	h := newHouse(t)
	c := &consumer{Consumer: keeper(nil), shared: shared{queue: h.log}}
	v := c.newView()
	whole := make([]byte, limits.StoredValueBytes)
	require.Contains(t, v.Set(stock, "k", append(whole, 0)).Text, "stored value bytes")
	require.Contains(t, v.Set(stock, "", nil).Text, "is not allowed")
	for i := range limits.StoredCommitBytes/limits.StoredValueBytes - 1 {
		require.Nil(t, v.Set(stock, strconv.Itoa(i), whole))
		require.Nil(t, v.Set(stock, strconv.Itoa(i), whole), "it counts once")
	}
	require.Contains(t, v.Set(stock, "more", whole).Text, string(limits.NameStoredCommit))
	require.Nil(t, v.Set(stock, "0", nil))
	require.Nil(t, v.Set(stock, "more", whole))
}

func TestBucketsNeedAQueueThatKeepsValues(t *testing.T) {
	c := consumerOf("c", ends(ok()))
	c.Buckets = []string{stock, "a/b"}
	_, err := New(Options{Queue: newMemQueue(), Context: newContext(t), Consumers: []Consumer{c}})
	require.ErrorContains(t, err, "keeps no values")
	require.ErrorContains(t, err, `bucket "a/b" is not allowed`)
}

func TestValuesThatCanNeverBeStoredAreCharged(t *testing.T) {
	h := newHouse(t) // whose journal takes less in one commit than a guest may write
	h.publish(topic, 1)
	stop := h.run(h.log, keeper(keeps(func(s messaging.Store, _ *messaging.Call) runtime.Outcome {
		for i := range 3 {
			if err := s.Set(stock, strconv.Itoa(i), make([]byte, limits.StoredValueBytes/2)); err != nil {
				panic(err)
			}
		}
		return ok()
	})))
	defer stop()
	r := h.next(func(r Receipt) bool { return r.Verdict == "bury" })
	require.Equal(t, "outbox-refused: too-large", r.Reason)
}
