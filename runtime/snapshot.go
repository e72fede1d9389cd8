package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero/api"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime/internal/cow"
	"github.com/longshore/longshore/runtime/internal/meter"
	"github.com/longshore/longshore/wasi/messaging"
)

// snapshot is the state of a module after its initialisation: what an instance must hold to be ready for a message. It
// never changes.
type snapshot struct {
	memory      cow.Image
	memoryBytes uint64
	globals     []uint64 // of Info.Globals
}

// exportWarmUp is the name of the function that warms a module up, unless its deployer names another: () -> ().
const exportWarmUp = "longshore:guest/warm-up@0.1.0"

// errOpaqueInit refuses a module whose state can't be copied.
var errOpaqueInit = errors.New("its initialisation changes a table, drops a segment, or sets a vector or a reference: " +
	"such state can't be copied for each message; change it in the handler")

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
	var fault *hostFault
	if errors.Is(err, errOpaqueInit) || errors.As(err, &fault) {
		return err
	}
	class, _ := classify(err, r.memoryRefused)
	return fmt.Errorf("%s: %w", class, &guestError{err})
}

// capture makes the template, initialises it, and takes the snapshot.
func (r *run) capture(ctx context.Context) (err error) {
	defer recoverTo(&err)
	m := r.module
	memory, err := withRoom(ctx, m, func() (cow.Template, error) { return m.engine.memories.Template(uint64(m.info.MemoryMax)) })
	if err != nil {
		return &hostFault{err}
	}
	defer func() {
		if failed := memory.Close(); err == nil {
			err = failed
		}
	}()
	ctx = r.start(ctx, limits.InitFuel)
	template, err := m.bareInstance(ctx, memory)
	if err != nil {
		return err
	}
	defer closeInstance(ctx, template)
	fresh := readGlobals(template, m.info)
	err = m.initInstance(ctx, template)
	r.note(newControls(template, m.info), template)
	if err != nil {
		return err
	}
	return m.take(template, memory, fresh)
}

// initInstance writes the data of a bare instance, runs its start functions, and warms it up.
func (m *Module) initInstance(ctx context.Context, instance api.Module) error {
	for i, s := range m.info.DataSegments {
		if !instance.Memory().Write(s.Offset, s.Bytes) {
			return fmt.Errorf("data segment %d (%d bytes at %d) is outside of memory", i, len(s.Bytes), s.Offset)
		}
	}
	for _, step := range []struct{ export, name string }{
		{m.info.StartExport, "start function"},
		{m.binding.Initialize(), "start function"},
		{m.warmUp, "warm-up"},
	} {
		if step.export == "" {
			continue
		}
		f := instance.ExportedFunction(step.export)
		if f == nil {
			continue // all of them are optional; a warm-up that was asked for was looked for before
		}
		if _, err := f.Call(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// take makes the snapshot of an initialised template. fresh are the globals that it had before: those of the metering
// begin with them in every message.
func (m *Module) take(template api.Module, memory cow.Template, fresh []uint64) error {
	s := &snapshot{memoryBytes: uint64(template.Memory().Size()), globals: readGlobals(template, m.info)}
	for i, name := range m.info.Globals {
		switch name {
		case m.info.ChangedGlobal:
			if s.globals[i] != 0 {
				return errOpaqueInit
			}
		case m.info.FuelGlobal, m.info.MemoryFailedGlobal:
			s.globals[i] = fresh[i]
		}
	}
	var err error
	if s.memory, err = memory.Freeze(s.memoryBytes); err != nil {
		return &hostFault{err}
	}
	m.snapshot, m.info.DataSegments = s, nil
	return nil
}

func readGlobals(instance api.Module, info meter.Info) []uint64 {
	values := make([]uint64, 0, len(info.Globals))
	for _, name := range info.Globals {
		values = append(values, instance.ExportedGlobal(name).Get())
	}
	return values
}

// checkWarmUp says what is wrong with the function that warms a module up, and settles its name.
func (m *Module) checkWarmUp(asked string) error {
	m.warmUp = exportWarmUp
	if asked != "" {
		m.warmUp = asked
	}
	f, ok := m.compiled.ExportedFunctions()[m.warmUp]
	switch {
	case !ok && asked != "":
		return fmt.Errorf("no warm-up: the module doesn't export the function %.120q", asked)
	case ok && !slices.Equal(append(f.ParamTypes(), f.ResultTypes()...), nil):
		return fmt.Errorf("warm-up %.120q has parameters or results; () -> () is right", m.warmUp)
	}
	return nil
}
