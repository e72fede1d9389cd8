package hostile

import (
	"slices"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
)

// Module is one module of the corpus, and what must become of it.
type Module struct {
	Name string
	Wasm func() []byte
	// Refused says how it is refused at deploy; nil if it is deployed.
	Refused *Refusal
	// Ends is the reason with which a call ends that has Bounded's limits, as runtime.Outcome.Reason gives it.
	Ends string
	// Endless says that the module runs until it is stopped: with Timed's limits, it must end as a timeout.
	Endless bool
	// Change adapts the limits that the module is deployed and called with; nil leaves them.
	Change func(g *limits.Guest)
}

// Refusal is why a module isn't deployed.
type Refusal struct {
	Stage runtime.Stage
	Limit limits.Name // the bound that it is over; "" if it isn't one
	Words string      // in the text of the error
}

// Corpus returns all modules. Names are unique.
func Corpus() []Module {
	return slices.Concat(
		declarationBombs(), codeBombs(), moduleBombs(), malformed(), withinCaps(),
		loops(), straight(), recursions(), memories(), tables(), initialisations(), traps(),
		floods(), lies(), outputs(), wasi(), besides(), returns(), answers(),
	)
}

// Find returns the module of that name.
func Find(name string) (Module, bool) {
	all := Corpus()
	i := slices.IndexFunc(all, func(m Module) bool { return m.Name == name })
	if i < 0 {
		return Module{}, false
	}
	return all[i], true
}

// overCap is a module that the decoder refuses for a cap.
func overCap(name string, limit limits.Name, build func() []byte) Module {
	return Module{Name: name, Wasm: build, Refused: &Refusal{Stage: runtime.StageDecode, Limit: limit}}
}

// refused is a module that is refused at a stage in so many words.
func refused(name string, stage runtime.Stage, words string, build func() []byte) Module {
	return Module{Name: name, Wasm: build, Refused: &Refusal{Stage: stage, Words: words}}
}

// endless is a guest that runs until fuel or time is over.
func endless(name string, g guest) Module {
	return Module{Name: name, Wasm: g.bytes, Ends: "out-of-fuel", Endless: true}
}

// flood is a guest that calls the host until it may not any more.
func flood(name string, g guest) Module {
	return Module{Name: name, Wasm: g.bytes, Ends: "host-call-limit", Endless: true}
}

// ends is a guest whose call ends for a reason of its own.
func ends(name, reason string, g guest) Module {
	return Module{Name: name, Wasm: g.bytes, Ends: reason}
}

// waits is a guest that fuel can't stop, because it is the host that it keeps at work or asleep.
func waits(name string, g guest) Module {
	return Module{Name: name, Wasm: g.bytes, Ends: "timeout", Endless: true}
}
