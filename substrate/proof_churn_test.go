package substrate

import (
	"context"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// churnRoom is how much of the disk the store may use for so many bytes of live messages, some time after others came and
// went. Less than 40 MiB live would not do: a value log is 64 MiB before it may be rewritten.
const churnRoom = 3

// TestProofChurn sends much more through a log than it holds at any time, and checks that what the disk keeps follows what
// is live. What is never claimed lies between what comes and goes, so that space comes back only if the log makes it.
func TestProofChurn(t *testing.T) {
	seed := proofSeed(t)
	c := churn{random: rand.New(rand.NewPCG(seed, 0)), live: 40 * limits.MiB, through: 160 * limits.MiB}
	soon := housekeeping{idle: 20 * time.Millisecond, bytes: limits.MiB}
	switch {
	case os.Getenv(proofLongEnv) != "":
		c.live, c.through = 100*limits.MiB, 10*limits.GiB
		soon = housekeeping{}
	case testing.Short():
		c.through = 60 * limits.MiB
	}
	dir := t.TempDir()
	l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: 4 * limits.MiB, housekeeping: soon})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	c.log = l
	c.run(t)
	room := churnRoom * c.live
	var onDisk int64
	reached := func() bool {
		onDisk = diskUse(t, filepath.Join(dir, "store"))
		return onDisk <= room
	}
	require.Eventually(t, reached, 2*time.Minute, 50*time.Millisecond, "%d bytes are live", c.live)
	t.Logf("%d MiB through, %d MiB live, %d MiB on disk", c.through/limits.MiB, c.live/limits.MiB, onDisk/limits.MiB)
	figure("churn_disk_over_live", float64(onDisk*100/c.live)/100)
	c.drain(t)
	require.NoError(t, l.Err())
}

// churn sends messages through a log.
type churn struct {
	log           *Log
	random        *rand.Rand
	live, through int64
	kept, held    int64 // bytes: of what stays, and of what comes and goes
}

// The topics: what is published to the first stays, the others come and go.
const churnTopics = 3

func (c *churn) topic(i int) string { return [churnTopics]string{"stays", "small", "large"}[i] }

func (c *churn) run(t *testing.T) {
	t.Helper()
	for sent := int64(0); sent < c.through; {
		var msgs []Message
		for range 20 {
			i, size := 1, 200+c.random.IntN(20_000)
			switch {
			case c.kept < c.live/2 && c.random.Int64N(c.through/2) < c.live:
				i = 0
			case c.random.IntN(8) == 0:
				i, size = 2, limits.InlinePayloadBytes+c.random.IntN(60_000)
			}
			m := c.log.newMessage(c.topic(i), "")
			m.Payload = proofPayload(m.ID, m.Topic, size)
			if i == 0 {
				c.kept += int64(len(m.Payload))
			} else {
				c.held += int64(len(m.Payload))
			}
			sent += int64(len(m.Payload))
			msgs = append(msgs, m)
		}
		_, err := c.log.Publish(t.Context(), msgs...)
		for err == nil && c.kept+c.held > c.live {
			err = c.acknowledge(t.Context(), c.topic(1+c.random.IntN(2)))
		}
		require.NoError(t, err)
	}
}

// acknowledge claims and acknowledges some messages.
func (c *churn) acknowledge(ctx context.Context, topic string) error {
	r := claimRequest(topic, 30)
	got, err := c.log.Claim(ctx, r)
	if err != nil {
		return err
	}
	var done []Settlement
	for _, d := range got.Deliveries {
		c.held -= int64(len(d.Message.Payload))
		done = append(done, Settlement{Lease: d.Lease, Verdict: Ack})
	}
	return c.log.Settle(ctx, done, nil)
}

// drain takes out all that is left, and checks that nothing else is.
func (c *churn) drain(t *testing.T) {
	t.Helper()
	for i := range churnTopics {
		before := c.held
		for {
			r := claimRequest(c.topic(i), 100)
			got, err := c.log.Claim(t.Context(), r)
			require.NoError(t, err)
			if len(got.Deliveries) == 0 {
				break
			}
			for _, d := range got.Deliveries {
				require.Equal(t, proofPayload(d.Message.ID, d.Message.Topic, len(d.Message.Payload)-len(d.Message.ID)-len(d.Message.Topic)-2), d.Message.Payload)
				c.held -= int64(len(d.Message.Payload))
			}
		}
		if i == 0 {
			require.Equal(t, before-c.kept, c.held)
			c.held = before
		}
	}
	require.Zero(t, c.held)
}

// diskUse returns the bytes that the files in a folder take.
func diskUse(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if os.IsNotExist(err) {
			return nil
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			bytes += stat.Blocks * 512
		}
		return err
	}))
	return bytes
}
