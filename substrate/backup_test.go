package substrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/store"
)

func backup(t *testing.T, l *Log) (BackupInfo, []byte) {
	t.Helper()
	var b bytes.Buffer
	info, err := l.Backup(t.Context(), &b)
	require.NoError(t, err)
	require.EqualValues(t, b.Len(), info.Bytes)
	return info, b.Bytes()
}

// restored returns a log that is restored from a stream.
func restored(t *testing.T, stream []byte) *Log {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "log")
	_, err := Restore(t.Context(), dir, bytes.NewReader(stream))
	require.NoError(t, err)
	return openLog(t, dir)
}

// records returns all that the store of a closed log holds but for its checkpoint.
func records(t *testing.T, dir string) map[string]string {
	t.Helper()
	st, err := store.Open(t.Context(), filepath.Join(dir, "store"), time.Second)
	require.NoError(t, err)
	snapshot, err := st.Snapshot()
	require.NoError(t, err)
	all := map[string]string{}
	require.NoError(t, snapshot.Each(func(key, value []byte) error {
		all[string(key)] = string(value)
		return nil
	}))
	snapshot.Close()
	require.NoError(t, st.Close())
	return all
}

const largePayload = limits.InlinePayloadBytes * 3

// fillWithEverything leaves something of each kind in a log.
func fillWithEverything(t *testing.T, l *Log) (leased Lease) {
	t.Helper()
	publish(t, l, testTopic, "acked", "leased", "retried", "released", "dead", "redriven", "discarded")
	d := claim(t, l, testTopic, 7)
	require.NoError(t, l.Settle(t.Context(), []Settlement{{Lease: d[0].Lease, Verdict: Ack}}, []Message{l.newMessage("out", "from acked")}))
	settle(t, l, d[2], Retry, "why")
	require.NoError(t, l.Settle(t.Context(), []Settlement{{Lease: d[3].Lease, Verdict: Release, Delay: time.Hour}}, nil))
	for _, i := range []int{4, 5, 6} {
		require.NoError(t, l.Settle(t.Context(), []Settlement{{Lease: d[i].Lease, Verdict: Bury, Reason: "bad", Receipt: []byte("receipt")}}, nil))
	}
	_, err := l.Redrive(t.Context(), testTenant, testTopic, Redrive{Filter: DeadLetterFilter{ID: d[5].Message.ID}, Operator: "me"})
	require.NoError(t, err)
	_, err = l.Discard(t.Context(), testTenant, testTopic, DeadLetterFilter{ID: d[6].Message.ID})
	require.NoError(t, err)
	publish(t, l, testTopic, "fresh", strings.Repeat("large", largePayload/5), "")
	publishWith(t, l, "later", MessageOptions{Delay: time.Hour})
	publishWith(t, l, "once", MessageOptions{IdempotencyKey: "k", Principal: "p"})
	publishWith(t, l, "ends", MessageOptions{TTL: time.Hour, Deadline: time.Now().Add(time.Minute)})
	full := l.newMessage("full", "with all")
	full.ContentType, full.Metadata, full.Envelope, full.Parent, full.Hops = "text/plain", []Pair{{"a", "b"}, {"a", ""}}, []byte("env"), "parent", 3
	_, err = l.Publish(t.Context(), full)
	require.NoError(t, err)
	fillLanes(t, l)
	depth := int64(1_000)
	require.NoError(t, l.SetPolicy(t.Context(), testTenant, "bounded", Policy{MaxDepth: &depth}))
	require.NoError(t, l.Pause(t.Context(), "other", "paused", true))
	return d[1].Lease
}

