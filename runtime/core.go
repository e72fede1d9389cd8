package runtime

import (
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime/internal/component"
	"github.com/longshore/longshore/wasi/messaging"
)

// coreOf returns the core module to run: wasm itself, or the one behind the handler that a component exports, with what
// the component says about its names.
func coreOf(wasm []byte) ([]byte, messaging.BindOptions, error) {
	isComponent, err := messaging.CheckPreamble(wasm)
	if err != nil || !isComponent {
		return wasm, messaging.BindOptions{}, err
	}
	if err := limits.Check(nameComponentBytes, int64(len(wasm)), limits.GuestModuleBytes); err != nil {
		return nil, messaging.BindOptions{}, err
	}
	var wanted []component.Wanted
	for _, h := range messaging.Handlers() {
		wanted = append(wanted, component.Wanted(h))
	}
	h, err := component.Find(wasm, wanted)
	if err != nil {
		return nil, messaging.BindOptions{}, err
	}
	return h.Module, messaging.BindOptions{
		Interface: h.Interface,
		Exports:   messaging.Exports{Handler: h.Function, PostReturn: h.PostReturn, Realloc: h.Realloc},
	}, nil
}

// nameComponentBytes names the bound on the size of a component, which is that of a module.
const nameComponentBytes limits.Name = "component bytes"
