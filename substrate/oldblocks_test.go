package substrate

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAFolderWhoseBlocksAreInTheDatabase opens what a program left that kept the records of all blocks in Badger: 400
// messages, of which the first 100 are acknowledged. What is stored from now on is kept beside it.
func TestAFolderWhoseBlocksAreInTheDatabase(t *testing.T) {
	const topic = "blocks"
	payload := func(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%03d ", i), 500) }
	dir := unpack(t, "blocks1.tar.gz")
	l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: testSegment})
	require.NoError(t, err)
	require.Equal(t, Recovered{Topics: 1, Backlog: 300}, l.Recovered())
	publishBlocks(t, l, topic, 400, payload)
	require.NotEmpty(t, payloadFilesOf(t, dir))
	require.NoError(t, l.Close())

	l, err = Open(t.Context(), Options{
		Dir: dir, SegmentBytes: testSegment, housekeeping: housekeeping{idle: time.Millisecond, bytes: 1}, // it is tidied again and again
	})
	require.NoError(t, err)
	for next := 100; next < 500; {
		next = claimBlocks(t, l, topic, next, payload)
		time.Sleep(5 * time.Millisecond)
	}
	s, _ := l.Stats(testTenant, topic)
	require.Zero(t, s.Ready)
	require.NoError(t, l.Close())
}

// publishBlocks publishes 100 messages from number from on, and waits until they are stored.
func publishBlocks(t *testing.T, l *Log, topic string, from int, payload func(int) []byte) {
	t.Helper()
	var msgs []Message
	for i := range 100 {
		m := l.newMessage(topic, "")
		m.Payload = payload(from + i)
		msgs = append(msgs, m)
	}
	_, err := l.Publish(t.Context(), msgs...)
	require.NoError(t, err)
	storeUpToDate(t, l)
}

// claimBlocks claims and acknowledges some of the messages from number next on, and returns the number of the one after them.
func claimBlocks(t *testing.T, l *Log, topic string, next int, payload func(int) []byte) int {
	t.Helper()
	got, err := l.Claim(t.Context(), claimRequest(topic, 50))
	require.NoError(t, err)
	require.NotEmpty(t, got.Deliveries)
	var s []Settlement
	for _, d := range got.Deliveries {
		require.Equal(t, payload(next), d.Message.Payload)
		next++
		s = append(s, Settlement{Lease: d.Lease, Verdict: Ack})
	}
	require.NoError(t, l.Settle(t.Context(), s, nil))
	storeUpToDate(t, l)
	return next
}

func payloadFilesOf(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "store", "*.pay"))
	require.NoError(t, err)
	return found
}

func TestBackup_HasTheRecordsOfBlocksThatAreBesideTheDatabase(t *testing.T) {
	payload := func(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%03d ", i), 500) }
	dir := t.TempDir()
	l := openLog(t, dir)
	publishBlocks(t, l, testTopic, 0, payload)
	require.NotEmpty(t, payloadFilesOf(t, dir))
	var stream bytes.Buffer
	info, err := l.Backup(t.Context(), &stream)
	require.NoError(t, err)
	require.Zero(t, info.Damaged)
	to := filepath.Join(t.TempDir(), "restored")
	_, err = Restore(t.Context(), to, &stream)
	require.NoError(t, err)
	restored := openLog(t, to)
	for next := 0; next < 100; {
		next = claimBlocks(t, restored, testTopic, next, payload)
	}
}
