package guestbuild

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

// Consumers builds the consumers of the manifest consumers.yaml in a folder, as the manifest says, and compiles them with the
// manifest's limits. They are by name, and closed with the test.
func Consumers(tb testing.TB, l Language, dir string) map[string]*Consumer {
	tb.Helper()
	env := RequireAgain(tb, l)
	Install(tb, dir, env)
	plan, err := config.LoadManifest(filepath.Join(dir, "consumers.yaml"), config.DefaultHost())
	require.NoError(tb, err)
	engine, err := runtime.New(tb.Context(), runtime.Options{})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, engine.Close(tb.Context())) })
	consumers := map[string]*Consumer{}
	for _, c := range plan.Consumers {
		require.NoError(tb, Run(tb.Context(), dir, env, c.Build...))
		wasm := Read(tb, filepath.Join(dir, filepath.FromSlash(c.Module.Path)))
		started := time.Now()
		module, err := engine.Compile(tb.Context(), c.Name, wasm, c.Guest)
		require.NoError(tb, err)
		tb.Logf("%s: %d bytes, compiled and initialised in %s", c.Name, len(wasm), time.Since(started))
		consumers[c.Name] = &Consumer{plan: c, module: module}
	}
	return consumers
}

// Consumer is a consumer of a manifest, ready for messages.
type Consumer struct {
	plan   config.Consumer
	module *runtime.Module
}

// Deliver gives the consumer a message, with the manifest's limits but with time for a busy machine, and returns how that ended
// and what was published. What the manifest doesn't grant by name is refused.
func (c *Consumer) Deliver(tb testing.TB, m messaging.Message) (runtime.Outcome, []messaging.Outgoing) {
	tb.Helper()
	if m.Topic == "" {
		m.Topic = c.plan.Topic
	}
	if m.Info == nil {
		m.Info = &messaging.Info{ID: "m-1", Attempt: 1, MaxAttempts: uint32(c.plan.MaxAttempts)}
	}
	call := messaging.NewCall(messaging.CallOptions{
		Message: m, Limits: patient(c.plan.Guest), Admit: c.admit(),
		Log: func(stream string, line []byte) { tb.Logf("%s: %s", stream, line) },
	})
	o := c.module.Invoke(tb.Context(), call)
	tb.Logf("%s: fuel %d, memory %d bytes, %d host calls, %s", o.Class, o.FuelUsed, o.PeakMemoryBytes, o.HostCalls, o.Wall)
	return o, call.Outbox()
}

func (c *Consumer) admit() func(string, messaging.Message) (messaging.Admission, *messaging.PublishError) {
	admitted := 0
	return func(topic string, _ messaging.Message) (messaging.Admission, *messaging.PublishError) {
		for _, granted := range c.plan.Publish {
			if granted == topic {
				admitted++
				return messaging.Admission{ID: fmt.Sprintf("id-%d", admitted)}, nil
			}
		}
		return messaging.Admission{}, &messaging.PublishError{Case: messaging.Unauthorized, Text: "not granted"}
	}
}

func patient(g limits.Guest) limits.Guest {
	g.CallDuration = time.Minute
	return g
}
