package main

import (
	"context"
	"fmt"

	"github.com/longshore/longshore/bench/internal/figures"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/signedctx"
)

// path measures the path of a message, beside the guest's own time and beside the peer.
func (b *bench) path(ctx context.Context) error {
	worst := map[string]float64{}
	for _, l := range languages() {
		r, err := b.pathOf(ctx, l)
		if err != nil {
			return fmt.Errorf("guests in %s: %w", l, err)
		}
		for _, f := range r {
			figures.Print(f.name+"_"+string(l), f.value)
			if w, again := worst[f.name]; again {
				f.value = f.worse(w, f.value)
			}
			worst[f.name] = f.value
		}
		if l == languages()[len(languages())-1] {
			for _, f := range r {
				figures.Print(f.name, worst[f.name])
			}
		}
	}
	return nil
}

// result is a figure of one guest, and which of two counts: the larger, or the smaller.
type result struct {
	name  string
	value float64
	worse func(a, b float64) float64
}

func largest(a, b float64) float64  { return max(a, b) }
func smallest(a, b float64) float64 { return min(a, b) }

// contestants are what is measured in turn, by name.
type contestants struct {
	names []string
	jobs  []func() (cost, error)
}

func (c *contestants) add(name string, job func() (cost, error)) {
	c.names, c.jobs = append(c.names, name), append(c.jobs, job)
}

// pathOf measures one guest.
func (b *bench) pathOf(ctx context.Context, l language) ([]result, error) {
	n := b.messages[l]
	one, many := guest{l, consumer}, guest{l, batch}
	var c contestants
	c.add("one by one", b.drained(ctx, one, n))
	c.add("the guest alone", b.handled(ctx, b.host.warm[one], n, 1))
	c.add("clean instances alone", b.handled(ctx, b.host.clean[one], n, 1))
	c.add("in batches", b.drained(ctx, many, n))
	c.add("the guest alone, in batches", b.handled(ctx, b.host.warm[many], n, limits.CallMessages))
	c.add("published and handled", b.whole(ctx, one, n))
	c.add("contexts", b.contexts(n))
	for _, i := range b.peers(l) {
		c.add(i.String(), b.peerDrained(ctx, i, i.messages(n)))
	}
	measures, err := interleaved(b.rounds, c.jobs...)
	if err != nil {
		return nil, err
	}
	by := map[string]costs{}
	for i, name := range c.names {
		by[name] = measures[i]
		m := measures[i].median()
		figures.Note("%s: %-36s %8.2f µs a message, %8.2f of processors", l, name, m.wall, m.processor)
	}
	path, guestAlone := measures[0], measures[1]
	overhead, batched := path.less(guestAlone).median(), measures[3].less(measures[4]).median()
	fresh, reused, free := best(by, b.peers(l), path)
	return []result{
		{"e2e_overhead_us_per_message", overhead.wall, largest},
		{"e2e_overhead_us_per_message_batch64", batched.wall, largest},
		{"e2e_overhead_processor_us_per_message", overhead.processor, largest},
		{"e2e_vs_jetstream_extism", fresh, smallest},
		{"e2e_vs_jetstream_extism_reused", reused, smallest},
		{"e2e_vs_jetstream_extism_reused_without_limits", free, smallest},
		{"context_share", measures[6].over(measures[5]), largest},
	}, nil
}

// best returns by how much the path is faster than the fastest of the peer's ways: with new instances, with one that is kept,
// and with one that is kept and has no limits.
func best(by map[string]costs, ways []instances, path costs) (fresh, reused, free float64) {
	faster := func(is func(instances) bool) float64 {
		least := 0.0
		for _, i := range ways {
			if r := by[i.String()].over(path); is(i) && (least == 0 || r < least) {
				least = r
			}
		}
		return least
	}
	fresh = faster(func(i instances) bool { return i.fresh })
	reused = faster(func(i instances) bool { return !i.fresh && i.plugins.limited })
	free = faster(func(i instances) bool { return !i.fresh && !i.plugins.limited })
	return fresh, reused, free
}

// peers are the peer's ways: the faster one of one worker and of two counts.
func (b *bench) peers(l language) (ways []instances) {
	for _, workers := range []int{1, 2} {
		ways = append(ways, instances{plugins{l, true}, true, workers}, instances{plugins{l, true}, false, workers},
			instances{plugins{l, false}, false, workers})
	}
	return ways
}

// drained measures n orders that the host handles.
func (b *bench) drained(ctx context.Context, g guest, n int) func() (cost, error) {
	return func() (cost, error) {
		if err := b.host.publish(ctx, n); err != nil {
			return cost{}, err
		}
		quiet()
		return measured(n, func() error { return b.host.drain(ctx, g, n) })
	}
}

// whole measures n orders from their sealing on.
func (b *bench) whole(ctx context.Context, g guest, n int) func() (cost, error) {
	return func() (cost, error) {
		quiet()
		return measured(n, func() error {
			if err := b.host.publish(ctx, n); err != nil {
				return err
			}
			return b.host.drain(ctx, g, n)
		})
	}
}

// contexts measures for n orders what the path does with contexts: it seals the order, verifies it, and seals the answer. Ids,
// which a message has without a context as well, and the answers are made before.
func (b *bench) contexts(n int) func() (cost, error) {
	return func() (cost, error) {
		ids, answers := make([]string, 2*n), make([][]byte, n)
		for i := range n {
			ids[2*i], ids[2*i+1], answers[i] = b.host.log.MintID(), b.host.log.MintID(), []byte(answer(i))
		}
		return measured(n, func() error {
			for i := range n {
				if err := b.host.contextsOf(ids[2*i:], b.host.orders[i], answers[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// contextsOf does what the path does with the contexts of one order and its answer, which have the first two of ids.
func (h *host) contextsOf(ids []string, order, answer []byte) error {
	m := message(ids[0], ordersTopic, order)
	if err := h.seal(producer(), &m); err != nil {
		return err
	}
	if _, err := h.context.Verify(m.Envelope, dispatcher.Binding(m)); err != nil {
		return err
	}
	answered := message(ids[1], pricedTopic, answer)
	return h.seal(signedctx.Principal{Tenant: tenant, Subject: "consumer:c"}, &answered)
}

// handled measures n orders that a module handles without a dispatcher, so many a call.
func (b *bench) handled(ctx context.Context, m *runtime.Module, n, together int) func() (cost, error) {
	n -= n % together
	return func() (cost, error) {
		quiet()
		return measured(n, func() error { return b.host.own(ctx, m, n, together) })
	}
}

// peerDrained measures n orders that the peer handles.
func (b *bench) peerDrained(ctx context.Context, i instances, n int) func() (cost, error) {
	return func() (cost, error) {
		if err := b.peer.publish(ctx, n); err != nil {
			return cost{}, err
		}
		quiet()
		return measured(n, func() error { return b.peer.drain(ctx, i, n) })
	}
}
