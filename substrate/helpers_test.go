package substrate

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

const (
	testTenant  = "acme"
	testTopic   = "orders"
	testSegment = 1 * limits.MiB
)

func openLog(t *testing.T, dir string) *Log {
	t.Helper()
	l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: testSegment, LockWait: time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// message returns a message of the test topic, with a fresh id.
func (l *Log) newMessage(topic, payload string) Message {
	return Message{ID: l.MintID(), Tenant: testTenant, Topic: topic, Payload: []byte(payload)}
}

func publish(t *testing.T, l *Log, topic string, payloads ...string) []Receipt {
	t.Helper()
	msgs := make([]Message, len(payloads))
	for i, p := range payloads {
		msgs[i] = l.newMessage(topic, p)
	}
	receipts, err := l.Publish(t.Context(), msgs...)
	require.NoError(t, err)
	return receipts
}

func publishN(t *testing.T, l *Log, topic string, n int) {
	t.Helper()
	for start := 0; start < n; start += 500 {
		var payloads []string
		for i := start; i < min(n, start+500); i++ {
			payloads = append(payloads, fmt.Sprintf("m%06d", i))
		}
		publish(t, l, topic, payloads...)
	}
}

func claimRequest(topic string, n int) ClaimRequest {
	return ClaimRequest{Tenant: testTenant, Topic: topic, MaxMessages: n, MaxBytes: limits.MiB, Lease: time.Minute, MaxAttempts: 3}
}

func claim(t *testing.T, l *Log, topic string, n int) []Delivery {
	t.Helper()
	r, err := l.Claim(t.Context(), claimRequest(topic, n))
	require.NoError(t, err)
	require.Empty(t, r.Buried)
	return r.Deliveries
}

func claimOne(t *testing.T, l *Log, topic string) Delivery {
	t.Helper()
	d := claim(t, l, topic, 1)
	require.Len(t, d, 1)
	return d[0]
}

func settle(t *testing.T, l *Log, d Delivery, v Verdict, reason string) {
	t.Helper()
	require.NoError(t, l.Settle(t.Context(), []Settlement{{Lease: d.Lease, Verdict: v, Reason: reason}}, nil))
}

func payloads(deliveries []Delivery) []string {
	var s []string
	for _, d := range deliveries {
		s = append(s, string(d.Message.Payload))
	}
	return s
}

func stats(t *testing.T, l *Log, topic string) Stats {
	t.Helper()
	s, ok := l.Stats(testTenant, topic)
	require.True(t, ok)
	return s
}

// crash returns a copy of the log's folder as a kill of the process would leave it now. Badger's files are sparse, and it
// may be replacing tables while they are copied: then the copy is made again. The mark is copied first: it must not know of
// frames that came when the journal was copied already.
func crash(t *testing.T, dir string) string {
	t.Helper()
	for {
		to := filepath.Join(t.TempDir(), "log")
		mark, found := readFile(t, dir, markName)
		before := tables(t, dir)
		out, err := exec.CommandContext(t.Context(), "cp", "-r", "--sparse=always", dir, to).CombinedOutput()
		if tables(t, dir) != before {
			continue
		}
		require.NoError(t, err, "%s", out)
		if found {
			writeFile(t, to, markName, mark)
		}
		return to
	}
}

// readFile returns the content of a file of the log's folder, and whether there is one.
func readFile(t *testing.T, dir, name string) ([]byte, bool) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	return b, err == nil
}

func writeFile(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
}

// tables describes the set of files of the log's store.
func tables(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "store"))
	require.NoError(t, err)
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintln(&b, e.Name())
		if info, err := e.Info(); err == nil && e.Name() == "MANIFEST" {
			fmt.Fprintln(&b, info.Size(), info.ModTime())
		}
	}
	return b.String()
}

// reopenCrashed opens a copy of the log's folder, made while the log is open.
func reopenCrashed(t *testing.T, dir string) *Log {
	t.Helper()
	return openLog(t, crash(t, dir))
}

// storeUpToDate waits until the write-behind has stored everything.
func storeUpToDate(t *testing.T, l *Log) {
	t.Helper()
	require.NoError(t, l.submit(context.WithoutCancel(t.Context()), &request{}))
}

// overwrite puts rubbish under a key of the closed store in dir.
func overwrite(t *testing.T, dir string, key []byte) {
	t.Helper()
	db, err := badger.Open(badger.DefaultOptions(filepath.Join(dir, "store")).WithLogger(nil).WithCompression(0))
	require.NoError(t, err)
	require.NoError(t, db.Update(func(txn *badger.Txn) error { return txn.Set(key, []byte("rubbish")) }))
	require.NoError(t, db.Close())
}

// lowerChecks sets how many histories a model test runs, unless -rapid.checks says so: each opens a log several times.
func lowerChecks(t *testing.T, n int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() != checks.DefValue {
		return
	}
	if testing.Short() {
		n = 5 * max(n/6, 1) // of which rapid takes a fifth
	}
	require.NoError(t, flag.Set("rapid.checks", strconv.Itoa(n)))
	t.Cleanup(func() { require.NoError(t, flag.Set("rapid.checks", checks.DefValue)) })
}
