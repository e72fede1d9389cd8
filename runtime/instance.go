package runtime

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/longshore/longshore/runtime/internal/cow"
	"github.com/longshore/longshore/runtime/internal/meter"
	"github.com/longshore/longshore/wasi/messaging"
)

// instance is a place for one message after another: a memory, and the wazero instance on it. One goroutine has it at a
// time: that of the call which runs in it, or whoever took it out of the pool.
type instance struct {
	memory   cow.Memory
	module   api.Module // nil if the next message needs a new one
	guest    *messaging.Instance
	controls controls
	globals  []api.MutableGlobal // in the order of Info.Globals

	made      time.Time
	messages  int64     // begun
	idleSince time.Time // while it is in the pool
	trimmed   bool      // since then
}

// controls are the globals of the metering, which tell what a call used.
type controls struct{ fuel, memoryFailed api.Global }

func newControls(module api.Module, info meter.Info) controls {
	return controls{module.ExportedGlobal(info.FuelGlobal), module.ExportedGlobal(info.MemoryFailedGlobal)}
}

// newInstance returns an instance that is ready for a message.
func (m *Module) newInstance(ctx context.Context) (*instance, error) {
	m.budget.make(ctx, m)
	memory, err := withRoom(ctx, m, func() (cow.Memory, error) { return m.snapshot.memory.Memory(uint64(m.info.MemoryMax)) })
	if err != nil {
		m.budget.instances.Add(-1)
		return nil, err
	}
	m.engine.instances.Add(1)
	in := &instance{memory: memory, made: time.Now()}
	if err := m.instantiate(ctx, in); err != nil {
		return nil, errors.Join(err, m.throwAway(ctx, in))
	}
	return in, nil
}

// instantiate puts a wazero instance with the state of the snapshot on a memory that holds the image.
func (m *Module) instantiate(ctx context.Context, in *instance) error {
	module, err := m.bareInstance(ctx, in.memory)
	if err != nil {
		return err
	}
	in.module, in.guest, in.controls = module, m.binding.NewInstance(module), newControls(module, m.info)
	in.globals = in.globals[:0]
	for _, name := range m.info.Globals {
		g, ok := module.ExportedGlobal(name).(api.MutableGlobal)
		if !ok {
			return fmt.Errorf("global %q can't be set", name)
		}
		in.globals = append(in.globals, g)
	}
	memory := module.Memory()
	if has := uint64(memory.Size()); has < m.snapshot.memoryBytes {
		if _, ok := memory.Grow(uint32((m.snapshot.memoryBytes - has) / pageBytes)); !ok {
			return fmt.Errorf("memory can't grow to the %d bytes that it had after initialisation", m.snapshot.memoryBytes)
		}
	}
	in.restoreGlobals(m)
	return nil
}

// bareInstance returns a wazero instance on a memory, in which no guest code ran.
func (m *Module) bareInstance(ctx context.Context, memory cow.Memory) (api.Module, error) {
	// Nothing reads the random source, but wazero would seed one of its own, which takes longer than all the rest.
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(rand.Reader)
	instance, err := m.runtime.InstantiateModule(m.binding.Context(withMemory(ctx, memory)), m.compiled, config)
	if err != nil {
		return nil, fmt.Errorf("instantiating: %w", err)
	}
	return instance, nil
}

// restoreGlobals gives every mutable global the value of the snapshot.
func (in *instance) restoreGlobals(m *Module) {
	for i, g := range in.globals {
		g.Set(m.snapshot.globals[i])
	}
}

// restoreControls gives those globals the value of the snapshot that a call counts with.
func (in *instance) restoreControls(m *Module) {
	for i, name := range m.info.Globals {
		switch name {
		case m.info.FuelGlobal, m.info.MemoryFailedGlobal:
			in.globals[i].Set(m.snapshot.globals[i])
		}
	}
}

// reset gives an instance the state of the snapshot again, on the goroutine that ran the message. Where that can't be
// done, because the module changes what a snapshot doesn't hold, or because its memory has grown to its maximum and so
// can't be made smaller, the next message gets a new wazero instance on the same memory.
func (in *instance) reset(ctx context.Context, m *Module) error {
	if _, err := in.memory.Reset(); err != nil {
		return err
	}
	if !m.info.FaithfulReset || !in.shrink(m.snapshot.memoryBytes) {
		in.closeModule(ctx)
		return nil
	}
	in.restoreGlobals(m)
	return nil
}

// shrink makes the memory as small as it was, and reports whether that could be done: wazero takes a new size only from
// one that grows.
func (in *instance) shrink(bytes uint64) bool {
	memory := in.module.Memory()
	if uint64(memory.Size()) == bytes {
		return true
	}
	in.memory.Publish(bytes)
	_, ok := memory.Grow(1)
	in.memory.Publish(0)
	return ok
}

// close gives the instance back. Nothing may run in it, or use its memory, any more.
func (in *instance) close(ctx context.Context) error {
	in.closeModule(ctx)
	return in.memory.Close()
}

func (in *instance) closeModule(ctx context.Context) {
	if in.module != nil {
		closeInstance(ctx, in.module)
	}
	in.module, in.guest, in.controls = nil, nil, controls{}
	clear(in.globals)
}

// closeInstance throws a wazero instance away, in which nothing may run any more.
func closeInstance(ctx context.Context, instance api.Module) {
	// It has no files or sockets, whose closing alone could fail.
	_ = instance.Close(ctx)
}
