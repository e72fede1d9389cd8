package api

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/wire"
)

func TestResumeWakesConsumersThatPausedThemselves(t *testing.T) {
	h := newHarness(t)
	a := client.NewAdmin(h.serveAdmin(t))
	require.NoError(t, a.Pause(t.Context(), testTenant, "open", true))
	require.Empty(t, h.resumed, "not by a pause")
	_, err := a.Publish(t.Context(), testTenant, "other", text("x"))
	require.NoError(t, err)
	require.NoError(t, a.Pause(t.Context(), testTenant, "other", false))
	require.Empty(t, h.resumed, "not by another topic")
	require.NoError(t, a.PauseLane(t.Context(), testTenant, "open", "default", false))
	require.Equal(t, []string{""}, h.resumed, "of that lane")
	h.resumed = nil
	require.NoError(t, a.Pause(t.Context(), testTenant, "open", false))
	require.Equal(t, []string{"", "audit"}, h.resumed, "of all lanes")
}

func TestPauseOfATopicThatThereIsNotIsRefusedAndMakesNone(t *testing.T) {
	h := newHarness(t)
	a := client.NewAdmin(h.serveAdmin(t))
	_, err := a.Publish(t.Context(), "other", "orders", text("x"))
	require.NoError(t, err)
	for _, paused := range []bool{true, false} {
		for _, err := range []error{
			a.Pause(t.Context(), testTenant, "orders", paused), // which another tenant has
			a.PauseLane(t.Context(), testTenant, "oders", wire.DefaultLane, paused),
		} {
			var p *wire.Problem
			require.ErrorAs(t, err, &p)
			require.Equal(t, http.StatusNotFound, p.Status)
			require.Equal(t, wire.CodeNotFound, p.Code)
			require.Contains(t, p.Detail, "`longshore topics` lists those that there are")
		}
	}
	require.Empty(t, h.resumed)
	require.Len(t, h.log.Topics(), 1)

	require.NoError(t, a.Pause(t.Context(), testTenant, "open", true), "a consumer waits for its first message")
	s, ok := h.log.Stats(testTenant, "open")
	require.True(t, ok)
	require.True(t, s.Paused)
}