// fillLanes leaves a topic with two groups, one of them ordered and in the middle of its work, and messages with priorities.
func fillLanes(t *testing.T, l *Log) {
	t.Helper()
	hour := time.Hour.Milliseconds()
	require.NoError(t, l.SetPolicy(t.Context(), testTenant, "fan", Policy{KeepMilli: &hour}))
	for _, group := range []string{"idle", "ordered"} {
		_, _, err := l.CreateGroup(t.Context(), testTenant, "fan", group, GroupOptions{})
		require.NoError(t, err)
	}
	require.NoError(t, l.SetOrdering(t.Context(), testTenant, "fan", "ordered", OrderKey))
	_, err := l.SetLaneMode(t.Context(), testTenant, "fan", LaneOn)
	require.NoError(t, err)
	for i, o := range []MessageOptions{{OrderingKey: "a"}, {OrderingKey: "a"}, {OrderingKey: "b"}, {Priority: 9}, {}} {
		m := l.newMessage("fan", fmt.Sprint("fan ", i))
		m.Options = o
		_, err := l.Publish(t.Context(), m)
		require.NoError(t, err)
	}
	r := claimRequest("fan", 1)
	r.Lane = "ordered"
	for _, v := range []Verdict{Bury, Ack} {
		got, err := l.Claim(t.Context(), r)
		require.NoError(t, err)
		require.Len(t, got.Deliveries, 1)
		settle(t, l, got.Deliveries[0], v, "of a group")
	}
	_, err = l.Claim(t.Context(), r)
	require.NoError(t, err)
	require.NoError(t, l.PauseLane(t.Context(), testTenant, "fan", "idle", true))
}

// view is what a user sees of a log.
type view struct {
	topics []Stats
	groups [][]Group
	peeked [][]Peeked
	dead   [][]DeadLetter
	policy []PolicyView
}

func viewOf(t *testing.T, l *Log) (v view) {
	t.Helper()
	v.topics = l.Topics()
	for _, s := range v.topics {
		groups, err := l.Groups(s.Tenant, s.Topic)
		require.NoError(t, err)
		v.groups = append(v.groups, groups)
		for _, g := range append(groups, Group{}) {
			p, err := l.Peek(t.Context(), s.Tenant, s.Topic, g.Name, 0, limits.DeadLetterPage)
			require.NoError(t, err)
			v.peeked = append(v.peeked, p)
		}
		d, err := l.DeadLetters(t.Context(), s.Tenant, s.Topic, DeadLetterFilter{})
		require.NoError(t, err)
		policy, err := l.Policy(s.Tenant, s.Topic)
		require.NoError(t, err)
		v.dead, v.policy = append(v.dead, d), append(v.policy, policy)
	}
	return v
}

