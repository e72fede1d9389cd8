package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/telemetry"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
)

func TestTrialRuns(t *testing.T) {
	ran := func(class runtime.Class, detail string, fuel, ms, peak, calls int64) dispatcher.TrialResult {
		o := runtime.Outcome{Class: class, Detail: detail, FuelUsed: fuel, Wall: time.Duration(ms) * time.Millisecond, PeakMemoryBytes: peak, HostCalls: calls}
		return dispatcher.TrialResult{Outcome: o, Reason: o.Reason()}
	}
	report := func(runs ...dispatcher.TrialResult) invokeReport {
		s := &trialRuns{}
		for _, r := range runs {
			s.add(r, []trialLine{{"stdout", r.Outcome.Detail}})
		}
		return s.report("m", &config.Trial{Guest: limits.DefaultGuest()}, config.TrialFlags{}, config.DefaultCeilings().Guest)
	}
	t.Run("OfRunsThatEndWellTheFirstIsShown", func(t *testing.T) {
		r := report(ran(runtime.OK, "1", 300, 3, 5, 1), ran(runtime.OK, "2", 100, 9, 7, 3), ran(runtime.OK, "3", 200, 6, 6, 2), ran(runtime.OK, "4", 400, 1, 1, 1))
		require.Equal(t, "ok", r.Outcome)
		require.Equal(t, "1", r.Log[0].Line)
		require.Equal(t, spread{100, 200, 400}, r.Fuel)
		require.Equal(t, spread{1e6, 3e6, 9e6}, r.WallNS)
		require.EqualValues(t, []int64{7, 3}, []int64{r.PeakMemoryBytes, r.HostCalls}, "the most of any run")
		require.Equal(t, "limits: {fuel: 800, memory: 1MiB}", r.Suggested, "of the run that used most")
	})
	t.Run("OfThoseThatFailTheFirstOfThemIs", func(t *testing.T) {
		r := report(ran(runtime.OK, "", 1, 1, 1, 1), ran(runtime.Exit, "2", 1, 1, 1, 1), ran(runtime.Exit, "3", 1, 1, 1, 1))
		require.Equal(t, "exit 2", r.Outcome)
		require.Equal(t, "2", r.Log[0].Line)
		require.Equal(t, []int{3, 2}, []int{r.Runs, r.Failed})
		require.Empty(t, r.Suggested)
	})
}

func TestSuggestedLimits(t *testing.T) {
	ceilings := config.DefaultCeilings().Guest
	used := func(fuel, peak int64) invokeReport {
		return invokeReport{Fuel: spread{fuel, fuel, fuel}, PeakMemoryBytes: peak}
	}
	require.Equal(t, "limits: {fuel: 2_500_000, memory: 4MiB}", suggest(used(1_234_567, 3*limits.MiB+1), config.TrialFlags{}, ceilings))
	require.Equal(t, "limits: {fuel: 100_000_000_000, memory: 1GiB}", suggest(used(60_000_000_000, limits.GiB), config.TrialFlags{}, ceilings), "not over the ceiling")
	ceilings.MemoryBytes = 3 * limits.MiB
	require.Equal(t, "limits: {fuel: 2, memory: 3MiB}", suggest(used(1, 3*limits.MiB), config.TrialFlags{}, ceilings))
	given := config.TrialFlags{Limits: map[string]config.Flag{
		"fuel": {Text: "9e9"}, "memory": {Text: "1GiB"}, "result_bytes": {Text: "2MiB"}, "call_time": {Text: "5s"},
	}}
	require.Equal(t, "limits: {fuel: 2, memory: 1MiB, call_time: 5s, result_bytes: 2MiB}", suggest(used(1, 1), given, ceilings), "in the manifest's order")
}

func TestNumbersOfInvoke(t *testing.T) {
	for n, want := range map[int64]int64{0: 0, 7: 7, 99: 99, 100: 100, 101: 110, 199: 200, 991: 1000, 2_469_134: 2_500_000, 1e15: 1e15} {
		require.Equal(t, want, readable(n), n)
	}
	for n, want := range map[int64]int64{0: 1, 1: 1, limits.MiB: 1, limits.MiB + 1: 2, 3 * limits.MiB: 4, 64 * limits.MiB: 64} {
		require.Equal(t, want*limits.MiB, powerOfTwoMiB(n), n)
	}
	for ns, want := range map[int64]string{0: "0s", 999: "999ns", 54_321: "54.32µs", 12_345_678: "12.35ms", 1_234_567_890: "1.23s"} {
		require.Equal(t, want, roundTime(ns), ns)
	}
	for n, want := range map[int64]string{0: "0B", 64 * limits.KiB: "64KiB", limits.MiB: "1MiB", 3407872: "3.25MiB", limits.GiB: "1024MiB"} {
		require.Equal(t, want, roundSize(n), n)
	}
	require.Equal(t, "1_234_567", grouped(1_234_567, "_"))
	require.Equal(t, "123", grouped(123, ","))
}

// TestInvokePrintsNothingOfAGuestAsItIs gives it text with every kind of what has no visible form.
func TestInvokePrintsNothingOfAGuestAsItIs(t *testing.T) {
	r := invokeReport{
		Runs: 1, Failed: 1, Outcome: "guest-error: other", Error: strange(), GuestError: strange(), Log: []trialLine{{"stdout", strange() + "\xff"}},
		Published: []trialOutgoing{{Topic: strange(), ContentType: strange(), Metadata: []wire.Pair{{Key: strange(), Value: strange()}}, DataBase64: []byte(strange())}},
	}
	for _, format := range []string{formatTable, formatJSON, formatYAML, formatName} {
		var out bytes.Buffer
		c := &command{Streams: Streams{Out: &out, Err: &out}, format: format}
		require.EqualError(t, c.printInvoked(r, false), "the guest failed: guest-error: other")
		require.False(t, strings.ContainsFunc(strings.ReplaceAll(out.String(), "\n", ""), telemetry.Hidden), "%s: %q", format, out.String())
	}
}
