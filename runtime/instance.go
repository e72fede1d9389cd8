package runtime

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/longshore/longshore/runtime/internal/meter"
)

// snapshot is the state of a module after its initialisation: what a new instance must hold to be ready for a message.
// It is never changed once taken.
type snapshot struct {
	memoryPages uint32
	memory      []chunk  // what isn't zero, in order
	globals     []uint64 // of snapshotGlobals
}

// chunk is a piece of memory.
type chunk struct {
	offset uint32
	bytes  []byte
}

// chunkBytes is the grain at which zero memory is left out of a snapshot: a page of most processors.
const chunkBytes = 4096

// newInstance returns an instance that is ready for a message: a copy of the snapshot, or, if copying can't be faithful,
// one that was initialised just now.
func (m *Module) newInstance(ctx context.Context) (api.Module, error) {
	if m.snapshot == nil {
		return m.initialInstance(ctx)
	}
	instance, err := m.bareInstance(withMemoryFor(ctx, uint64(m.snapshot.memoryPages)*pageBytes))
	if err != nil {
		return nil, err
	}
	if err := m.snapshot.restore(instance, m.info); err != nil {
		closeInstance(ctx, instance)
		return nil, err
	}
	return instance, nil
}

// initialInstance returns an instance whose data is written and whose start functions ran.
func (m *Module) initialInstance(ctx context.Context) (api.Module, error) {
	instance, err := m.bareInstance(ctx)
	if err != nil {
		return nil, err
	}
	if err := m.initInstance(ctx, instance); err != nil {
		closeInstance(ctx, instance)
		return nil, err
	}
	return instance, nil
}

// bareInstance returns an instance without data, in which no guest code ran.
func (m *Module) bareInstance(ctx context.Context) (api.Module, error) {
	// Nothing reads the random source, but wazero would seed one of its own, which takes longer than all the rest.
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(rand.Reader)
	instance, err := m.runtime.InstantiateModule(m.binding.Context(ctx), m.compiled, config)
	if err != nil {
		return nil, fmt.Errorf("instantiating: %w", err)
	}
	return instance, nil
}

// closeInstance throws an instance away, in which nothing may run any more.
func closeInstance(ctx context.Context, instance api.Module) {
	// It has no files or sockets, whose closing alone could fail.
	_ = instance.Close(ctx)
}

// initInstance writes the data of a bare instance and runs its start functions.
func (m *Module) initInstance(ctx context.Context, instance api.Module) error {
	for i, s := range m.info.DataSegments {
		if !instance.Memory().Write(s.Offset, s.Bytes) {
			return fmt.Errorf("data segment %d (%d bytes at %d) is outside of memory", i, len(s.Bytes), s.Offset)
		}
	}
	starts := []string{m.info.StartExport, m.binding.Initialize()}
	for _, name := range starts {
		if name == "" {
			continue
		}
		f := instance.ExportedFunction(name)
		if f == nil {
			continue // _initialize is optional
		}
		if _, err := f.Call(ctx); err != nil {
			return fmt.Errorf("start function: %w", err)
		}
	}
	return nil
}

// takeSnapshot copies the state of an instance.
func takeSnapshot(instance api.Module, info meter.Info) *snapshot {
	memory := instance.Memory()
	s := &snapshot{memoryPages: memory.Size() / pageBytes}
	all, _ := memory.Read(0, memory.Size())
	zero := make([]byte, chunkBytes)
	for at := 0; at < len(all); at += chunkBytes {
		page := all[at : at+chunkBytes]
		if bytes.Equal(page, zero) {
			continue
		}
		if n := len(s.memory); n > 0 && int(s.memory[n-1].offset)+len(s.memory[n-1].bytes) == at {
			s.memory[n-1].bytes = append(s.memory[n-1].bytes, page...)
			continue
		}
		s.memory = append(s.memory, chunk{offset: uint32(at), bytes: bytes.Clone(page)})
	}
	for _, name := range snapshotGlobals(info) {
		s.globals = append(s.globals, instance.ExportedGlobal(name).Get())
	}
	return s
}

// restore gives a bare instance the state of the snapshot.
func (s *snapshot) restore(instance api.Module, info meter.Info) error {
	memory := instance.Memory()
	if has := memory.Size() / pageBytes; has < s.memoryPages {
		if _, ok := memory.Grow(s.memoryPages - has); !ok {
			return fmt.Errorf("memory can't grow to the %d pages that it had after initialisation", s.memoryPages)
		}
	}
	for _, c := range s.memory {
		memory.Write(c.offset, c.bytes)
	}
	for i, name := range snapshotGlobals(info) {
		g, ok := instance.ExportedGlobal(name).(api.MutableGlobal)
		if !ok {
			return fmt.Errorf("global %q can't be set", name)
		}
		g.Set(s.globals[i])
	}
	return nil
}

// snapshotGlobals names the mutable globals of the module itself. Those of the metering are new in every instance.
func snapshotGlobals(info meter.Info) []string {
	var names []string
	for _, name := range info.Globals {
		if name != info.FuelGlobal && name != info.DepthGlobal && name != info.MemoryFailedGlobal {
			names = append(names, name)
		}
	}
	return names
}
