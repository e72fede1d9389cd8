package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestManifest(t *testing.T) {
	t.Run("EveryKeyIsTaken", func(t *testing.T) {
		plan, err := ParseManifest("/etc/ls/m.yaml", []byte(`
consumers:
  - name: a-1
    tenant: acme
    topic: orders/in
    group: g.1
    start: latest
    ordering: key
    module: build/./a.wasm
    sha256: 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff
    build: [make, "-C", guests, 'a b']
    instance: reuse
    reuse: {messages: 16, age: 17s}
    warm_up: heat
    wit: draft-b
    limits: {fuel: 1, call_time: 2ms, memory: 128KiB, table_elements: 4, call_depth: 5, outbox_messages: 6,
      outbox_bytes: 7, host_calls: 8, log_bytes: 9KiB, result_bytes: 10B}
    concurrency: 11
    max_attempts: 12
    lease: 13s
    retry: {base: 14ms, cap: 15s}
    context: optional
    publish: [orders/in, orders/out/*, "*"]
    publish_mode: immediate
    clients: [audit]
    buckets: [stock, a.b]
    batch: {max: 3, window: 4ms}
    coalesce: latest
    breaker: {percent: 80, window: 30s}
    canary: {share: 15%}
    events: {pickup: audit/begun, success: audit/done, death: dead}
    filter: topic == "orders/in"
    features: [gzip, v2/x]
    non_retryable: [permission-denied, other]
`), DefaultHost())
		require.NoError(t, err)
		require.Equal(t, "/etc/ls/m.yaml", plan.File)
		require.Len(t, plan.Consumers, 1)
		c := plan.Consumers[0]
		require.Contains(t, string(c.Entry), `"topic":`)
		require.Equal(t, c.module, c.Fault("module", "", ""))
		c.module, c.Entry, c.at = Fault{}, nil, nil
		require.Equal(t, Consumer{
			Name: "a-1", Tenant: "acme", Topic: "orders/in", Group: "g.1", Start: &Start{Kind: StartLatest}, Ordering: "key",
			Module:    Module{Dir: "/etc/ls", Path: "build/./a.wasm", SHA256: "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"},
			Build:     []string{"make", "-C", "guests", "a b"},
			Instances: Instances{Reuse: true, MaxMessages: 16, MaxAge: 17 * time.Second, WarmUp: "heat"},
			Draft:     "draft-b",
			Delivery: Delivery{
				Guest: limits.Guest{
					Fuel: 1, CallDuration: 2 * time.Millisecond, MemoryBytes: 128 * limits.KiB, TableElements: 4, CallDepth: 5,
					OutboxMessages: 6, OutboxBytes: 7, HostCalls: 8, LogBytes: 9 * limits.KiB, ResultBytes: 10,
				},
				Concurrency: 11, MaxAttempts: 12, Lease: 13 * time.Second,
				Retry: Retry{Base: 14 * time.Millisecond, Cap: 15 * time.Second},
			},
			Publish: []string{"orders/in", "orders/out/*", "*"}, Immediate: true, Clients: []string{"audit"}, Buckets: []string{"stock", "a.b"},
			Batch: Batch{Max: 3, Window: 4 * time.Millisecond, Latest: true}, Breaker: Breaker{Percent: 80, Window: 30 * time.Second, Calls: 20}, CanaryPercent: 15,
			Events: Events{Pickup: "audit/begun", Success: "audit/done", Death: "dead"}, Filter: `topic == "orders/in"`, Features: []string{"gzip", "v2/x"},
			NonRetryable: []string{"permission-denied", "other"},
		}, c)
		require.Equal(t, "/etc/ls/build/a.wasm", c.Module.File())
	})
	t.Run("DefaultsAreStrict", func(t *testing.T) {
		plan, err := ParseManifest("m.yaml", []byte(plain), DefaultHost())
		require.NoError(t, err)
		c := plan.Consumers[0]
		require.Equal(t, "default", c.Tenant)
		require.True(t, c.ContextRequired)
		require.Empty(t, c.Publish)
		require.Empty(t, c.Group)
		require.Nil(t, c.Start)
		require.Equal(t, "none", c.Ordering)
		require.Equal(t, Batch{Max: 1}, c.Batch)
		require.Equal(t, DefaultDelivery(), c.Delivery)
		require.Equal(t, Instances{MaxMessages: limits.ReuseMessages, MaxAge: limits.ReuseAge}, c.Instances, "clean")
		require.True(t, filepath.IsAbs(c.Module.Dir))
	})
	t.Run("PublishingToItsOwnTopicIsAllowed", func(t *testing.T) {
		_, err := ParseManifest("m.yaml", []byte(plain+"    publish: [a]\n"), DefaultHost())
		require.NoError(t, err)
	})
	t.Run("NoConsumersAreAllowed", func(t *testing.T) {
		plan, err := ParseManifest("m.yaml", []byte("consumers: []"), DefaultHost())
		require.NoError(t, err)
		require.Empty(t, plan.Consumers)
	})
	t.Run("OneTopicOfTwoTenantsIsTwoTopics", func(t *testing.T) {
		_, err := ParseManifest("m.yaml", []byte(plain+"  - {name: b, tenant: acme, topic: a, module: a.wasm}\n"), DefaultHost())
		require.NoError(t, err)
	})
	t.Run("ATopicHasOneConsumerForEachGroupAndOneWithout", func(t *testing.T) {
		plan, err := ParseManifest("m.yaml", []byte(plain+`  - {name: b, topic: a, module: a.wasm, group: g, start: {position: 7}}
  - {name: c, topic: a, module: a.wasm, group: h, start: {time: 2030-01-31T12:00:00+01:00}, ordering: topic}
  - {name: d, topic: a, module: a.wasm, group: i, start: earliest}
`), DefaultHost())
		require.NoError(t, err)
		var starts []*Start
		for _, c := range plan.Consumers {
			starts = append(starts, c.Start)
		}
		at := time.Date(2030, 1, 31, 11, 0, 0, 0, time.UTC)
		require.True(t, at.Equal(starts[2].Time))
		starts[2].Time = at
		require.Equal(t, []*Start{nil, {Kind: StartPosition, Position: 7}, {Kind: StartTime, Time: at}, {}}, starts)
	})
	t.Run("ADefaultLaneThatIsOffHasNoConsumer", func(t *testing.T) {
		h, err := parseHostText("topics: [{topic: a, default_lane: off}]")
		require.NoError(t, err)
		_, err = ParseManifest("m.yaml", []byte(plain+"  - {name: b, topic: a, module: a.wasm, group: g}\n"), h)
		require.EqualError(t, err, `m.yaml:3:12: consumers[0].topic: the host config turns the default lane of "a" off (want a group)`)
		_, err = ParseManifest("m.yaml", []byte(plain+"    group: g\n"), h)
		require.NoError(t, err)
	})
	t.Run("ANameIsUniqueInItsTenant", func(t *testing.T) {
		_, err := ParseManifest("m.yaml", []byte(plain+"  - {name: a, tenant: acme, topic: a, module: a.wasm}\n"), DefaultHost())
		require.NoError(t, err)
		_, err = ParseManifest("m.yaml", []byte(plain+"  - {name: a, topic: b, module: a.wasm}\n"), DefaultHost())
		require.EqualError(t, err, `m.yaml:5:12: consumers[1].name: "a" is also the name of consumers[0] (want a name of its own)`)
	})
	t.Run("EntriesResolveAsTheManifestThatTheyAreOf", func(t *testing.T) {
		plan, err := ParseManifest("m.yaml", []byte(plain+"    limits: {fuel: 5}\n    publish: [b]\n"), DefaultHost())
		require.NoError(t, err)
		again, err := ParseEntries("m.yaml", []json.RawMessage{plan.Consumers[0].Entry}, DefaultHost())
		require.NoError(t, err)
		require.Equal(t, plan.Consumers[0].Entry, again.Consumers[0].Entry)
		require.EqualValues(t, 5, again.Consumers[0].Guest.Fuel)
	})
	t.Run("ModulesAreFoundWhateverElseIsWrong", func(t *testing.T) {
		found, err := Modules("m.yaml", []byte("consumers:\n  - {name: a, tenant: acme, lease: x, module: a.wasm}\n  - {name: b}\n"))
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.Equal(t, "acme", found[0].Tenant)
		require.EqualError(t, found[0].ModuleFault("is odd", ""), "m.yaml:2:47: consumers[0].module: is odd")
		require.EqualError(t, found[0].Fault("tenant", "is odd", ""), "m.yaml:2:23: consumers[0].tenant: is odd")
		require.EqualError(t, found[0].Fault("group", "is odd", ""), "m.yaml:2:5: consumers[0]: is odd")
	})
	t.Run("FaultyValueMakesUpNoOtherFault", func(t *testing.T) {
		_, err := ParseManifest("m.yaml", []byte(plain+"    lease: 40\n    limits: {call_time: 35s}\n"), DefaultHost())
		require.EqualError(t, err, `m.yaml:5:12: consumers[0].lease: 40 is of the wrong type (want a duration such as 5s, 1m30s or 250ms)`)
	})
	t.Run("MissingFileIsNoFaultOfItsText", func(t *testing.T) {
		_, err := LoadManifest(filepath.Join(t.TempDir(), "none.yaml"), DefaultHost())
		require.ErrorIs(t, err, os.ErrNotExist)
	})
}
