package substrate

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// requireCounted compares what the log has counted of its tenants with what is stored.
func requireCounted(t require.TestingT, l *Log) {
	want := map[string]*tenant{}
	of := func(name string) *tenant {
		if want[name] == nil {
			want[name] = &tenant{}
		}
		return want[name]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Zero(t, l.state.effects.ops(), "the store is up to date")
	for name, tp := range l.state.topics {
		var k kept
		require.NoError(t, l.store.Scan(tp.key().Messages(), tp.key().Messages(), func(_, body []byte, err error) bool {
			e := &entry{}
			e.fill(body, err)
			k.add(1, int64(e.origin.payloadBytes))
			return true
		}))
		for _, d := range l.state.delayed.items {
			if d.topic == tp {
				k.add(1, int64(d.origin.payloadBytes))
			}
		}
		require.Equal(t, k, tp.kept, "of topic %v", name)
		of(name.Tenant).topics++
		of(name.Tenant).kept.add(k.messages, k.bytes)
	}
	for name := range l.state.values.buckets {
		of(name.Tenant).buckets++
		require.NoError(t, l.store.Scan(name.key().Values(), name.key().Values(), func(key, body []byte, err error) bool {
			require.NoError(t, err)
			version, data, err := decodeValue(body)
			require.NoError(t, err)
			of(name.Tenant).valueBytes += valueBytes(name.key().Name(key), version, len(data))
			return true
		}))
	}
	require.Equal(t, want, l.state.tenants)
}

func setCaps(t *testing.T, l *Log, c TenantCaps) {
	t.Helper()
	require.NoError(t, l.SetTenantCaps(map[string]TenantCaps{testTenant: c}))
}

func requireCapped(t *testing.T, err error, name limits.Name, limit, actual int64) {
	t.Helper()
	var capped *TenantError
	require.ErrorAs(t, err, &capped)
	require.Equal(t, TenantError{Tenant: testTenant, Name: name, Limit: limit, Actual: actual}, *capped)
}

func TestTenantMessages(t *testing.T) {
	t.Run("AreExactUnderConcurrencyOverAllTopics", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		setCaps(t, l, TenantCaps{Messages: 100, Bytes: 150})
		var wg sync.WaitGroup
		var admitted atomic.Int64
		for i := range 16 {
			wg.Go(func() {
				for range 20 {
					_, err := l.Publish(t.Context(), l.newMessage(fmt.Sprint("t", i%3), "x"))
					if err == nil {
						admitted.Add(1)
					} else if capped := new(TenantError); !errors.As(err, &capped) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		require.Equal(t, int64(100), admitted.Load())
		_, err := l.Publish(t.Context(), l.newMessage("t0", "x"))
		requireCapped(t, err, limits.NameTenantMessages, 100, 101)
		require.EqualError(t, err, "tenant acme: stored messages: 101 is over the limit of 100")
		require.Equal(t, int64(221), l.Tenants()[0].Refused[limits.NameTenantMessages])
		storeUpToDate(t, l)
		requireCounted(t, l)
	})

	t.Run("HoldForBytesToo", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		setCaps(t, l, TenantCaps{Bytes: 10})
		publish(t, l, "a", "12345")
		_, err := l.Publish(t.Context(), l.newMessage("b", "123"), l.newMessage("a", "456"))
		requireCapped(t, err, limits.NameTenantBytes, 10, 11)
		publish(t, l, "b", "12345")
		publish(t, l, "b", "") // takes none
	})

	t.Run("AreNotThoseOfOthers", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		setCaps(t, l, TenantCaps{Messages: 1})
		publish(t, l, "a", "x")
		other, mine := l.newMessage("a", "x"), l.newMessage("a", "x")
		other.Tenant = "other"
		_, err := l.Publish(t.Context(), other, mine)
		requireCapped(t, err, limits.NameTenantMessages, 1, 2)
		_, found := l.Stats("other", "a")
		require.False(t, found, "all or none")
		other.ID = l.MintID()
		_, err = l.Publish(t.Context(), other)
		require.NoError(t, err)
	})

	t.Run("CountWhatIsDelayedDeadAndKeptAndReopenWhenItGoes", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		setCaps(t, l, TenantCaps{Messages: 3})
		later := l.newMessage("a", "later")
		later.Options.Delay = time.Hour
		_, err := l.Publish(t.Context(), later)
		require.NoError(t, err)
		publish(t, l, "a", "dead", "done")
		settle(t, l, claimOne(t, l, "a"), Bury, "bad")
		full := func() error {
			_, err := l.Publish(t.Context(), l.newMessage("b", "x"))
			return err
		}
		requireCapped(t, full(), limits.NameTenantMessages, 3, 4)
		settle(t, l, claimOne(t, l, "a"), Ack, "")
		require.NoError(t, full())
		requireCapped(t, full(), limits.NameTenantMessages, 3, 4)
		moved, err := l.Redrive(t.Context(), testTenant, "a", Redrive{})
		require.NoError(t, err)
		require.Equal(t, RedriveResult{Moved: 1}, moved, "a redrive stores nothing that was not stored")
		settle(t, l, claimOne(t, l, "a"), Bury, "bad")
		_, err = l.Discard(t.Context(), testTenant, "a", DeadLetterFilter{})
		require.NoError(t, err)
		require.NoError(t, full())
		storeUpToDate(t, l)
		requireCounted(t, l)
	})

	t.Run("AreTheSameAfterARestartAndAfterACrash", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		publish(t, l, "a", "1", "22", "333", "4444")
		storeUpToDate(t, l)
		settle(t, l, claimOne(t, l, "a"), Ack, "")
		publish(t, l, "b", "55555")
		crashed := reopenCrashed(t, dir)
		requireCounted(t, crashed)
		require.Equal(t, int64(4), crashed.Tenants()[0].Messages)
		require.Equal(t, int64(14), crashed.Tenants()[0].Bytes)
		require.NoError(t, l.Close())
		again := openLog(t, dir)
		requireCounted(t, again)
		setCaps(t, again, TenantCaps{Messages: 4})
		_, err := again.Publish(t.Context(), again.newMessage("b", "x"))
		requireCapped(t, err, limits.NameTenantMessages, 4, 5)
	})

	t.Run("LeaveHandlersRoomToPublishMoreThanTheyAcknowledge", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		setCaps(t, l, TenantCaps{Messages: 5000})
		publishN(t, l, "a", 5000)
		for range 500 {
			_, err := l.Reserve(testTenant, "b", 1)
			require.NoError(t, err)
		}
		_, err := l.Reserve(testTenant, "b", 1)
		requireCapped(t, err, limits.NameTenantMessages, 5500, 5501)
	})

	t.Run("LeaveHandlersRoomForOneOutboxAtLeast", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		setCaps(t, l, TenantCaps{Messages: 1})
		publish(t, l, "a", "x")
		d := claimOne(t, l, "a")
		var out []Message
		for range limits.OutboxMessages {
			m := l.newMessage("b", "y")
			r, err := l.Reserve(testTenant, "b", 1)
			require.NoError(t, err)
			m.Reservation = r
			out = append(out, m)
		}
		_, err := l.Reserve(testTenant, "b", 1)
		requireCapped(t, err, limits.NameTenantMessages, 1+limits.OutboxMessages, 2+limits.OutboxMessages)
		require.NoError(t, l.Settle(t.Context(), []Settlement{{Lease: d.Lease, Verdict: Ack}}, out))
		require.Empty(t, l.admission.reservedBy)
		require.Equal(t, int64(limits.OutboxMessages), l.Tenants()[0].Messages)
	})
}

func TestTenantRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLog(t, t.TempDir())
		setCaps(t, l, TenantCaps{RatePerSec: 10})
		publish(t, l, "a", "1", "2", "3", "4", "5")
		r, err := l.Reserve(testTenant, "b", 1)
		require.NoError(t, err)
		publish(t, l, "b", "7", "8", "9")
		refused := func(n int) *TenantError {
			msgs := make([]Message, n)
			for i := range msgs {
				msgs[i] = l.newMessage("c", "x")
			}
			_, err := l.Publish(t.Context(), msgs...)
			var capped *TenantError
			require.ErrorAs(t, err, &capped)
			return capped
		}
		require.Equal(t, &TenantError{Tenant: testTenant, Name: limits.NameTenantRate, Limit: 10, Actual: 11, RetryAfter: 100 * time.Millisecond}, refused(2))
		require.Contains(t, refused(2).Error(), "try again in 100ms")
		r.Release()
		publish(t, l, "c", "10", "11") // the token that came back, and the last one
		require.Equal(t, 500*time.Millisecond, refused(5).RetryAfter)
		time.Sleep(500 * time.Millisecond)
		publish(t, l, "c", "1", "2", "3", "4", "5")

		_, err = l.Publish(t.Context(), slicesOf(l, 11)...)
		require.ErrorIs(t, err, &limits.Error{Name: limits.NameBatchMessages}, "more than a burst never passes")
	})
}

// slicesOf returns n messages.
func slicesOf(l *Log, n int) []Message {
	msgs := make([]Message, n)
	for i := range msgs {
		msgs[i] = l.newMessage("c", "x")
	}
	return msgs
}

func TestTenantRateIsDrawnWithThatOfTheTopicOrNotAtAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLog(t, t.TempDir())
		require.NoError(t, l.SetPolicy(t.Context(), testTenant, "slow", policyOf(0, 5, 0)))
		setCaps(t, l, TenantCaps{RatePerSec: 8})
		publish(t, l, "slow", "1", "2", "3", "4", "5")
		_, err := l.Publish(t.Context(), l.newMessage("slow", "x"))
		require.ErrorAs(t, err, new(*RateError))
		publish(t, l, "a", "6", "7", "8") // the refusal drew nothing
		require.NoError(t, l.SetPolicy(t.Context(), testTenant, "other", policyOf(0, 1, 0)))
		_, err = l.Publish(t.Context(), l.newMessage("other", "x"))
		require.ErrorAs(t, err, new(*TenantError))
		time.Sleep(125 * time.Millisecond)
		publish(t, l, "other", "y") // nor did that
	})
}

