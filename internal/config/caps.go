package config

import (
	"fmt"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/longshore/longshore/limits"
)

// Caps bound what one tenant may take of the host, over all that is its own. A field of 0 is no bound beside the host's own.
type Caps struct {
	Messages       int64         // stored: ready, delayed, in flight, dead letters, quarantine, kept for replay
	Bytes          int64         // of their payloads
	RatePerSec     int64         // messages published a second
	Topics         int64         // at most limits.TopicsPerTenant
	Consumers      int64         // entries of the manifest
	Instances      int64         // of its modules: those that run and those that wait for a message
	CompileTime    time.Duration // of a processor that compiling one module may take, in whole seconds
	LogBytesPerSec int64         // that its guests write to the log
	ValueBytes     int64         // of stored values: keys and records
}

// CapsOf returns the caps of a tenant: none if the host config gives it none.
func (h *Host) CapsOf(tenant string) Caps {
	for _, t := range h.Tenants {
		if t.Name == tenant {
			return t.Caps
		}
	}
	return Caps{}
}

// capsFile are a tenant's caps as they are written.
type capsFile struct {
	Messages       *int64    `json:"messages,omitempty" jsonschema_description:"Messages that it may have stored, whatever for. Default: any number."`
	Bytes          *size     `json:"bytes,omitempty" jsonschema_description:"Payloads that it may have stored. Default: any number."`
	RatePerSec     *int64    `json:"rate_per_sec,omitempty" jsonschema_description:"Messages a second that may be published to all of its topics. Default: any number."`
	Topics         *int64    `json:"topics,omitempty" jsonschema_description:"Topics that it may have. Default: 10000."`
	Consumers      *int64    `json:"consumers,omitempty" jsonschema_description:"Consumers that a manifest may give it. Default: any number."`
	Instances      *int64    `json:"instances,omitempty" jsonschema_description:"Instances of its modules that there may be at once, running or idle. Default: any number."`
	CompileTime    *duration `json:"compile_time,omitempty" jsonschema_description:"Time of a processor that compiling one of its modules may take, in whole seconds. Default: 1m."`
	LogBytesPerSec *size     `json:"log_bytes_per_sec,omitempty" jsonschema_description:"Bytes a second that its guests may write to the log. Default: 200 lines of 1KiB."`
	ValueBytes     *size     `json:"value_bytes,omitempty" jsonschema_description:"What its stored values may take: keys and values. Default: any number."`
}

// maxCap bounds the counts and sizes that have no smaller bound.
const maxCap = limits.PolicyMaxDepthCount

// JSONSchemaExtend puts the bounds of the numbers into the schema.
func (capsFile) JSONSchemaExtend(s *jsonschema.Schema) {
	extendInteger(s, "messages", 1, maxCap)
	extendInteger(s, "rate_per_sec", 1, limits.PolicyMaxRatePerSec)
	extendInteger(s, "topics", 1, limits.TopicsPerTenant)
	extendInteger(s, "consumers", 1, maxConsumers)
	extendInteger(s, "instances", 1, limits.HostInFlightMsgs)
}

// maxConsumers is how many consumers a manifest may have.
const maxConsumers = 1000

// resolve returns the caps, and reports the sizes and times that are out of bounds; the schema knows the bounds of numbers.
func (f *capsFile) resolve(s *sources, path string) Caps {
	if f == nil {
		return Caps{}
	}
	c := Caps{
		Messages: orNumber(f.Messages, 0), Bytes: orNumber(as[int64](f.Bytes), 0), RatePerSec: orNumber(f.RatePerSec, 0),
		Topics: orNumber(f.Topics, 0), Consumers: orNumber(f.Consumers, 0), Instances: orNumber(f.Instances, 0),
		CompileTime:    time.Duration(orNumber(as[int64](f.CompileTime), 0)),
		LogBytesPerSec: orNumber(as[int64](f.LogBytesPerSec), 0), ValueBytes: orNumber(as[int64](f.ValueBytes), 0),
	}
	for _, b := range []struct {
		key         string
		unit        unit
		least, most int64
		given       bool
		value       int64
	}{
		{"bytes", unitBytes, 1, limits.RetentionBytesCeiling, f.Bytes != nil, c.Bytes},
		{"compile_time", unitTime, int64(time.Second), int64(limits.CompileCPU), f.CompileTime != nil, int64(c.CompileTime)},
		{"log_bytes_per_sec", unitBytes, limits.GuestLogLineBytes, limits.GuestLogLinesPerSec * limits.GuestLogLineBytes, f.LogBytesPerSec != nil, c.LogBytesPerSec},
		{"value_bytes", unitBytes, 1, limits.RetentionBytesCeiling, f.ValueBytes != nil, c.ValueBytes},
	} {
		switch {
		case !b.given:
		case b.value < b.least || b.value > b.most:
			s.add(path+"."+b.key, b.unit.format(b.value)+" is out of bounds", "want "+b.unit.format(b.least)+" to "+b.unit.format(b.most))
		case b.unit == unitTime && b.value%int64(time.Second) != 0:
			s.add(path+"."+b.key, b.unit.format(b.value)+" is finer than a second", "want whole seconds, such as 5s")
		}
	}
	return c
}

// checkCount reports an entry that is one more than its tenant may have. before is how many it has before this.
func (p *planner) checkCount(path, tenant string, before int64) {
	most := p.host.CapsOf(tenant).Consumers
	if most == 0 || before < most || !p.sound(path+".tenant") {
		return
	}
	p.add(p.nearer(path+".tenant", path+".name"), fmt.Sprintf("it is consumer %d of tenant %s", before+1, quoted(tenant)),
		fmt.Sprintf("want at most %d, the host config's caps.consumers of that tenant", most))
}
