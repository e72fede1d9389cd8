package dispatcher

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// BenchmarkDeliver measures a message from claim to settlement on a log on disk, at several concurrencies: with a guest
// that does nothing, and with a module that publishes one message for each.
func BenchmarkDeliver(b *testing.B) {
	for _, concurrency := range []int{1, 64} {
		b.Run(fmt.Sprintf("Nothing/%d", concurrency), func(b *testing.B) {
			benchmark(b, concurrency, func(*house) Guest { return ends(ok()) })
		})
		b.Run(fmt.Sprintf("Relay/%d", concurrency), func(b *testing.B) {
			benchmark(b, concurrency, func(h *house) Guest { return h.module("relay", relay(), limits.DefaultGuest()) })
		})
	}
}

func benchmark(b *testing.B, concurrency int, guest func(*house) Guest) {
	b.Helper()
	h := newHouse(b)
	var left atomic.Int64
	left.Store(int64(b.N))
	done := make(chan struct{})
	c := realConsumer("c", topic, counted{guest(h), func() {
		if left.Add(-1) == 0 {
			close(done)
		}
	}})
	c.Concurrency = concurrency
	for n := b.N; n > 0; n -= 500 {
		batch := make([]substrate.Message, min(n, 500))
		for i := range batch {
			batch[i] = sealed(b, h.context, substrate.Message{ID: h.log.MintID(), Tenant: tenant, Topic: topic, Payload: []byte("payload")})
		}
		_, err := h.log.Publish(b.Context(), batch...)
		require.NoError(b, err)
	}
	d, err := New(Options{Queue: h.log, Context: h.context, Consumers: []Consumer{c}, Grace: limits.GraceDuration})
	require.NoError(b, err)
	b.ResetTimer()
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	<-done
	cancel()
	require.NoError(b, <-ended)
}

// counted tells when a guest was called.
type counted struct {
	Guest
	called func()
}

func (c counted) Invoke(ctx context.Context, call *messaging.Call) runtime.Outcome {
	defer c.called()
	return c.Guest.Invoke(ctx, call)
}
