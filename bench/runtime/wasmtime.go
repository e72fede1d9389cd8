package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/bytecodealliance/wasmtime-go/v39"
)

// peerWasmtime runs guests with wasmtime: one instance each, for ever.
type peerWasmtime struct {
	engine  *wasmtime.Engine
	linker  *wasmtime.Linker
	fuel    bool
	ready   bool // the modules were initialised before
	modules map[string]*wasmtime.Module

	stores map[string]*wasmtime.Store
	runs   map[string]*wasmtime.Func
}

// newWasmtime compiles the guests and makes an instance of each.
func newWasmtime(fuel bool, guests map[string][]byte) (*peerWasmtime, error) {
	config := wasmtime.NewConfig()
	config.SetConsumeFuel(fuel)
	p := emptyWasmtime(config)
	p.fuel = fuel
	return p, p.load(guests)
}

// emptyWasmtime makes an engine. config is used up.
func emptyWasmtime(config *wasmtime.Config) *peerWasmtime {
	p := &peerWasmtime{
		engine:  wasmtime.NewEngineWithConfig(config),
		modules: map[string]*wasmtime.Module{}, stores: map[string]*wasmtime.Store{}, runs: map[string]*wasmtime.Func{},
	}
	p.linker = wasmtime.NewLinker(p.engine)
	return p
}

func (p *peerWasmtime) load(guests map[string][]byte) error {
	// Nobody calls it: the peers' guests are called without a message.
	message := func(int32, int32) *wasmtime.Trap { return wasmtime.NewTrap("no message") }
	err := errors.Join(p.linker.DefineWasi(), p.linker.FuncWrap("wasi:messaging/types@0.2.0-draft", "[method]message.data", message))
	if err != nil {
		return err
	}
	for name, wasm := range guests {
		if p.modules[name], err = wasmtime.NewModule(p.engine, wasm); err != nil {
			return err
		}
		if p.stores[name], p.runs[name], err = p.instance(name); err != nil {
			return err
		}
	}
	return nil
}

// instance makes an instance in a store of its own, ready to run.
func (p *peerWasmtime) instance(guest string) (*wasmtime.Store, *wasmtime.Func, error) {
	store := wasmtime.NewStore(p.engine)
	store.SetWasi(wasmtime.NewWasiConfig())
	if p.fuel {
		if err := store.SetFuel(math.MaxInt64); err != nil {
			return nil, nil, err
		}
	}
	instance, err := p.linker.Instantiate(store, p.modules[guest])
	if err != nil {
		return nil, nil, err
	}
	if initialize := instance.GetFunc(store, "_initialize"); initialize != nil && !p.ready {
		if _, err := initialize.Call(store); err != nil {
			return nil, nil, err
		}
	}
	return store, instance.GetFunc(store, "run"), nil
}

// close frees all.
func (p *peerWasmtime) close() {
	for _, s := range p.stores {
		s.Close()
	}
	for _, m := range p.modules {
		m.Close()
	}
	p.linker.Close()
	p.engine.Close()
}

// run has a guest work, and checks what comes out.
func (p *peerWasmtime) run(guest string, number, amount, want uint32) error {
	return callWasmtime(p.stores[guest], p.runs[guest], number, amount, want)
}

// fresh has a new instance work, and throws it away.
func (p *peerWasmtime) fresh(guest string, number, amount, want uint32) error {
	store, run, err := p.instance(guest)
	if err != nil {
		return err
	}
	defer store.Close()
	return callWasmtime(store, run, number, amount, want)
}

func callWasmtime(store *wasmtime.Store, run *wasmtime.Func, number, amount, want uint32) error {
	got, err := run.Call(store, int32(number), int32(amount))
	if err != nil {
		return err
	}
	n, ok := got.(int32)
	if !ok {
		return fmt.Errorf("wasmtime answers %v: want a number", got)
	}
	return wrong("wasmtime", uint32(n), want, nil)
}
