package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/longshore/longshore/wasi/messaging"
)

// plain runs guests with wazero as it comes: one instance each, for ever, no fuel, no bounds.
type plain struct {
	runtime   wazero.Runtime
	bindings  []*messaging.Binding // of what the guests import of the host
	instances map[string]api.Module
}

// newPlain compiles and initialises the guests.
func newPlain(ctx context.Context, guests map[string][]byte) (*plain, error) {
	p := &plain{instances: map[string]api.Module{}}
	p.runtime = wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().
		WithCoreFeatures(api.CoreFeaturesV2|experimental.CoreFeaturesTailCall|experimental.CoreFeaturesExtendedConst))
	if err := p.load(ctx, guests); err != nil {
		return nil, errors.Join(err, p.close(ctx))
	}
	return p, nil
}

func (p *plain) load(ctx context.Context, guests map[string][]byte) error {
	// Of WASI preview 1, sched_yield is replaced by the least that a host function can do.
	builder := p.runtime.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(builder)
	nothing := api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) { stack[0] = 0 })
	builder.NewFunctionBuilder().WithGoModuleFunction(nothing, nil, []api.ValueType{api.ValueTypeI32}).Export("sched_yield")
	if _, err := builder.Instantiate(ctx); err != nil {
		return err
	}
	for name, wasm := range guests {
		compiled, err := p.runtime.CompileModule(ctx, wasm)
		if err != nil {
			return err
		}
		binding, err := messaging.Bind(ctx, p.runtime, compiled, messaging.BindOptions{Served: []string{wasi_snapshot_preview1.ModuleName}})
		if err != nil {
			return err
		}
		p.bindings = append(p.bindings, binding)
		instance, err := p.runtime.InstantiateModule(binding.Context(ctx), compiled,
			wazero.NewModuleConfig().WithName(name).WithStartFunctions(binding.Initialize()).WithSysWalltime().WithSysNanotime())
		if err != nil {
			return err
		}
		p.instances[name] = instance
	}
	return nil
}

func (p *plain) close(ctx context.Context) (err error) {
	for _, b := range p.bindings {
		err = errors.Join(err, b.Close(ctx))
	}
	return errors.Join(err, p.runtime.Close(ctx))
}

// result has a guest work, and returns what comes out.
func (p *plain) result(ctx context.Context, guest string, number, amount uint32) (uint32, error) {
	results, err := p.instances[guest].ExportedFunction("run").Call(ctx, uint64(number), uint64(amount))
	if err != nil {
		return 0, err
	}
	return api.DecodeU32(results[0]), nil
}

// run has a guest work, and checks what comes out.
func (p *plain) run(ctx context.Context, guest string, number, amount, want uint32) error {
	got, err := p.result(ctx, guest, number, amount)
	return wrong("wazero", got, want, err)
}

// wrong returns err, or an error if a peer's result is wrong.
func wrong(peer string, got, want uint32, err error) error {
	if err == nil && got != want {
		err = fmt.Errorf("%s answers %d: want %d", peer, got, want)
	}
	return err
}
