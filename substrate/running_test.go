package substrate

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func start(t *testing.T, l *Log, leases ...Lease) (ended func()) {
	t.Helper()
	ended, err := l.Start(leases...)
	require.NoError(t, err)
	return ended
}

// claimEach publishes messages and claims them, and returns them by their payloads.
func claimEach(t *testing.T, l *Log, payloads ...string) map[string]Delivery {
	t.Helper()
	publish(t, l, testTopic, payloads...)
	byPayload := map[string]Delivery{}
	for _, d := range claim(t, l, testTopic, len(payloads)) {
		byPayload[string(d.Message.Payload)] = d
	}
	return byPayload
}

// notes returns what the file of a folder says.
func notes(t *testing.T, dir string) map[runningNote]struct{} {
	t.Helper()
	n, err := readRunning(dir)
	require.NoError(t, err)
	return n
}

func TestStart(t *testing.T) {
	t.Run("ACrashChargesWhatRanAndNothingElse", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		d := claimEach(t, l, "began", "waits", "ran", "batched 1", "batched 2")
		start(t, l, d["ran"].Lease)()
		start(t, l, d["began"].Lease)
		start(t, l, d["batched 1"].Lease, d["batched 2"].Lease)
		dir = crash(t, dir)
		n := openLog(t, dir)
		require.Equal(t, 3, n.Recovered().Crashed)
		require.Empty(t, notes(t, dir), "what has been dealt with is forgotten")
		attempts, order := map[string]int{}, 0
		for range 4 {
			got := claim(t, n, testTopic, 10)
			for _, d := range got {
				attempts[string(d.Message.Payload)] = d.Attempt
			}
			if got[0].Suspect {
				order++
				require.Len(t, got, 1)
				require.Equal(t, ReasonCrashed, got[0].PreviousReason)
			} else {
				require.Len(t, got, 2)
				require.Empty(t, got[0].PreviousReason)
			}
		}
		require.Equal(t, 3, order)
		require.Equal(t, map[string]int{"began": 2, "waits": 1, "ran": 1, "batched 1": 2, "batched 2": 2}, attempts)
	})

	t.Run("ANoteCountsOnceItIsWholeAndUntilItIsCleared", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		start(t, l, claimEach(t, l, "a")["a"].Lease)
		killed := crash(t, dir)
		whole, _ := readFile(t, killed, runningName)
		slot := whole[runningSlotBytes : 2*runningSlotBytes]
		require.False(t, isZero(slot))
		for n := range runningSlotBytes {
			written, cleared := bytes.Clone(whole), bytes.Clone(whole)
			clear(written[runningSlotBytes+n : 2*runningSlotBytes])
			clear(cleared[runningSlotBytes : runningSlotBytes+n+1])
			for _, torn := range [][]byte{written, cleared} {
				writeFile(t, killed, runningName, torn)
				require.Empty(t, notes(t, killed), "%d bytes", n)
			}
		}
		writeFile(t, killed, runningName, whole)
		require.Len(t, notes(t, killed), 1)
		require.Equal(t, 2, claimOne(t, openLog(t, killed), testTopic).Attempt)
	})

	t.Run("ASuspectStaysOneThroughCrashesThatSpareIt", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		start(t, l, claimEach(t, l, "a")["a"].Lease)
		for range 3 {
			dir = crash(t, dir)
			l = openLog(t, dir)
			d := claimOne(t, l, testTopic)
			require.True(t, d.Suspect)
			require.Equal(t, 2, d.Attempt, "charged once")
			storeUpToDate(t, l)
		}
	})

	t.Run("ARetryClearsItAndAReleaseDoesNot", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		start(t, l, claimEach(t, l, "a")["a"].Lease)
		l = reopenCrashed(t, dir)
		d := claimOne(t, l, testTopic)
		settle(t, l, d, Release, "")
		d = claimOne(t, l, testTopic)
		require.True(t, d.Suspect)
		settle(t, l, d, Retry, "")
		d = claimOne(t, l, testTopic)
		require.False(t, d.Suspect)
		require.Equal(t, 3, d.Attempt)
	})

	t.Run("WhoeverCrashesAgainAndAgainIsBuriedForIt", func(t *testing.T) {
		for reason, why := range map[string]string{ReasonCrashed: "", "guest-trap: unreachable": "guest-trap: unreachable"} {
			dir := t.TempDir()
			l := openLog(t, dir)
			publish(t, l, testTopic, "poison")
			if why != "" {
				settle(t, l, claimOne(t, l, testTopic), Retry, why)
			}
			for {
				r, err := l.Claim(t.Context(), claimRequest(testTopic, 10))
				require.NoError(t, err)
				if len(r.Buried) > 0 {
					require.Equal(t, reason, r.Buried[0].Reason)
					require.Equal(t, 3, r.Buried[0].Attempts)
					break
				}
				require.Len(t, r.Deliveries, 1)
				start(t, l, r.Deliveries[0].Lease)
				dir = crash(t, dir)
				l = openLog(t, dir)
			}
		}
	})

	t.Run("AnOrderlyCloseChargesNobody", func(t *testing.T) {
		dir := t.TempDir()
		l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: testSegment})
		require.NoError(t, err)
		d := claimEach(t, l, "a")["a"]
		ended := start(t, l, d.Lease)
		require.NoError(t, l.Close())
		require.Empty(t, notes(t, dir))
		ended()
		_, err = l.Start(d.Lease)
		require.ErrorIs(t, err, ErrClosed)
		again := claimOne(t, openLog(t, dir), testTopic)
		require.Equal(t, 1, again.Attempt)
		require.False(t, again.Suspect)
	})

	t.Run("ANoteOfALeaseThatIsOverOrOfAnotherLaneCountsForNobody", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		d := claimEach(t, l, "a")["a"]
		start(t, l, d.Lease)
		settle(t, l, d, Retry, "")
		d = claimOne(t, l, testTopic)
		elsewhere := d.Lease
		elsewhere.Lane = "group"
		start(t, l, elsewhere)
		elsewhere = d.Lease
		elsewhere.Topic = "another"
		start(t, l, elsewhere)
		n := reopenCrashed(t, dir)
		require.Zero(t, n.Recovered().Crashed)
		require.Equal(t, 2, claimOne(t, n, testTopic).Attempt, "that of the retry")
	})

	t.Run("NoMoreRunThanThereAreSlots", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		leases := make([]Lease, limits.RunningSlots-1)
		for i := range leases {
			leases[i] = Lease{Tenant: testTenant, Topic: testTopic, Position: uint64(i + 1), Token: 1}
		}
		ended := start(t, l, leases...)
		two := []Lease{{Position: 1, Token: 2}, {Position: 2, Token: 2}}
		_, err := l.Start(two...)
		var limit *limits.Error
		require.ErrorAs(t, err, &limit)
		require.Equal(t, limits.Error{Name: limits.NameRunning, Limit: limits.RunningSlots, Actual: limits.RunningSlots + 1}, *limit)
		require.Len(t, notes(t, dir), len(leases), "none of the two")
		start(t, l, two[0])
		require.Len(t, notes(t, dir), limits.RunningSlots)
		ended()
		ended()
		require.Len(t, notes(t, dir), 1)
		require.GreaterOrEqual(t, limits.RunningSlots, limits.HostInFlightMsgs, "a host never needs more")
	})

	t.Run("FromManyGoroutines", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		var all sync.WaitGroup
		for worker := range uint64(8) {
			all.Go(func() {
				for n := range uint64(200) {
					ended, err := l.Start(Lease{Position: worker, Token: n}, Lease{Position: worker + 100, Token: n})
					if err != nil {
						t.Error(err)
						return
					}
					ended()
				}
			})
		}
		all.Wait()
		require.Empty(t, notes(t, dir))
		require.Len(t, l.running.free, limits.RunningSlots)
	})
}

