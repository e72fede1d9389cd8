package substrate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/substrate/internal/store"
)

// delayedLog returns the folder of a log, as after a crash, whose store holds messages with the payloads that become visible
// after a second, and their numbers.
func delayedLog(t *testing.T, o MessageOptions, payloads ...string) (dir string, due int64, numbers []uint64) {
	t.Helper()
	dir = t.TempDir()
	l := openLog(t, dir)
	o.Delay = time.Second
	for _, payload := range payloads {
		m := l.newMessage(testTopic, payload)
		m.Options = o
		_, err := l.Publish(t.Context(), m)
		require.NoError(t, err)
		id, err := parseID(m.ID)
		require.NoError(t, err)
		numbers = append(numbers, id.number)
	}
	storeUpToDate(t, l)
	l.mu.Lock()
	defer l.mu.Unlock()
	return crash(t, dir), l.state.delayed.first().due, numbers
}

func TestADelayedMessageThatDoesNotCheck(t *testing.T) {
	t.Run("IsQuarantinedByThePositionThatItGetsWhenItIsDue", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir, _, _ := delayedLog(t, MessageOptions{}, "payload 01", "payload 02")
			flip(t, dir, "payload 01")
			l := openLog(t, dir)
			require.Empty(t, quarantine(t, l))
			time.Sleep(time.Second)
			synctest.Wait() // it is visible, and the store has not moved it yet
			got := tryClaim(t, l, "", 10)
			require.Equal(t, []string{"payload 02"}, payloads(got.Deliveries))
			require.Equal(t, []string{"position-1"}, ids(got.Quarantined))
			require.Equal(t, "the checksum does not match", got.Quarantined[0].Error)
			require.NotZero(t, got.Quarantined[0].Length)
			for _, l := range []*Log{l, reopenTwice(t, dir)} {
				_, raw, err := l.QuarantinedEntry(t.Context(), testTenant, testTopic, "position-1")
				require.NoError(t, err)
				require.Contains(t, string(raw), "qayload 01", "where it was moved to")
				require.Zero(t, stats(t, l, testTopic).Ready)
			}
		})
	})

	t.Run("IsDeliveredIfItsRecordChecksThoughItsEntryDoesNot", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir, due, numbers := delayedLog(t, MessageOptions{TTL: time.Hour, Priority: 3}, "payload 01")
			overwrite(t, dir, topicKey().Delayed(uint64(due), numbers[0]))
			l := openLog(t, dir)
			require.Empty(t, quarantine(t, l))
			time.Sleep(time.Second)
			synctest.Wait()
			d := claimOne(t, l, testTopic)
			require.Equal(t, "payload 01", string(d.Message.Payload))
			settle(t, l, d, Retry, "")
			time.Sleep(2 * time.Hour)
			require.EqualValues(t, 1, stats(t, l, testTopic).DeadLetters, "its ttl counts")
		})
	})

	t.Run("AndHasNoEntryThatDoesIsQuarantinedByTheHashOfItsBytes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir, due, numbers := delayedLog(t, MessageOptions{}, "payload 01", "payload 02", "payload 03")
			for _, n := range numbers[:2] { // published at one time
				overwrite(t, dir, topicKey().Delayed(uint64(due), n))
				overwrite(t, dir, topicKey().Hidden(n))
			}
			id := (&quarantined{hash: true, number: quarantineHash(testTopic, []byte("rubbish"))}).id()
			var at time.Time
			for range 3 { // it is met by each Open, and is one entry
				l := openLog(t, dir)
				list := quarantine(t, l)
				require.Equal(t, []string{id}, ids(list), "the same bytes")
				e := list[0]
				if at.IsZero() {
					at = e.At
				}
				require.True(t, at.Equal(e.At))
				require.Zero(t, e.Position)
				require.Equal(t, 7, e.Length)
				require.Equal(t, "72756262697368", e.Preview)
				require.Equal(t, "7 bytes are too few for a record", e.Error)
				require.EqualValues(t, 1, stats(t, l, testTopic).Quarantined)
				require.EqualValues(t, 1, stats(t, l, testTopic).Delayed)
				_, raw, err := l.QuarantinedEntry(t.Context(), testTenant, testTopic, id)
				require.NoError(t, err)
				require.Equal(t, "rubbish", string(raw))
				_, stream := backup(t, l)
				require.Equal(t, []string{id}, ids(quarantine(t, restored(t, stream))))
				require.NoError(t, l.Close())
				time.Sleep(time.Millisecond)
			}
			l := openLog(t, dir)
			time.Sleep(2 * time.Second)
			require.Equal(t, []string{"payload 03"}, payloads(claim(t, l, testTopic, 10)))
			require.Equal(t, 1, discardQuarantined(t, l, QuarantineFilter{ID: id}))
			for _, l := range []*Log{l, reopenTwice(t, dir)} {
				require.Empty(t, quarantine(t, l))
				require.Zero(t, stats(t, l, testTopic).Quarantined)
				for _, n := range numbers[:2] {
					for _, key := range [][]byte{topicKey().Delayed(uint64(due), n), topicKey().Hidden(n)} {
						_, err := l.store.Raw(key)
						require.ErrorIs(t, err, store.ErrNotFound)
					}
				}
			}
		})
	})

	t.Run("KeepsThePositionThatTheJournalGaveIt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			l := openLog(t, dir)
			m := l.newMessage(testTopic, "payload 01")
			m.Options.Delay = time.Second
			_, err := l.Publish(t.Context(), m)
			require.NoError(t, err)
			storeUpToDate(t, l)
			l.mu.Lock()
			due := l.state.delayed.first().due
			l.mu.Unlock()
			time.Sleep(time.Second)
			synctest.Wait()
			publish(t, l, testTopic, "payload 02") // flushes the journal
			crashed := crash(t, dir)
			id, err := parseID(m.ID)
			require.NoError(t, err)
			overwrite(t, crashed, topicKey().Delayed(uint64(due), id.number))
			overwrite(t, crashed, topicKey().Hidden(id.number))
			l = openLog(t, crashed)
			got := tryClaim(t, l, "", 10)
			require.Equal(t, []string{"payload 02"}, payloads(got.Deliveries))
			require.Equal(t, []string{"position-1"}, ids(got.Quarantined))
		})
	})

	t.Run("HasAKeyThatIsNone", func(t *testing.T) {
		dir, _, _ := delayedLog(t, MessageOptions{}, "payload 01")
		withStore(t, dir, func(s *store.Store) {
			cp, err := s.Checkpoint()
			require.NoError(t, err)
			_, err = s.Write(nil, []store.Op{{Key: topicKey().Key([]byte("Dshort")), Body: []byte("lost")}}, cp)
			require.NoError(t, err)
		})
		l := openLog(t, dir)
		list := quarantine(t, l)
		require.Len(t, list, 1)
		require.Equal(t, "the key is not one of a delayed message", list[0].Error)
		require.Equal(t, 1, discardQuarantined(t, l, QuarantineFilter{}))
		require.Empty(t, quarantine(t, reopenTwice(t, dir)))
	})

	t.Run("IsMissingWhenItsRecordIs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir, _, numbers := delayedLog(t, MessageOptions{}, "payload 01", "payload 02")
			withStore(t, dir, func(s *store.Store) {
				cp, err := s.Checkpoint()
				require.NoError(t, err)
				_, err = s.Write(nil, []store.Op{{Key: topicKey().Hidden(numbers[0])}}, cp)
				require.NoError(t, err)
			})
			l := openLog(t, dir)
			time.Sleep(time.Second)
			synctest.Wait()
			got := tryClaim(t, l, "", 10)
			require.Equal(t, []string{"payload 02"}, payloads(got.Deliveries))
			require.Len(t, got.Quarantined, 1)
			require.Equal(t, ReasonMissing, got.Quarantined[0].Reason)
			require.Zero(t, got.Quarantined[0].Length)
			require.NoError(t, l.Err())
			require.Equal(t, 1, discardQuarantined(t, l, QuarantineFilter{}))
			storeUpToDate(t, l)
			require.NoError(t, l.Err())
		})
	})
}
