package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRaw(t *testing.T) {
	for name, n := range map[string]uint64{"AMessageByItself": 1, "AMessageInABlock": 8} {
		t.Run("ReturnsTheRecordOf"+name+"AsItIsStored", func(t *testing.T) {
			s := openStore(t, t.TempDir())
			topic := TopicOf("acme", "orders")
			var early []Op
			for p := uint64(1); p <= n; p++ {
				early = append(early, Op{Key: topic.Message(p), Body: []byte{'m', byte(p)}})
			}
			write(t, s, early, nil, nil)
			for p := uint64(1); p <= n; p++ {
				raw, err := s.Raw(topic.Message(p))
				require.NoError(t, err)
				require.Equal(t, seal(topic.Message(p), []byte{'m', byte(p)}), raw)
				require.Equal(t, []byte{'m', byte(p)}, Unchecked(raw))
			}
			_, err := s.Raw(topic.Message(n + 1))
			require.ErrorIs(t, err, ErrNotFound)
		})
	}

	t.Run("IsNoRecordIfItIsTooShortForOne", func(t *testing.T) {
		require.Nil(t, Unchecked([]byte("rubbish")))
	})
}
