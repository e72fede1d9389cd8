package substrate

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/store"
)

// edit changes the values of the closed store in dir: change returns the new value, or nil to leave it as it is. It
// returns how many it changed.
func edit(t *testing.T, dir string, change func(key, value []byte) []byte) (changed int) {
	t.Helper()
	db, err := badger.Open(badger.DefaultOptions(filepath.Join(dir, "store")).WithLogger(nil).WithCompression(0))
	require.NoError(t, err)
	require.NoError(t, db.Update(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.DefaultIteratorOptions)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			value, err := it.Item().ValueCopy(nil)
			require.NoError(t, err)
			if value = change(it.Item().Key(), value); value != nil {
				require.NoError(t, txn.Set(it.Item().KeyCopy(nil), value))
				changed++
			}
		}
		return nil
	}))
	require.NoError(t, db.Close())
	return changed
}

// flip changes one byte of the record of each payload in the closed store in dir: the first of that payload.
func flip(t *testing.T, dir string, payloads ...string) {
	t.Helper()
	for _, payload := range payloads {
		n := edit(t, dir, func(_, value []byte) []byte {
			at := bytes.Index(value, []byte(payload))
			if at < 0 {
				return nil
			}
			value[at] ^= 1
			return value
		})
		require.Equal(t, 1, n, payload)
	}
}

func topicKey() store.Topic { return store.TopicOf(testTenant, testTopic) }

// damagedLog returns a log whose store holds messages with the payloads, from position 1 on, those of which some are flipped.
func damagedLog(t *testing.T, payloads []string, flipped ...string) (l *Log, dir string) {
	t.Helper()
	dir = t.TempDir()
	l = openLog(t, dir)
	publish(t, l, testTopic, payloads...)
	storeUpToDate(t, l)
	dir = crash(t, dir)
	flip(t, dir, flipped...)
	return openLog(t, dir), dir
}

func tryClaim(t *testing.T, l *Log, lane string, n int) ClaimResult {
	t.Helper()
	r := claimRequest(testTopic, n)
	r.Lane = lane
	got, err := l.Claim(t.Context(), r)
	require.NoError(t, err)
	return got
}

func quarantine(t *testing.T, l *Log) []QuarantineEntry {
	t.Helper()
	list, err := l.Quarantined(t.Context(), testTenant, testTopic, "", 0)
	require.NoError(t, err)
	return list
}

func ids(entries []QuarantineEntry) []string {
	var s []string
	for _, e := range entries {
		s = append(s, e.ID)
	}
	return s
}

func discardQuarantined(t *testing.T, l *Log, f QuarantineFilter) int {
	t.Helper()
	n, err := l.DiscardQuarantined(t.Context(), testTenant, testTopic, f)
	require.NoError(t, err)
	return n
}

func numbered(n int) []string {
	var s []string
	for i := range n {
		s = append(s, fmt.Sprintf("payload %02d", i+1))
	}
	return s
}

