// Package orders_test builds the consumers of this example from source and runs orders through the real runtime.
package orders_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

// entry is what arrives at the end of the chain.
type entry struct {
	ID, Order, Customer string
	Cents               int64
}

func TestOrders(t *testing.T) {
	engine, err := runtime.New(t.Context(), runtime.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close(t.Context())) })
	intake, ledger := build(t, engine, "intake"), build(t, engine, "ledger")

	t.Run("AnOrderBecomesABatchAndEachLineAnEntry", func(t *testing.T) {
		lines := deliver(t, intake, "orders",
			`{"id":"o-1","customer":"ada","lines":[{"sku":"rope","quantity":2,"cents":1250},{"sku":"buoy","quantity":1,"cents":9900}]}`)
		require.Len(t, lines, 2)
		var entries []entry
		for _, line := range lines {
			require.Equal(t, "orders/lines", line.Topic)
			require.Equal(t, "application/json", line.Message.ContentType)
			booked := deliver(t, ledger, line.Topic, string(line.Message.Data))
			require.Len(t, booked, 1)
			require.Equal(t, "ledger/entries", booked[0].Topic)
			var e entry
			require.NoError(t, json.Unmarshal(booked[0].Message.Data, &e))
			entries = append(entries, e)
		}
		require.Equal(t, []entry{{"o-1/1", "o-1", "ada", 2500}, {"o-1/2", "o-1", "ada", 9900}}, entries)
	})
	t.Run("TheLargestOrderFitsIntoTheDefaultLimits", func(t *testing.T) {
		line := `{"sku":"rope","quantity":1000000,"cents":100000000}`
		lines := deliver(t, intake, "orders", `{"id":"o-1","customer":"ada","lines":[`+strings.Repeat(line+",", 99)+line+`]}`)
		require.Len(t, lines, 100)
		var e entry
		require.NoError(t, json.Unmarshal(deliver(t, ledger, "orders/lines", string(lines[99].Message.Data))[0].Message.Data, &e))
		require.Equal(t, entry{"o-1/100", "o-1", "ada", 100_000_000_000_000}, e)
	})
	t.Run("AnInvalidOrderIsAnErrorAndNothingIsPublished", func(t *testing.T) {
		for text, want := range map[string]string{
			`{"id":"o-1","customer":"ada","lines":[{"sku":"rope","quantity":0,"cents":1250}]}`: "line 1: quantity: 0, want 1 to 1000000",
			`not JSON`: "reading order.Order: invalid character",
		} {
			call := newCall("orders", text, nil)
			o := intake.Invoke(t.Context(), call)
			require.Equal(t, "guest-error: other", o.Reason(), o.Err)
			require.Contains(t, o.GuestText, want)
			require.Empty(t, call.Outbox())
		}
	})
	t.Run("ARefusedLineFailsTheWholeOrder", func(t *testing.T) {
		full := &messaging.PublishError{Case: messaging.DepthExceeded, Limit: 1, Actual: 2}
		call := newCall("orders",
			`{"id":"o-1","customer":"ada","lines":[{"sku":"rope","quantity":2,"cents":1250},{"sku":"buoy","quantity":1,"cents":9900}]}`, full)
		o := intake.Invoke(t.Context(), call)
		require.Equal(t, "guest-error: other", o.Reason(), o.Err)
		require.Contains(t, o.GuestText, "1 of 2 messages were refused")
		require.Contains(t, o.GuestText, "depth-exceeded: 2 is over the limit of 1")
	})
}

// deliver gives a consumer a message and returns what it published. It must succeed, within the default limits.
func deliver(t *testing.T, consumer *runtime.Module, topic, text string) []messaging.Outgoing {
	t.Helper()
	call := newCall(topic, text, nil)
	o := consumer.Invoke(t.Context(), call)
	require.Equal(t, runtime.OK, o.Class, "%s: %v: %s", o.Reason(), o.Err, o.GuestText)
	t.Logf("%s: fuel %d, memory %d bytes, %d host calls, %s", topic, o.FuelUsed, o.PeakMemoryBytes, o.HostCalls, o.Wall)
	return call.Outbox()
}

// newCall prepares a delivery. Every message but the first is refused with the given error, unless that is nil.
func newCall(topic, text string, refuse *messaging.PublishError) *messaging.Call {
	admitted := 0
	return messaging.NewCall(messaging.CallOptions{
		Message: messaging.Message{Topic: topic, ContentType: "application/json", Data: []byte(text)},
		Limits:  patient(),
		Admit: func(string, messaging.Message) (messaging.Admission, *messaging.PublishError) {
			if refuse != nil && admitted > 0 {
				return messaging.Admission{}, refuse
			}
			admitted++
			return messaging.Admission{ID: fmt.Sprintf("id-%d", admitted)}, nil
		},
	})
}

// patient returns the default limits with time for a busy machine.
func patient() limits.Guest {
	g := limits.DefaultGuest()
	g.CallDuration = time.Minute
	return g
}

func TestManifest(t *testing.T) {
	plan, err := config.LoadManifest("consumers.yaml", config.DefaultHost())
	require.NoError(t, err)
	require.Len(t, plan.Consumers, 2)
	for _, c := range plan.Consumers {
		t.Run(c.Name, func(t *testing.T) {
			require.Equal(t, "build/"+c.Name+".wasm", c.Module.Path)
			require.Equal(t, buildCommand(c.Name, "../build/"+c.Name+".wasm"), c.Build)
			require.Equal(t, limits.DefaultGuest(), c.Guest)
		})
	}
	require.Contains(t, plan.Consumers[0].Publish, plan.Consumers[1].Topic)
}

// buildCommand is the command that builds a consumer from its source, as the manifest has it.
func buildCommand(name, output string) []string {
	return []string{
		"env", "GOOS=wasip1", "GOARCH=wasm", "go", "-C", "guests", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -buildid=", "-buildmode=c-shared", "-o", output, "./" + name,
	}
}

// build makes a consumer from its source and compiles it.
func build(t *testing.T, engine *runtime.Engine, name string) *runtime.Module {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".wasm")
	command := buildCommand(name, file)
	out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput() // a fixed command
	require.NoError(t, err, string(out))
	wasm, err := os.ReadFile(file) // just built
	require.NoError(t, err)
	module, err := engine.Compile(t.Context(), name, wasm, limits.DefaultGuest())
	require.NoError(t, err)
	return module
}
