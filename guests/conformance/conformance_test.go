// Package conformance_test runs the conformance guests of all SDKs through one list of cases, on the real runtime.
package conformance_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/internal/guestbuild"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

// shared is what the tests of this package, which run one after the other, have in common.
var shared = struct {
	dir       string // for what is built
	builds    map[guestbuild.Language]map[kind]string
	installed map[guestbuild.Language]bool

	compiler, interpreter *runtime.Engine // which keep the code of what they compiled, for another test

	languages, cases, failed, components int // what ran, for TestMain to print
}{builds: map[guestbuild.Language]map[kind]string{}, installed: map[guestbuild.Language]bool{}}

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	ctx := context.Background()
	var errs [3]error
	shared.dir, errs[0] = os.MkdirTemp("", "longshore-conformance-")
	shared.compiler, errs[1] = runtime.New(ctx, runtime.Options{})
	shared.interpreter, errs[2] = runtime.New(ctx, runtime.Options{Interpreter: true})
	if err := errors.Join(errs[:]...); err != nil {
		fmt.Println(err)
		return 1
	}
	code := m.Run()
	fmt.Printf("figure languages %d\nfigure conformance_cases %d\nfigure conformance_failed %d\nfigure components_run %d\n",
		shared.languages, shared.cases, shared.failed, shared.components)
	if err := errors.Join(shared.compiler.Close(ctx), shared.interpreter.Close(ctx), os.RemoveAll(shared.dir)); err != nil {
		fmt.Println(err)
		return 1
	}
	return code
}

func TestConformance(t *testing.T) {
	for _, l := range guestbuild.Languages() {
		t.Run(string(l), func(t *testing.T) {
			files := built(t, l)
			shared.languages++
			runCases(t, l, files)
		})
	}
}

// runCases runs all cases on the guests of a language.
func runCases(t *testing.T, l guestbuild.Language, files map[kind]string) {
	t.Helper()
	for _, k := range kinds() {
		wasm := guestbuild.Read(t, files[k])
		module, err := engineFor(l, k).Compile(t.Context(), string(k), wasm, patient())
		require.NoError(t, err)
		t.Logf("%s: %d bytes", k, len(wasm))
		ok := true
		for _, c := range cases() {
			if c.kind == k {
				ok = runCase(t, c, module) && ok
			}
		}
		if ok && isComponent(wasm) {
			shared.components++
		}
	}
}

func runCase(t *testing.T, c testCase, module *runtime.Module) bool {
	t.Helper()
	shared.cases++
	ok := t.Run(c.name, func(t *testing.T) { c.run(t, module) })
	if !ok {
		shared.failed++
	}
	return ok
}

// engineFor returns what runs a guest: the compiler, as in the program. Guests in JavaScript are one engine of 12 MB with
// another script each, so that one of them is compiled, and the others are interpreted, which gives the same results and takes a
// fifth of the time.
func engineFor(l guestbuild.Language, k kind) *runtime.Engine {
	if l == guestbuild.JavaScript && k != handler && os.Getenv("LONG") == "" {
		return shared.interpreter
	}
	return shared.compiler
}

func TestJavaScript(t *testing.T) {
	t.Run("HasWhatComponentizeGivesByDefault", func(t *testing.T) {
		wasm := guestbuild.Read(t, built(t, guestbuild.JavaScript)[handler])
		module, err := shared.compiler.Compile(t.Context(), "conformance", wasm, patient())
		require.NoError(t, err)
		testCase{
			give: one(text("features", "on the console")), log: "on the console",
			want: one(text("report", "the time is now\nrandom numbers differ\ncrypto differs\n")),
		}.run(t, module)
	})
	t.Run("IsBuiltAgainstTheHostsOwnWIT", func(t *testing.T) {
		for ours, theirs := range map[string]string{
			"messaging/wasi-messaging.wit":      "wasi-messaging.wit",
			"longshore/longshore-messaging.wit": "longshore-messaging.wit",
			"keyvalue/wasi-keyvalue.wit":        "wasi-keyvalue.wit",
		} {
			want := guestbuild.Read(t, filepath.Join("..", "..", "wasi", "messaging", "wit", theirs))
			require.Equal(t, string(want), string(guestbuild.Read(t, filepath.Join("..", "javascript", "wit", "deps", ours))))
		}
	})
}