func TestRunningFile(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	start(t, l, claimEach(t, l, "a")["a"].Lease)
	killed := crash(t, dir)
	whole, _ := readFile(t, killed, runningName)

	t.Run("OfANewerVersionIsRefusedByNumber", func(t *testing.T) {
		dir := crash(t, killed)
		b := bytes.Clone(whole)
		binary.LittleEndian.PutUint32(b[8:], 3)
		binary.LittleEndian.PutUint32(b[28:], crc32.Checksum(b[:28], castagnoli()))
		writeFile(t, dir, runningName, b)
		require.ErrorContains(t, tryOpen(t, dir), runningName+": version 3 was written by a newer program; this one knows 1")
	})

	t.Run("WithFewerSlotsIsReadAndMadeAnew", func(t *testing.T) {
		dir := crash(t, killed)
		writeFile(t, dir, runningName, whole[:10*runningSlotBytes])
		require.True(t, claimOne(t, openLog(t, dir), testTopic).Suspect)
		b, _ := readFile(t, dir, runningName)
		require.Len(t, b, runningBytes)
	})

	t.Run("ThatIsGoneOrDoesNotCheckTellsOfNothing", func(t *testing.T) {
		for _, content := range [][]byte{nil, []byte("short"), make([]byte, runningBytes), append([]byte("longshrx"), whole[8:]...)} {
			dir := crash(t, killed)
			writeFile(t, dir, runningName, content)
			require.False(t, claimOne(t, openLog(t, dir), testTopic).Suspect, fmt.Sprint(len(content)))
			require.NoError(t, tryOpen(t, crash(t, dir)))
		}
	})
}

func TestFlightRecord(t *testing.T) {
	f := &flight{position: 7, leased: true, suspect: true, at: 5, attempt: 2, token: 9, reason: "why", origin: origin{payloadBytes: 3}}
	got, _, err := decodeFlight(7, appendFlight(nil, f))
	require.NoError(t, err)
	require.Equal(t, f, got)
	f.suspect = false
	older := appendFlight(nil, f)
	require.EqualValues(t, 1, older[1], "as before there were suspects")
	got, _, err = decodeFlight(7, older)
	require.NoError(t, err)
	require.Equal(t, f, got)
}
