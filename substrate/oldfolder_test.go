package substrate

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/substrate/internal/store"
)

// unpack returns the folder that an archive of testdata holds. Runs of zeros stay holes.
func unpack(t *testing.T, archive string) string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", archive))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	dir := t.TempDir()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return filepath.Join(dir, "log")
		}
		require.NoError(t, err)
		require.True(t, filepath.IsLocal(h.Name))
		name := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			require.NoError(t, os.MkdirAll(name, 0o700))
			continue
		}
		unpackFile(t, name, r)
	}
}

func unpackFile(t *testing.T, name string, r io.Reader) {
	t.Helper()
	f, err := os.Create(name)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	chunk, zeros := make([]byte, 1<<16), make([]byte, 1<<16)
	for at := int64(0); ; {
		n, err := io.ReadFull(r, chunk)
		if !bytes.Equal(chunk[:n], zeros[:n]) {
			_, err := f.WriteAt(chunk[:n], at)
			require.NoError(t, err)
		}
		at += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			require.NoError(t, f.Truncate(at))
			return
		}
		require.NoError(t, err)
	}
}

// TestAFolderOfVersion1 opens what the program of version 1 left when it was killed. All that it could do was done to two
// topics: what was done to "stored" is in its store, what was done to "journaled" is in the frames of its journal alone. It
// was written in a bubble, so that its times are those of this one.
func TestAFolderOfVersion1(t *testing.T) {
	for _, topic := range []string{"stored", "journaled"} {
		t.Run("HasAllThatWas"+strings.ToUpper(topic[:1])+topic[1:], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := unpack(t, "version1.tar.gz")
				time.Sleep(10 * time.Second) // it was killed before
				l := openLog(t, dir)
				checkVersion1(t, l, topic)
				require.NoError(t, l.Close())
				l = openLog(t, dir)
				checkVersion1(t, l, topic)
				drainVersion1(t, l, topic)
			})
		})
	}

	t.Run("IsRecoveredFromItsStoreAndItsJournal", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir := unpack(t, "version1.tar.gz")
			require.Equal(t, Recovered{Topics: 5, Backlog: 22, DeadLetters: 4, Frames: 22}, openLog(t, dir).Recovered())
		})
	})

	t.Run("IsCounted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir := unpack(t, "version1.tar.gz")
			l := openLog(t, dir)
			requireCounted(t, l)
			require.Equal(t, int64(26), l.Tenants()[0].Messages)
			require.NoError(t, l.Close())
			requireCounted(t, openLog(t, dir))
		})
	})

	t.Run("GetsLanes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, unpack(t, "version1.tar.gz"))
			_, made, err := l.CreateGroup(t.Context(), testTenant, "stored", "g", GroupOptions{})
			require.NoError(t, err)
			require.True(t, made)
			r := claimRequest("stored", 100)
			r.Lane = "g"
			got, err := l.Claim(t.Context(), r)
			require.NoError(t, err)
			require.Len(t, got.Deliveries, 11, "what is visible, and the dead letters")
			_, err = l.Publish(t.Context(), l.newMessage("stored", "new"))
			require.NoError(t, err)
			require.Equal(t, int64(7), stats(t, l, "stored").Ready, "its default lane was in use")
		})
	})
}

