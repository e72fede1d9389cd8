package telemetry

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

func TestLogger(t *testing.T) {
	evil := "a\x1b[31m\nFORGED line \u202e\u2028\u0085 \U000E0001 \xff end"

	t.Run("UntrustedTextStaysOnOneVisibleLineAsConsole", func(t *testing.T) {
		var b bytes.Buffer
		log, err := NewLogger(&b, "info", "console")
		require.NoError(t, err)
		log.Info(evil, zap.String("field", evil))
		require.Equal(t, 1, strings.Count(b.String(), "\n"))
		for _, hidden := range []string{"\x1b", "\u202e", "\u2028", "\u0085", "\xff", "\U000E0001"} {
			require.NotContains(t, b.String(), hidden)
		}
		require.Contains(t, b.String(), `\u202e`)
	})
	t.Run("EscapedLinesAreStillJSON", func(t *testing.T) {
		var b bytes.Buffer
		log, err := NewLogger(&b, "info", "json")
		require.NoError(t, err)
		log.Info("x", zap.String("field", evil))
		require.NotContains(t, b.String(), "\u202e")
		var line map[string]any
		require.NoError(t, json.Unmarshal(b.Bytes(), &line))
		require.Equal(t, strings.ToValidUTF8(evil, "\ufffd"), line["field"])
	})
	t.Run("LevelIsALowerBound", func(t *testing.T) {
		var b bytes.Buffer
		log, err := NewLogger(&b, "warn", "json")
		require.NoError(t, err)
		log.Info("quiet")
		require.Empty(t, b.String())
		log.Warn("loud")
		require.NotEmpty(t, b.String())
	})
	t.Run("UnknownWordsSayWhatIsRight", func(t *testing.T) {
		_, err := NewLogger(nil, "loud", "json")
		require.ErrorContains(t, err, "use debug, info, warn or error")
		_, err = NewLogger(nil, "info", "xml")
		require.ErrorContains(t, err, "use json or console")
	})
}

func TestEscapeKeepsPlainTextAsItIs(t *testing.T) {
	for _, s := range []string{"", "\n", "plain\n", "tab\there", "Grüße 世界\n"} {
		require.Equal(t, s, string(Escape([]byte(s))))
	}
}
