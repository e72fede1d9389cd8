package substrate

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTheTextOfAnID(t *testing.T) {
	t.Run("IsThatOfItsParts", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			id := messageID{rapid.Uint64().Draw(rt, "millis"), rapid.Uint64().Draw(rt, "number")}
			require.Equal(rt, fmt.Sprintf("%013d-%016x", id.millis, id.number), id.String())
			id.millis %= idMaxMillis + 1
			require.Equal(rt, fmt.Sprintf("%013d-%016x", id.millis, id.number), id.String())
			parsed, err := parseID(id.String())
			require.NoError(rt, err)
			require.Equal(rt, id, parsed)
		})
	})

	t.Run("IsRefusedWithAnyOtherCharacter", func(t *testing.T) {
		text := []byte(messageID{1_234_567_890_123, 0xfedc_ba98_7654_3210}.String())
		for i, was := range text {
			for c := range 256 {
				text[i] = byte(c)
				id, err := parseID(string(text))
				if err == nil {
					require.Equal(t, string(text), id.String())
				} else {
					require.Equal(t, messageID{}, id)
				}
			}
			text[i] = was
		}
	})
}
