// Package runtime runs untrusted WebAssembly modules on messages, inside hard limits.
//
// Compile takes a module once through: decode and check against caps (so that compiling can't be a bomb), rewrite it so
// that it counts fuel and call depth (runtime/internal/meter), compile it with wazero, check that its imports and
// exports fit (wasi/messaging), and run its initialisation on a template instance. What the template then holds,
// memory and mutable globals, is the snapshot that every message starts from.
//
// Invoke makes a new instance with the snapshot's state, hands it the message, and says how that ended as an Outcome.
// The instance is thrown away afterwards, so that no message sees anything of another one.
//
//	Invoke ─▶ new instance ─▶ handler ─▶ answer, trap, exit, or a bound ─▶ Outcome
//	                            │  ▲
//	                        yield, host functions: the safe points, where fuel,
//	                        deadline and shutdown are checked
//
// A guest gives the processor back only where it calls the host: in its imports, and in the yield that the rewriting
// puts into every loop and function. There, fuel is granted slice by slice; a slice lasts about two milliseconds, so
// that the garbage collector of the host never waits for longer. Nothing else stops a guest, and nothing closes an
// instance while it runs.
//
// WASI preview 1 is served with nothing granted: no files, network, arguments or environment. Clocks tick in
// milliseconds, random is the system's, stdout and stderr go to the call's log, and sleeping ends at the deadline.
package runtime
