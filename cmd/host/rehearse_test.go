package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/cli"
	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// rehearsedBy runs rehearse with -o json and returns what it printed.
func rehearsedBy(t *testing.T, dir string, code int, args ...string) (wire.Rehearsed, answer) {
	t.Helper()
	out := run(t, dir, "", append([]string{"rehearse", "-o", "json"}, args...)...)
	require.Equal(t, code, out.code, out.err)
	var r wire.Rehearsed
	require.NoError(t, json.Unmarshal([]byte(out.out), &r), out.out)
	return r, out
}

// logState is all that commands tell of what the log has, once no consumer holds a message: the log may tell that a message has ended a
// little before its consumer does.
func logState(t *testing.T, dir, topic string) string {
	t.Helper()
	held, consumers := regexp.MustCompile(`"(in_flight|draining)": *[1-9]`), ""
	require.Eventually(t, func() bool {
		consumers = ok(t, dir, "get", "consumers", "-o", "json")
		return !held.MatchString(consumers)
	}, 20*time.Second, 20*time.Millisecond)
	require.Contains(t, consumers, `"in_flight"`)
	return ok(t, dir, "topics", "-o", "json") + ok(t, dir, "dlq", "list", topic, "-o", "json") + consumers
}

func TestRehearse(t *testing.T) {
	dir, s := t.TempDir(), shop{t, t.TempDir()}
	p := startHost(t, dir)
	manifest := s.write("name: a, topic: a, module: a.wasm, max_attempts: 1")
	s.module("trap")
	ok(t, dir, "apply", "-f", manifest)
	died := dies(t, p, dir)
	before := logState(t, dir, "a")

	t.Run("TheFixIsSeenBeforeTheSwap", func(t *testing.T) {
		s.module("ok")
		r, out := rehearsedBy(t, dir, cli.ExitOK, "a", "-f", manifest)
		require.Contains(t, out.err, "uploading a.wasm")
		require.Contains(t, out.err, "1 message rehearsed: 0 the same, 1 with another verdict (1 better, 0 worse)")
		require.Equal(t, digestOf(t, "trap"), r.Before.Module)
		require.Equal(t, digestOf(t, "ok"), r.After.Module)
		require.Len(t, r.Messages, 1)
		m := r.Messages[0]
		require.Equal(t, died.Message, m.ID)
		require.Equal(t, died.Reason, m.DeadReason)
		require.Equal(t, "bury", m.Before.Verdict)
		require.Equal(t, died.Reason, m.Before.Reason)
		require.Equal(t, "ack", m.After.Verdict)
		require.True(t, m.Better && m.After.Handled)
		require.Equal(t, wire.OtherVerdict, m.Change)
		require.Equal(t, wire.EndedAll, r.Summary.Ended)
		require.Equal(t, before, logState(t, dir, "a"), "nothing was settled, deployed or charged")
		require.Len(t, history(t, dir), 1)
	})
	t.Run("ForMachinesADifferenceFails", func(t *testing.T) {
		out := run(t, dir, "", "rehearse", "a", "-f", manifest, "--fail-on-difference", "--json")
		require.Equal(t, cli.ExitFailed, out.code, out.err)
		require.Contains(t, out.err, "messages would end otherwise, though none worse")
		require.Equal(t, "figure messages 1\nfigure same 0\nfigure verdict_changed 1\nfigure outputs_changed 0\nfigure better 1\nfigure worse 0\n"+
			"figure handled_before 0\nfigure handled_after 1\n", out.out)
	})
	t.Run("WhatIsStoredIsReadFromAPosition", func(t *testing.T) {
		r, _ := rehearsedBy(t, dir, cli.ExitOK, "a", "-f", manifest, "--from", "1")
		require.Len(t, r.Messages, 1)
		require.Empty(t, r.Messages[0].DeadReason)
		r, _ = rehearsedBy(t, dir, cli.ExitOK, "a", "-f", manifest, "--since", "1h", "-n", "1")
		require.Len(t, r.Messages, 1)
		out := run(t, dir, "", "rehearse", "a", "-f", manifest, "--from", "999")
		require.Equal(t, cli.ExitUsage, out.code)
		require.Contains(t, out.err, "position 999 is not given yet")
	})
	t.Run("OneThatGotWorseFails", func(t *testing.T) {
		ok(t, dir, "apply", "-f", manifest)
		s.module("trap")
		_, out := rehearsedBy(t, dir, cli.ExitFailed, "a", "-f", manifest)
		require.Contains(t, out.err, "1 message would end worse")
		s.module("ok")
		out = run(t, dir, "", "rehearse", "a", "-f", manifest, "--fail-on-difference", "--json")
		require.Equal(t, cli.ExitOK, out.code, out.err)
		require.Contains(t, out.out, "figure same 1\n")
		require.Contains(t, out.out, "figure fuel_ratio 1.000\nfigure fuel_ratio_worst 1.000\n")
	})
	t.Run("OneThatDoesNotRunIsRunAlone", func(t *testing.T) {
		other := filepath.Join(s.dir, "other.yaml")
		require.NoError(t, os.WriteFile(other, []byte("consumers: [{name: b, topic: a, module: a.wasm}]\n"), 0o600))
		r, out := rehearsedBy(t, dir, cli.ExitOK, "b", "-f", other)
		require.Nil(t, r.Before)
		require.Nil(t, r.Messages[0].Before)
		require.Empty(t, r.Messages[0].Change)
		require.Contains(t, out.err, "there is nothing to compare with")
	})
	t.Run("BadInputIsNamed", func(t *testing.T) {
		for says, args := range map[string][]string{
			`no consumer "nobody"`:               {"nobody"},
			`of tenant "acme"`:                   {"a", "--tenant", "acme"},
			"want dlq, a position, or a time":    {"a", "--from", "yesterday"},
			"--from and --since are given":       {"a", "--from", "1", "--since", "1h"},
			"-n 0: want 1 to 1000":               {"a", "-n", "0"},
			"--reason is of dead letters":        {"a", "--from", "1", "--reason", "trap"},
			"--since 0s: want a duration over 0": {"a", "--since", "0s"},
			"read the manifest":                  {"a", "-f", "nothing.yaml"},
		} {
			if len(args) == 1 || args[1] != "-f" {
				args = append(args, "-f", manifest)
			}
			out := run(t, dir, "", append([]string{"rehearse"}, args...)...)
			require.Equal(t, cli.ExitUsage, out.code, out.err)
			require.Contains(t, out.err, says)
		}
		bad := filepath.Join(s.dir, "bad.yaml")
		require.NoError(t, os.WriteFile(bad, []byte("consumers:\n  - {name: a, topic: a, module: bad.wasm, lease: 1ms}\n"), 0o600))
		s.file("bad.wasm", []byte("\x00asm\x01\x00\x00\x00"))
		out := run(t, dir, "", "rehearse", "a", "-f", bad)
		require.Equal(t, cli.ExitUsage, out.code, out.err)
		require.Contains(t, out.err, "bad.yaml:2:")
		require.NoError(t, os.WriteFile(bad, []byte("consumers:\n  - {name: a, topic: a, module: bad.wasm}\n"), 0o600))
		out = run(t, dir, "", "rehearse", "a", "-f", bad)
		require.Equal(t, cli.ExitUsage, out.code, out.err)
		require.Contains(t, out.err, "the host can't run it")
	})
}

