package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime/internal/cow"
)

// Options configures an Engine.
type Options struct {
	// CacheDir is a folder for compiled code, which later engines load instead of compiling again. It is made if it isn't
	// there, and must be private to this user and this engine, because its content is executed. "" = code stays in memory.
	CacheDir string
	// Compiler is the command of a process that compiles one module: to it, a folder is added as the last argument, and it
	// must do nothing but ServeCompiler. It needs a CacheDir. A module that is too much for it is refused, and the host is
	// none the worse. Empty = modules are compiled in this process, without bounds but the caps on modules.
	Compiler []string
	// Interpreter runs guests without compiling them to machine code: many times slower, and with the same results and
	// the same fuel, to check the compiler by.
	Interpreter bool
}

// Engine compiles modules. It is safe for concurrent use.
type Engine struct {
	cache       wazero.CompilationCache
	code        *codeCache // nil = code stays in memory
	interpreter bool
	memories    *cow.System
	instances   atomic.Int64 // of all modules, the templates aside

	stopOnce sync.Once
	stop     chan struct{} // closed to end the sweeping
	stopped  chan struct{} // closed when it has ended

	// inUse is held for reading by whatever uses the runtimes, so that Close waits for it. Calls hold that of their module.
	inUse sync.RWMutex

	mu       sync.Mutex
	runtimes map[uint32]*sharedRuntime // by memory limit in pages, because wazero's limit is one of a runtime; nil = closed
	modules  map[*Module]struct{}      // that are open
}

// errClosed says that an engine or a module was closed.
var errClosed = errors.New("closed")

// features is the WebAssembly that modules may use, as far as runtime/internal/wasmbin lets it through.
const features = api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesExtendedConst

// New makes an engine, which must be closed.
func New(ctx context.Context, o Options) (*Engine, error) { return newEngine(ctx, o) }

// newEngine is New with the methods that may be used to clean instances; without any, the best one that works.
func newEngine(ctx context.Context, o Options, methods ...cow.Method) (*Engine, error) {
	cache, code, err := openCode(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("runtime: %w", err)
	}
	memories, err := cow.Open(methods...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("runtime: %w", err), cache.Close(ctx))
	}
	e := &Engine{
		cache: cache, code: code, interpreter: o.Interpreter, memories: memories, runtimes: map[uint32]*sharedRuntime{}, modules: map[*Module]struct{}{},
		stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	go e.sweep(context.WithoutCancel(ctx))
	return e, nil
}

// Cleaning names the way in which instances are cleaned between messages, as the package runtime/internal/cow does: the
// fastest that this system has.
func (e *Engine) Cleaning() string { return e.memories.Method().String() }

// sweep looks after the instances that are idle, until the engine is closed.
func (e *Engine) sweep(ctx context.Context) {
	defer close(e.stopped)
	t := time.NewTicker(limits.InstanceSweep)
	defer t.Stop()
	for {
		select {
		case <-e.stop:
			return
		case now := <-t.C:
			for _, m := range e.open() {
				m.sweep(ctx, now)
			}
		}
	}
}

// open returns the modules that are open.
func (e *Engine) open() []*Module {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.modules))
}

func (e *Engine) forget(m *Module) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.modules, m)
}

// remember makes Close close m too.
func (e *Engine) remember(m *Module) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.modules[m] = struct{}{}
}

// openCode opens what keeps compiled code: memory, or a folder.
func openCode(ctx context.Context, o Options) (wazero.CompilationCache, *codeCache, error) {
	if o.Interpreter && (o.CacheDir != "" || len(o.Compiler) > 0) {
		return nil, nil, errors.New("an interpreter has no code to keep")
	}
	if o.CacheDir == "" {
		if len(o.Compiler) > 0 {
			return nil, nil, errors.New("a compiler needs a folder for its code")
		}
		return wazero.NewCompilationCache(), nil, nil
	}
	compile := compileHere
	if len(o.Compiler) > 0 {
		compile = compileElsewhere(o.Compiler, defaultCompilerBounds())
	}
	code, err := openCodeCache(ctx, o.CacheDir, compile)
	if err != nil {
		return nil, nil, fmt.Errorf("folder of compiled code: %w", err)
	}
	cache, err := wazero.NewCompilationCacheWithDir(o.CacheDir)
	if err != nil {
		return nil, nil, fmt.Errorf("folder of compiled code: %w", err)
	}
	return cache, code, nil
}

// Close waits for the calls in flight, then frees all modules. Closing twice is harmless.
func (e *Engine) Close(ctx context.Context) error {
	e.stopOnce.Do(func() { close(e.stop) })
	<-e.stopped
	e.inUse.Lock()
	defer e.inUse.Unlock()
	var errs []error
	for _, m := range e.open() {
		errs = append(errs, m.Close(ctx))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.runtimes == nil {
		return nil
	}
	for _, r := range e.runtimes {
		errs = append(errs, r.Close(ctx))
	}
	e.runtimes = nil
	return errors.Join(append(errs, e.cache.Close(ctx), e.memories.Close())...)
}

// sharedRuntime is what the modules with the same memory limit have in common.
type sharedRuntime struct {
	wazero.Runtime
	pages uint32
	users int // guarded by Engine.mu
}

// takeRuntime returns the wazero runtime for modules that may have so many pages of memory, made when first needed. It has to
// be given back.
func (e *Engine) takeRuntime(ctx context.Context, pages uint32) (*sharedRuntime, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.runtimes == nil {
		return nil, errClosed
	}
	if r, ok := e.runtimes[pages]; ok {
		r.users++
		return r, nil
	}
	r := wazero.NewRuntimeWithConfig(ctx, runtimeConfig(e.interpreter).WithMemoryLimitPages(pages).WithCompilationCache(e.cache))
	if err := registerHost(ctx, r); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	e.runtimes[pages] = &sharedRuntime{Runtime: r, pages: pages, users: 1}
	return e.runtimes[pages], nil
}

// giveRuntimeBack closes a runtime once nobody uses it any more: there may be as many as there are memory limits.
func (e *Engine) giveRuntimeBack(ctx context.Context, r *sharedRuntime) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.users--; r.users > 0 {
		return nil
	}
	delete(e.runtimes, r.pages)
	return r.Close(ctx)
}

// runtimeConfig is what all runtimes have in common, also those of compilers.
func runtimeConfig(interpreter bool) wazero.RuntimeConfig {
	config := wazero.NewRuntimeConfig()
	if interpreter {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	return config.WithCoreFeatures(features).WithDebugInfoEnabled(false)
}

// registerHost makes the host functions that all modules share available to those of r. A messaging.Binding has the others.
func registerHost(ctx context.Context, r wazero.Runtime) error {
	if err := registerYield(ctx, r); err != nil {
		return err
	}
	return registerWASI(ctx, r)
}