func TestBackup(t *testing.T) {
	t.Run("RestoresAsARecoveryOfTheSameMomentWould", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		leased := fillWithEverything(t, l)
		info, stream := backup(t, l)
		require.Greater(t, len(stream), largePayload)
		require.Equal(t, []int64{6, 17, 2, 0}, []int64{int64(info.Topics), info.Backlog, info.DeadLetters, int64(info.Damaged)})

		original := reopenCrashed(t, dir)
		again := restored(t, stream)
		require.Equal(t, viewOf(t, original), viewOf(t, again))
		require.Equal(t, original.Recovered(), again.Recovered().plusFrames(original.Recovered().Frames))

		for _, l := range []*Log{original, again} {
			require.ErrorIs(t, l.Settle(t.Context(), []Settlement{{Lease: leased, Verdict: Ack}}, nil), ErrLeaseLost, "leases are void")
			duplicate := publishWith(t, l, "once", MessageOptions{IdempotencyKey: "k", Principal: "p"})
			require.True(t, duplicate.Duplicate)
			got := claim(t, l, testTopic, 100)
			require.ElementsMatch(t, []string{"leased", "retried", "redriven", "fresh", strings.Repeat("large", largePayload/5), "", "once", "ends"}, payloads(got))
		}
	})

	t.Run("CopiesWhateverIsInTheStore", func(t *testing.T) {
		dir, to := t.TempDir(), filepath.Join(t.TempDir(), "log")
		l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: testSegment})
		require.NoError(t, err)
		fillWithEverything(t, l)
		kept := l.find(TopicName{testTenant, testTopic}).key()
		for _, class := range []byte{'F', 'Q', 'Z'} { // classes that a later program may have
			key := append(bytes.TrimSuffix(kept.Messages(), []byte("M")), class, 1, 2)
			_, err := l.store.Write([]store.Op{{Key: key, Body: []byte{class}}}, nil, l.committer.checkpoint().append(nil))
			require.NoError(t, err)
		}
		_, stream := backup(t, l)
		require.NoError(t, l.Close())
		_, err = Restore(t.Context(), to, bytes.NewReader(stream))
		require.NoError(t, err)
		require.Equal(t, records(t, dir), records(t, to))
	})

	t.Run("OfAnEmptyLogIsOne", func(t *testing.T) {
		info, stream := backup(t, openLog(t, t.TempDir()))
		require.Zero(t, info.Records)
		l := restored(t, stream)
		require.Equal(t, Recovered{}, l.Recovered())
		publish(t, l, testTopic, "a")
		require.Equal(t, []string{"a"}, payloads(claim(t, l, testTopic, 10)))
	})

	t.Run("CountsRecordsThatDoNotCheckAndKeepsThem", func(t *testing.T) {
		dir := t.TempDir()
		l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: testSegment})
		require.NoError(t, err)
		broken := publish(t, l, testTopic, "broken", "whole")[0]
		key := l.find(TopicName{testTenant, testTopic}).key().Message(broken.Position)
		require.NoError(t, l.Close())
		overwrite(t, dir, key)
		info, stream := backup(t, openLog(t, dir))
		require.EqualValues(t, 1, info.Damaged)
		checked, err := CheckBackup(bytes.NewReader(stream))
		require.NoError(t, err)
		require.True(t, info.Taken.Equal(checked.Taken))
		checked.Taken = info.Taken
		require.Equal(t, info, checked)
		again := restored(t, stream)
		got, err := again.Claim(t.Context(), claimRequest(testTopic, 10))
		require.NoError(t, err)
		require.Equal(t, []string{"whole"}, payloads(got.Deliveries))
		require.Equal(t, ReasonCorrupt, got.Quarantined[0].Reason)
	})

	t.Run("SaysThatATableIsDamaged", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		publishN(t, l, testTopic, 2_000)
		storeUpToDate(t, l)
		require.NoError(t, l.store.Reclaim()) // makes tables
		damageTable(t, dir)
		_, err := l.Backup(t.Context(), io.Discard)
		require.ErrorIs(t, err, ErrDamaged)
	})

	t.Run("EndsWithItsContext", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "a")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := l.Backup(ctx, io.Discard)
		require.ErrorIs(t, err, context.Canceled)

		publishLarge(t, l)
		ctx, cancel = context.WithCancel(t.Context())
		_, err = l.Backup(ctx, writerFunc(func(b []byte) (int, error) { cancel(); return len(b), nil }))
		require.ErrorIs(t, err, context.Canceled)
		require.False(t, l.store.Snapshots())
	})

	t.Run("EndsWithTheErrorOfItsWriterAndIsCutThen", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publishLarge(t, l)
		_, whole := backup(t, l)
		fault := errors.New("no room")
		var written bytes.Buffer
		_, err := l.Backup(t.Context(), writerFunc(func(b []byte) (int, error) {
			if written.Len() > len(whole)/2 {
				return 0, fault
			}
			return written.Write(b)
		}))
		require.ErrorIs(t, err, fault)
		require.NotContains(t, err.Error(), "context")
		require.False(t, l.store.Snapshots())
		_, err = CheckBackup(&written)
		require.ErrorIs(t, err, ErrBackup)
		require.ErrorContains(t, err, "cut short")
	})

	t.Run("HoldsUpNeitherCommitsNorCloseWhenItsWriterIsStuck", func(t *testing.T) {
		l, err := Open(t.Context(), Options{Dir: t.TempDir(), SegmentBytes: testSegment})
		require.NoError(t, err)
		publishLarge(t, l)
		stuck, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			_, err := l.Backup(t.Context(), writerFunc(func(b []byte) (int, error) {
				close(stuck)
				<-release
				return len(b), nil
			}))
			ended <- err
		}()
		<-stuck
		for range 10 {
			publish(t, l, "beside", "x")
			settle(t, l, claimOne(t, l, "beside"), Ack, "")
			storeUpToDate(t, l)
		}
		require.NoError(t, l.Close())
		close(release)
		require.ErrorIs(t, <-ended, ErrClosed)
		_, err = l.Backup(t.Context(), io.Discard)
		require.ErrorIs(t, err, ErrClosed)
	})
}

// plusFrames returns r with the frames of another recovery: how many were replayed says nothing of what there is.
func (r Recovered) plusFrames(n int) Recovered {
	r.Frames = n
	return r
}

