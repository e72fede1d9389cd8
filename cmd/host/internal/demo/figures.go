package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/examples/misbehaving"
)

// Figure is one number that the demo found.
type Figure struct {
	Name  string
	Value int
}

// check is a number beside what it must be.
type check struct {
	what      string
	figure    string // name of the Figure, "" if it is none
	got, want int
}

func (c check) ok() bool { return c.got == c.want }

// found is what was read back from the host at the end.
type found struct {
	published int            // messages that came from outside, by the host's count
	acked     int            // orders done
	dead      map[string]int // dead letters of the modules that misbehave, by class of reason
	forged    int            // dead letters of the orders topic with that reason, after the redrive
	redriven  int
	leaked    int // messages that modules which failed have published
	entries   map[string]int
}

// read reads everything back.
func (t *tale) read(ctx context.Context) (found, error) {
	f := found{dead: map[string]int{}, redriven: t.redriven}
	topics, err := t.host.admin.Topics(ctx, "")
	if err != nil {
		return f, fmt.Errorf("read the counts: %w", err)
	}
	for _, s := range topics {
		switch {
		case s.Topic == ordersTopic:
			f.published += int(s.Published)
			f.acked += int(s.Acked)
		case s.Topic == misbehaving.Topic:
			f.leaked += int(s.Published)
		case strings.HasPrefix(s.Topic, "misbehaving/"):
			f.published += int(s.Published)
		}
	}
	if err := t.readDead(ctx, &f); err != nil {
		return f, err
	}
	f.entries, err = t.readEntries(ctx)
	return f, err
}

// readDead counts the dead letters by their reasons.
func (t *tale) readDead(ctx context.Context, f *found) error {
	for _, m := range t.mods {
		list, err := t.host.admin.DeadLetters(ctx, tenant, topicOf(m), wire.Filter{})
		if err != nil {
			return fmt.Errorf("read the dead letters of %s: %w", topicOf(m), err)
		}
		for _, d := range list {
			f.dead[reasonClass(d.Reason)]++
		}
	}
	list, err := t.host.admin.DeadLetters(ctx, tenant, ordersTopic, wire.Filter{Reason: forgedReason})
	if err != nil {
		return fmt.Errorf("read the dead letters of %s: %w", ordersTopic, err)
	}
	f.forged = len(list)
	return nil
}

// readEntries reads the last topic and counts each id that its payloads carry.
func (t *tale) readEntries(ctx context.Context) (map[string]int, error) {
	const page = 1000
	ids := map[string]int{}
	after := uint64(0)
	for {
		got, err := t.host.admin.Peek(ctx, tenant, entriesTopic, after, page)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", entriesTopic, err)
		}
		for _, p := range got {
			var e struct{ ID string }
			if err := json.Unmarshal(p.Message.DataBase64, &e); err != nil {
				return nil, fmt.Errorf("read an entry of %s: %w", entriesTopic, err)
			}
			ids[e.ID]++
			after = p.Position
		}
		if len(got) == 0 {
			return ids, nil
		}
	}
}

// checks compares what was found with what must be.
func (f found) checks(in input, mods []misbehaving.Module, sent int) []check {
	want := in.entries()
	lost, strange, twice := 0, 0, 0
	for id := range want {
		if f.entries[id] == 0 {
			lost++
		}
	}
	for id, n := range f.entries {
		if !want[id] {
			strange++
		}
		twice += n - 1
	}
	out := []check{
		{"messages published", "published", f.published, sent + 1}, // and the forged one
		{"orders done", "acked", f.acked, in.orders},
		{"entries that came out of the second topic", "chained", len(f.entries), len(want)},
	}
	dead := expectedDead(mods)
	for _, class := range slices.Sorted(maps.Keys(dead)) {
		out = append(out, check{"dead letters: " + class, deadFigure(class), f.dead[class], dead[class]})
	}
	return append(out,
		check{"dead letters: " + forgedReason, deadFigure(forgedReason), f.forged, 1},
		check{"orders redriven after the limit was corrected", "redriven", f.redriven, bigOrders},
		check{"messages published by guests that then failed", "", f.leaked, 0},
		check{"entries that nobody ordered", "", strange, 0},
		check{"lost", "lost", lost, 0},
		check{"duplicated", "duplicated", twice, 0},
	)
}

func deadFigure(class string) string {
	return "dead_letters_" + strings.ReplaceAll(class, "-", "_")
}

// figures picks those that the demo reports, in their order.
func figures(checks []check) []Figure {
	var out []Figure
	for _, name := range []string{
		"published", "acked", "chained", "dead_letters_out_of_fuel", "dead_letters_timeout", "dead_letters_out_of_memory",
		"dead_letters_guest_trap", "dead_letters_context_forged", "redriven", "lost", "duplicated",
	} {
		for _, c := range checks {
			if c.figure == name {
				out = append(out, Figure{name, c.got})
			}
		}
	}
	return out
}
