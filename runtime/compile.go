package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime/internal/meter"
)

// pageBytes is the size of a page of linear memory. maxPages is the most pages that a guest may have: one less than
// WebAssembly's own limit, so that sizes in bytes fit 32 bits.
const (
	pageBytes = 64 * limits.KiB
	maxPages  = 1<<16 - 1
)

// Stage is a step of Compile.
type Stage string

// The stages, in order.
const (
	StageDecode     Stage = "decode"     // not a core module within the caps, or it can't be metered
	StageCompile    Stage = "compile"    // not valid WebAssembly
	StageInterface  Stage = "interface"  // imports or exports that don't fit
	StageInitialise Stage = "initialise" // its own initialisation failed
)

// ModuleError says why a module was refused, and at which stage.
type ModuleError struct {
	Module string // the name given to Compile
	Stage  Stage
	Err    error
}

// Error implements error.
func (e *ModuleError) Error() string {
	return fmt.Sprintf("module %s: %s: %v", e.Module, e.Stage, e.Err)
}

// Unwrap returns the cause.
func (e *ModuleError) Unwrap() error { return e.Err }

// Compile makes a module ready for Invoke, under the bounds of g. name stands for the module in errors. The error is a
// *ModuleError, unless the engine is closed or fails, or ctx ends before the module is ready. Without Options.Compiler,
// compiling can't be cancelled. Every message gets a clean instance.
func (e *Engine) Compile(ctx context.Context, name string, wasm []byte, g limits.Guest) (*Module, error) {
	return e.CompileFor(ctx, name, wasm, g, Instances{})
}

// CompileFor is Compile for a module whose instances are kept as o says.
func (e *Engine) CompileFor(ctx context.Context, name string, wasm []byte, g limits.Guest, o Instances) (*Module, error) {
	return e.CompileWithin(ctx, name, wasm, g, o, Within{})
}

// Within bounds what whoever a module belongs to may take of the host. The zero value adds no bound.
type Within struct {
	Budget     *Budget       // of instances, shared with other modules; nil = none
	CompileCPU time.Duration // that Options.Compiler may take for the module, in whole seconds; 0 = limits.CompileCPU
}

// CompileWithin is CompileFor for a module of somebody who may not take all of the host.
func (e *Engine) CompileWithin(ctx context.Context, name string, wasm []byte, g limits.Guest, o Instances, w Within) (*Module, error) {
	if w.Budget == nil {
		w.Budget = NewBudget(0)
	}
	e.inUse.RLock()
	defer e.inUse.RUnlock()
	refused := func(s Stage, err error) error { return &ModuleError{Module: name, Stage: s, Err: err} }

	core, binding, err := coreOf(wasm)
	if err != nil {
		return nil, refused(StageDecode, err)
	}
	binding.Draft = o.Draft
	pages := min(max(g.MemoryBytes, 0)/pageBytes, maxPages)
	metered, info, err := meter.Instrument(core, meter.Options{
		MemoryBytes: pages * pageBytes, TableElements: g.TableElements, CallDepth: g.CallDepth, DropInit: true,
		MergeImports: binding.Interface != "", // of a component
	})
	if err != nil {
		return nil, refused(StageDecode, err)
	}
	binding.DraftOfTypes = draftOf(wasm)
	r, err := e.takeRuntime(ctx, uint32(pages))
	if err != nil {
		return nil, fmt.Errorf("runtime: module %s: %w", name, err)
	}
	compiled, err := e.compile(ctx, r, metered, w.CompileCPU)
	if err != nil {
		err = errors.Join(err, e.giveRuntimeBack(context.WithoutCancel(ctx), r))
	}
	var fault *hostFault
	if errors.As(err, &fault) {
		return nil, fmt.Errorf("runtime: module %s: %w", name, fault)
	}
	if err != nil {
		return nil, refused(StageCompile, err)
	}
	m := &Module{engine: e, runtime: r, compiled: compiled, info: info, digest: digest(wasm), instances: o.withDefaults(), budget: w.Budget}
	w.Budget.add(m)
	if err := errors.Join(m.bind(ctx, binding), m.checkWarmUp(o.WarmUp)); err != nil {
		return nil, refused(StageInterface, errors.Join(err, m.free(ctx)))
	}
	if err := m.initialise(ctx, g); err != nil {
		err = errors.Join(err, m.free(ctx))
		if errors.As(err, &fault) {
			return nil, fmt.Errorf("runtime: module %s: %w", name, err)
		}
		return nil, refused(StageInitialise, err)
	}
	e.remember(m)
	return m, nil
}

// compile compiles a metered module for r, or loads the code that it was compiled to before. It returns a *hostFault for
// what isn't the module's fault. cpu is as in Within.
func (e *Engine) compile(ctx context.Context, r wazero.Runtime, metered []byte, cpu time.Duration) (wazero.CompiledModule, error) {
	if e.code != nil {
		if err := e.code.ready(ctx, metered, cpu); err != nil {
			return nil, err
		}
	}
	return compileModule(ctx, r, metered)
}

// compileModule is wazero's, with a panic as an error: what it compiles is a guest's idea.
func compileModule(ctx context.Context, r wazero.Runtime, wasm []byte) (c wazero.CompiledModule, err error) {
	defer recoverTo(&err)
	return r.CompileModule(ctx, wasm)
}

func digest(wasm []byte) string {
	sum := sha256.Sum256(wasm)
	return hex.EncodeToString(sum[:])
}