func TestARecordThatDoesNotCheck(t *testing.T) {
	for name, n := range map[string]int{"ByItself": 2, "InABlock": 12} {
		t.Run(name+"IsQuarantinedByItsPositionAndStaysWhereItIs", func(t *testing.T) {
			l, dir := damagedLog(t, numbered(n), "payload 02")
			got := tryClaim(t, l, "", 100)
			require.Len(t, got.Deliveries, n-1)
			require.NotContains(t, strings.Join(payloads(got.Deliveries), ","), "02")
			require.Empty(t, got.Buried)
			require.Len(t, got.Quarantined, 1)
			raw, err := l.store.Raw(topicKey().Message(2))
			require.NoError(t, err)
			require.Contains(t, string(raw), "qayload 02")
			at := got.Quarantined[0].At
			require.WithinDuration(t, time.Now(), at, time.Minute)
			want := QuarantineEntry{
				ID: "position-2", Tenant: testTenant, Topic: testTopic, Position: 2, Reason: ReasonCorrupt,
				Error: "the checksum does not match", Length: len(raw), Preview: hex.EncodeToString(raw[:min(len(raw), limits.PreviewBytes)]), At: at,
			}
			require.Equal(t, []string{""}, got.Quarantined[0].Lanes)
			got.Quarantined[0].Lanes = nil
			require.Equal(t, want, got.Quarantined[0])

			check := func(l *Log) {
				require.Empty(t, tryClaim(t, l, "", 100).Quarantined)
				list := quarantine(t, l)
				require.Len(t, list, 1)
				require.True(t, at.Equal(list[0].At))
				list[0].At = at
				require.Equal(t, want, list[0])
				e, bytes, err := l.QuarantinedEntry(t.Context(), testTenant, testTopic, "position-2")
				require.NoError(t, err)
				require.Equal(t, "position-2", e.ID)
				require.Equal(t, raw, bytes)
				s := stats(t, l, testTopic)
				require.EqualValues(t, 1, s.Quarantined)
				require.EqualValues(t, n-1, s.Backlog())
				require.Zero(t, s.DeadLetters)
			}
			check(l)
			check(reopenCrashed(t, dir))
			check(reopenTwice(t, dir))
			require.NoError(t, l.Close())
			l = openLog(t, dir)
			check(l)
			for _, d := range tryClaim(t, l, "", 100).Deliveries {
				settle(t, l, d, Ack, "")
			}
			check2 := func(l *Log) { require.Equal(t, []string{"position-2"}, ids(quarantine(t, l))) }
			check2(l)

			require.Equal(t, 1, discardQuarantined(t, l, QuarantineFilter{}))
			for _, l := range []*Log{l, reopenCrashed(t, dir), reopenTwice(t, dir)} {
				require.Empty(t, quarantine(t, l))
				require.Zero(t, stats(t, l, testTopic).Quarantined)
				require.Empty(t, tryClaim(t, l, "", 100).Quarantined)
				_, err = l.store.Raw(topicKey().Message(2))
				require.ErrorIs(t, err, store.ErrNotFound)
				_, _, err = l.QuarantinedEntry(t.Context(), testTenant, testTopic, "position-2")
				require.ErrorIs(t, err, ErrNotFound)
			}
		})
	}

	t.Run("IsShownFromItsBeginningOn", func(t *testing.T) {
		long := strings.Repeat("x", 1000)
		l, _ := damagedLog(t, []string{long}, long)
		e := tryClaim(t, l, "", 1).Quarantined[0]
		require.Greater(t, e.Length, 1000)
		require.Len(t, e.Preview, 2*limits.PreviewBytes)
	})

	t.Run("IsTakenFromAllLanesInOneCommit", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		for _, group := range []string{"fresh", "parks", "flies"} {
			_, _, err := l.CreateGroup(t.Context(), testTenant, testTopic, group, GroupOptions{})
			require.NoError(t, err)
		}
		_, err := l.SetLaneMode(t.Context(), testTenant, testTopic, LaneOn)
		require.NoError(t, err)
		require.NoError(t, l.SetOrdering(t.Context(), testTenant, testTopic, "parks", OrderKey))
		for i, payload := range []string{"payload 01", "payload 02", "payload 03"} {
			publishWith(t, l, payload, MessageOptions{OrderingKey: []string{"a", "a", "b"}[i]})
		}
		require.Equal(t, []string{"payload 01"}, payloads(tryClaim(t, l, "parks", 1).Deliveries))
		require.Equal(t, []string{"payload 03"}, payloads(tryClaim(t, l, "parks", 10).Deliveries), "the second is parked now")
		storeUpToDate(t, l)
		dir = crash(t, dir)
		flip(t, dir, "payload 02")
		l = openLog(t, dir)
		park := tryClaim(t, l, "parks", 1).Deliveries
		require.Equal(t, []string{"payload 01"}, payloads(park))
		l.mu.Lock() // as a claim would have it that was faster than the damage
		flies := l.state.existing(laneName{TopicName{testTenant, testTopic}, "flies"})
		l.mu.Unlock()
		require.NoError(t, l.fill(flies, 3))
		require.NoError(t, l.submit(t.Context(), &request{bytes: 1000, plan: func(now time.Time) (frame, error) {
			p := planClaim(flies, ClaimRequest{MaxMessages: 3, MaxBytes: 1000, Lease: time.Minute, MaxAttempts: 3}, now)
			return &p, nil
		}}))

		first := l.journal.Next()
		got := tryClaim(t, l, "", 10)
		require.Equal(t, []string{"position-2"}, ids(got.Quarantined))
		require.Equal(t, []string{"payload 01", "payload 03"}, payloads(got.Deliveries))
		require.Equal(t, first+2, l.journal.Next(), "the claim and one frame for all lanes")

		check := func(l *Log) {
			groups, err := l.Groups(testTenant, testTopic)
			require.NoError(t, err)
			for _, g := range groups {
				require.EqualValues(t, 2, g.Lag+g.InFlight, g.Name)
			}
			require.EqualValues(t, 2, stats(t, l, testTopic).Backlog())
		}
		check(l)
		settle(t, l, park[0], Ack, "")
		require.Empty(t, tryClaim(t, l, "parks", 10).Quarantined, "its key is free, and it is not there")
		require.Len(t, tryClaim(t, l, "fresh", 10).Deliveries, 2)
		again := reopenCrashed(t, dir)
		for lane, n := range map[string]int{"": 2, "fresh": 2, "parks": 1, "flies": 2} {
			got := tryClaim(t, again, lane, 10)
			require.Len(t, got.Deliveries, n, lane)
			require.Empty(t, got.Quarantined)
		}
		require.Len(t, quarantine(t, again), 1)
	})

	t.Run("IsOwedToNoGroupThatBeginsOrIsResetLater", func(t *testing.T) {
		l, dir := damagedLog(t, numbered(6), "payload 02")
		require.Len(t, tryClaim(t, l, "", 100).Quarantined, 1)
		g, _, err := l.CreateGroup(t.Context(), testTenant, testTopic, "g", GroupOptions{})
		require.NoError(t, err)
		require.EqualValues(t, 5, g.Lag)
		require.Len(t, claimLane(t, l, testTopic, "g", 5), 5)
		require.NoError(t, l.ResetGroup(t.Context(), testTenant, testTopic, "g", Start{}))
		for _, l := range []*Log{l, reopenTwice(t, dir)} {
			got := tryClaim(t, l, "g", 10)
			require.Len(t, got.Deliveries, 5)
			require.Empty(t, got.Quarantined)
			g, err := l.Groups(testTenant, testTopic)
			require.NoError(t, err)
			require.Zero(t, g[0].Lag)
		}
	})

	t.Run("OutlivesAllLanesAndTheSweep", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		_, _, err := l.CreateGroup(t.Context(), testTenant, testTopic, "g", GroupOptions{})
		require.NoError(t, err)
		publish(t, l, testTopic, "payload 01", "payload 02")
		storeUpToDate(t, l)
		dir = crash(t, dir)
		flip(t, dir, "payload 02")
		l = openLog(t, dir)
		got := tryClaim(t, l, "g", 10)
		require.Len(t, got.Quarantined, 1)
		settle(t, l, got.Deliveries[0], Ack, "")
		require.Zero(t, stats(t, l, testTopic).PinnedBytes)
		require.NoError(t, l.DeleteGroup(t.Context(), testTenant, testTopic, "g"))
		require.Eventually(t, func() bool {
			storeUpToDate(t, l)
			_, err := l.store.Raw(topicKey().Message(1))
			return err != nil
		}, 10*time.Second, 10*time.Millisecond, "what nobody needs goes")
		_, raw, err := l.QuarantinedEntry(t.Context(), testTenant, testTopic, "position-2")
		require.NoError(t, err)
		require.Contains(t, string(raw), "qayload 02")
	})

	t.Run("IsNotCountedByRetention", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		for _, group := range []string{"fast", "slow"} {
			_, _, err := l.CreateGroup(t.Context(), testTenant, testTopic, group, GroupOptions{})
			require.NoError(t, err)
		}
		publish(t, l, testTopic, numbered(4)...)
		storeUpToDate(t, l)
		dir = crash(t, dir)
		flip(t, dir, "payload 02")
		l = openLog(t, dir)
		require.Len(t, tryClaim(t, l, "fast", 10).Quarantined, 1)
		l = reopenTwice(t, dir)
		bytes := int64(1)
		require.NoError(t, l.SetPolicy(t.Context(), testTenant, testTopic, Policy{RetentionBytes: &bytes}))
		slow := func() Group {
			groups, err := l.Groups(testTenant, testTopic)
			require.NoError(t, err)
			return groups[1]
		}
		require.Eventually(t, func() bool { return slow().Skipped > 0 }, 10*time.Second, 10*time.Millisecond)
		time.Sleep(100 * time.Millisecond)
		require.EqualValues(t, 3, slow().Skipped)
		require.Zero(t, slow().Lag)
		require.Len(t, quarantine(t, l), 1)
	})

	t.Run("OfAPriorityTakesNoneOfALowerOneWithIt", func(t *testing.T) {
		for _, finder := range []string{"", "g"} {
			t.Run("FoundBy"+finder, func(t *testing.T) {
				dir := t.TempDir()
				l := openLog(t, dir)
				_, err := l.SetLaneMode(t.Context(), testTenant, testTopic, LaneOn)
				require.NoError(t, err)
				_, _, err = l.CreateGroup(t.Context(), testTenant, testTopic, "g", GroupOptions{})
				require.NoError(t, err)
				for i, priority := range []uint8{0, 0, 7, 7, 0} {
					publishWith(t, l, numbered(5)[i], MessageOptions{Priority: priority})
				}
				storeUpToDate(t, l)
				dir = crash(t, dir)
				flip(t, dir, "payload 04")
				l = openLog(t, dir)
				n := map[string]int{"": 2, "g": 10}[finder]
				found := tryClaim(t, l, finder, n)
				require.Equal(t, []string{"position-4"}, ids(found.Quarantined))
				got := found.Deliveries
				if finder != "" {
					require.EqualValues(t, 4, stats(t, l, testTopic).Ready)
					got = tryClaim(t, l, "", 2).Deliveries
				}
				got = append(got, tryClaim(t, l, "", 10).Deliveries...)
				require.Equal(t, []string{"payload 03", "payload 01", "payload 02", "payload 05"}, payloads(got))
				for _, st := range l.find(TopicName{testTenant, testTopic}).work.streams {
					require.Zero(t, st.ready, "of priority %d", st.level)
				}
				require.Equal(t, 1, discardQuarantined(t, l, QuarantineFilter{}))
				l = reopenTwice(t, dir)
				require.EqualValues(t, 4, stats(t, l, testTopic).Backlog())
				again := tryClaim(t, l, "", 10)
				require.Len(t, again.Deliveries, 4)
				require.Empty(t, again.Quarantined, "nothing leads to it")
				_, err = l.store.Raw(topicKey().Priority(7, 4))
				require.ErrorIs(t, err, store.ErrNotFound)
			})
		}
	})

	t.Run("IsDiscardedWithTheDeadLettersOfTheSameMessage", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		for _, group := range []string{"dead", "later"} {
			_, _, err := l.CreateGroup(t.Context(), testTenant, testTopic, group, GroupOptions{})
			require.NoError(t, err)
		}
		publish(t, l, testTopic, "payload 01", "payload 02")
		for _, d := range claimLane(t, l, testTopic, "dead", 2) {
			settle(t, l, d, Bury, "bad")
		}
		storeUpToDate(t, l)
		dir = crash(t, dir)
		flip(t, dir, "payload 01")
		l = openLog(t, dir)
		require.Len(t, tryClaim(t, l, "later", 10).Quarantined, 1)
		require.EqualValues(t, 2, stats(t, l, testTopic).DeadLetters)
		require.Equal(t, 1, discardQuarantined(t, l, QuarantineFilter{ID: "position-1"}))
		for _, l := range []*Log{l, reopenTwice(t, dir)} {
			letters := deadLetters(t, l, DeadLetterFilter{})
			require.Len(t, letters, 1)
			require.EqualValues(t, 2, letters[0].Position)
			require.EqualValues(t, 1, stats(t, l, testTopic).DeadLetters)
			_, err := l.store.Raw(topicKey().Message(1))
			require.ErrorIs(t, err, store.ErrNotFound)
		}
	})

	t.Run("KeepsItsBytesWhenADeadLetterOfItIsDiscarded", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		for _, group := range []string{"dead", "later"} {
			_, _, err := l.CreateGroup(t.Context(), testTenant, testTopic, group, GroupOptions{})
			require.NoError(t, err)
		}
		publish(t, l, testTopic, "payload 01")
		settle(t, l, claimLane(t, l, testTopic, "dead", 1)[0], Bury, "bad")
		storeUpToDate(t, l)
		dir = crash(t, dir)
		flip(t, dir, "payload 01")
		l = openLog(t, dir)
		require.Len(t, tryClaim(t, l, "later", 10).Quarantined, 1)
		n, err := l.Discard(t.Context(), testTenant, testTopic, DeadLetterFilter{})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Zero(t, stats(t, l, testTopic).PinnedBytes)
		_, raw, err := l.QuarantinedEntry(t.Context(), testTenant, testTopic, "position-1")
		require.NoError(t, err)
		require.NotEmpty(t, raw)
	})

	t.Run("IsMissingIfThereIsNone", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		publish(t, l, testTopic, "a", "b")
		claim(t, l, testTopic, 2)
		storeUpToDate(t, l)
		dir = crash(t, dir)
		withStore(t, dir, func(s *store.Store) {
			cp, err := s.Checkpoint()
			require.NoError(t, err)
			_, err = s.Write(nil, []store.Op{{Key: topicKey().Message(2)}}, cp)
			require.NoError(t, err)
		})
		l = openLog(t, dir)
		got := tryClaim(t, l, "", 10)
		require.Equal(t, []string{"a"}, payloads(got.Deliveries))
		require.Equal(t, []string{"position-2"}, ids(got.Quarantined))
		require.Equal(t, ReasonMissing, got.Quarantined[0].Reason)
		require.Equal(t, "no such record", got.Quarantined[0].Error)
		require.Zero(t, got.Quarantined[0].Length)
		_, raw, err := l.QuarantinedEntry(t.Context(), testTenant, testTopic, "position-2")
		require.NoError(t, err)
		require.Empty(t, raw)
		require.Equal(t, 1, discardQuarantined(t, l, QuarantineFilter{}))
	})

	t.Run("OfANewerVersionIsRefusedWithItsNumber", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		publish(t, l, testTopic, "payload 01", "payload 02", "payload 03")
		storeUpToDate(t, l)
		for name, change := range map[string]func(*testing.T, string){
			"OfTheStore": func(t *testing.T, dir string) {
				t.Helper()
				require.Equal(t, 1, edit(t, dir, func(_, value []byte) []byte {
					if !bytes.Contains(value, []byte("payload 02")) {
						return nil
					}
					value[0] = 99
					return value
				}))
			},
			"OfTheMessage": func(t *testing.T, dir string) {
				t.Helper()
				withStore(t, dir, func(s *store.Store) {
					body, err := s.Get(topicKey().Message(2))
					require.NoError(t, err)
					body[0] = 99
					cp, err := s.Checkpoint()
					require.NoError(t, err)
					_, err = s.Write(nil, []store.Op{{Key: topicKey().Message(2), Body: body}}, cp)
					require.NoError(t, err)
				})
			},
		} {
			t.Run(name, func(t *testing.T) {
				broken := crash(t, dir)
				change(t, broken)
				l := openLog(t, broken)
				got, err := l.Claim(t.Context(), claimRequest(testTopic, 10))
				require.ErrorContains(t, err, "version 99 was written by a newer program")
				require.Equal(t, []string{"payload 01", "payload 03"}, payloads(got.Deliveries))
				require.Empty(t, got.Quarantined)
				require.Empty(t, quarantine(t, l))
				require.EqualValues(t, 3, stats(t, l, testTopic).Leased)
			})
		}
	})

	t.Run("IsInABackupAndStaysOutOfTheLanes", func(t *testing.T) {
		l, _ := damagedLog(t, numbered(5), "payload 02", "payload 04")
		require.Equal(t, []string{"position-2"}, ids(tryClaim(t, l, "", 3).Quarantined), "the other is not met yet")
		_, stream := backup(t, l)
		again := restored(t, stream)
		require.Equal(t, []string{"position-2"}, ids(quarantine(t, again)))
		got := tryClaim(t, again, "", 10)
		require.Len(t, got.Deliveries, 3)
		require.Equal(t, []string{"position-4"}, ids(got.Quarantined))
		_, raw, err := again.QuarantinedEntry(t.Context(), testTenant, testTopic, "position-2")
		require.NoError(t, err)
		require.Contains(t, string(raw), "qayload 02")
	})
}

