package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConfigValues(t *testing.T) {
	parse := func(values string) (*Plan, error) {
		return ParseManifest("consumers.yaml", []byte(`
consumers:
  - name: a
    topic: orders
    module: a.wasm
    config: `+values+"\n"), DefaultHost())
	}
	t.Run("AreSortedByKey", func(t *testing.T) {
		p, err := parse(`{url: "https://a.example", retries: "3", empty: ""}`)
		require.NoError(t, err)
		require.Equal(t, [][2]string{{"empty", ""}, {"retries", "3"}, {"url", "https://a.example"}}, p.Consumers[0].Config)
	})
	t.Run("ANumberIsNoText", func(t *testing.T) {
		_, err := parse(`{retries: 3}`)
		require.ErrorContains(t, err, "consumers[0].config.retries")
		require.ErrorContains(t, err, "quote a number")
	})
	t.Run("AListIsNoMapping", func(t *testing.T) {
		_, err := parse(`[a]`)
		require.ErrorContains(t, err, "want a mapping of texts")
	})
}
