package config

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func trialOf(bounds map[string]string) TrialFlags {
	f := TrialFlags{Topic: "t", Limits: map[string]Flag{}}
	for key, text := range bounds {
		f.Limits[key] = Flag{"--" + key, text}
	}
	return f
}

func TestParseTrial(t *testing.T) {
	t.Run("WithoutFlagsItIsAManifestsDefaults", func(t *testing.T) {
		got, err := ParseTrial(trialOf(nil), DefaultHost())
		require.NoError(t, err)
		require.Equal(t, &Trial{Tenant: "default", Topic: "t", Guest: limits.DefaultGuest()}, got)
	})
	t.Run("LimitsAreWrittenAsInAManifest", func(t *testing.T) {
		got, err := ParseTrial(trialOf(map[string]string{"fuel": "5e6", "call_time": "1m30s", "memory": "8MiB", "host_calls": "1_000"}), DefaultHost())
		require.NoError(t, err)
		want := limits.DefaultGuest()
		want.Fuel, want.CallDuration, want.MemoryBytes, want.HostCalls = 5_000_000, 90*time.Second, 8*limits.MiB, 1_000
		require.Equal(t, want, got.Guest, "a call longer than the default lease can be tried")
	})
	t.Run("GrantsAndNamesAreTaken", func(t *testing.T) {
		got, err := ParseTrial(TrialFlags{Tenant: "acme", Topic: "a/b", Publish: []string{"x/*", "y"}, Clients: []string{"c"}}, DefaultHost())
		require.NoError(t, err)
		require.Equal(t, []any{"acme", "a/b", []string{"x/*", "y"}, []string{"c"}}, []any{got.Tenant, got.Topic, got.Publish, got.Clients})
	})
	t.Run("TheHostsDefaultsAndCeilingsHold", func(t *testing.T) {
		h := DefaultHost()
		h.Defaults.Guest.HostCalls, h.Ceilings.Guest.Fuel = 7, 1000
		got, err := ParseTrial(trialOf(nil), h)
		require.NoError(t, err)
		require.EqualValues(t, 7, got.Guest.HostCalls)
		require.EqualValues(t, 1000, got.Guest.Fuel)
		_, err = ParseTrial(trialOf(map[string]string{"fuel": "1001"}), h)
		require.EqualError(t, err, "flags: --fuel: 1001 is over the ceiling (want 1 to 1000, the host config's ceilings.limits.fuel)")
	})
}

// TestTrialFaultsAreAManifests compares both for texts of every key.
func TestTrialFaultsAreAManifests(t *testing.T) {
	texts := []string{"1", "0", "-1", "1.5", "1e3", "1_000", "010", "200e9", "9e18", "1e400", "5s", "10m", "1ms", "1us", "64KiB", "63KiB", "2GiB", "5GB", "1.5MiB", "many", "true", "~"}
	faulty := 0
	for _, k := range LimitKeys() {
		for _, text := range texts {
			manifest := fmt.Sprintf("consumers: [{name: a, topic: t, module: a.wasm, lease: 1h, limits: {%s: %s}}]", k.Key, text)
			plan, wantErr := ParseManifest("m.yaml", []byte(manifest), DefaultHost())
			got, err := ParseTrial(trialOf(map[string]string{k.Key: text}), DefaultHost())
			if wantErr == nil {
				require.NoError(t, err, manifest)
				require.Equal(t, plan.Consumers[0].Guest, got.Guest, manifest)
				continue
			}
			var want, is Faults
			require.ErrorAs(t, wantErr, &want)
			require.ErrorAs(t, err, &is, manifest)
			require.Len(t, is, 1)
			require.Equal(t, Fault{File: "flags", Path: "--" + k.Key, Problem: want[0].Problem, Fix: want[0].Fix}, is[0], manifest)
			faulty++
		}
	}
	require.Greater(t, faulty, 100)
}

// TestTrialFaults compares what users read with its golden file.
func TestTrialFaults(t *testing.T) {
	f := trialOf(map[string]string{"fuel": "200e9", "call_time": "", "memory": "\x1b[31m", "log_bytes": "{a: b}"})
	f.Tenant, f.Topic, f.Publish, f.Clients = "A", "a//b", []string{"ok", "a*"}, []string{""}
	_, err := ParseTrial(f, DefaultHost())
	require.ErrorAs(t, err, new(Faults))
	compareGolden(t, filepath.Join("testdata", "trial.golden"), err.Error()+"\n")
	_, err = ParseTrial(TrialFlags{}, DefaultHost())
	require.ErrorContains(t, err, `flags: --topic: "topic" is missing (want a topic's name`)
}

func TestLimitKeysAreThoseOfTheManifestsPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "manifest.md"))
	require.NoError(t, err)
	require.Len(t, LimitKeys(), 10)
	for _, k := range LimitKeys() {
		require.NotEmpty(t, k.About, k.Key)
		require.Contains(t, string(page), fmt.Sprintf("| `limits.%s` | %s | %s |", k.Key, k.Default, k.Ceiling))
	}
}
