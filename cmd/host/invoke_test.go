package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/longshore/longshore/cmd/host/internal/cli"
	"github.com/longshore/longshore/examples/misbehaving"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/limits"
)

var update = flag.Bool("update", false, "write the golden files anew")

const twoLines = `{"id":"o-1","customer":"ada","lines":[{"sku":"rope","quantity":2,"cents":1250},{"sku":"buoy","quantity":1,"cents":9900}]}`

// emitModules writes the modules that misbehave into a new folder.
func emitModules(t *testing.T) (dir string, mods []misbehaving.Module) {
	t.Helper()
	dir, mods = t.TempDir(), misbehaving.All()
	for _, m := range mods {
		require.NoError(t, os.WriteFile(filepath.Join(dir, m.Name+".wasm"), m.Wasm, 0o600))
	}
	return dir, mods
}

// invoked runs invoke in a process of its own, in dir.
func invoked(t *testing.T, dir string, args ...string) answer {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := program(t, dir, append([]string{"invoke"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	return answer{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// limitFlags are a module's limits as flags. If time isn't what ends it, there is enough for a busy machine.
func limitFlags(m misbehaving.Module) []string {
	if m.Limit != limits.NameCallDuration {
		m.Limits.CallDuration = time.Minute
	}
	return []string{"--fuel", strconv.FormatInt(m.Limits.Fuel, 10), "--call-time", config.FormatDuration(m.Limits.CallDuration)}
}

// TestInvokeOfModulesThatMisbehave compares all that users read of each with a golden file, but for times and for what
// follows from them.
func TestInvokeOfModulesThatMisbehave(t *testing.T) {
	dir, mods := emitModules(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "h.yaml"), []byte("ceilings: {limits: {fuel: 10_000_000_000_000}}"), 0o600))
	var all strings.Builder
	for _, m := range mods {
		a := invoked(t, dir, append([]string{m.Name + ".wasm", "-c", "h.yaml", "--data", "go"}, limitFlags(m)...)...)
		require.Equal(t, cli.ExitFailed, a.code, "%s: %s", m.Name, a.err)
		require.Equal(t, "longshore: the guest failed: "+m.Reason+"\n", a.err)
		require.NotContains(t, a.out, "suggested", m.Name)
		text := regexp.MustCompile(`(?m)^(time +)\S+ of`).ReplaceAllString(a.out, "${1}T of")
		if m.Limit == limits.NameCallDuration { // how far it comes in its time is the machine's affair
			text = regexp.MustCompile(`(?m)^(what happened|fuel|host calls).*\n`).ReplaceAllString(text, "")
		}
		lines := strings.Split(text, "\n")
		if m.Name == "chatter" {
			lines = lines[:10]
		}
		fmt.Fprintf(&all, "== %s\n%s\n", m.Name, strings.TrimSpace(strings.Join(lines, "\n")))
	}
	golden := filepath.Join("testdata", "invoke.golden")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(all.String()), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), all.String())
}

// TestInvoke uses the command on a consumer in Go, built from source.
func TestInvoke(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a guest")
	}
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=",
		"-buildmode=c-shared", "-o", filepath.Join(dir, "intake.wasm"), "./intake")
	build.Dir = filepath.Join("..", "..", "examples", "orders", "guests")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off", "GOFLAGS=")
	text, err := build.CombinedOutput()
	require.NoError(t, err, string(text))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "order.json"), []byte(twoLines), 0o600))
	order := []string{"intake.wasm", "--topic", "orders", "--file", "order.json", "--content-type", "application/json", "--timeout", "25s"}

	t.Run("TheTableHasWhatItPublishedAndLimitsForTheManifest", func(t *testing.T) {
		a := invoked(t, dir, order...)
		require.Equal(t, cli.ExitOK, a.code, a.err)
		require.Empty(t, a.err)
		require.Regexp(t, `^outcome +ok
fuel +[\d,]+ of 100,000,000
time +\S+ of 25s
peak memory +[\d.]+MiB of 64MiB
host calls +\d+ of 100,000
published +2 messages
  topic +orders/lines
  content type +application/json
  payload +\{"id":"o-1/1".*"cents":1250\}
  topic +orders/lines
  content type +application/json
  payload +\{"id":"o-1/2".*"cents":9900\}
log +0 lines
suggested +limits: \{fuel: [\d_]+, memory: \d+MiB, call_time: 25s\}
$`, a.out)
	})
	t.Run("WhatItSuggestsIsTakenByAManifestAndIsEnough", func(t *testing.T) {
		r := report(t, invoked(t, dir, append(order, "-o", "json")...))
		require.LessOrEqual(t, 2*r.Fuel.Max, fuelOf(t, r.Suggested))
		manifest := "consumers:\n  - name: intake\n    topic: orders\n    module: intake.wasm\n    publish: [orders/lines]\n    " + r.Suggested + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, "consumers.yaml"), []byte(manifest), 0o600))
		ok(t, dir, "validate", "--manifest", filepath.Join(dir, "consumers.yaml"))
		plan, err := config.LoadManifest(filepath.Join(dir, "consumers.yaml"), config.DefaultHost())
		require.NoError(t, err)
		g := plan.Consumers[0].Guest
		a := invoked(t, dir, append(order, "--fuel", strconv.FormatInt(g.Fuel, 10), "--memory", config.FormatSize(g.MemoryBytes))...)
		require.Equal(t, cli.ExitOK, a.code, a.err)
	})
	t.Run("RunsAreOnCleanInstances", func(t *testing.T) {
		r := report(t, invoked(t, dir, append(order, "-n", "5", "-o", "json")...))
		require.Equal(t, 5, r.Runs)
		require.InEpsilon(t, r.Fuel.Min, r.Fuel.Max, 0.1, "the same snapshot and message, but other seeds of Go's maps")
		require.LessOrEqual(t, r.WallNS.Min, r.WallNS.Median)
		require.LessOrEqual(t, r.WallNS.Median, r.WallNS.Max)
		require.Len(t, r.Published, 2)
		require.Regexp(t, `(?m)^fuel +min [\d,]+, median [\d,]+, max [\d,]+ of`, invoked(t, dir, append(order, "-n", "2")...).out)
	})
	t.Run("TheHandlersOwnErrorIsMadeVisible", func(t *testing.T) {
		a := invoked(t, dir, "intake.wasm", "--data", "{\"\x1b[31m\": 1}", "--timeout", "25s")
		require.Equal(t, cli.ExitFailed, a.code)
		require.Equal(t, "longshore: the guest failed: guest-error: other\n", a.err)
		require.Regexp(t, `(?m)^the guest says +reading order.Order`, a.out)
		require.NotContains(t, a.out, "\x1b")
	})
	t.Run("WithoutAGrantItIsRefused", func(t *testing.T) {
		a := invoked(t, dir, append(order, "--publish", "other/*")...)
		require.Equal(t, cli.ExitFailed, a.code)
		require.Contains(t, a.out, `topic "orders/lines" is not granted to this consumer`)
	})
	t.Run("FiguresAreLinesOfStdout", func(t *testing.T) {
		a := invoked(t, dir, append(order, "--json")...)
		require.Equal(t, cli.ExitOK, a.code, a.err)
		require.Regexp(t, `^figure fuel \d+
figure ms \d+\.\d{3}
figure peak_memory_bytes \d+
figure host_calls \d+
figure published 2
$`, a.out)
		require.Contains(t, a.err, "suggested")
	})
}

