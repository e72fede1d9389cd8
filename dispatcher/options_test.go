package dispatcher

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore/longshore/limits"
)

func TestNew(t *testing.T) {
	t.Run("ReportsEveryFaultAtOnce", func(t *testing.T) {
		bad := consumerOf("twice", nil)
		bad.Tenant, bad.Topic = "No", "a//b"
		bad.Concurrency, bad.MaxAttempts, bad.Lease = -1, -1, time.Second
		bad.Retry = Retry{Base: time.Hour, Cap: time.Second}
		bad.NonRetryable = []string{"sometimes"}
		twin, elsewhere := consumerOf("twice", ends(ok())), consumerOf("twice", ends(ok()))
		twin.Tenant, elsewhere.Tenant = "No", "elsewhere"
		_, err := New(Options{Workers: -1, Grace: -1, Consumers: []Consumer{bad, twin, elsewhere, consumerOf("a\nb", ends(ok()))}})
		require.Error(t, err)
		for _, want := range []string{
			"no queue", "no signed context", "-1 workers", "grace of -1ns", `two consumers are named "twice"`, "no guest",
			"concurrency -1", "max attempts -1", "lease 1s", "retry from 1h0m0s to 1s", `non-retryable "sometimes"`, `"No"`, `"a//b"`, `"a\nb"`,
		} {
			require.ErrorContains(t, err, want)
		}
		require.NotContains(t, err.Error(), "a\nb")
		require.Equal(t, 1, strings.Count(err.Error(), "two consumers"), "another tenant may give the same name")
	})
	t.Run("DefaultsComeFromTheTableOfLimits", func(t *testing.T) {
		r := newRig(t, Consumer{Name: "c", Tenant: tenant, Topic: topic, Guest: ends(ok()), Limits: limits.DefaultGuest()})
		r.options.Logger, r.options.Observer, r.options.Workers = nil, nil, 0
		d, err := New(r.options)
		require.NoError(t, err)
		c := d.consumers[0]
		require.Equal(t, 5, c.MaxAttempts)
		require.Equal(t, 30*time.Second, c.Lease)
		require.Equal(t, Retry{Base: 200 * time.Millisecond, Cap: 5 * time.Minute}, c.Retry)
		require.GreaterOrEqual(t, c.workers.free, 1)
		require.Equal(t, StateIdle, d.Consumers()[0].State)
		require.Zero(t, r.options.Consumers[0].MaxAttempts, "the caller's options are left alone")
	})
}

func TestReceipt(t *testing.T) {
	t.Run("FitsWhateverItsStringsHold", func(t *testing.T) {
		label := strings.Repeat(`"`, labelBytes)
		require.True(t, isLabel(label))
		r := Receipt{
			Consumer: label, Version: label, Tenant: strings.Repeat("a", limits.TenantBytes), Topic: strings.Repeat("a", limits.TopicBytes),
			Lane: strings.Repeat("a", limits.KeyBytes), Message: strings.Repeat("a", 30), Module: strings.Repeat("a", 64),
			Reason: strings.Repeat(`\`, limits.ReasonBytes), Attempt: 1 << 62, Fuel: 1 << 62, Wall: 1 << 62, PeakMemoryBytes: 1 << 62,
			HostCalls: 1 << 62, Published: 1 << 62, Delay: 1 << 62, At: time.Now(), Verdict: "release",
		}
		require.LessOrEqual(t, len(r.encode()), limits.ReceiptBytes)
		require.True(t, json.Valid(r.encode()))
	})
}

func TestGuestLog(t *testing.T) {
	t.Run("LinesAreEscapedAndCut", func(t *testing.T) {
		for in, want := range map[string]string{
			"plain":                           "plain",
			"\x1b[2J\r\nforged":               `\x1b[2J\r\nforged`,
			"\u202egnp":                       `\u202egnp`,
			"\xff":                            `\xff`,
			`say "hi"`:                        `say \"hi\"`,
			strings.Repeat("a", 2000):         strings.Repeat("a", limits.GuestLogLineBytes) + "…",
			strings.Repeat("é", 512) + "tail": strings.Repeat("é", 512) + "…",
		} {
			require.Equal(t, want, escape([]byte(in)))
		}
	})
	t.Run("BytesBeyondTheTenantsCapAreLeftOut", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			core, logs := observer.New(zapcore.DebugLevel)
			g := newGuestLog(zap.New(core), tenant, Caps{LogBytesPerSec: 2048})
			line := []byte(strings.Repeat("a", 5000)) // of which one line's worth counts
			for range 5 {
				g.write("stdout", line, nil)
			}
			require.Equal(t, 2, logs.Len())
			require.EqualValues(t, 3*limits.GuestLogLineBytes, g.lost.Load())
			time.Sleep(time.Second / 2)
			g.write("stdout", line, nil)
			g.write("stdout", []byte("b"), nil)
			require.Equal(t, 3, logs.Len())
			require.EqualValues(t, 3, logs.All()[2].ContextMap()["lines_dropped_before"])
		})
	})
	t.Run("ATenantsRateIsSharedAndItsNeighboursIsNot", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			core, logs := observer.New(zapcore.DebugLevel)
			one, two, other := consumerOf("one", ends(ok())), consumerOf("two", ends(ok())), consumerOf("three", ends(ok()))
			other.Tenant = "other"
			d, err := New(Options{Queue: newMemQueue(), Context: newContext(t), Logger: zap.New(core), Consumers: []Consumer{one, two, other}})
			require.NoError(t, err)
			for i := range 1000 {
				d.consumers[i%2].guests.write("stdout", []byte("loud"), nil)
			}
			d.consumers[2].guests.write("stdout", []byte("quiet"), nil)
			require.Equal(t, limits.GuestLogLinesPerSec+1, logs.Len())
			time.Sleep(time.Second)
			d.consumers[0].guests.write("stdout", []byte("again"), nil)
			last := logs.All()[logs.Len()-1].ContextMap()
			require.Equal(t, "again", last["line"])
			require.EqualValues(t, 1000-limits.GuestLogLinesPerSec, last["lines_dropped_before"])
			require.Equal(t, tenant, last["tenant"])
		})
	})
}
