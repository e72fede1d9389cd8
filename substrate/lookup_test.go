package substrate

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/store"
)

// A batch that takes several transactions of the store shows some of its messages before others. A window that is filled
// meanwhile must not take the later ones and leave the earlier ones out for ever.
func TestWindowHasNoHoleWhileABatchIsBeingStored(t *testing.T) {
	l := openLog(t, t.TempDir())
	publish(t, l, testTopic, "first")
	storeUpToDate(t, l)
	tp := l.find(TopicName{testTenant, testTopic})
	l.mu.Lock()
	st := tp.work.base()
	st.jump(st.cursor, st.ready, positions{}) // as after a restart
	require.Empty(t, tp.tail)
	view := l.lookAhead(st, st.cursor, limits.WindowMessages)
	l.mu.Unlock()

	receipts := publish(t, l, testTopic, "a", "b", "c")
	var visible []store.Op // of the batch's first transaction: "b" is in the second
	for _, i := range []int{0, 2} {
		body, err := l.body(tp, receipts[i].Position)
		require.NoError(t, err)
		visible = append(visible, store.Op{Key: tp.key().Message(receipts[i].Position), Body: body})
	}
	checkpoint, err := l.store.Checkpoint()
	require.NoError(t, err)
	_, err = l.store.Write(nil, visible, checkpoint)
	require.NoError(t, err)

	entries, all, err := l.read(st, view, limits.WindowMessages)
	require.NoError(t, err)
	l.mu.Lock()
	st.install(entries, all, view)
	l.mu.Unlock()
	require.Equal(t, []string{"first", "a", "b", "c"}, payloads(claim(t, l, testTopic, 10)))
}

func TestPeek(t *testing.T) {
	l := openLog(t, t.TempDir())
	const n = 2 * limits.WindowMessages
	publishN(t, l, testTopic, n)
	settle(t, l, claimOne(t, l, testTopic), Retry, "again")
	claimOne(t, l, testTopic)
	peeked, err := l.Peek(t.Context(), testTenant, testTopic, "", 0, limits.DeadLetterPage)
	require.NoError(t, err)
	require.Len(t, peeked, limits.DeadLetterPage)
	for i, p := range peeked {
		require.Equal(t, uint64(i+1), p.Position)
		require.Equal(t, fmt.Sprintf("m%06d", i), string(p.Message.Payload))
	}
	require.Equal(t, "leased", peeked[0].State)
	rest, err := l.Peek(t.Context(), testTenant, testTopic, "", limits.DeadLetterPage, limits.DeadLetterPage)
	require.NoError(t, err)
	require.Len(t, rest, n-limits.DeadLetterPage)
	_, err = l.Peek(t.Context(), testTenant, "nothing", "", 0, 1)
	require.ErrorIs(t, err, ErrNotFound)
}

// The store takes the state that a cut leaves in one transaction, and Badger bounds those. Reasons and names of full length
// must fit, in the live log and when all of it has to be recovered at once.
func TestEffectsNeverOutgrowATransaction(t *testing.T) {
	if testing.Short() {
		t.Skip("settles 20,000 messages")
	}
	dir := t.TempDir()
	l, err := Open(t.Context(), Options{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	storeUpToDate(t, l)
	atOpen := crash(t, dir)
	topic := strings.Repeat("t", limits.TopicBytes)
	const n = 5 * limits.ClaimCeilingMsgs
	publishN(t, l, topic, n)
	var s []Settlement
	for len(s) < n {
		deliveries := claim(t, l, topic, limits.ClaimCeilingMsgs)
		require.NotEmpty(t, deliveries)
		for _, d := range deliveries {
			s = append(s, Settlement{Lease: d.Lease, Verdict: Retry, Reason: strings.Repeat("r", limits.ReasonBytes)})
		}
	}
	for len(s) > 0 {
		require.NoError(t, l.Settle(t.Context(), s[:512], nil))
		s = s[512:]
	}
	require.Less(t, l.state.effects.lastBytes, int64(2*limits.WriteBehindLastBytes))

	require.NoError(t, os.RemoveAll(filepath.Join(atOpen, "journal"))) // the store as it was, and all of the journal
	out, err := exec.CommandContext(t.Context(), "cp", "-r", filepath.Join(dir, "journal"), atOpen).CombinedOutput()
	require.NoError(t, err, "%s", out)
	again, err := Open(t.Context(), Options{Dir: atOpen})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, again.Close()) })
	require.Equal(t, int64(n), stats(t, again, topic).Delayed)
}

func TestUseAfterCloseNeverPanics(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	publishN(t, l, testTopic, limits.WindowMessages+1)
	require.NoError(t, l.Close())
	l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: testSegment}) // nothing of it is in memory
	require.NoError(t, err)
	require.NoError(t, l.Close())
	_, err = l.Peek(t.Context(), testTenant, testTopic, "", 0, 10)
	require.ErrorIs(t, err, ErrClosed)
	_, err = l.Claim(t.Context(), claimRequest(testTopic, 10))
	require.ErrorIs(t, err, ErrClosed)
	_, err = l.DeadLetters(t.Context(), testTenant, testTopic, DeadLetterFilter{})
	require.ErrorIs(t, err, ErrClosed)
	require.Equal(t, int64(limits.WindowMessages+1), stats(t, l, testTopic).Ready)
}
