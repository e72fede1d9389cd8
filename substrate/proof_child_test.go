package substrate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/longshore/longshore/limits"
)

// childEnv, if it is set, makes the test binary a process that works on a log, and may die at it.
const childEnv = "LONGSHORE_PROOF_CHILD"

// errand is what such a process is to do.
type errand struct {
	Dir    string
	Seed   uint64
	Millis int // how long to work, at most
	// KillAt, if not 0, is how many acts are recorded before the process kills itself.
	KillAt int
	// Point is the failpoint that is armed, if any: for its Nth hit from the beginning of Phase, "open", "work" or "close".
	Point, Phase, Fault  string
	Nth                  int
	ThenPoint, ThenFault string // armed when Point fires
	Small                bool   // the disk is nearly full for a moment, so that the store gives space back
	Bulk                 bool   // large messages come and go before the work begins
	Blocks               bool   // messages that fill large blocks come and go beside the work
}

// outcome is how a process that did not die says that it did its errand.
type outcome struct {
	Fired    bool
	Opens    int // that failed
	Failed   bool
	Problems []string
}

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		os.Exit(runErrand(text))
	}
	os.Exit(m.Run())
}

// runErrand is the main function of the process. Acts go to file 3, the outcome to the standard output.
func runErrand(text string) int {
	var e errand
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		panic(err)
	}
	var o outcome
	if err := e.do(&o); err != nil {
		o.Problems = append(o.Problems, err.Error())
	}
	if err := json.NewEncoder(os.Stdout).Encode(o); err != nil {
		panic(err)
	}
	return 0
}

func (e *errand) do(o *outcome) error {
	ctx := context.Background()
	rec := &recorder{out: os.NewFile(3, "acts")}
	options := Options{Dir: e.Dir, SegmentBytes: testSegment, StorageLowBytes: 200, StorageReserveBytes: 100}
	fired := e.arm("open")
	l, err := Open(ctx, options)
	if err != nil {
		o.Opens++
		if l, err = Open(ctx, options); err != nil { // the fault has passed
			return fmt.Errorf("the second Open: %w", err)
		}
	}
	var free atomic.Uint64
	free.Store(1 << 40)
	l.mu.Lock()
	l.space.free = func() (uint64, error) { return free.Load(), nil }
	l.mu.Unlock()
	w := &workload{log: l, rec: rec}
	if err := w.relax(ctx); err != nil {
		return err
	}
	if e.Bulk {
		if err := bulk(ctx, l); err != nil {
			return err
		}
	}
	if e.Blocks && e.Small {
		if err := wearBlocks(ctx, l); err != nil {
			return err
		}
	}
	if e.Phase == "work" {
		fired = e.arm("work")
	}
	e.work(ctx, w, fired, &free)
	if e.Phase == "close" {
		fired = e.arm("close")
		if err := w.publishPlain(ctx); err != nil { // so that there is something to store
			return err
		}
	}
	select {
	case <-fired:
		o.Fired = true
	default:
	}
	o.Failed = l.Err() != nil
	if err := e.end(ctx, l, o); err != nil {
		return err
	}
	select {
	case <-fired:
		o.Fired = true
	default:
	}
	return nil
}

// work works until the fault has come and had its time, or time is up.
func (e *errand) work(ctx context.Context, w *workload, fired <-chan struct{}, free *atomic.Uint64) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(e.Millis)*time.Millisecond)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.watch(ctx, w, fired, free, cancel)
	}()
	var others sync.WaitGroup
	if e.Blocks {
		others.Go(func() { blocksComeAndGo(ctx, w.log) })
	}
	w.run(ctx, e.Seed)
	cancel()
	others.Wait()
	<-done
}

// blocksTenant is whose blocks come and go: nothing of it is recorded.
const (
	blocksTenant = "blocks-only"
	blocksBatch  = 40 // messages
)

