package app

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/longshore/longshore/cmd/host/internal/telemetry"
	"github.com/longshore/longshore/substrate"
)

func TestMessagesThatExpireFasterThanTheyCanBeToldOfAreCounted(t *testing.T) {
	p := &parts{metrics: telemetry.NewMetrics(telemetry.Build{}), deaths: make(chan []substrate.DeadLetter, 1)}
	e := telemetry.NewExpiries(p.metrics, zap.NewNop())
	defer e.Close()
	report := p.expired(e)
	report([]substrate.DeadLetter{{Tenant: "acme"}})
	report([]substrate.DeadLetter{{Tenant: "acme"}, {Tenant: "acme"}}) // a wait would be a deadlock
	require.Len(t, p.deaths, 1)
	w := httptest.NewRecorder()
	p.metrics.Handler(zap.NewNop()).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	require.Contains(t, w.Body.String(), `longshore_events_failed_total{consumer="",event="death",reason="busy",tenant="acme"} 2`)
}
