package app

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/longshore/longshore/cmd/host/internal/telemetry"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/substrate"
)

func TestMessagesThatExpireFasterThanTheyCanBeToldOf(t *testing.T) {
	for name, c := range map[string]struct {
		events  config.Events
		counted bool
	}{"AreCounted": {config.Events{Death: "audit"}, true}, "AreNothingIfNobodyIsTold": {config.Events{Success: "audit"}, false}} {
		t.Run(name, func(t *testing.T) {
			p := &parts{
				Options: Options{Plan: &config.Plan{Consumers: []config.Consumer{{Events: c.events}}}},
				metrics: telemetry.NewMetrics(telemetry.Build{}), deaths: make(chan []substrate.DeadLetter, 1),
			}
			e := telemetry.NewExpiries(p.metrics, zap.NewNop())
			defer e.Close()
			report := p.expired(e)
			report([]substrate.DeadLetter{{Tenant: "acme"}})
			report([]substrate.DeadLetter{{Tenant: "acme"}, {Tenant: "acme"}}) // a wait would be a deadlock
			require.Len(t, p.deaths, 1)
			w := httptest.NewRecorder()
			p.metrics.Handler(zap.NewNop()).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
			const line = `longshore_events_failed_total{consumer="",event="death",reason="busy",tenant="acme"} 2`
			require.Equal(t, c.counted, strings.Contains(w.Body.String(), line))
		})
	}
}
