// Package guests_test runs the conformance guest of each SDK on the real runtime.
package guests_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

func TestGo(t *testing.T) {
	wasm := buildGo(t)
	t.Run("BuildsAreReproducible", func(t *testing.T) {
		require.True(t, bytes.Equal(wasm, buildGo(t)))
	})
	engine, err := runtime.New(t.Context(), runtime.Options{})
	require.NoError(t, err)
	module, err := engine.Compile(t.Context(), "conformance", wasm, limits.DefaultGuest())
	require.NoError(t, err)
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) { c.run(t, module) })
	}
	t.Run("EachMessageDrawsItsOwnRandomNumbers", func(t *testing.T) { randomness(t, module) })
	require.NoError(t, engine.Close(t.Context()))
}

// randomness sees which ways to draw at random repeat from one message to the next.
func randomness(t *testing.T, module *runtime.Module) {
	t.Helper()
	const messages = 20
	drawn := map[string]map[string]bool{} // by way
	for range messages {
		call := messaging.NewCall(messaging.CallOptions{
			Message: to("random", messaging.Message{}), Limits: patient(),
			Admit: func(string, messaging.Message) (messaging.Admission, *messaging.PublishError) {
				return messaging.Admission{}, nil
			},
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

// conformance is one case that every SDK's guest must pass.
type conformance struct {
	name   string
	give   messaging.Message
	reason string              // of the outcome; "" if the handler succeeds
	text   string              // the guest's text, if reason is a guest error
	want   []messaging.Message // published, with the topic; checked if the handler succeeds
	log    string              // part of what it writes to its log
}

func cases() []conformance {
	full := messaging.Message{
		ContentType: "text/plain; charset=utf-8", Data: []byte("häl\x00lo"),
		Metadata: []messaging.Pair{{Key: "a", Value: "1"}, {Key: "a", Value: ""}, {Key: "ü", Value: "✓"}},
	}
	big := messaging.Message{Data: bytes.Repeat([]byte("longshore "), 50_000)}
	lines := messaging.Message{ContentType: "text/plain", Metadata: full.Metadata, Data: []byte("one\ntwo\nthree")}
	line := func(topic, text, contentType string) messaging.Message {
		return messaging.Message{Topic: topic, ContentType: contentType, Metadata: full.Metadata, Data: []byte(text)}
	}
	reported := messaging.Message{Topic: "report", Data: []byte(
		"1 of 2 messages were refused, message 1 for: unauthorized: not granted\n" +
			"permission-denied: not granted")}
	cases := []conformance{
		{name: "Echo", give: to("echo", full), want: []messaging.Message{to("out", full)}},
		{name: "EchoOfNothing", give: to("echo", messaging.Message{}), want: []messaging.Message{to("out", messaging.Message{})}},
		{name: "EchoOfMuch", give: to("echo", big), want: []messaging.Message{to("out", big)}},
		{name: "Batch", give: to("batch", lines), want: []messaging.Message{
			line("out", "one\n", "text/plain"), line("out", "two\n", "text/plain"), line("out", "three", "text/plain"),
			{Topic: "ids", Data: []byte("id-1\nid-2\nid-3\n")},
		}},
		{name: "EmptyBatch", give: to("batch", messaging.Message{}), want: []messaging.Message{{Topic: "ids"}}},
		{name: "OneMessageTwiceInABatch", give: to("again", full), want: []messaging.Message{to("out", full), to("out", full)}},
		{name: "RefusalsAreTyped", give: to("refuse", full), want: []messaging.Message{to("out", full), reported}},
		{name: "GarbageCollectionWhilePublishing", give: to("collect", lines), want: []messaging.Message{
			line("out", "one\n", ""), line("out", "two\n", ""), line("out", "three", ""),
		}},
		{
			name: "APanicTrapsAndIsLogged", give: to("panic", messaging.Message{Data: []byte("on purpose")}),
			reason: "guest-trap: unreachable", log: "panic: on purpose",
		},
		{
			name: "APanicAfterPublishing", give: to("forget/3", messaging.Message{}),
			reason: "guest-trap: unreachable", log: "panic: forget it",
		},
		{name: "TheWarmUpWasRun", give: to("warm", messaging.Message{}), want: []messaging.Message{{Topic: "out", Data: []byte("warm")}}},
		{name: "AnExitTellsItsCode", give: to("exit/7", messaging.Message{}), reason: "exit 7"},
	}
	for _, errorCase := range []string{"timeout", "connection", "permission-denied", "other"} {
		c := conformance{name: "Error/" + errorCase, reason: "guest-error: " + errorCase, text: "wh\uFFFDy"}
		c.give = to("error/"+errorCase, messaging.Message{Data: []byte("wh\xffy")})
		if errorCase == "timeout" {
			c.text = ""
		}
		cases = append(cases, c)
	}
	return cases
}

// to returns m with a topic.
func to(topic string, m messaging.Message) messaging.Message {
	m.Topic = topic
	return m
}

func (c conformance) run(t *testing.T, module *runtime.Module) {
	t.Helper()
	var log strings.Builder
	published := 0
	call := messaging.NewCall(messaging.CallOptions{
		Message: c.give,
		Limits:  patient(),
		Admit: func(topic string, _ messaging.Message) (messaging.Admission, *messaging.PublishError) {
			if topic == "forbidden" {
				return messaging.Admission{}, &messaging.PublishError{Case: messaging.Unauthorized, Text: "not granted"}
			}
			published++
			return messaging.Admission{ID: fmt.Sprintf("id-%d", published)}, nil
		},
		Log: func(_ string, line []byte) { fmt.Fprintf(&log, "%s\n", line) },
	})
	o := module.Invoke(t.Context(), call)
	require.Equal(t, c.reason, o.Reason(), "%v: %s: %s", o.Err, o.GuestText, log.String())
	require.Equal(t, c.text, o.GuestText)
	require.Contains(t, log.String(), c.log)
	t.Logf("fuel %d, memory %d bytes, %d host calls, %s", o.FuelUsed, o.PeakMemoryBytes, o.HostCalls, o.Wall)
	if c.reason != "" {
		return
	}
	var got []messaging.Message
	for _, out := range call.Outbox() {
		got = append(got, to(out.Topic, out.Message))
	}
	require.Len(t, got, len(c.want))
	for i, want := range c.want {
		require.Equal(t, string(want.Data), string(got[i].Data))
		want.Data, got[i].Data = nil, nil
		require.Equal(t, want, got[i])
	}
}

// patient returns the default limits with time for a busy machine.
func patient() limits.Guest {
	g := limits.DefaultGuest()
	g.CallDuration = time.Minute
	return g
}

// buildGo builds the conformance guest of guests/go, in a folder of its own, and returns its bytes.
func buildGo(t *testing.T) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "conformance.wasm")
	cmd := exec.CommandContext(t.Context(), "go", "-C", "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -buildid=", "-buildmode=c-shared", "-o", file, "./internal/conformance")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	wasm, err := os.ReadFile(file)
	require.NoError(t, err)
	return wasm
}
