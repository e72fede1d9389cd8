// Package runtime runs untrusted WebAssembly modules on messages, inside hard limits.
//
// Compile takes a module once through: decode and check against caps (so that compiling can't be a bomb), rewrite it so
// that it counts fuel and call depth (runtime/internal/meter), compile it with wazero (in another process that leaves the
// code in a folder, where Options says so), check that its imports and exports fit (wasi/messaging), and run its
// initialisation and a warm-up on a template instance. What the template then holds, memory and mutable globals, is the snapshot that
// every message starts from.
//
// Invoke takes an instance with the snapshot's state from the module's pool, or makes one, hands it the message, and says
// how that ended as an Outcome. Then, before it returns, it gives the instance the snapshot's state again, so that no message
// sees anything of another one. After a trap, an exit or a bound the instance is thrown away.
//
//	Invoke ─▶ instance ─▶ handler ─▶ answer, trap, exit, or a bound ─▶ Outcome
//	  pool ┘     │           │  ▲        │
//	   ▲         │       yield, host functions: the safe points, where fuel,
//	   │         │       deadline and shutdown are checked
//	   └── reset: memory, its size, globals
//
// The memory of an instance is a private mapping of the snapshot (runtime/internal/cow), of which a reset copies back what
// was written. Where memory and globals aren't all that a module changes, each message gets a new wazero instance on such a
// memory. An instance is one goroutine's at a time: that of the call, or of whoever took it out of the pool. Instances are
// bounded by the calls that run at once, and idle ones by the processors and by limits.IdleInstances; they give memory back
// when idle, and are thrown away later. Instances.Reuse leaves the reset out.
//
// WASI keeps no state for an instance, so that there is none to reset.
//
// A guest gives the processor back only where it calls the host: in its imports, and in the yield that the rewriting
// puts into every loop, function and long straight line. There, fuel is granted slice by slice. Slices aim at two
// milliseconds at most, because the garbage collector of the host waits for them. Nothing else stops a guest, and
// nothing closes an instance while it runs.
//
// Making the instance costs no fuel: its work is the host's, the same for every message of a module, and fixed at deploy
// by the bounds on memory, table elements and globals. It counts as time of the call, whose deadline is looked at before
// and after the handler.
//
// WASI preview 1 is served with nothing granted: no files, network, arguments or environment. Clocks tick in
// milliseconds, random is the system's, stdout and stderr go to the call's log, and sleeping ends at the deadline.
package runtime