func TestGo(t *testing.T) {
	guest := guestbuild.Read(t, built(t, guestbuild.Go)[handler])
	t.Run("BuildsAreReproducible", func(t *testing.T) {
		again := build(t, guestbuild.Go, tools(t, guestbuild.Go), t.TempDir())
		require.True(t, bytes.Equal(guest, guestbuild.Read(t, again[handler])))
	})
	module, err := shared.compiler.Compile(t.Context(), "conformance", guest, limits.DefaultGuest())
	require.NoError(t, err)
	t.Run("AnExitTellsItsCode", func(t *testing.T) {
		testCase{give: one(text("exit/7", "")), reason: "exit 7"}.run(t, module)
	})
	t.Run("TheWarmUpWasRun", func(t *testing.T) {
		testCase{give: one(text("warm", "")), want: one(text("out", "warm"))}.run(t, module)
	})
	t.Run("EachMessageDrawsItsOwnRandomNumbers", func(t *testing.T) { randomness(t, module) })
}

// randomness sees which ways to draw at random repeat from one message to the next.
func randomness(t *testing.T, module *runtime.Module) {
	t.Helper()
	const messages = 20
	drawn := map[string]map[string]bool{} // by way
	for range messages {
		call := messaging.NewCall(messaging.CallOptions{
			Message: text("random", ""), Limits: patient(), Admit: admit(),
			Log: func(_ string, line []byte) { t.Errorf("it wrote %q", line) },
		})
		require.Equal(t, runtime.OK, module.Invoke(t.Context(), call).Class)
		for line := range strings.Lines(string(call.Outbox()[0].Message.Data)) {
			way, what, _ := strings.Cut(strings.TrimSpace(line), " ")
			if drawn[way] == nil {
				drawn[way] = map[string]bool{}
			}
			drawn[way][what] = true
		}
	}
	require.Equal(t, map[string]bool{"true": true}, drawn["known"])
	for _, way := range []string{"math/rand/v2", "math/rand", "maphash", "map", "select", "crypto/rand"} {
		require.Len(t, drawn[way], messages, way)
	}
	require.Len(t, drawn["initialisation"], 1, "as documented")
}

func (c testCase) run(t *testing.T, module *runtime.Module) {
	t.Helper()
	var log strings.Builder
	call := messaging.NewCall(messaging.CallOptions{
		Message: c.give[0], More: c.give[1:], Limits: patient(), Admit: admit(), Store: shelf{"before": "it"}, Config: settings(),
		Request: ask, Reply: answer,
		Log: func(stream string, line []byte) { fmt.Fprintf(&log, "%s|%s\n", stream, line) },
	})
	o := module.Invoke(t.Context(), call)
	require.Equal(t, c.reason, o.Reason(), "%v: %s: %s", o.Err, o.GuestText, log.String())
	require.Equal(t, c.text, o.GuestText)
	require.Contains(t, log.String(), c.log)
	t.Logf("fuel %d, memory %d bytes, %d host calls, %s", o.FuelUsed, o.PeakMemoryBytes, o.HostCalls, o.Wall)
	if c.reason != "" {
		return
	}
	want := c.answers
	if want == nil {
		want = []messaging.Answer{{Case: messaging.AnswerAck}}
	}
	require.Equal(t, want, o.Answers)
	c.requireOutbox(t, call.Outbox())
}

func (c testCase) requireOutbox(t *testing.T, outbox []messaging.Outgoing) {
	t.Helper()
	require.Len(t, outbox, len(c.want))
	for i, want := range c.want {
		got := to(outbox[i].Topic, outbox[i].Message)
		require.Equal(t, string(want.Data), string(got.Data))
		if o := got.Options; want.Options == nil && o != nil {
			require.Equal(t, messaging.PublishOptions{}, *o)
			got.Options = nil
		}
		want.Data, got.Data = nil, nil
		require.Equal(t, want, got)
	}
}

// admit takes all messages but those to forbidden and full, and numbers them.
func admit() func(string, messaging.Message) (messaging.Admission, *messaging.PublishError) {
	published := 0
	return func(topic string, _ messaging.Message) (messaging.Admission, *messaging.PublishError) {
		switch topic {
		case "forbidden":
			return messaging.Admission{}, &messaging.PublishError{Case: messaging.Unauthorized, Text: "not granted"}
		case "full":
			after := 250 * time.Millisecond
			return messaging.Admission{}, &messaging.PublishError{Case: messaging.DepthExceeded, Limit: 10, Actual: 11, RetryAfter: &after}
		}
		published++
		return messaging.Admission{ID: fmt.Sprintf("id-%d", published)}, nil
	}
}

// patient returns the default limits with time for a busy machine, and fuel for the interpreter of JavaScript.
func patient() limits.Guest {
	g := limits.DefaultGuest()
	g.CallDuration, g.Fuel = time.Minute, 10_000_000_000
	return g
}
