package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

// batches runs testdata/batch.c as the program runs guests, within the same bounds.
type batches struct {
	engine *runtime.Engine
	module *runtime.Module
	bounds limits.Guest
}

func newBatches(ctx context.Context) (*batches, error) {
	wasm, err := build(ctx, "batch.c")
	if err != nil {
		return nil, err
	}
	b := &batches{bounds: limits.DefaultGuest()}
	if b.engine, err = runtime.New(ctx, runtime.Options{}); err != nil {
		return nil, err
	}
	if b.module, err = b.engine.Compile(ctx, "batch", wasm, b.bounds); err != nil {
		return nil, errors.Join(err, b.engine.Close(ctx))
	}
	return b, nil
}

// id is that of every message: as long as the host's are.
const id = "1796008197481-0000000000000000"

// publish has the guest publish n batches.
func (b *batches) publish(ctx context.Context, n int) error {
	call := messaging.NewCall(messaging.CallOptions{
		Message: messaging.Message{Data: make([]byte, n)}, Limits: b.bounds,
		Admit: func(string, messaging.Message) (messaging.Admission, *messaging.PublishError) {
			return messaging.Admission{ID: id}, nil
		},
	})
	o := b.module.Invoke(ctx, call)
	if o.Class != runtime.OK {
		return fmt.Errorf("%s: %s: %w", o.Reason(), o.GuestText, o.Err)
	}
	if got := len(call.Outbox()); got != n*perBatch {
		return fmt.Errorf("%d messages in the outbox: want %d", got, n*perBatch)
	}
	return nil
}

// profile writes a CPU profile of some seconds of batches to a file.
func (b *batches) profile(ctx context.Context, file string) error {
	return figures.Profile(file, func() error {
		for start := time.Now(); time.Since(start) < 5*time.Second; {
			if err := b.publish(ctx, 1); err != nil {
				return err
			}
		}
		return nil
	})
}