// wearBlocks stores blocks, most of whose messages are acknowledged then.
func wearBlocks(ctx context.Context, l *Log) error {
	const batches, left = 40, 10
	for range batches {
		if err := publishBatch(ctx, l); err != nil {
			return err
		}
	}
	if err := l.submit(ctx, &request{}); err != nil {
		return err
	}
	for range batches - left {
		if err := ackBatch(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// blocksComeAndGo publishes messages, most of which are acknowledged once others came, until ctx ends or the log fails.
func blocksComeAndGo(ctx context.Context, l *Log) {
	const keep = 10 // batches
	for n := 0; ; n++ {
		if publishBatch(ctx, l) != nil || n > keep && n%keep > 0 && ackBatch(ctx, l) != nil {
			return
		}
	}
}

func publishBatch(ctx context.Context, l *Log) error {
	msgs := make([]Message, blocksBatch)
	for i := range msgs {
		msgs[i] = Message{ID: l.MintID(), Tenant: blocksTenant, Topic: "blocks", Payload: make([]byte, 5*limits.KiB)}
	}
	_, err := l.Publish(ctx, msgs...)
	return err
}

func ackBatch(ctx context.Context, l *Log) error {
	r := claimRequest("blocks", blocksBatch)
	r.Tenant = blocksTenant
	got, err := l.Claim(ctx, r)
	if err != nil {
		return err
	}
	var s []Settlement
	for _, d := range got.Deliveries {
		s = append(s, Settlement{Lease: d.Lease, Verdict: Ack})
	}
	return l.Settle(ctx, s, nil)
}

func (e *errand) watch(ctx context.Context, w *workload, fired <-chan struct{}, free *atomic.Uint64, cancel func()) {
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	start := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-fired:
			if e.Phase == "work" {
				time.Sleep(60 * time.Millisecond)
				cancel()
				return
			}
		case <-tick.C:
		}
		if e.KillAt > 0 && w.rec.count() >= e.KillAt {
			die()
		}
		if e.Small {
			free.Store(1 << 40)
			if time.Since(start)/(100*time.Millisecond)%2 == 1 {
				free.Store(150)
			}
		}
	}
}

// end closes the log and looks for what should not be there.
func (e *errand) end(ctx context.Context, l *Log, o *outcome) error {
	if o.Failed {
		<-l.Done()
		if _, err := l.Publish(ctx, l.newMessage(testTopic, "late")); !errors.Is(err, ErrClosed) {
			o.Problems = append(o.Problems, fmt.Sprintf("publish after the fault: %v", err))
		}
		if err := l.WaitReady(ctx, testTenant, testTopic, ""); !errors.Is(err, ErrClosed) {
			o.Problems = append(o.Problems, fmt.Sprintf("wait after the fault: %v", err))
		}
	}
	err := l.Close()
	if again := l.Close(); fmt.Sprint(again) != fmt.Sprint(err) {
		o.Problems = append(o.Problems, fmt.Sprintf("Close returned %v, then %v", err, again))
	}
	o.Failed = o.Failed || l.Err() != nil
	if (err != nil) != o.Failed {
		o.Problems = append(o.Problems, fmt.Sprintf("Close: %v, and the log has failed: %v", err, o.Failed))
	}
	if !o.Failed && o.Opens == 0 {
		return goleak.Find()
	}
	// The database of a log that has failed is left as it is; what is ours has ended.
	for until := time.Now().Add(2 * time.Second); ; time.Sleep(time.Millisecond) {
		ours := goroutinesOfTheLog()
		if ours == "" {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("goroutines are left: %s", ours)
		}
	}
}

func goroutinesOfTheLog() string {
	b := make([]byte, 1<<20)
	b = b[:runtime.Stack(b, true)]
	var found []string
	for _, g := range strings.Split(string(b), "\n\n")[1:] {
		if strings.Contains(g, "substrate.") || strings.Contains(g, "journal.") {
			found = append(found, g)
		}
	}
	return strings.Join(found, "\n\n")
}

// bulk lets large messages through until value logs hold enough garbage to be rewritten.
func bulk(ctx context.Context, l *Log) error {
	payload := make([]byte, 900*limits.KiB)
	for range 90 {
		if _, err := l.Publish(ctx, Message{ID: l.MintID(), Tenant: testTenant, Topic: "bulk", Payload: payload}); err != nil {
			return err
		}
	}
	for {
		r := claimRequest("bulk", 8)
		r.MaxBytes = limits.GiB
		got, err := l.Claim(ctx, r)
		if err != nil || len(got.Deliveries) == 0 {
			return err
		}
		var s []Settlement
		for _, d := range got.Deliveries {
			s = append(s, Settlement{Lease: d.Lease, Verdict: Ack})
		}
		if err := l.Settle(ctx, s, nil); err != nil {
			return err
		}
	}
}

// die ends the process as kill -9 does.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// send runs an errand in a process of its own. It returns what the process recorded, its outcome, and whether it was killed.
func (e *errand) send(t *testing.T) (acts []act, o outcome, killed bool) {
	t.Helper()
	text, err := json.Marshal(e)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	from, to, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	cmd.ExtraFiles = []*os.File{to}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Start())
	require.NoError(t, to.Close())
	hung := time.AfterFunc(60*time.Second, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	recorded, err := io.ReadAll(from)
	require.NoError(t, errors.Join(err, from.Close()))
	err = cmd.Wait()
	require.True(t, hung.Stop(), "%s: the process hangs:\n%s", text, stderr.String())
	acts = readActs(t, recorded)
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		status, _ := exit.Sys().(syscall.WaitStatus)
		require.Equal(t, syscall.SIGKILL, status.Signal(), "%s: %s\n%s", text, exit, stderr.String())
		return acts, o, true
	}
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &o), "%s", stdout.String())
	require.Empty(t, o.Problems, "%s", text)
	return acts, o, false
}

// reopenProved opens a log after the process that worked on it has ended, and closes it with the test.
func reopenProved(t *testing.T, dir string) *Log {
	t.Helper()
	l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: testSegment, StorageLowBytes: 1, StorageReserveBytes: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

func proofDir(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "log")
}