func TestQuarantined(t *testing.T) {
	var all, flipped []string
	for i, payload := range numbered(12) {
		all = append(all, payload)
		if i%2 == 1 {
			flipped = append(flipped, payload)
		}
	}
	l, dir := damagedLog(t, all, flipped...)
	require.Len(t, tryClaim(t, l, "", 100).Quarantined, 6)

	t.Run("IsListedInPages", func(t *testing.T) {
		page := func(after string, n int) []string {
			list, err := l.Quarantined(t.Context(), testTenant, testTopic, after, n)
			require.NoError(t, err)
			return ids(list)
		}
		require.Equal(t, []string{"position-2", "position-4"}, page("", 2))
		require.Equal(t, []string{"position-6", "position-8"}, page("position-4", 2))
		require.Equal(t, []string{"position-6", "position-8"}, page("position-5", 2))
		require.Equal(t, []string{"position-12"}, page("position-10", 5))
		require.Empty(t, page("position-12", 5))
		_, err := l.Quarantined(t.Context(), testTenant, "unknown", "", 0)
		require.ErrorIs(t, err, ErrNotFound)
	})

	t.Run("TakesIDsInTheFormThatItGivesThem", func(t *testing.T) {
		for _, id := range []string{"2", "position-02", "position-x", "hash-1", "hash-00000000000000FF", "position--2", "\x1b"} {
			var name *NameError
			_, _, err := l.QuarantinedEntry(t.Context(), testTenant, testTopic, id)
			require.ErrorAs(t, err, &name, id)
			_, err = l.DiscardQuarantined(t.Context(), testTenant, testTopic, QuarantineFilter{ID: id})
			require.ErrorAs(t, err, &name, id)
		}
		for _, id := range []string{"position-3", "hash-00000000000000ff"} {
			_, _, err := l.QuarantinedEntry(t.Context(), testTenant, testTopic, id)
			require.ErrorIs(t, err, ErrNotFound)
			require.Zero(t, discardQuarantined(t, l, QuarantineFilter{ID: id}))
		}
		require.Len(t, quarantine(t, l), 6)
	})

	t.Run("HasEntriesThatDoNotCheckThemselves", func(t *testing.T) {
		storeUpToDate(t, l)
		broken := crash(t, dir)
		overwrite(t, broken, topicKey().Quarantine(4))
		l := openLog(t, broken)
		require.Len(t, quarantine(t, l), 6)
		require.EqualValues(t, 6, stats(t, l, testTopic).Quarantined)
		require.Empty(t, tryClaim(t, l, "", 100).Quarantined)
		e, raw, err := l.QuarantinedEntry(t.Context(), testTenant, testTopic, "position-4")
		require.NoError(t, err)
		require.Equal(t, ReasonCorrupt, e.Reason)
		require.NotEmpty(t, raw)
		require.Equal(t, 1, discardQuarantined(t, l, QuarantineFilter{ID: "position-4"}))
		require.Len(t, quarantine(t, l), 5)
	})

	t.Run("IsDiscardedAsFarAsTheFilterSays", func(t *testing.T) {
		require.Zero(t, discardQuarantined(t, l, QuarantineFilter{OlderThan: time.Hour}))
		require.Equal(t, 1, discardQuarantined(t, l, QuarantineFilter{ID: "position-6", OlderThan: time.Nanosecond}))
		require.Equal(t, 2, discardQuarantined(t, l, QuarantineFilter{Limit: 2}))
		require.Equal(t, []string{"position-8", "position-10", "position-12"}, ids(quarantine(t, l)))
		require.Equal(t, 3, discardQuarantined(t, l, QuarantineFilter{}))
		require.Zero(t, discardQuarantined(t, l, QuarantineFilter{}))
	})
}