// publishLarge publishes several chunks of a backup.
func publishLarge(t *testing.T, l *Log) {
	t.Helper()
	for range 4 * limits.BackupChunkBytes / 50_000 {
		publish(t, l, "large", strings.Repeat("x", 50_000))
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestABackupUnderLoadIsOneMoment moves messages from topic to topic while it is taken: each is in one of them, whenever.
func TestABackupUnderLoadIsOneMoment(t *testing.T) {
	l := openLog(t, t.TempDir())
	var confirmed sync.Map // of payload: it was published, or is done
	ctx, stop := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	var moved atomic.Int64
	for p := range 2 {
		workers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprintf("%d-%06d", p, i)
				_, err := l.Publish(context.WithoutCancel(ctx), l.newMessage("from", name), l.newMessage("twin", name))
				if err == nil {
					confirmed.Store(name, true)
				}
			}
		})
		workers.Go(func() {
			for ctx.Err() == nil {
				got, err := l.Claim(ctx, claimRequest("from", 8))
				for i, d := range got.Deliveries {
					s := []Settlement{{Lease: d.Lease, Verdict: Ack}}
					out := []Message{l.newMessage("to", string(d.Message.Payload))}
					switch {
					case err != nil:
						return
					case i == 7:
						s[0], out = Settlement{Lease: d.Lease, Verdict: Bury, Reason: "bad"}, nil
					}
					if l.Settle(context.WithoutCancel(ctx), s, out) == nil && out != nil {
						confirmed.Store("moved "+string(d.Message.Payload), true)
						moved.Add(1)
					}
				}
			}
		})
	}
	streams, sure := make([][]byte, 4), make([][]string, 4)
	for i := range streams {
		enough := moved.Load() + 200
		require.Eventually(t, func() bool { return moved.Load() > enough }, 30*time.Second, time.Millisecond)
		confirmed.Range(func(name, _ any) bool { sure[i] = append(sure[i], name.(string)); return true })
		_, streams[i] = backup(t, l)
	}
	stop()
	workers.Wait()
	for i, stream := range streams {
		requireOneMoment(t, restored(t, stream), sure[i])
	}
}

// requireOneMoment checks that nothing is missing or split.
func requireOneMoment(t *testing.T, l *Log, sure []string) {
	t.Helper()
	from, to, twin := map[string]bool{}, map[string]bool{}, map[string]bool{}
	drain := func(topic string, into map[string]bool) {
		for {
			got := claim(t, l, topic, 512)
			if len(got) == 0 {
				return
			}
			for _, p := range payloads(got) {
				require.False(t, into[p], "%s is twice in %s", p, topic)
				into[p] = true
			}
		}
	}
	_, err := l.Redrive(t.Context(), testTenant, "from", Redrive{})
	require.NoError(t, err)
	drain("from", from)
	drain("to", to)
	drain("twin", twin)
	for p := range to {
		require.False(t, from[p], "%s is not done, and what it sent is there", p)
	}
	require.Len(t, twin, len(from)+len(to))
	for p := range twin {
		require.True(t, from[p] != to[p], "%s is lost", p)
	}
	for _, name := range sure {
		if done, ok := strings.CutPrefix(name, "moved "); ok {
			require.True(t, to[done], "%s was confirmed before the backup", name)
		} else {
			require.True(t, twin[name], "%s was confirmed before the backup", name)
		}
	}
}

func TestSpaceComesBackAfterABackup(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 100 MB")
	}
	dir := t.TempDir()
	l := openLog(t, dir)
	payload := strings.Repeat("x", 500_000)
	for range 200 {
		publish(t, l, testTopic, payload)
	}
	storeUpToDate(t, l)
	stuck, release, ended := make(chan struct{}, 1000), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := l.Backup(t.Context(), writerFunc(func(b []byte) (int, error) {
			stuck <- struct{}{}
			<-release
			return len(b), nil
		}))
		ended <- err
	}()
	<-stuck
	for range 200 {
		settle(t, l, claimOne(t, l, testTopic), Ack, "")
	}
	storeUpToDate(t, l)
	time.Sleep(2 * limits.ReclaimIdle)
	require.Greater(t, folderBytes(t, dir), int64(100_000_000), "the backup may need it")
	close(release)
	require.NoError(t, <-ended)
	require.Eventually(t, func() bool { return folderBytes(t, dir) < 50_000_000 }, 30*time.Second, 100*time.Millisecond)
	require.NoError(t, l.Err())
}
