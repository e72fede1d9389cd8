package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/longshore/longshore/runtime/internal/meter"
	"github.com/longshore/longshore/wasi/messaging"
)

// Module is a compiled consumer, with the instances that its messages run in. It is safe for concurrent use.
type Module struct {
	engine    *Engine
	runtime   *sharedRuntime
	compiled  wazero.CompiledModule
	binding   *messaging.Binding
	info      meter.Info
	digest    string
	instances Instances
	budget    *Budget
	warmUp    string // export that warms it up
	snapshot  *snapshot
	pool      pool

	// inUse is held for reading by calls, so that Close waits for them.
	inUse  sync.RWMutex
	closed bool
}

// Digest returns the SHA-256 of the module's original bytes, in hex.
func (m *Module) Digest() string { return m.digest }

// Batches says whether the module's handler takes several messages in one call: whether CallOptions.More may be set.
func (m *Module) Batches() bool { return m.binding.Batches() }

// bind checks and provides what the module imports, and finds its handler. What it made is freed with the module.
func (m *Module) bind(ctx context.Context, o messaging.BindOptions) (err error) {
	o.Served = []string{moduleWASI, meter.ImportModule}
	if m.binding, err = messaging.Bind(ctx, m.runtime, m.compiled, o); err != nil {
		return errors.Join(err, checkWASI(m.compiled))
	}
	return checkWASI(m.compiled)
}

// Close waits for the calls in flight, then frees the module and its instances. Later calls end as ModuleFault.
func (m *Module) Close(ctx context.Context) error {
	m.inUse.Lock()
	defer m.inUse.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	m.engine.forget(m)
	return m.free(ctx)
}

// free gives back what the module holds; nobody uses it any more.
func (m *Module) free(ctx context.Context) error {
	m.closeIdle(ctx, time.Now())
	m.budget.remove(m)
	var err error
	if m.snapshot != nil {
		err = m.snapshot.memory.Close()
	}
	if m.binding != nil {
		err = errors.Join(err, m.binding.Close(ctx))
	}
	return errors.Join(err, m.compiled.Close(ctx), m.engine.giveRuntimeBack(ctx, m.runtime))
}

// Invoke handles the call's messages in an instance that nothing of another call is in, unless Instances.Reuse asks for
// that, within the call's limits. Cancelling ctx ends it at its next safe point, as Interrupted. It may be called from many
// goroutines, each with a Call of its own.
func (m *Module) Invoke(ctx context.Context, call *messaging.Call) Outcome {
	started := time.Now()
	r := &run{module: m, call: call}
	err := r.handle(ctx)
	if err == nil {
		err = r.fuel.check(r.fuelUsed) // what was used after the last safe point counts too
	}
	o := r.outcome(err)
	o.HostCalls = call.HostCalls()
	o.Wall = time.Since(started) - call.Paused()
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

// handle takes an instance, hands it the messages, and gives it back. A panic of the host's own code becomes an error.
func (r *run) handle(ctx context.Context) (err error) {
	defer recoverTo(&err)
	defer r.call.FlushLog()
	m := r.module
	m.inUse.RLock()
	defer m.inUse.RUnlock()
	if m.closed {
		return &faultError{fmt.Errorf("module %s: %w", m.digest, errClosed)}
	}
	ctx = r.start(ctx, r.call.Limits().Fuel)
	in, err := m.takeInstance(ctx)
	if err != nil {
		return &faultError{err}
	}
	healthy := false // also if a panic gets through
	defer func() {
		r.note(in.controls, in.module)
		m.giveBack(ctx, in, healthy)
	}()
	if err := r.call.Check(ctx); err != nil {
		healthy = true
		return err // making the instance took all the time
	}
	in.messages++
	r.fuel.memory = in.memory
	r.answers, r.refused, err = r.call.Handle(ctx, in.guest)
	if err == nil && !time.Now().Before(r.call.Deadline()) {
		return messaging.ErrTimeout // after the last safe point
	}
	healthy = err == nil
	return err
}

// start begins the call's time and fuel, and returns the context in which its guest functions run.
func (r *run) start(ctx context.Context, fuelLimit int64) context.Context {
	r.fuel = newFuel(r.call, fuelLimit)
	return &guestContext{r.call.Start(ctx, r.module.binding), r.fuel}
}

// note reads what an instance used. The guest has returned: nothing runs in it.
func (r *run) note(c controls, instance api.Module) {
	r.fuelUsed = r.fuel.used(meter.Fuel(c.fuel.Get()))
	r.memoryRefused = c.memoryFailed.Get() != 0
	r.memoryBytes = int64(instance.Memory().Size())
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