// TestARehearsalIsCut has rehearsals of a guest that sleeps for long, and ends them from outside.
func TestARehearsalIsCut(t *testing.T) {
	dir, s := t.TempDir(), shop{t, t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "longshore.yaml"), []byte("ceilings: {limits: {call_time: 5m}, lease: 10m}\n"), 0o600))
	p := startHost(t, dir)
	s.module("trap")
	manifest := s.write("name: a, topic: a, module: a.wasm, max_attempts: 1, limits: {call_time: 5m}, lease: 10m")
	ok(t, dir, "apply", "-f", manifest)
	dies(t, p, dir)
	text, err := os.ReadFile(manifest)
	require.NoError(t, err)
	require.NoError(t, p.admin.UploadModule(t.Context(), "default", digestOf(t, "sleep"), wasmOf(t, "sleep")))
	ask := func(ctx context.Context, module string) error {
		for {
			_, err := p.admin.Rehearse(ctx, "default", wire.Rehearse{
				Consumer: "a", Manifest: string(text), Modules: map[string]string{"a.wasm": digestOf(t, module)},
			})
			if cli.ExitCode(err) != cli.ExitConflict {
				return err
			}
		}
	}
	begin := func(ctx context.Context) chan error {
		ended := make(chan error, 1)
		go func() { ended <- ask(ctx, "sleep") }()
		require.Eventually(t, func() bool {
			out := run(t, dir, "", "rehearse", "a", "-f", manifest)
			return out.code == cli.ExitConflict && strings.Contains(out.err, "a rehearsal of this tenant is under way")
		}, 30*time.Second, 20*time.Millisecond, "one of a tenant at a time")
		return ended
	}

	ctx, cancel := context.WithCancel(t.Context())
	ended := begin(ctx)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.NoError(t, ask(t.Context(), "trap"), "it ends with whoever asked for it")

	ended = begin(t.Context())
	require.Zero(t, p.signal(t, syscall.SIGTERM), "the host doesn't wait for it")
	err = <-ended
	require.Equal(t, cli.ExitUnreachable, cli.ExitCode(err), err)
}

