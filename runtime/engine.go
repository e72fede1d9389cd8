package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// Options configures an Engine.
type Options struct {
	// CacheDir is a folder for compiled code, which later processes load instead of compiling again. It must be private
	// to this user, because its content is executed. "" = the cache lives in memory.
	CacheDir string
}

// Engine compiles modules. It is safe for concurrent use.
type Engine struct {
	cache wazero.CompilationCache
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
func New(_ context.Context, o Options) (*Engine, error) {
	cache := wazero.NewCompilationCache()
	if o.CacheDir != "" {
		var err error
		if cache, err = wazero.NewCompilationCacheWithDir(o.CacheDir); err != nil {
			return nil, fmt.Errorf("runtime: compilation cache: %w", err)
		}
	}
	return &Engine{cache: cache, runtimes: map[uint32]wazero.Runtime{}}, nil
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
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().
		WithCoreFeatures(features).
		WithMemoryLimitPages(pages).
		WithCompilationCache(e.cache).
		WithDebugInfoEnabled(false))
	if err := registerHost(ctx, r); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	e.runtimes[pages] = r
	return r, nil
}

// registerHost makes the host functions that all modules share available to those of r. A messaging.Binding has the others.
func registerHost(ctx context.Context, r wazero.Runtime) error {
	if err := registerYield(ctx, r); err != nil {
		return err
	}
	return registerWASI(ctx, r)
}