// invokeReport is what -o json has.
type invokeReport struct {
	Outcome, Error string
	GuestError     string `json:"guest_error"`
	Runs, Failed   int
	Dropped        int
	Published      []struct {
		Topic, Tenant string
		DataBase64    []byte `json:"data_base64"`
	}
	Fuel            struct{ Min, Median, Max int64 }
	WallNS          struct{ Min, Median, Max int64 } `json:"wall_ns"`
	PeakMemoryBytes int64                            `json:"peak_memory_bytes"`
	Log             []struct{ Stream, Line string }
	Suggested       string
}

func report(t *testing.T, a answer) (r invokeReport) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(a.out), &r), "%s%s", a.out, a.err)
	return r
}

// fuelOf reads a suggestion as YAML.
func fuelOf(t *testing.T, suggested string) int64 {
	t.Helper()
	var v struct{ Limits struct{ Fuel int64 } }
	require.NoError(t, yaml.Unmarshal([]byte(suggested), &v))
	return v.Limits.Fuel
}

// TestInvokeCommandLine uses what needs no toolchain.
func TestInvokeCommandLine(t *testing.T) {
	dir, _ := emitModules(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(in("text.wasm"), []byte("(module)"), 0o600))
	twoPages := []byte("\x00asm\x01\x00\x00\x00\x05\x03\x01\x00\x02")
	require.NoError(t, os.WriteFile(in("pages.wasm"), twoPages, 0o600))
	huge, err := os.Create(in("huge.wasm"))
	require.NoError(t, err)
	require.NoError(t, huge.Truncate(limits.GuestModuleBytes+1))
	require.NoError(t, huge.Close())

	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"NoModule":          {nil, cli.ExitUsage, "takes MODULE"},
		"MissingModule":     {[]string{in("no.wasm")}, cli.ExitUsage, "no.wasm"},
		"ModuleIsAFolder":   {[]string{dir}, cli.ExitUsage, "no regular file"},
		"ModuleIsText":      {[]string{in("text.wasm")}, cli.ExitRefused, "the host can't run it (decode): this is not WebAssembly"},
		"ModuleIsHuge":      {[]string{in("huge.wasm")}, cli.ExitRefused, "module bytes: 67108865 is over the limit of 67108864"},
		"ModuleWantsMemory": {[]string{in("pages.wasm"), "--memory", "64KiB"}, cli.ExitRefused, "raise limits.memory"},
		"ModuleHandlesNone": {[]string{in("pages.wasm")}, cli.ExitRefused, "the host can't run it (interface)"},
		"OverTheCeiling":    {[]string{in("trap.wasm"), "--fuel", "200e9"}, cli.ExitUsage, "flags: --fuel: 200000000000 is over the ceiling (want 1 to 100000000000, the host config's ceilings.limits.fuel)"},
		"TimeWithoutUnit":   {[]string{in("trap.wasm"), "--timeout", "5"}, cli.ExitUsage, "flags: --timeout: 5 is of the wrong type (want a duration such as"},
		"TimeTwice":         {[]string{in("trap.wasm"), "--timeout", "5s", "--call-time", "5s"}, cli.ExitUsage, "are the same; give one of them"},
		"BadTopic":          {[]string{in("trap.wasm"), "--topic", "a//b"}, cli.ExitUsage, "flags: --topic:"},
		"BadMetadata":       {[]string{in("trap.wasm"), "--metadata", "k"}, cli.ExitUsage, "want key=value"},
		"MetadataNotText":   {[]string{in("trap.wasm"), "--metadata", "k=\xff"}, cli.ExitUsage, `k=\xff": not UTF-8`},
		"LongContentType":   {[]string{in("trap.wasm"), "--content-type", strings.Repeat("a", limits.KeyBytes+1)}, cli.ExitUsage, "257 is over the limit of 256"},
		"DataAndFile":       {[]string{in("trap.wasm"), "--data", "x", "--file", "y"}, cli.ExitUsage, "exclude each other"},
		"MissingFile":       {[]string{in("trap.wasm"), "--file", in("no.json")}, cli.ExitUsage, "no.json"},
		"NoRuns":            {[]string{in("trap.wasm"), "-n", "0"}, cli.ExitUsage, "want 1 to 100000"},
		"TooManyRuns":       {[]string{in("trap.wasm"), "-n", strconv.Itoa(limits.TrialRuns + 1)}, cli.ExitUsage, "want 1 to 100000"},
		"MissingConfig":     {[]string{in("trap.wasm"), "--config", in("no.yaml")}, cli.ExitUsage, "no.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			a := run(t, dir, "", append([]string{"invoke"}, c.args...)...)
			require.Equal(t, c.code, a.code, a.err)
			require.Contains(t, a.err, c.says)
			require.Empty(t, a.out)
		})
	}
	t.Run("ThePayloadIsReadFromStdin", func(t *testing.T) {
		a := run(t, dir, "from stdin", "invoke", in("fail-other.wasm"), "--file", "-", "-o", "name")
		require.Equal(t, cli.ExitFailed, a.code)
		require.Equal(t, "guest-error: other\n", a.out)
	})
	t.Run("OfRunsThatFailTheFirstIsTold", func(t *testing.T) {
		a := run(t, dir, "", "invoke", in("publish-then-trap.wasm"), "-n", "3", "-o", "json")
		require.Contains(t, a.err, "the guest failed in 3 of 3 runs, at first: guest-trap: unreachable")
		r := report(t, a)
		require.Equal(t, []int{3, 3, 1, 0}, []int{r.Runs, r.Failed, r.Dropped, len(r.Published)})
	})
	t.Run("WhatIsPublishedAtOnceIsKeptThoughTheCallFails", func(t *testing.T) {
		a := run(t, dir, "", "invoke", in("publish-then-trap.wasm"), "--publish-mode", "immediate")
		require.Equal(t, cli.ExitFailed, a.code)
		require.Regexp(t, `(?m)^published +1 message, again at each attempt, though the message is not acknowledged$`, a.out)
		a = run(t, dir, "", "invoke", in("publish-then-trap.wasm"), "--publish-mode", "now")
		require.Equal(t, cli.ExitUsage, a.code)
		require.Contains(t, a.err, `flags: --publish-mode: "now" is not one of the choices (want outbox or immediate)`)
	})
	t.Run("LogLinesAreListed", func(t *testing.T) {
		r := report(t, run(t, dir, "", "invoke", in("chatter.wasm"), "--log-bytes", "18B", "-o", "json"))
		require.Equal(t, "output-limit", r.Outcome)
		require.Equal(t, "are we there yet?", r.Log[0].Line)
		require.Len(t, r.Log, 1)
	})
	t.Run("AHostConfigCountsIfItIsNamed", func(t *testing.T) {
		file := in("ceilings.yaml")
		require.NoError(t, os.WriteFile(file, []byte("ceilings: {limits: {fuel: 1000}}"), 0o600))
		require.Regexp(t, `(?m)^fuel +1,001 of 1,000$`, run(t, dir, "", "invoke", in("spin.wasm"), "-c", file).out)
		a := run(t, dir, "", "invoke", in("spin.wasm"), "-c", file, "--fuel", "1001")
		require.Equal(t, cli.ExitUsage, a.code)
		require.Contains(t, a.err, "want 1 to 1000,")
	})
}

