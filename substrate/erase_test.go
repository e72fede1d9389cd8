package substrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// victim is the tenant that is deleted. No other name has its name in it.
const victim = "victim-co"

// inhabit gives a tenant all that a tenant can have.
func inhabit(t *testing.T, l *Log, tenant string) {
	t.Helper()
	ctx := t.Context()
	put := func(topic string, o MessageOptions, payload string) {
		t.Helper()
		m := Message{ID: l.MintID(), Tenant: tenant, Topic: topic, Payload: []byte(payload), Options: o}
		_, err := l.Publish(ctx, m)
		require.NoError(t, err)
	}
	take := func(topic, lane string, n int) []Delivery {
		t.Helper()
		r := claimRequest(topic, n)
		r.Tenant, r.Lane = tenant, lane
		got, err := l.Claim(ctx, r)
		require.NoError(t, err)
		return got.Deliveries
	}
	var many []Message
	for i := range 300 {
		many = append(many, Message{ID: l.MintID(), Tenant: tenant, Topic: "blocks", Payload: fmt.Appendf(nil, "m%d", i)})
	}
	_, err := l.Publish(ctx, many...)
	require.NoError(t, err)
	_, err = l.Publish(ctx, many[0])
	require.Error(t, err, "an id is used once")
	require.NoError(t, l.SetPolicy(ctx, tenant, "blocks", policyOf(1000, 1000, 0)))
	_, _, err = l.CreateGroup(ctx, tenant, "blocks", "watchers", GroupOptions{})
	require.NoError(t, err)
	many = nil
	for range 10 {
		many = append(many, Message{ID: l.MintID(), Tenant: tenant, Topic: "acked", Payload: []byte("x")})
	}
	_, err = l.Publish(ctx, many...)
	require.NoError(t, err)
	storeUpToDate(t, l) // as a block, of which some go
	for _, d := range take("acked", "", 3) {
		settle(t, l, d, Ack, "")
	}
	put("large", MessageOptions{}, strings.Repeat("x", 2*limits.InlinePayloadBytes))
	put("options", MessageOptions{IdempotencyKey: "once", Principal: "p"}, "a")
	put("options", MessageOptions{TTL: time.Hour}, "b")
	put("options", MessageOptions{Priority: 9}, "c")
	put("options", MessageOptions{Delay: time.Hour}, "d")
	put("fenced", MessageOptions{Fence: Fence{Key: "leader", Token: 7}}, "e")
	f := take("fenced", "", 1)[0]
	require.NoError(t, l.RaiseFence(ctx, f.Lease, f.Message.Options.Fence))
	dead := take("blocks", "watchers", 2)
	require.NoError(t, l.Settle(ctx, []Settlement{{Lease: dead[0].Lease, Verdict: Bury, Reason: "bad"}, {Lease: dead[1].Lease, Verdict: Retry, Delay: time.Hour}}, nil))
	require.NoError(t, trySet(t, l, tenant, "bucket-of", ValueChanges{}, "k="+strings.Repeat("v", 2*limits.InlinePayloadBytes), "l=1"))
	for i := range 20 {
		require.NoError(t, trySet(t, l, tenant, fmt.Sprint("bucket-", i%3), ValueChanges{}, fmt.Sprint("key-", i, "=x")))
	}
	storeUpToDate(t, l)
}

// storedKeys returns all keys of the closed store in dir.
func storedKeys(t *testing.T, dir string) (keys [][]byte) {
	t.Helper()
	db, err := badger.Open(badger.DefaultOptions(filepath.Join(dir, "store")).WithLogger(nil).WithCompression(0))
	require.NoError(t, err)
	require.NoError(t, db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			keys = append(keys, it.Item().KeyCopy(nil))
		}
		return nil
	}))
	require.NoError(t, db.Close())
	return keys
}

