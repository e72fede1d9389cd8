package substrate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/journal"
)

// journalFrames returns the file that a journal was appended to last, and where its frames begin. Only a log that wrote
// little since it was opened has them all in it.
func journalFrames(t *testing.T, dir string) (name string, content []byte, offsets []int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "journal", "seg-*"))
	require.NoError(t, err)
	var epoch uint64
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		if e := binary.LittleEndian.Uint64(b[16:]); e > epoch {
			epoch, name, content = e, file, b
		}
	}
	next, off := binary.LittleEndian.Uint64(content[32:]), int64(4096)
	for binary.LittleEndian.Uint64(content[off+8:]) == next {
		offsets = append(offsets, off)
		next++
		off += journal.FrameBytes(int64(binary.LittleEndian.Uint32(content[off+24:])))
	}
	return name, content, offsets
}

// loseFrames takes the last n frames from the journal of a closed log, as zeros or by cutting the file.
func loseFrames(t *testing.T, dir string, n int, cut bool) {
	t.Helper()
	name, content, offsets := journalFrames(t, dir)
	require.GreaterOrEqual(t, len(offsets), n)
	from := offsets[len(offsets)-n]
	if cut {
		content = content[:from]
	} else {
		clear(content[from:])
	}
	require.NoError(t, os.WriteFile(name, content, 0o600))
}

// killedBehind returns a copy of the log's folder as a kill would leave it now if nothing had been stored since the copy
// before was made.
func killedBehind(t *testing.T, dir, before string) string {
	t.Helper()
	to := crash(t, dir)
	require.NoError(t, os.RemoveAll(filepath.Join(to, "store")))
	require.NoError(t, os.Rename(filepath.Join(before, "store"), filepath.Join(to, "store")))
	return to
}

func tryOpen(t *testing.T, dir string) error {
	t.Helper()
	l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: testSegment, LockWait: time.Second})
	if err != nil {
		return err
	}
	return l.Close()
}

// accept does what the error of a loss says.
func accept(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, os.Rename(filepath.Join(dir, markName), filepath.Join(dir, acceptedName)))
}

