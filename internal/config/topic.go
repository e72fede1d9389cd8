package config

import (
	"fmt"
	"time"

	"github.com/longshore/longshore/limits"
)

// Topic is what the operator says about one topic. What is nil or empty is not set. See substrate.Policy for what the
// bounds mean.
type Topic struct {
	Tenant, Topic     string
	Anonymous         bool // HTTP producers without a token may publish, as Tenant
	MaxDepth          *int64
	MaxRatePerSec     *int64
	MaxMessageBytes   *int64
	MaxUnflushed      *int64
	MaxPriority       *int64
	IdempotencyWindow *time.Duration // these four in whole milliseconds
	Retention         *time.Duration
	MaxAge            *time.Duration
	Keep              *time.Duration
	RetentionBytes    *int64

	// What the host makes so when it starts: a command may change it until the next start.
	DefaultLane string // "auto", "on" or "off"
	Paused      *bool
}

// laneOff is the DefaultLane of a topic whose messages go to groups only.
const laneOff = "off"

// resolveTopics returns the topics' policies and reports those that contradict each other.
func resolveTopics(s *sources, files []*topicFile) []Topic {
	topics := make([]Topic, 0, len(files))
	named := map[[2]string]int{}
	for i, f := range files {
		if f == nil {
			continue
		}
		t, path := f.resolve(), fmt.Sprintf("topics[%d]", i)
		topics = append(topics, t)
		t.check(s, path)
		if !s.sound(path+".topic") || !s.sound(path+".tenant") {
			continue
		}
		key := [2]string{t.Tenant, t.Topic}
		if first, twice := named[key]; twice {
			s.add(path+".topic", fmt.Sprintf("topic %s of tenant %s is given twice, first as topics[%d]",
				quoted(t.Topic), quoted(t.Tenant), first), "want one entry a topic")
			continue
		}
		named[key] = i
	}
	return topics
}

func (f *topicFile) resolve() Topic {
	return Topic{
		Tenant: tenantOf(f.Tenant), Topic: string(f.Topic), Anonymous: f.Anonymous,
		MaxDepth: f.MaxDepth, MaxRatePerSec: f.MaxRatePerSec, MaxUnflushed: f.MaxUnflushed, MaxPriority: f.MaxPriority,
		MaxMessageBytes: as[int64](f.MaxMessageBytes), RetentionBytes: as[int64](f.RetentionBytes),
		IdempotencyWindow: as[time.Duration](f.IdempotencyWindow), Retention: as[time.Duration](f.Retention),
		Keep: as[time.Duration](f.Keep), MaxAge: as[time.Duration](f.MaxAge),
		DefaultLane: f.DefaultLane, Paused: f.Paused,
	}
}

// as returns a value of the file as one of the plan; nil stays nil.
func as[T, F ~int64](given *F) *T {
	if given == nil {
		return nil
	}
	v := T(*given)
	return &v
}

// check reports the sizes and times that are out of bounds; the schema knows the bounds of numbers.
func (t *Topic) check(s *sources, path string) {
	for _, b := range []struct {
		key         string
		unit        unit
		least, most int64
		value       *int64
	}{
		{"max_message_bytes", unitBytes, 1, limits.MessageCeilingBytes, t.MaxMessageBytes},
		{"retention_bytes", unitBytes, 1, limits.RetentionBytesCeiling, t.RetentionBytes},
		{"idempotency_window", unitTime, 0, int64(limits.IdempotencyWindowCeiling), as[int64](t.IdempotencyWindow)},
		{"retention", unitTime, int64(time.Millisecond), int64(limits.OptionDuration), as[int64](t.Retention)},
		{"max_age", unitTime, int64(time.Millisecond), int64(limits.OptionDuration), as[int64](t.MaxAge)},
		{"keep", unitTime, 0, int64(limits.OptionDuration), as[int64](t.Keep)},
	} {
		switch {
		case b.value == nil:
		case *b.value < b.least || *b.value > b.most:
			s.add(path+"."+b.key, b.unit.format(*b.value)+" is out of bounds",
				"want "+b.unit.format(b.least)+" to "+b.unit.format(b.most))
		case b.unit == unitTime && *b.value%int64(time.Millisecond) != 0:
			s.add(path+"."+b.key, b.unit.format(*b.value)+" is finer than a millisecond", "want whole milliseconds, such as 250ms")
		}
	}
}

// lane returns the mode of a topic's default lane, "" if the file doesn't say.
func (h *Host) lane(tenant, topic string) string {
	for _, t := range h.Topics {
		if t.Tenant == tenant && t.Topic == topic {
			return t.DefaultLane
		}
	}
	return ""
}
