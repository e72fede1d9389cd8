package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime/internal/meter"
	"github.com/longshore/longshore/wasi/messaging"
)

// Module is a compiled consumer. It is safe for concurrent use.
type Module struct {
	engine   *Engine
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	binding  *messaging.Binding
	info     meter.Info
	digest   string
	snapshot *snapshot // state after initialisation; nil if each message must initialise anew

	// inUse is held for reading by calls, so that Close waits for them.
	inUse  sync.RWMutex
	closed bool
}

// Digest returns the SHA-256 of the module's original bytes, in hex.
func (m *Module) Digest() string { return m.digest }

// Batches says whether the module's handler takes several messages in one call: whether CallOptions.More may be set.
func (m *Module) Batches() bool { return m.binding.Batches() }

// bind checks and provides what the module imports, and finds its handler.
func (m *Module) bind(ctx context.Context, o messaging.BindOptions) (err error) {
	o.Served = []string{moduleWASI, meter.ImportModule}
	if m.binding, err = messaging.Bind(ctx, m.runtime, m.compiled, o); err != nil {
		return errors.Join(err, checkWASI(m.compiled))
	}
	if err := checkWASI(m.compiled); err != nil {
		return errors.Join(err, m.binding.Close(ctx))
	}
	return nil
}

// Close waits for the calls in flight, then frees the module. Later calls end as ModuleFault.
func (m *Module) Close(ctx context.Context) error {
	m.inUse.Lock()
	defer m.inUse.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	return errors.Join(m.compiled.Close(ctx), m.binding.Close(ctx))
}

// Invoke handles the call's messages in a clean instance, within the call's limits. Cancelling ctx ends it at its next
// safe point, as Interrupted. It may be called from many goroutines, each with a Call of its own.
func (m *Module) Invoke(ctx context.Context, call *messaging.Call) Outcome {
	started := time.Now()
	r := &run{module: m, call: call}
	err := r.handle(ctx)
	if err == nil {
		err = r.fuel.check(r.fuelUsed) // what was used after the last safe point counts too
	}
	o := r.outcome(err)
	o.HostCalls = call.HostCalls()
	o.Wall = time.Since(started)
	return o
}

// run is one guest call on one instance.
type run struct {
	module *Module
	call   *messaging.Call
	fuel   *fuel

	answers []messaging.Answer
	refused *messaging.GuestError

	fuelUsed      int64
	memoryBytes   int64
	memoryRefused bool
}

// handle makes an instance, hands it the messages, and throws it away. A panic of the host's own code becomes an error.
func (r *run) handle(ctx context.Context) (err error) {
	defer recoverTo(&err)
	defer r.call.FlushLog()
	m := r.module
	m.engine.inUse.RLock()
	defer m.engine.inUse.RUnlock()
	m.inUse.RLock()
	defer m.inUse.RUnlock()
	if m.closed {
		return &faultError{fmt.Errorf("module %s: %w", m.digest, errClosed)}
	}
	ctx = r.start(ctx, r.call.Limits().Fuel)
	instance, err := m.newInstance(ctx)
	if err != nil {
		return &faultError{err}
	}
	defer r.discard(ctx, instance)
	if err := r.call.Check(ctx); err != nil {
		return err // making the instance took all the time
	}
	r.answers, r.refused, err = r.call.Handle(ctx, instance)
	if err == nil && !time.Now().Before(r.call.Deadline()) {
		return messaging.ErrTimeout // after the last safe point
	}
	return err
}

// start begins the call's time and fuel, and returns the context in which its guest functions run.
func (r *run) start(ctx context.Context, fuelLimit int64) context.Context {
	r.fuel = newFuel(r.call, fuelLimit)
	return context.WithValue(r.call.Start(ctx, r.module.binding), fuelKey{}, r.fuel)
}

// discard reads what the instance used, then closes it. The guest has returned: nothing runs in the instance.
func (r *run) discard(ctx context.Context, instance api.Module) {
	r.fuelUsed = r.fuel.used(int64(instance.ExportedGlobal(r.module.info.FuelGlobal).Get()))
	r.memoryRefused = instance.ExportedGlobal(r.module.info.MemoryFailedGlobal).Get() != 0
	r.memoryBytes = int64(instance.Memory().Size())
	closeInstance(ctx, instance)
}

// outcome says how the call ended.
func (r *run) outcome(err error) Outcome {
	o := Outcome{FuelUsed: r.fuelUsed, PeakMemoryBytes: r.memoryBytes}
	switch {
	case err != nil:
		o.Class, o.Detail = classify(err, r.memoryRefused)
		o.Err = &guestError{err}
	case r.refused != nil:
		o.Class, o.Detail, o.GuestText = GuestError, r.refused.Case.String(), r.refused.Text
	default:
		o.Answers = r.answers
	}
	return o
}

// initialise runs the module's initialisation on a template, and keeps the state that results. A call's bounds are not
// meant for it, but for those that are built into the module.
func (m *Module) initialise(ctx context.Context, g limits.Guest) error {
	bounds := limits.DefaultGuest()
	bounds.CallDuration, bounds.CallDepth = limits.InitDuration, g.CallDepth
	r := &run{module: m, call: messaging.NewCall(messaging.CallOptions{Limits: bounds})}
	err := r.capture(ctx)
	if err == nil {
		return nil
	}
	class, _ := classify(err, r.memoryRefused)
	return fmt.Errorf("%s: %w", class, &guestError{err})
}

// capture makes the template, initialises it, and takes the snapshot.
func (r *run) capture(ctx context.Context) (err error) {
	defer recoverTo(&err)
	ctx = r.start(ctx, limits.InitFuel)
	template, err := r.module.initialInstance(ctx)
	if err != nil {
		return err
	}
	defer r.discard(ctx, template)
	if r.module.info.FaithfulReset {
		r.module.snapshot = takeSnapshot(template, r.module.info)
	}
	return nil
}

// recoverTo turns a panic into an error.
func recoverTo(err *error) {
	switch p := recover().(type) {
	case nil:
	case error:
		*err = fmt.Errorf("panic: %w", p)
	default:
		*err = fmt.Errorf("panic: %v", p)
	}
}
