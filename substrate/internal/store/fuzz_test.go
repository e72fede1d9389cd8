package store

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzKeys takes any bytes for a key. A topic that one is parsed into has keys that are parsed into it again, and none of
// them is at or after its end.
func FuzzKeys(f *testing.F) {
	topic := TopicOf("acme", "orders/lines")
	for _, key := range [][]byte{
		nil,
		{0},
		{1},
		{255},
		topic.State(), topic.Message(7), topic.Lane("", 8), topic.Dead("group", 9), topic.Delayed(1, 2),
		topic.Hidden(3), topic.Idempotency(make([]byte, 16)), topic.Expiry(4), topic.Fence("group", "key"), topic.Quarantine(5), topic.QuarantineHash(6), topic.end(), metaKey(checkpointName),
	} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key []byte) {
		position, due := Position(key), Due(key)
		require.True(t, len(key) >= 8 || position == 0)
		require.True(t, len(key) >= 16 || due == 0)
		tenant, name, ok := parseTopic(key)
		if !ok {
			return
		}
		topic := TopicOf(tenant, name)
		require.True(t, bytes.HasPrefix(key, topic.prefix))
		require.Negative(t, bytes.Compare(key, topic.end()), "a scan that hops to the end would find it again")
		again, nameAgain, ok := parseTopic(topic.Message(position))
		require.True(t, ok)
		require.Equal(t, []string{tenant, name}, []string{again, nameAgain})
		require.Equal(t, position, Position(topic.Message(position)))
		require.Equal(t, due, Due(topic.Delayed(due, position)))
	})
}

// FuzzRecord opens any bytes under any key, and what is sealed under it.
func FuzzRecord(f *testing.F) {
	f.Add([]byte("key"), seal([]byte("key"), []byte("body")))
	f.Add([]byte("other"), seal([]byte("key"), []byte("body")))
	f.Add([]byte{}, seal(nil, nil))
	f.Add([]byte("key"), []byte{recordVersion + 1, 0, 0, 0, 0, 0, 0, 0, 0})
	newer := seal([]byte("key"), []byte("body"))
	newer[0]++
	f.Add([]byte("key"), newer)
	f.Add([]byte("key"), []byte{recordVersion, 255, 255, 255, 255, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, key, record []byte) {
		body, err := open(key, record)
		if err != nil {
			corrupt, newer := new(CorruptError), new(VersionError)
			if errors.As(err, &newer) {
				require.Equal(t, record[0], newer.Version)
				record[0] = recordVersion
				_, err := open(key, record)
				require.NoError(t, err, "nothing else is wrong with it")
				return
			}
			require.True(t, errors.As(err, &corrupt))
			require.Equal(t, key, append([]byte{}, corrupt.Key...))
		} else {
			one := seal(key, body)
			if _, _, ok := parseBlock(key); ok && record[0] == placedVersion {
				one[0] = placedVersion
			}
			require.Equal(t, record, one, "a record has one form")
		}
		sealed := seal(key, record)
		body, err = open(key, sealed)
		require.NoError(t, err)
		require.True(t, bytes.Equal(record, body))
		sealed[len(sealed)/2] ^= 1
		_, err = open(key, sealed)
		require.Error(t, err, "a flipped bit")
		_, err = open(append([]byte("x"), key...), seal(key, record))
		require.Error(t, err, "another key")
	})
}