func TestTenantTopics(t *testing.T) {
	l := openLog(t, t.TempDir())
	setCaps(t, l, TenantCaps{Topics: 2})
	publish(t, l, "a", "x")
	publish(t, l, "b", "x")
	want := &limits.Error{Name: limits.NameTopics, Limit: 2, Actual: 3}
	_, err := l.Publish(t.Context(), l.newMessage("c", "x"))
	require.Equal(t, want, err)
	_, err = l.Reserve(testTenant, "c", 1)
	require.Equal(t, want, err)
	require.Equal(t, want, l.Pause(t.Context(), testTenant, "c", true))
	require.Equal(t, want, l.UseDefaultLane(t.Context(), testTenant, "c"))
	_, _, err = l.CreateGroup(t.Context(), testTenant, "c", "g", GroupOptions{})
	require.Equal(t, want, err)
	_, err = l.SetLaneMode(t.Context(), testTenant, "c", LaneOn)
	require.Equal(t, want, err)
	require.Equal(t, int64(6), l.Tenants()[0].Refused[limits.NameTopics])
	publish(t, l, "a", "y")
}

func TestTenantValues(t *testing.T) {
	t.Run("AreCountedExactlyThroughOverwritesDeletionsAndCrashes", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		large := strings.Repeat("v", 3*limits.InlinePayloadBytes)
		set(t, l, "a=1", "b=22", "large="+large)
		storeUpToDate(t, l)
		requireCounted(t, l)
		set(t, l, "a=333", "large="+large+"more", "c=4") // over what is stored
		set(t, l, "c=55", "b")                           // over what is not stored yet
		requireCounted(t, reopenCrashed(t, dir))
		storeUpToDate(t, l)
		requireCounted(t, l)
		set(t, l, "large")
		storeUpToDate(t, l)
		requireCounted(t, l)
		require.Less(t, l.Tenants()[0].ValueBytes, int64(100))
	})

	t.Run("AreRefusedAboveTheBoundUnlessTheyTakeLess", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		setCaps(t, l, TenantCaps{ValueBytes: 1000})
		set(t, l, "a="+strings.Repeat("x", 900))
		before := l.Tenants()[0].ValueBytes
		err := trySet(t, l, testTenant, testBucket, ValueChanges{}, "b="+strings.Repeat("y", 100))
		requireCapped(t, err, limits.NameTenantValues, 1000, before+mostValueBytes("b", 100))
		require.NoError(t, trySet(t, l, testTenant, testBucket, ValueChanges{}, "a="+strings.Repeat("z", 800), "b="+strings.Repeat("y", 100)))
		setCaps(t, l, TenantCaps{ValueBytes: 10})
		set(t, l, "a="+strings.Repeat("x", 700))
		set(t, l, "a", "b")
		require.Zero(t, l.Tenants()[0].ValueBytes)
	})

	t.Run("ThatWereWrittenSinceTheyWereLookedUpAreLookedUpAgain", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		set(t, l, "k=1")
		looked, err := l.sizeValues(testTenant, []ValueWrite{{Bucket: testBucket, Key: "k"}})
		require.NoError(t, err)
		set(t, l, "k=22222")
		now := func() int64 {
			l.mu.Lock()
			defer l.mu.Unlock()
			n, err := l.replaced(BucketName{testTenant, testBucket}, "k", looked[0])
			require.NoError(t, err)
			return n
		}
		require.Equal(t, looked[0].bytes+4, now(), "not stored yet")
		storeUpToDate(t, l)
		require.Equal(t, looked[0].bytes+4, now(), "stored")
	})

	t.Run("AreCountedUnderConcurrency", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		var leases [80]Lease
		for i := range leases {
			leases[i] = leased(t, l, testTenant)
		}
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for n, lease := range leases[i*20 : i*20+20] {
					w := ValueWrite{Bucket: testBucket, Key: fmt.Sprint("k", n%3), Data: make([]byte, 1+(n*7+i)%50)}
					err := l.SettleValues(t.Context(), []Settlement{{Lease: lease, Verdict: Ack}}, nil, ValueChanges{Writes: []ValueWrite{w}})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		storeUpToDate(t, l)
		requireCounted(t, l)
	})
}

func TestTenantCapsThatMakeNoSense(t *testing.T) {
	l := openLog(t, t.TempDir())
	require.ErrorContains(t, l.SetTenantCaps(map[string]TenantCaps{"a": {Topics: -1}}), "caps of tenant a: -1: want 0 or more")
	require.ErrorAs(t, l.SetTenantCaps(map[string]TenantCaps{"A": {}}), new(*NameError))
}
