package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

// own runs guests as Longshore does.
type own struct {
	engine  *runtime.Engine
	modules map[string]*runtime.Module
}

// unbounded are the bounds of calls that only time ends.
func unbounded() limits.Guest {
	g := limits.DefaultGuest()
	g.Fuel, g.HostCalls, g.CallDuration = 1<<60, 1<<60, time.Minute
	return g
}

// newOwn compiles the guests, whose instances are kept as instances says.
func newOwn(ctx context.Context, o runtime.Options, instances runtime.Instances, guests map[string][]byte) (*own, error) {
	engine, err := runtime.New(ctx, o)
	if err != nil {
		return nil, err
	}
	p := &own{engine: engine, modules: map[string]*runtime.Module{}}
	for name, wasm := range guests {
		if p.modules[name], err = engine.CompileFor(ctx, name, wasm, unbounded(), instances); err != nil {
			return nil, errors.Join(err, engine.Close(ctx))
		}
	}
	return p, nil
}

// close frees all.
func (p *own) close(ctx context.Context) error { return p.engine.Close(ctx) }

// send hands data to a guest.
func (p *own) send(ctx context.Context, guest string, data []byte, g limits.Guest) runtime.Outcome {
	call := messaging.NewCall(messaging.CallOptions{Message: messaging.Message{Data: data}, Limits: g})
	return p.modules[guest].Invoke(ctx, call)
}

// handle hands data to a guest, which must handle them.
func (p *own) handle(ctx context.Context, guest string, data []byte) (runtime.Outcome, error) {
	o := p.send(ctx, guest, data, unbounded())
	if o.Class != runtime.OK {
		return o, fmt.Errorf("guest %s: %s: %w", guest, o.Reason(), o.Err)
	}
	return o, nil
}

// forever keeps an instance for all messages.
func forever() runtime.Instances {
	return runtime.Instances{Reuse: true, MaxMessages: 1 << 60, MaxAge: 24 * time.Hour}
}

// run has a guest work, which checks what came out.
func (p *own) run(ctx context.Context, guest string, number, amount, want uint32) error {
	_, err := p.handle(ctx, guest, message(number, amount, want))
	return err
}