// checkVersion1 checks what can be seen of a topic of the archive without changing it.
func checkVersion1(t *testing.T, l *Log, topic string) {
	t.Helper()
	s := stats(t, l, topic)
	require.Equal(t, []int64{6, 4, 0, 2}, []int64{s.Ready, s.Delayed, s.Leased, s.DeadLetters})
	require.Equal(t, []uint64{14, 1, 4, 1, 1}, []uint64{s.Published, s.Acked, s.Buried, s.Redriven, s.Discarded})
	require.Equal(t, int64(1), stats(t, l, topic+"/out").Ready)
	require.True(t, stats(t, l, "paused").Paused)
	require.False(t, s.Paused)
	p, err := l.Policy(testTenant, topic)
	require.NoError(t, err)
	require.Equal(t, PolicyValue{Value: 1000, Set: true, Source: "stored"}, p.MaxDepth)
	require.Equal(t, PolicyValue{Value: 200_000, Set: true, Source: "stored"}, p.MaxMessageBytes)
	require.Equal(t, PolicyValue{Value: 0, Set: true, Source: "stored"}, p.MaxUnflushed)
	require.False(t, p.MaxPriority.Set)
	letters, err := l.DeadLetters(t.Context(), testTenant, topic, DeadLetterFilter{})
	require.NoError(t, err)
	var dead []string
	for _, d := range letters {
		dead = append(dead, fmt.Sprintf("%s after %d: %s", d.Reason, d.Attempts, d.Receipt))
	}
	require.Equal(t, []string{"bad after 1: receipt", "ttl-expired after 0: "}, dead)
	again := l.newMessage(topic, "again")
	again.Options = MessageOptions{IdempotencyKey: "key", Principal: "ada"}
	receipts, err := l.Publish(t.Context(), again)
	require.NoError(t, err)
	require.True(t, receipts[0].Duplicate)
}

// drainVersion1 lets all that waits become due, and takes everything.
func drainVersion1(t *testing.T, l *Log, topic string) {
	t.Helper()
	_, err := l.Redrive(t.Context(), testTenant, topic, Redrive{Filter: DeadLetterFilter{ReasonContains: "bad"}})
	require.NoError(t, err)
	// take names the deliveries of all claims by payload and attempt.
	take := func() (got []string, whole Message) {
		for {
			d := claim(t, l, topic, 100)
			if len(d) == 0 {
				return got, whole
			}
			for _, d := range d {
				if string(d.Message.Payload) == "whole" {
					whole = d.Message
				}
				got = append(got, fmt.Sprintf("%.9s %d", d.Message.Payload, d.Attempt))
				settle(t, l, d, Ack, "")
			}
		}
	}
	got, whole := take()
	require.Equal(t, []string{"buried 1", "leased 1", "whole 1", "ripened 1", "ttl 1", "deadline 1", "keyed 1", "xxxxxxxxx 1"}, got)
	require.Equal(t, "text/plain", whole.ContentType)
	require.Equal(t, []Pair{{"k", "v"}, {"k", ""}}, whole.Metadata)
	require.Equal(t, "envelope", string(whole.Envelope))
	require.Len(t, whole.Parent, len(whole.ID))
	require.Equal(t, uint32(3), whole.Hops)
	for _, then := range []struct {
		after time.Duration
		want  []string
	}{{30 * time.Minute, []string{"redriven 1"}}, {30 * time.Minute, []string{"retried 2"}}, {time.Hour, []string{"delayed 1"}}} {
		time.Sleep(then.after)
		got, _ := take()
		require.Equal(t, then.want, got)
	}
	require.Zero(t, stats(t, l, topic).Backlog())
	claimed, err := l.Claim(t.Context(), claimRequest(topic+"/out", 10))
	require.NoError(t, err)
	require.Equal(t, []string{"from acked"}, payloads(claimed.Deliveries))
}

// TestAFolderOfThisVersionSaysSo looks at the records that a program of version 1 reads first, the checkpoint and the state
// of a topic: it refuses both by their version, whatever else there is that it does not know.
func TestAFolderOfThisVersionSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, dir := range []string{t.TempDir(), unpack(t, "version1.tar.gz")} {
			l := openLog(t, dir)
			body, err := l.store.Checkpoint()
			require.NoError(t, err)
			require.Equal(t, byte(formatVersion), body[0], "before anything was done")
			publishN(t, l, "stored", 900) // makes blocks
			storeUpToDate(t, l)
			body, err = l.store.Get(store.TopicOf(testTenant, "stored").State())
			require.NoError(t, err)
			require.Equal(t, byte(formatVersion), body[0])
		}
	})
}
