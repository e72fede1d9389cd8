package substrate

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// childVariable names the log's folder to a child process: this test binary, run again.
const childVariable = "LONGSHORE_TEST_LOG"

// child is a process that has a log open.
type child struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner // what it prints
}

// startChild runs one test of this binary as a process of its own, on the log in dir.
func startChild(t *testing.T, test, dir string) *child {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	c := &child{cmd: exec.CommandContext(t.Context(), exe, "-test.run=^"+test+"$")}
	c.cmd.Env = append(os.Environ(), childVariable+"="+dir)
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	c.lines = bufio.NewScanner(out)
	require.NoError(t, c.cmd.Start())
	return c
}

// kill kills the process with SIGKILL and returns the lines that were not read.
func (c *child) kill(t *testing.T) []string {
	t.Helper()
	require.NoError(t, c.cmd.Process.Kill())
	var rest []string
	for c.lines.Scan() {
		rest = append(rest, c.lines.Text())
	}
	require.EqualError(t, c.cmd.Wait(), "signal: killed", "%s", rest)
	return rest
}

// childLog opens the log that a parent has named, or skips the test.
func childLog(t *testing.T) *Log {
	t.Helper()
	dir := os.Getenv(childVariable)
	if dir == "" {
		t.Skip("runs as a child of another test")
	}
	l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: testSegment, LockWait: 10 * time.Second})
	require.NoError(t, err)
	fmt.Println("open")
	return l
}

// TestChildOfKilled works until it is killed, and prints the positions that it was told.
func TestChildOfKilled(t *testing.T) {
	l := childLog(t)
	relaxed := int64(100)
	require.NoError(t, l.SetPolicy(t.Context(), testTenant, "relaxed", Policy{MaxUnflushed: &relaxed}))
	var workers sync.WaitGroup
	for _, topic := range []string{testTopic, testTopic, "relaxed"} {
		workers.Go(func() { work(t.Context(), l, topic, os.Stdout) })
	}
	workers.Wait()
}

// work publishes, claims and settles at random until ctx ends or the log does.
func work(ctx context.Context, l *Log, topic string, out io.Writer) {
	for ctx.Err() == nil {
		msgs := []Message{l.newMessage(topic, "a"), l.newMessage(topic, strings.Repeat("b", rand.IntN(3_000)))}
		receipts, err := l.Publish(ctx, msgs[:1+rand.IntN(2)]...)
		if err != nil {
			return
		}
		_, _ = fmt.Fprintln(out, receipts[len(receipts)-1].Position)
		claimed, err := l.Claim(ctx, claimRequest(topic, 1+rand.IntN(3)))
		if err != nil {
			return
		}
		for _, d := range claimed.Deliveries {
			verdict := []Verdict{Ack, Ack, Retry, Release}[rand.IntN(4)]
			if err := l.Settle(ctx, []Settlement{{Lease: d.Lease, Verdict: verdict}}, nil); err != nil {
				return
			}
		}
	}
}

func TestAKilledLogOpensAgainAndKnowsItsNumbers(t *testing.T) {
	kills := 12
	if testing.Short() {
		kills = 3
	}
	dir := t.TempDir()
	for range kills {
		c := startChild(t, "TestChildOfKilled", dir)
		require.True(t, c.lines.Scan())
		require.Equal(t, "open", c.lines.Text())
		after := time.Now().Add(time.Duration(rand.IntN(150)) * time.Millisecond)
		var last uint64
		see := func(line string) {
			position, err := strconv.ParseUint(line, 10, 64)
			require.NoError(t, err, line)
			last = max(last, position)
		}
		for time.Now().Before(after) && c.lines.Scan() {
			see(c.lines.Text())
		}
		for _, line := range c.kill(t) {
			see(line)
		}
		l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: testSegment})
		require.NoError(t, err)
		require.Greater(t, publish(t, l, testTopic, "next")[0].Position, last)
		require.NoError(t, l.Close())
	}
}
