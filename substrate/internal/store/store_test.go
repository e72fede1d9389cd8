package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func openStore(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir, time.Second)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func write(t *testing.T, s *Store, early, last []Op, checkpoint []byte) {
	t.Helper()
	_, err := s.Write(early, last, checkpoint)
	require.NoError(t, err)
}

func TestStore(t *testing.T) {
	t.Run("GivesBackWhatWasWrittenAndTheCheckpoint", func(t *testing.T) {
		s := openStore(t, t.TempDir())
		topic := TopicOf("acme", "orders")
		early := []Op{{Key: topic.Message(1), Body: []byte("a")}, {Key: topic.Message(2), Body: nil}, {Key: topic.Message(3), Body: []byte{}}}
		write(t, s, early, []Op{{Key: topic.State(), Body: []byte("state")}}, []byte("cp"))
		body, err := s.Get(topic.Message(1))
		require.NoError(t, err)
		require.Equal(t, "a", string(body))
		body, err = s.Get(topic.Message(3))
		require.NoError(t, err)
		require.Empty(t, body)
		_, err = s.Get(topic.Message(2))
		require.ErrorIs(t, err, ErrNotFound)
		cp, err := s.Checkpoint()
		require.NoError(t, err)
		require.Equal(t, "cp", string(cp))
	})

	t.Run("SplitsEarlyWritesThatOneTransactionCannotHold", func(t *testing.T) {
		s := openStore(t, t.TempDir())
		topic := TopicOf("acme", "orders")
		var early []Op
		for i := range 400 {
			early = append(early, Op{Key: topic.Message(uint64(i)), Body: make([]byte, 50_000)})
		}
		write(t, s, early, nil, nil)
		n := 0
		require.NoError(t, s.Scan(topic.Messages(), topic.Message(0), func(_, body []byte, err error) bool {
			require.NoError(t, err)
			require.Len(t, body, 50_000)
			n++
			return true
		}))
		require.Equal(t, len(early), n)
	})

	t.Run("TopicsHopsOverMessagesWhoseTopicNeverBecameVisible", func(t *testing.T) {
		s := openStore(t, t.TempDir())
		write(t, s,
			[]Op{{Key: TopicOf("a", "cut short").Message(1), Body: []byte("x")}, {Key: TopicOf("b", "whole").Message(2), Body: []byte("y")}},
			[]Op{{Key: TopicOf("b", "whole").State(), Body: []byte("state")}}, nil)
		var seen []string
		require.NoError(t, s.Topics(func(tenant, topic string, state []byte, err error) error {
			require.NoError(t, err)
			seen = append(seen, tenant+" "+topic+" "+string(state))
			return nil
		}))
		require.Equal(t, []string{"b whole state"}, seen)
	})

	t.Run("RefusesARecordUnderAnotherKey", func(t *testing.T) {
		a, b := TopicOf("acme", "a").Message(1), TopicOf("acme", "b").Message(1)
		_, err := open(b, seal(a, []byte("x")))
		var corrupt *CorruptError
		require.ErrorAs(t, err, &corrupt)
	})

	t.Run("DetectsEveryFlippedBitAndEveryCutOfARecord", func(t *testing.T) {
		key, record := []byte("key"), seal([]byte("key"), []byte("the body"))
		for i := range len(record) * 8 {
			broken := bytes.Clone(record)
			broken[i/8] ^= 1 << (i % 8)
			_, err := open(key, broken)
			require.Error(t, err, "bit %d", i)
		}
		for n := range record {
			_, err := open(key, record[:n])
			require.Error(t, err, "%d bytes", n)
		}
	})

	t.Run("OpensBesideFilesThatAKillLeftEmpty", func(t *testing.T) {
		dir := t.TempDir()
		s, err := Open(t.Context(), dir, time.Second)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		for _, name := range []string{"00099.mem", "000099.vlog"} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		}
		openStore(t, dir)
	})

	t.Run("TheLockFileStays", func(t *testing.T) {
		dir := t.TempDir()
		s, err := Open(t.Context(), dir, time.Second)
		require.NoError(t, err)
		_, err = Open(t.Context(), dir, time.Millisecond)
		require.ErrorIs(t, err, ErrLocked)
		require.ErrorContains(t, err, fmt.Sprint(os.Getpid()))
		require.NoError(t, s.Close())
		require.FileExists(t, filepath.Join(dir, "longshore.lock"))
		openStore(t, dir)
	})
}

func TestKeysOfTwoTopicsNeverMeet(t *testing.T) {
	name := rapid.StringMatching(`[A-Za-z0-9._/:\-]{1,12}`)
	rapid.Check(t, func(rt *rapid.T) {
		at, an := name.Draw(rt, "tenant a"), name.Draw(rt, "topic a")
		bt, bn := name.Draw(rt, "tenant b"), name.Draw(rt, "topic b")
		a, b := TopicOf(at, an), TopicOf(bt, bn)
		tenant, topic, ok := parseTopic(a.Message(7))
		require.True(rt, ok && tenant == at && topic == an)
		if at == bt && an == bn {
			return
		}
		for _, key := range [][]byte{b.State(), b.Message(1), b.Lane("", 1), b.Dead("", 1)} {
			for _, prefix := range [][]byte{a.State(), a.Messages(), a.Lanes(""), a.DeadLetters("")} {
				require.False(rt, bytes.HasPrefix(key, prefix))
			}
			inside := bytes.Compare(key, a.prefix) >= 0 && bytes.Compare(key, a.end()) < 0
			require.False(rt, inside && bytes.HasPrefix(key, a.prefix))
		}
	})
}

func TestPositionsSortAsKeys(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := rapid.Uint64().Draw(rt, "a"), rapid.Uint64().Draw(rt, "b")
		topic := TopicOf("t", "n")
		require.Equal(rt, a < b, bytes.Compare(topic.Message(a), topic.Message(b)) < 0)
		require.Equal(rt, a, Position(topic.Message(a)))
		require.Equal(rt, a, Position(topic.Dead("lane", a)))
	})
}

func FuzzOpenRecord(f *testing.F) {
	f.Add([]byte("key"), seal([]byte("key"), []byte("body")))
	f.Fuzz(func(t *testing.T, key, record []byte) {
		body, err := open(key, record)
		if err == nil && !bytes.Equal(seal(key, body), record) {
			t.Fatal("a record that checks is not the one that seal makes")
		}
		if corrupt := new(CorruptError); err != nil && !errors.As(err, &corrupt) {
			t.Fatal(err)
		}
	})
}
