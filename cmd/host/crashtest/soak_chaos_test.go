package crashtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// soakTick is the time between two redeploys, if they don't take longer.
const soakTick = 100 * time.Millisecond

// plan is a manifest that may be deployed.
type plan struct {
	file, manifest string
	modules        map[string]string // SHA-256 by path
}

// soakGuests are the modules by file: of each of the two consumers one that handles everything, and one that traps on marked messages
// after it has published.
func soakGuests() map[string]guest {
	return map[string]guest{
		"first.wasm": {sink: soakMid}, "first-traps.wasm": {sink: soakMid, traps: true},
		"second.wasm": {sink: soakOut}, "second-traps.wasm": {sink: soakOut, traps: true},
	}
}

// soakPlans returns what is deployed in turns. The first handles everything.
func soakPlans(tenants []string) (plans []plan) {
	digests := map[string]string{}
	for name, g := range soakGuests() {
		sum := sha256.Sum256(g.assemble())
		digests[name] = hex.EncodeToString(sum[:])
	}
	for i, of := range []struct {
		first, second string
		concurrency   int
	}{
		{"first.wasm", "second.wasm", 64},
		{"first-traps.wasm", "second.wasm", 64},
		{"first.wasm", "second-traps.wasm", 8},
		{"first.wasm", "second.wasm", 1},
		{"first-traps.wasm", "second-traps.wasm", 16},
	} {
		lines := []string{"consumers:"}
		for _, tenant := range tenants {
			for _, c := range []struct{ name, topic, module, sink string }{
				{"first", soakIn, of.first, soakMid}, {"second", soakMid, of.second, soakOut},
			} {
				lines = append(lines, fmt.Sprintf("  - {name: %s-%s, tenant: %s, topic: %s, module: %s, publish: [%s], concurrency: %d, "+
					"max_attempts: 2, retry: {base: 1ms, cap: 1ms}, limits: {call_time: 20s}, events: {success: %s}}",
					tenant, c.name, tenant, c.topic, c.module, c.sink, of.concurrency, soakTold))
			}
		}
		plans = append(plans, plan{
			file: fmt.Sprintf("plan-%d.yaml", i), manifest: strings.Join(lines, "\n"),
			modules: map[string]string{of.first: digests[of.first], of.second: digests[of.second]},
		})
	}
	return plans
}

// uploadModules gives the host what the plans name.
func (s *soak) uploadModules(t *testing.T) {
	t.Helper()
	for _, tenant := range s.tenants {
		for name, g := range soakGuests() {
			wasm := g.assemble()
			sum := sha256.Sum256(wasm)
			require.NoError(t, s.host.admin.UploadModule(t.Context(), tenant, hex.EncodeToString(sum[:]), wasm), name)
		}
	}
}

// chaos does what operators do, until ctx is done. What fails must fail because the host was killed.
func (s *soak) chaos(ctx context.Context, t *testing.T) {
	t.Helper()
	tick := time.NewTicker(soakTick)
	defer tick.Stop()
	paused := map[[2]string]bool{}
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if err := s.disturb(context.WithoutCancel(ctx), paused); err != nil {
			if !s.killed.Load() {
				require.NoError(t, err, "while the host was alive: %s", s.folder.logTail(t))
			}
			return
		}
	}
}

// disturb redeploys, and does perhaps something else.
func (s *soak) disturb(ctx context.Context, paused map[[2]string]bool) error {
	if err := s.redeploy(ctx, s.plans[s.random.IntN(len(s.plans))]); err != nil {
		return fmt.Errorf("redeploy: %w", err)
	}
	s.redeploys++
	tenant, topic := s.tenants[s.random.IntN(len(s.tenants))], []string{soakIn, soakMid}[s.random.IntN(2)]
	switch s.random.IntN(8) {
	case 0, 1:
		at := [2]string{tenant, topic}
		if err := s.pause(ctx, tenant, topic, !paused[at]); err != nil {
			return fmt.Errorf("pause: %w", err)
		}
		paused[at] = !paused[at]
		s.paused++
	case 2, 3:
		if err := s.redriveIfThere(ctx, tenant, topic); err != nil {
			return fmt.Errorf("redrive: %w", err)
		}
	case 4:
		if _, err := s.host.admin.RotateKey(ctx, []string{"token", "seal"}[s.random.IntN(2)]); err != nil {
			return fmt.Errorf("rotate: %w", err)
		}
		s.rotated++
	}
	return nil
}

// redeploy makes a plan what runs.
func (s *soak) redeploy(ctx context.Context, p plan) error {
	_, err := s.host.admin.Apply(ctx, "", "", wire.Apply{File: p.file, Manifest: p.manifest, Modules: p.modules})
	return err
}

// pause pauses or resumes a topic. At the beginning there may be none.
func (s *soak) pause(ctx context.Context, tenant, topic string, paused bool) error {
	return unlessNotFound(s.host.admin.Pause(ctx, tenant, topic, paused))
}

func (s *soak) redriveIfThere(ctx context.Context, tenant, topic string) error {
	return unlessNotFound(s.redrive(ctx, tenant, topic))
}