// TestInvokeReadsAndLeavesNothingElse runs it where every file that other commands look for would be a fault, with a build
// command that would leave a trace.
func TestInvokeReadsAndLeavesNothingElse(t *testing.T) {
	dir, _ := emitModules(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "longshore.yaml"), []byte("no: such key"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "consumers.yaml"),
		[]byte("consumers: [{name: a, topic: invoke, module: trap.wasm, build: [touch, built]}]"), 0o600))
	before, err := os.ReadDir(dir)
	require.NoError(t, err)
	a := invoked(t, dir, "trap.wasm", "--data", "x", "-o", "name")
	require.Equal(t, "guest-trap: unreachable\n", a.out, a.err)
	after, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Equal(t, len(before), len(after))
}

func TestInvokeEndsWithASignal(t *testing.T) {
	dir, _ := emitModules(t)
	for name, c := range map[string]struct {
		payload bool // else the signal comes while it waits for one
		args    []string
	}{
		"WhileItWaitsForThePipe": {false, []string{"trap.wasm"}},
		"WhileTheGuestRuns":      {true, []string{"stall.wasm", "--fuel", "100e9", "--timeout", "5m"}},
		"InOneOfManyRuns":        {true, []string{"spin.wasm", "--timeout", "5m", "-n", strconv.Itoa(limits.TrialRuns)}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pipe")
			require.NoError(t, syscall.Mkfifo(file, 0o600))
			var errs lockedBuffer
			cmd := program(t, dir, append([]string{"invoke", "--file", file}, c.args...)...)
			cmd.Stderr = &errs
			require.NoError(t, cmd.Start())
			pipe, err := os.OpenFile(file, os.O_WRONLY, 0) // waits for it to read
			require.NoError(t, err)
			if c.payload {
				require.NoError(t, pipe.Close())
				time.Sleep(300 * time.Millisecond) // the guest's beginning can't be seen; earlier, it ends just so
			}
			require.NoError(t, cmd.Process.Signal(os.Interrupt))
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = cmd.Wait() // its exit code is looked at below
			}()
			select {
			case <-ended:
			case <-time.After(20 * time.Second):
				require.NoError(t, cmd.Process.Kill())
				<-ended
				require.Fail(t, "it does not end")
			}
			_ = pipe.Close()
			require.Equal(t, cli.ExitFailed, cmd.ProcessState.ExitCode(), errs.String())
			require.Equal(t, "longshore: stopped before it was done\n", errs.String())
		})
	}
}