func TestQuarantineHash(t *testing.T) {
	require.Equal(t, uint64(0xf0b96944d6ae33ac), quarantineHash("thread.h7431", []byte("broken")))
}

func TestQuarantinesMoreThanOneFrameTakes(t *testing.T) {
	const n = quarantinesPerFrame + 10
	dir := t.TempDir()
	l := openLog(t, dir)
	publishN(t, l, testTopic, n)
	storeUpToDate(t, l)
	dir = crash(t, dir)
	edit(t, dir, func(key, value []byte) []byte {
		if class := topicKey().Rest(append(topicKey().Key(nil), 'R')); !bytes.HasPrefix(key, topicKey().Key(class)) {
			return nil
		}
		return bytes.ReplaceAll(value, []byte("m00"), []byte("M00"))
	})
	l = openLog(t, dir)
	got := tryClaim(t, l, "", n)
	require.Empty(t, got.Deliveries)
	require.Len(t, got.Quarantined, n)
	require.Equal(t, n, discardQuarantined(t, l, QuarantineFilter{}))
	require.Zero(t, stats(t, l, testTopic).Backlog())
}

func TestTextOfAnEntryIsPrintable(t *testing.T) {
	require.Equal(t, "a b c\ufffd", printable("a\nb\x1bc\xff"))
	require.Len(t, printable(strings.Repeat("ä", limits.ReasonBytes)), limits.ReasonBytes)
}