// variant builds the intake of examples/orders with a change of its source, and returns the module.
func variant(t *testing.T, dir, name, from, to string) []byte {
	t.Helper()
	guests, err := filepath.Abs("../../examples/orders/guests")
	require.NoError(t, err)
	source := filepath.Join(guests, "intake", "main.go")
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	require.Contains(t, string(text), from)
	changed, overlay, wasm := filepath.Join(dir, name+".go"), filepath.Join(dir, name+".json"), filepath.Join(dir, name+".wasm")
	require.NoError(t, os.WriteFile(changed, []byte(strings.Replace(string(text), from, to, 1)), 0o600))
	require.NoError(t, os.WriteFile(overlay, fmt.Appendf(nil, `{"Replace":{%q:%q}}`, source, changed), 0o600))
	cmd := exec.CommandContext(t.Context(), "go", "-C", guests, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=",
		"-buildmode=c-shared", "-overlay", overlay, "-o", wasm, "./intake")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	built, err := os.ReadFile(wasm)
	require.NoError(t, err)
	return built
}

// TestRehearseAFix rehearses two versions of a guest in Go: one that fails on some orders, and one that doesn't and publishes
// under another content type.
func TestRehearseAFix(t *testing.T) {
	if testing.Short() {
		t.Skip("builds guests")
	}
	dir, s := t.TempDir(), shop{t, t.TempDir()}
	const check, contentType = "o.Check(); err != nil {", "ContentType: order.ContentType"
	broken := variant(t, s.dir, "broken", check, `o.Check(); err != nil || o.Lines[0].SKU == "buoy" { if err == nil { panic("\x1b[31mbuoy") };`)
	fixed := variant(t, s.dir, "fixed", contentType, `ContentType: "text/json"`)
	startHost(t, dir)
	manifest := s.write("name: intake, topic: orders, module: intake.wasm, publish: [orders/lines], max_attempts: 1, limits: {call_time: 20s}, lease: 60s")
	s.file("intake.wasm", broken)
	ok(t, dir, "apply", "-f", manifest)
	ok(t, dir, "policy", "set", "orders", "--keep", "1h")
	order := func(sku string) string {
		return fmt.Sprintf(`{"id":"o-1","customer":"ada","lines":[{"sku":%q,"quantity":2,"cents":1250},{"sku":"rope","quantity":1,"cents":1}]}`, sku)
	}
	for _, sku := range []string{"rope", "buoy", "rope", "buoy"} {
		ok(t, dir, "publish", "orders", "--data", order(sku))
	}
	done := func() bool {
		var list wire.TopicList
		require.NoError(t, json.Unmarshal([]byte(ok(t, dir, "topics", "-o", "json")), &list))
		for _, one := range list.Topics {
			if one.Topic == "orders" {
				return one.DeadLetters == 2 && one.Acked == 2
			}
		}
		return false
	}
	require.Eventually(t, done, 30*time.Second, 20*time.Millisecond)
	before := logState(t, dir, "orders")

	s.file("intake.wasm", fixed)
	dead, out := rehearsedBy(t, dir, cli.ExitOK, "intake", "-f", manifest)
	require.Len(t, dead.Messages, 2)
	for _, m := range dead.Messages {
		require.Equal(t, m.DeadReason, m.Before.Reason)
		require.True(t, m.Better)
		require.Empty(t, m.Before.Outputs)
		require.Len(t, m.After.Outputs, 2)
		require.Equal(t, "orders/lines", m.After.Outputs[0].Topic)
		require.Contains(t, string(m.After.Outputs[0].PayloadBase64), `"buoy"`)
	}
	require.NotContains(t, out.out, "\x1b")

	kept, _ := rehearsedBy(t, dir, cli.ExitOK, "intake", "-f", manifest, "--from", "1")
	require.Len(t, kept.Messages, 4)
	require.Equal(t, []string{"content-type"}, kept.Messages[0].Differs)
	require.Equal(t, wire.OtherOutputs, kept.Messages[0].Change)
	require.Equal(t, 2, kept.Summary.OutputsChanged)
	require.Equal(t, 2, kept.Summary.Better)
	require.Equal(t, 2, kept.Summary.FuelMessages)
	require.NotNil(t, kept.Summary.FuelRatio)
	require.InDelta(t, 1, *kept.Summary.FuelRatio, 0.5)
	require.Equal(t, before, logState(t, dir, "orders"))

	table := run(t, dir, "", "rehearse", "intake", "-f", manifest, "--from", "1")
	require.NotContains(t, table.out, "\x1b", "what guests say is escaped")
	require.Contains(t, table.out, "other content-type")

	ok(t, dir, "apply", "-f", manifest)
	ok(t, dir, "dlq", "redrive", "orders", "--yes")
	require.Eventually(t, func() bool {
		return strings.Count(ok(t, dir, "peek", "orders/lines"), "text/json") == 4
	}, 30*time.Second, 50*time.Millisecond, "what was rehearsed came true")
}