// requireErased closes the log and looks for what is left of the victim. Others are as before.
func requireErased(t *testing.T, dir string, l *Log, others []Tenant) {
	t.Helper()
	storeUpToDate(t, l)
	requireCounted(t, l)
	require.Equal(t, others, l.Tenants())
	for _, s := range l.Topics() {
		require.NotEqual(t, victim, s.Tenant)
	}
	require.NoError(t, l.Close())
	keys := storedKeys(t, dir)
	require.Greater(t, len(keys), 30, "the others' are there")
	for _, k := range keys {
		require.NotContains(t, string(k), victim)
		require.False(t, bytes.HasPrefix(k, append([]byte{byte(len(victim))}, victim...)))
	}
}

// withoutVictim returns the tenants of a log but for the victim.
func withoutVictim(l *Log) (others []Tenant) {
	for _, t := range l.Tenants() {
		if t.Name != victim {
			others = append(others, t)
		}
	}
	return others
}

func TestDeleteTenant(t *testing.T) {
	// Keys of a tenant begin with the length of its name, so that these are its neighbours.
	neighbours := []string{"victim-cn", "victim-cp", "zz"}
	inhabited := func(t *testing.T, keys int) (dir string, l *Log) {
		t.Helper()
		dir = t.TempDir()
		l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: testSegment, LockWait: time.Second, housekeeping: housekeeping{eraseKeys: keys}})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		for _, name := range append(neighbours, victim) {
			inhabit(t, l, name)
		}
		return dir, l
	}

	t.Run("LeavesNoKeyOfItAndOthersAsTheyWere", func(t *testing.T) {
		for _, keys := range []int{0, 7} {
			dir, l := inhabited(t, keys)
			others := withoutVictim(l)
			require.Len(t, others, 3)
			require.NoError(t, l.DeleteTenant(t.Context(), victim, nil))
			require.NoError(t, l.DeleteTenant(t.Context(), victim, nil), "nothing is no error")
			for _, name := range neighbours {
				r := claimRequest("blocks", 300)
				r.Tenant = name
				got, err := l.Claim(t.Context(), r)
				require.NoError(t, err)
				require.Len(t, got.Deliveries, 300)
				for i, d := range got.Deliveries {
					require.Equal(t, fmt.Sprint("m", i), string(d.Message.Payload))
				}
			}
			requireErased(t, dir, l, others)
		}
	})

	t.Run("IsFinishedAfterACrashInTheMiddle", func(t *testing.T) {
		dir, l := inhabited(t, 2)
		others := withoutVictim(l)
		step, goOn := make(chan struct{}), make(chan struct{})
		l.housekeeping.erasing = func() { // the write-behind has not begun with anything
			step <- struct{}{}
			<-goOn
		}
		gone := make(chan error, 1)
		go func() { gone <- l.DeleteTenant(context.WithoutCancel(t.Context()), victim, nil) }()
		var copies []string
		for i, done := 0, false; !done; {
			select {
			case err := <-gone:
				require.NoError(t, err)
				done = true
			case <-step:
				if i < 6 || i%7 == 0 {
					copies = append(copies, crash(t, dir))
				}
				i++
				goOn <- struct{}{}
			}
		}
		require.Greater(t, len(copies), 3)
		for i, to := range copies {
			torn := 0
			for _, k := range storedKeys(t, to) {
				torn += bytes.Count(k, []byte(victim))
			}
			require.Positive(t, torn, "copy %d is one of the middle", i)
			again := openLog(t, to)
			require.Equal(t, []string{victim}, again.Recovered().Deleted)
			requireErased(t, to, again, others)
		}
	})

	t.Run("IsRepeatedFromTheJournalIfTheStoreLostAllOfIt", func(t *testing.T) {
		dir, l := inhabited(t, 0)
		others := withoutVictim(l)
		before := crash(t, dir)
		require.NoError(t, l.DeleteTenant(t.Context(), victim, nil))
		m := Message{ID: l.MintID(), Tenant: victim, Topic: "again", Payload: []byte("new")}
		_, err := l.Publish(t.Context(), m)
		require.NoError(t, err)
		after := crash(t, dir)
		require.NoError(t, os.RemoveAll(filepath.Join(after, "store")))
		require.NoError(t, os.Rename(filepath.Join(before, "store"), filepath.Join(after, "store")))
		again := openLog(t, after)
		require.Equal(t, int64(1), again.Recovered().Backlog-backlogOf(again, others))
		_, known := again.Stats(victim, "blocks")
		require.False(t, known)
		s, known := again.Stats(victim, "again")
		require.True(t, known)
		require.Equal(t, int64(1), s.Ready)
		require.NoError(t, again.DeleteTenant(t.Context(), victim, nil))
		requireErased(t, after, again, others)
	})

	t.Run("RefusesWhatIsPublishedMeanwhileAndTakesItAfterwards", func(t *testing.T) {
		_, l := inhabited(t, 1)
		held, err := l.Reserve(victim, "options", 1)
		require.NoError(t, err)
		lease := leased(t, l, victim)
		var c ValueChanges
		for k := range 100 { // each key is a step
			c.Writes = append(c.Writes, ValueWrite{Bucket: "bucket-of", Key: fmt.Sprint("many", k), Data: []byte("x")})
		}
		require.NoError(t, l.SettleValues(t.Context(), []Settlement{{Lease: lease, Verdict: Ack}}, nil, c))
		calls := []func() error{
			func() error {
				_, err := l.Publish(t.Context(), Message{ID: l.MintID(), Tenant: victim, Topic: "late", Payload: []byte("x")})
				return err
			},
			func() error {
				r, err := l.Reserve(victim, "later", 1)
				r.Release()
				return err
			},
			func() error { return l.Pause(t.Context(), victim, "latest", true) },
			func() error {
				_, err := l.Backup(t.Context(), &bytes.Buffer{})
				return err
			},
		}
		refuses := func(calls ...func() error) {
			for i, call := range calls {
				if err := call(); !errors.Is(err, ErrDeleting) {
					t.Errorf("call %d: %v", i, err)
				}
			}
		}
		steps := 0
		l.housekeeping.erasing = func() {
			if steps++; steps == 1 || steps == 100 {
				refuses(calls[:3]...) // a backup would wait for this step
			}
		}
		require.NoError(t, l.DeleteTenant(t.Context(), victim, func() error {
			refuses(calls...)
			return nil
		}))
		require.Greater(t, steps, 100)
		held.Release()
		m := Message{ID: l.MintID(), Tenant: victim, Topic: "options", Payload: []byte("x"), Options: MessageOptions{IdempotencyKey: "once", Principal: "p"}}
		r, err := l.Publish(t.Context(), m)
		require.NoError(t, err)
		require.False(t, r[0].Duplicate, "keys are forgotten")
		s, _ := l.Stats(victim, "options")
		require.Equal(t, uint64(1), s.Published)
		data, _, err := l.GetValue(victim, "bucket-of", "l")
		require.NoError(t, err)
		require.Nil(t, data)
	})

	t.Run("WaitsForWhatIsDeletedElsewhere", func(t *testing.T) {
		dir, l := inhabited(t, 0)
		others := withoutVictim(l)
		elsewhere := errors.New("elsewhere")
		var crashed string
		err := l.DeleteTenant(t.Context(), victim, func() error {
			require.True(t, slices.ContainsFunc(l.Tenants(), func(t Tenant) bool { return t.Name == victim && t.Deleting }))
			crashed = crash(t, dir)
			return elsewhere
		})
		require.ErrorIs(t, err, elsewhere)
		again := openLog(t, crashed)
		require.Equal(t, []string{victim}, again.Recovered().Deleted, "whoever opens it has to see to the rest")
		requireErased(t, crashed, again, others)
		called := false
		require.NoError(t, l.DeleteTenant(t.Context(), victim, func() error {
			called = true
			return nil
		}))
		require.True(t, called, "also where the log has nothing")
		requireErased(t, dir, l, others)
		require.Empty(t, openLog(t, dir).Recovered().Deleted)
	})

	t.Run("TakesLeasesAway", func(t *testing.T) {
		_, l := inhabited(t, 0)
		r := claimRequest("blocks", 1)
		r.Tenant = victim
		got, err := l.Claim(t.Context(), r)
		require.NoError(t, err)
		lease := got.Deliveries[0].Lease
		require.NoError(t, l.DeleteTenant(t.Context(), victim, nil))
		out := Message{ID: l.MintID(), Tenant: victim, Topic: "out", Payload: []byte("x")}
		require.ErrorIs(t, l.Settle(t.Context(), []Settlement{{Lease: lease, Verdict: Ack}}, []Message{out}), ErrLeaseLost)
		_, err = l.Extend(t.Context(), lease, time.Minute)
		require.ErrorIs(t, err, ErrLeaseLost)
		got, err = l.Claim(t.Context(), r)
		require.NoError(t, err)
		require.Empty(t, got.Deliveries)
		for _, s := range l.Topics() {
			require.NotEqual(t, victim, s.Tenant, "and nothing made a topic of it")
		}
	})

	t.Run("WhatWasLookedUpBeforeMakesNothingOfItAgain", func(t *testing.T) {
		dir, l := inhabited(t, 0)
		others := withoutVictim(l)
		name := TopicName{victim, "blocks"}
		ln, err := l.findLane(laneName{topic: name})
		require.NoError(t, err)
		old, letters, err := l.deadLetters(t.Context(), victim, "blocks", DeadLetterFilter{})
		require.NoError(t, err)
		require.NotEmpty(t, letters)
		require.NoError(t, l.DeleteTenant(t.Context(), victim, nil))
		r := claimRequest("blocks", 3)
		r.Tenant = victim
		got, _, err := l.claimOnce(t.Context(), ln, r)
		require.NoError(t, err)
		require.Empty(t, got.Deliveries)
		moved, err := l.moveDead(t.Context(), old, letters, needLittle, func(ln *lane, _ time.Time, items []redriven) frame {
			return &redriveFrame{name: ln.id(), items: items}
		})
		require.NoError(t, err)
		require.Zero(t, moved)
		entered, _, err := l.quarantine(t.Context(), old, []*quarantined{{number: letters[0].Position}})
		require.NoError(t, err)
		require.Empty(t, entered)
		n, err := l.discardEntries(t.Context(), old, []*quarantined{{number: letters[0].Position}})
		require.NoError(t, err)
		require.Zero(t, n)
		requireErased(t, dir, l, others)
	})

	t.Run("TwoAtOnceAndTwice", func(t *testing.T) {
		dir, l := inhabited(t, 5)
		results := make(chan error, 3)
		for _, name := range []string{victim, victim, "zz"} {
			go func() { results <- l.DeleteTenant(context.WithoutCancel(t.Context()), name, nil) }()
		}
		for range 3 {
			require.NoError(t, <-results)
		}
		others := l.Tenants()
		require.Len(t, others, 2)
		requireErased(t, dir, l, others)
	})

	t.Run("GoesOnWhenTheCallerLeaves", func(t *testing.T) {
		dir, l := inhabited(t, 3)
		others := withoutVictim(l)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := l.DeleteTenant(ctx, victim, nil)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, l.DeleteTenant(t.Context(), victim, nil))
		requireErased(t, dir, l, others)
	})
}

// backlogOf sums up what is not done of some tenants.
func backlogOf(l *Log, tenants []Tenant) (n int64) {
	for _, s := range l.Topics() {
		for _, t := range tenants {
			if t.Name == s.Tenant {
				n += s.Backlog()
			}
		}
	}
	return n
}
