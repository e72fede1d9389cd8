package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/client"
)

func TestResumeWakesConsumersThatPausedThemselves(t *testing.T) {
	h := newHarness(t)
	a := client.NewAdmin(h.serveAdmin(t))
	require.NoError(t, a.Pause(t.Context(), testTenant, "open", true))
	require.Empty(t, h.resumed, "not by a pause")
	require.NoError(t, a.Pause(t.Context(), testTenant, "other", false))
	require.Empty(t, h.resumed, "not by another topic")
	require.NoError(t, a.PauseLane(t.Context(), testTenant, "open", "default", false))
	require.Equal(t, []string{""}, h.resumed, "of that lane")
	h.resumed = nil
	require.NoError(t, a.Pause(t.Context(), testTenant, "open", false))
	require.Equal(t, []string{"", "audit"}, h.resumed, "of all lanes")
}