func TestMark(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	publish(t, l, testTopic, "stored")
	storeUpToDate(t, l)
	before := crash(t, dir)
	for _, p := range []string{"kept", "lost 1", "lost 2"} {
		publish(t, l, testTopic, p)
	}
	dir = killedBehind(t, dir, before)
	const last = 4 // frame and position

	for name, cut := range map[string]bool{"ACutJournal": true, "AZeroedJournal": false} {
		t.Run("Notices"+name, func(t *testing.T) {
			for n := 1; n <= 2; n++ {
				broken := crash(t, dir)
				loseFrames(t, broken, n, cut)
				err := tryOpen(t, broken)
				require.ErrorIs(t, err, ErrDamaged)
				var lost *LostError
				require.ErrorAs(t, err, &lost)
				require.Equal(t, LostError{From: uint64(last - n + 1), To: last, Mark: filepath.Join(broken, markName)}, *lost)
				require.ErrorContains(t, err, "rename "+lost.Mark+" to "+acceptedName)
				require.ErrorAs(t, tryOpen(t, broken), &lost, "it is found again")
			}
		})
	}

	t.Run("NoticesThatNothingIsLeft", func(t *testing.T) {
		broken := crash(t, dir)
		require.NoError(t, errors.Join(os.RemoveAll(filepath.Join(broken, "journal")), os.RemoveAll(filepath.Join(broken, "store"))))
		err := tryOpen(t, broken)
		require.ErrorIs(t, err, ErrJournalMissing)
		require.ErrorContains(t, err, "frames up to 4 were on disk")
		accept(t, broken)
		require.EqualValues(t, last+1, publish(t, openLog(t, broken), testTopic, "new")[0].Position)
	})

	t.Run("AcceptedALossUsesNoNumberTwice", func(t *testing.T) {
		broken := crash(t, dir)
		loseFrames(t, broken, 2, false)
		accept(t, broken)
		for range 3 {
			l := openLog(t, broken)
			require.Equal(t, int64(2), stats(t, l, testTopic).Ready)
			require.NoFileExists(t, filepath.Join(broken, acceptedName))
			broken = crash(t, broken)
		}
		l := openLog(t, broken)
		require.EqualValues(t, last+1, l.journal.Next())
		require.EqualValues(t, last+1, publish(t, l, testTopic, "new")[0].Position)
		d := claim(t, l, testTopic, 10)
		require.Equal(t, []string{"stored", "kept", "new"}, payloads(d))
		require.EqualValues(t, last+2, d[0].Lease.Token)
		n := reopenCrashed(t, broken)
		require.Equal(t, int64(3), stats(t, n, testTopic).Backlog())
	})

	t.Run("ALossIsAcceptedOnce", func(t *testing.T) {
		broken := crash(t, dir)
		loseFrames(t, broken, 1, true)
		whole, _ := readFile(t, broken, markName)
		writeFile(t, broken, acceptedName, whole)
		require.ErrorAs(t, tryOpen(t, broken), new(*LostError), "the mark stands beside the accepted one")
	})

	t.Run("IsMadeForAFolderWithout", func(t *testing.T) {
		older := crash(t, dir)
		require.NoError(t, os.Remove(filepath.Join(older, markName)))
		require.Equal(t, int64(4), stats(t, openLog(t, older), testTopic).Ready)
		b, found := readFile(t, older, markName)
		require.True(t, found)
		m, _, err := parseMark(b)
		require.NoError(t, err)
		require.Equal(t, mark{epoch: 2, durable: last, written: last, position: last + 1, opening: 2}, m)
	})

	t.Run("SurvivesATornWriteOfEitherSlot", func(t *testing.T) {
		whole, _ := readFile(t, dir, markName)
		for _, slot := range []int{0, markSecond} {
			for _, end := range []int{8, 20, 30, 50, 63} {
				torn := crash(t, dir)
				b := append([]byte(nil), whole...)
				clear(b[slot+end : slot+markSlotBytes])
				writeFile(t, torn, markName, b)
				require.NoError(t, tryOpen(t, torn))
			}
		}
	})

	t.Run("TheOneBeforeCountsIfTheNewestIsTorn", func(t *testing.T) {
		k := known{dir: t.TempDir()}
		f, err := k.open(mark{durable: 1})
		require.NoError(t, err)
		for n := range uint64(5) {
			before, sequence, err := parseMark(f.file.Bytes())
			require.NoError(t, err)
			f.set(mark{durable: 2 + n})
			torn := bytes.Clone(f.file.Bytes())
			torn[f.sequence%2*markSecond+50]++
			m, s, err := parseMark(torn)
			require.NoError(t, err)
			require.Equal(t, before, m)
			require.Equal(t, sequence, s)
		}
		require.NoError(t, f.file.Close())
	})

	t.Run("ThatDoesNotCheckIsRefused", func(t *testing.T) {
		for name, content := range map[string][]byte{"Zero": make([]byte, markBytes), "Empty": nil} {
			t.Run(name, func(t *testing.T) {
				broken := crash(t, dir)
				writeFile(t, broken, markName, content)
				err := tryOpen(t, broken)
				require.ErrorIs(t, err, ErrDamaged)
				require.ErrorContains(t, err, filepath.Join(broken, markName)+": ")
			})
		}
	})

	t.Run("OfANewerVersionIsRefusedByNumber", func(t *testing.T) {
		newer := crash(t, dir)
		b, _ := readFile(t, newer, markName)
		binary.LittleEndian.PutUint32(b[8:], 7)
		binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli()))
		writeFile(t, newer, markName, b)
		err := tryOpen(t, newer)
		require.ErrorContains(t, err, "version 7 was written by a newer program; this one knows 1")
		require.NotErrorIs(t, err, ErrDamaged)
	})

	t.Run("ThatIsOlderThanTheJournalIsNoLoss", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		var marks [][]byte
		for i := range 6 {
			publish(t, l, testTopic, "a", "b")
			settle(t, l, claimOne(t, l, testTopic), Ack, "")
			if i == 3 {
				storeUpToDate(t, l)
			}
			b, _ := readFile(t, dir, markName)
			marks = append(marks, b)
		}
		for _, older := range marks {
			cut := crash(t, dir)
			writeFile(t, cut, markName, older)
			require.Equal(t, int64(6), stats(t, openLog(t, cut), testTopic).Backlog())
		}
	})

	t.Run("DoesNotMissWhatWasNeverDurable", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		receipt := publish(t, l, testTopic, "a")[0]
		settle(t, l, claimOne(t, l, testTopic), Release, "") // the first claim of a topic is flushed
		storeUpToDate(t, l)
		before := crash(t, dir)
		token := claimOne(t, l, testTopic).Lease.Token // written, not flushed
		cut := killedBehind(t, dir, before)
		loseFrames(t, cut, 1, false)
		n := openLog(t, cut)
		d := claimOne(t, n, testTopic)
		require.Equal(t, 1, d.Attempt)
		require.Greater(t, d.Lease.Token, token, "its number was given away")
		require.Equal(t, receipt.Position+1, publish(t, n, testTopic, "b")[0].Position)
	})

	t.Run("WhatTheStoreHasIsNotMissedInTheJournal", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		publish(t, l, testTopic, "a")
		publish(t, l, testTopic, "b")
		storeUpToDate(t, l)
		cut := crash(t, dir)
		loseFrames(t, cut, 1, false)
		require.Equal(t, int64(2), stats(t, openLog(t, cut), testTopic).Ready)
	})

	t.Run("NoticesAJournalThatWasPutBackAlthoughItIsAsLong", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		publish(t, l, testTopic, "a")
		storeUpToDate(t, l)
		cut := crash(t, dir)
		claimOne(t, l, testTopic)
		mixed := killedBehind(t, dir, crash(t, cut)) // the claim is in the journal alone
		require.NoError(t, tryOpen(t, crash(t, mixed)))
		l = openLog(t, cut) // a power cut lost the claim, and what the mark knew of it
		publish(t, l, testTopic, "b")
		require.EqualValues(t, 2, l.journal.Synced())
		later, _ := readFile(t, cut, markName)
		writeFile(t, mixed, markName, later)
		var lost *LostError
		require.ErrorAs(t, tryOpen(t, mixed), &lost)
		require.EqualValues(t, 2, lost.From)
	})
}

