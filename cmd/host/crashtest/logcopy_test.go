package crashtest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/longshore/longshore/substrate"
)

// logDir is the folder of the log in a host's folder.
const logDir = "data/log"

// topicInLog is what the log of a killed host has recorded of a topic.
type topicInLog struct {
	claims []run  // of messages that were claimed and aren't settled: the newest claim of each that counted
	next   string // id of the first message without a counted attempt; "" if there is none
}

// claimedSince reports whether the log has recorded a claim since before, of which no handling began. Both arguments
// count attempts, by message.
func (l topicInLog) claimedSince(before, begun map[string]int) bool {
	return slices.ContainsFunc(l.claims, func(c run) bool {
		return c.attempt > before[c.message] && c.attempt > begun[c.message]
	})
}

// readLog looks into a copy of a killed host's log, by claiming from it: a claim after the recovery says which attempt it is.
func readLog(t *testing.T, f folder, topics []substrate.TopicName) map[substrate.TopicName]topicInLog {
	t.Helper()
	dir := t.TempDir()
	copyTree(t, f.file(logDir), dir)
	log, err := substrate.Open(t.Context(), substrate.Options{Dir: dir})
	require.NoError(t, err)
	defer func() {
		require.NoError(t, log.Close())
		require.NoError(t, os.RemoveAll(dir)) // there are many copies
	}()
	found := map[substrate.TopicName]topicInLog{}
	for _, topic := range topics {
		found[topic] = readTopic(t, log, topic)
	}
	return found
}

// readTopic claims until the first message without a counted attempt: the others come first. It claims one by one, for a
// message that ran at the kill is left out of a claim of many.
func readTopic(t *testing.T, log *substrate.Log, topic substrate.TopicName) (found topicInLog) {
	t.Helper()
	for {
		got, err := log.Claim(t.Context(), substrate.ClaimRequest{
			Tenant: topic.Tenant, Topic: topic.Topic, MaxMessages: 1, MaxBytes: 1 << 20, Lease: time.Hour, MaxAttempts: 1 << 20,
		})
		require.NoError(t, err)
		for _, d := range got.Deliveries {
			if d.Attempt == 1 {
				found.next = d.Message.ID
				return found
			}
			found.claims = append(found.claims, run{d.Message.ID, d.Attempt - 1})
		}
		if len(got.Deliveries) == 0 {
			return found
		}
	}
}

// copyTree copies files and folders. Zeros become holes: most of a log's files are zeros.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		return copyFile(path, filepath.Join(to, rel))
	}))
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := copyData(in, out); err != nil {
		return err
	}
	return out.Truncate(info.Size())
}

// copyData copies the blocks that hold something.
func copyData(in, out *os.File) error {
	block, zeros := make([]byte, 128<<10), make([]byte, 128<<10)
	for offset := int64(0); ; {
		data, err := in.Seek(offset, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil // no data up to the end
		}
		if err != nil {
			return err
		}
		n, err := in.ReadAt(block, data)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := out.WriteAt(block[:n], data); err != nil {
				return err
			}
		}
		offset = data + int64(n)
	}
}
