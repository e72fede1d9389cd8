package main

import (
	"context"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
)

// path measures the path of a message, beside the guest's own time and beside the peer.
func (b *bench) path(ctx context.Context) error {
	for _, l := range languages() {
		n := b.messages[l]
		one, many := guest{l, consumer}, guest{l, batch}
		fresh := max(n/40, 64)
		if l == inC {
			fresh = n / 4
		}
		limited, free := plugins{l, true}, plugins{l, false}
		costs, err := interleaved(
			b.rounds,
			b.drained(ctx, one, n),
			b.handled(ctx, one, b.host.warm[one], n, 1),
			b.handled(ctx, one, b.host.clean[one], n, 1),
			b.drained(ctx, many, n),
			b.handled(ctx, many, b.host.warm[many], n, limits.CallMessages),
			b.peerDrained(ctx, instances{limited, true, 1}, fresh),
			b.peerDrained(ctx, instances{limited, true, 2}, fresh),
			b.peerDrained(ctx, instances{limited, false, 1}, n),
			b.peerDrained(ctx, instances{limited, false, 2}, n),
			b.peerDrained(ctx, instances{free, false, 1}, n),
			b.peerDrained(ctx, instances{free, false, 2}, n),
		)
		if err != nil {
			return err
		}
		for i, name := range []string{"path", "guest", "clean", "path64", "guest64", "fresh1", "fresh2", "reused1", "reused2", "free1", "free2"} {
			m := costs[i].median()
			note("%s %s: %.2f µs wall, %.2f µs cpu", l, name, m.wall, m.processor)
		}
		o1, o64 := costs[0].less(costs[1]).median(), costs[3].less(costs[4]).median()
		note("%s overhead %.2f/%.2f; batch %.2f/%.2f", l, o1.wall, o1.processor, o64.wall, o64.processor)
	}
	return nil
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

// handled measures the guest's own time for n orders.
func (b *bench) handled(ctx context.Context, g guest, m *runtime.Module, n, together int) func() (cost, error) {
	n -= n % together
	return func() (cost, error) {
		quiet()
		return measured(n, func() error { return b.host.own(ctx, g, m, n, together) })
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