// memtable returns the newest log of a memtable of the store, and up to where something is written.
func memtable(t *testing.T, dir string) (name string, end int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "store", "*.mem"))
	require.NoError(t, err)
	name = files[len(files)-1]
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return name, len(bytes.TrimRight(b, "\x00"))
}

// cutMemtable makes a store forget what is written behind a place of its memtable's log.
func cutMemtable(t *testing.T, dir string, from int) {
	t.Helper()
	name, end := memtable(t, dir)
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, end-from), int64(from))
	require.NoError(t, errors.Join(err, f.Close()))
}

func TestATruncatedStore(t *testing.T) {
	t.Run("IsNoticedIfTheJournalWentOn", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		publish(t, l, testTopic, "early")
		storeUpToDate(t, l)
		_, end := memtable(t, dir)
		payload := string(make([]byte, 50_000))
		for range (limits.JournalSegments + 1) * testSegment / len(payload) {
			publish(t, l, testTopic, payload)
			settle(t, l, claimOne(t, l, testTopic), Ack, "")
		}
		broken := crash(t, dir)
		cutMemtable(t, broken, end)
		err := tryOpen(t, broken)
		require.ErrorIs(t, err, ErrDamaged)
		var damage *journal.DamageError
		require.ErrorAs(t, err, &damage)
		require.EqualValues(t, 2, damage.From)
	})

	t.Run("UsesNoMessageIDTwice", func(t *testing.T) {
		dir := t.TempDir()
		l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: testSegment})
		require.NoError(t, err)
		publish(t, l, testTopic, "a")
		require.NoError(t, l.Close())
		l = openLog(t, dir)
		used := publish(t, l, testTopic, "b")[0]
		broken := crash(t, dir)
		cutMemtable(t, broken, 20) // all that it was told since it was opened
		n := openLog(t, broken)
		require.Equal(t, int64(2), stats(t, n, testTopic).Ready, "the journal has all of it")
		require.Less(t, used.ID[14:], n.MintID()[14:])
	})
}
