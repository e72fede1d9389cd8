package demo

import (
	"github.com/longshore/longshore/examples/misbehaving"
	"github.com/longshore/longshore/limits"
)

// Names of files in the workspace.
const (
	configFile   = "longshore.yaml"
	manifestFile = "consumers.yaml"
	hostLogFile  = "host.log"
)

// object is a YAML mapping.
type object = map[string]any

// hostConfig returns the host config of the demo.
func hostConfig(mods []misbehaving.Module) object {
	topics := []object{{"topic": ordersTopic, "anonymous": true}}
	fuel := int64(limits.FuelPerDelivery)
	for _, m := range mods {
		topics = append(topics, object{"topic": topicOf(m), "anonymous": true})
		fuel = max(fuel, m.Limits.Fuel)
	}
	return object{
		"data":     "data",
		"listen":   object{"http": "127.0.0.1:0"},
		"log":      object{"level": "info", "format": "json"},
		"grace":    "10s",
		"ceilings": object{"limits": object{"fuel": fuel}},
		"topics":   topics,
	}
}

// manifest returns the consumers. intakeOutbox is how many messages intake may publish for one order.
func manifest(mods []misbehaving.Module, intakeOutbox int64) object {
	retry := object{"base": "50ms", "cap": "1s"}
	const lease = "3s" // so that what the killed host held comes back soon
	consumers := []object{
		{
			"name": "intake", "topic": ordersTopic, "module": "intake.wasm", "publish": []string{linesTopic},
			"lease": lease, "retry": retry, "limits": object{"outbox_messages": intakeOutbox},
		},
		{"name": "ledger", "topic": linesTopic, "module": "ledger.wasm", "publish": []string{entriesTopic}, "lease": lease, "retry": retry},
	}
	for _, m := range mods {
		consumers = append(consumers, object{
			"name": m.Name, "topic": topicOf(m), "module": m.Name + ".wasm", "publish": []string{misbehaving.Topic},
			"max_attempts": 2, "lease": lease, "retry": retry, "limits": limitsOf(m.Limits),
		})
	}
	return object{"consumers": consumers}
}

// limitsOf writes the limits of a module as the manifest has them.
func limitsOf(g limits.Guest) object {
	return object{
		"fuel": g.Fuel, "call_time": g.CallDuration.String(), "memory": g.MemoryBytes, "table_elements": g.TableElements,
		"call_depth": g.CallDepth, "outbox_messages": g.OutboxMessages, "outbox_bytes": g.OutboxBytes,
		"host_calls": g.HostCalls, "log_bytes": g.LogBytes, "result_bytes": g.ResultBytes,
	}
}
