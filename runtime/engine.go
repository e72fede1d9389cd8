package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/longshore/longshore/wasi/messaging"
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
}

// Engine compiles modules. It is safe for concurrent use.
type Engine struct {
	cache wazero.CompilationCache
	code  *codeCache // nil = code stays in memory
	// inUse is held for reading by whatever uses the runtimes, so that Close waits for it.
	inUse sync.RWMutex

	mu       sync.Mutex
	runtimes map[uint32]wazero.Runtime // by memory limit in pages, because wazero's limit is one of a runtime; nil = closed
}

// errClosed says that an engine or a module was closed.
var errClosed = errors.New("closed")

// features is the WebAssembly that modules may use, as far as runtime/internal/wasmbin lets it through.
const features = api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesExtendedConst

// New makes an engine.
func New(ctx context.Context, o Options) (*Engine, error) {
	e := &Engine{cache: wazero.NewCompilationCache(), runtimes: map[uint32]wazero.Runtime{}}
	if o.CacheDir == "" {
		if len(o.Compiler) > 0 {
			return nil, errors.New("runtime: a compiler needs a folder for its code")
		}
		return e, nil
	}
	compile := compileInto
	if len(o.Compiler) > 0 {
		compile = compileElsewhere(o.Compiler, defaultCompilerBounds())
	}
	var err error
	if e.code, err = openCodeCache(ctx, o.CacheDir, compile); err != nil {
		return nil, fmt.Errorf("runtime: folder of compiled code: %w", err)
	}
	if e.cache, err = wazero.NewCompilationCacheWithDir(o.CacheDir); err != nil {
		return nil, fmt.Errorf("runtime: folder of compiled code: %w", err)
	}
	return e, nil
}

// Close waits for the calls in flight, then frees all modules. Closing twice is harmless.
func (e *Engine) Close(ctx context.Context) error {
	e.inUse.Lock()
	defer e.inUse.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.runtimes == nil {
		return nil
	}
	var errs []error
	for _, r := range e.runtimes {
		errs = append(errs, r.Close(ctx))
	}
	e.runtimes = nil
	return errors.Join(append(errs, e.cache.Close(ctx))...)
}

// runtimeFor returns the wazero runtime for modules that may have so many pages of memory, made when first needed.
func (e *Engine) runtimeFor(ctx context.Context, pages uint32) (wazero.Runtime, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.runtimes == nil {
		return nil, errClosed
	}
	if r, ok := e.runtimes[pages]; ok {
		return r, nil
	}
	r := wazero.NewRuntimeWithConfig(ctx, runtimeConfig().WithMemoryLimitPages(pages).WithCompilationCache(e.cache))
	if err := registerHost(ctx, r); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	e.runtimes[pages] = r
	return r, nil
}

// runtimeConfig is what all runtimes have in common, also those of compilers.
func runtimeConfig() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfig().WithCoreFeatures(features).WithDebugInfoEnabled(false)
}

// registerHost makes all host functions available to the modules of r.
func registerHost(ctx context.Context, r wazero.Runtime) error {
	if err := messaging.Register(ctx, r); err != nil {
		return err
	}
	if err := registerYield(ctx, r); err != nil {
		return err
	}
	return registerWASI(ctx, r)
}
