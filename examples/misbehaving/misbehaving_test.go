package misbehaving

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

func TestModules(t *testing.T) {
	engine, err := runtime.New(t.Context(), runtime.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close(t.Context())) })
	for _, m := range All() {
		t.Run(m.Name, func(t *testing.T) {
			module, err := engine.Compile(t.Context(), m.Name, m.Wasm, m.Limits)
			require.NoError(t, err)
			for attempt := range 2 { // the second finds a host that goes on
				call := newCall(m.Limits, m.Limit != limits.NameCallDuration)
				o := module.Invoke(t.Context(), call)
				require.Equal(t, m.Reason, o.Reason(), "attempt %d: %v: %s", attempt, o.Err, o.GuestText)
				checkBounds(t, m, o)
				checkOutbox(t, m, o, call.Outbox())
			}
		})
	}
}

// newCall prepares a delivery of any message, which may publish to Topic only. If it's patient, time is not what ends it,
// on a machine however busy.
func newCall(bounds limits.Guest, patient bool) *messaging.Call {
	if patient {
		bounds.CallDuration = time.Minute
	}
	return messaging.NewCall(messaging.CallOptions{
		Message: messaging.Message{Topic: "misbehaving", Data: []byte("go")},
		Limits:  bounds,
		Admit: func(topic string, _ messaging.Message) (messaging.Admission, *messaging.PublishError) {
			if topic != Topic {
				return messaging.Admission{}, &messaging.PublishError{Case: messaging.Unauthorized, Text: topic}
			}
			return messaging.Admission{ID: "id"}, nil
		},
	})
}

// checkBounds checks that what a module used stays within its limits, but for what it takes to notice.
func checkBounds(t *testing.T, m Module, o runtime.Outcome) {
	t.Helper()
	const noticed = 1_000 // instructions, of one block
	require.LessOrEqual(t, o.FuelUsed, m.Limits.Fuel+noticed)
	require.LessOrEqual(t, o.PeakMemoryBytes, m.Limits.MemoryBytes)
	require.LessOrEqual(t, o.HostCalls, m.Limits.HostCalls+1)
}

// checkOutbox checks that no more was accepted than the outbox takes, and that the guest was told why.
func checkOutbox(t *testing.T, m Module, o runtime.Outcome, outbox []messaging.Outgoing) {
	t.Helper()
	var payloads int64
	for _, out := range outbox {
		payloads += int64(len(out.Message.Data))
	}
	require.LessOrEqual(t, payloads, m.Limits.OutboxBytes)
	require.LessOrEqual(t, int64(len(outbox)), m.Limits.OutboxMessages)
	if m.Limit == limits.NameOutboxMessages {
		require.Len(t, outbox, int(m.Limits.OutboxMessages))
	}
	if m.Limit == limits.NameOutboxMessages || m.Limit == limits.NameOutboxBytes {
		require.NotEmpty(t, outbox)
		require.Contains(t, o.GuestText, "quota-exceeded")
	}
}

func TestAll(t *testing.T) {
	t.Run("EveryLimitOfACallIsReached", func(t *testing.T) {
		want := []limits.Name{
			limits.NameFuel, limits.NameCallDuration, limits.NameMemory, limits.NameTableElements, limits.NameCallDepth,
			limits.NameOutboxMessages, limits.NameOutboxBytes, limits.NameHostCalls, limits.NameLogBytes, limits.NameResultBytes, limits.NameHandles,
		}
		var got []limits.Name
		for _, m := range All() {
			got = append(got, m.Limit)
		}
		require.Subset(t, got, want)
	})
	t.Run("NamesAreUnique", func(t *testing.T) {
		seen := map[string]bool{}
		for _, m := range All() {
			require.False(t, seen[m.Name], m.Name)
			seen[m.Name] = true
		}
	})
	t.Run("TheReadmeListsThem", func(t *testing.T) {
		var table strings.Builder
		for _, m := range All() {
			limit := string(m.Limit)
			if limit == "" {
				limit = "–"
			}
			fmt.Fprintf(&table, "| `%s` | %s | %s | `%s` |\n", m.Name, m.Does, limit, m.Reason)
		}
		readme, err := os.ReadFile("README.md")
		require.NoError(t, err)
		require.Contains(t, string(readme), table.String())
	})
}
