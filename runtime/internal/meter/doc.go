// Package meter rewrites a WebAssembly module so that it counts fuel and stays inside its bounds.
//
// Instrument is a pure function of bytes: the same module and options give the same result on every machine, and the
// rewritten module uses the same fuel for the same input, with the compiler and with the interpreter of the engine and
// however the host slices its fuel.
//
// # Fuel
//
// One fuel is one instruction; block, loop, else, end and nop are free. A basic block pays for all its instructions at
// its start, calls included, and bulk instructions pay by length before they run:
//
//	memory.fill, copy, init   1 per 8 bytes
//	table.fill, copy, init    1 per element, and table.grow up to the clamp
//	memory.grow               8,192 per page of 64 KiB, unless it would be refused
//
// Fuel is in an i64 global, together with the call depth: see Word. A function takes it into a local at its start, and gives
// it back at its end, before calls and before unreachable; behind a call it takes it anew. At function entry, at loop headers and after a bulk
// instruction has paid, negative fuel makes the guest yield: it calls an import that is given what is left and answers
// what is left then.
//
//	fuel -= cost; if fuel < 0 { fuel = yield(fuel) }
//
// A yield is the only point at which a guest in a loop lets the host's garbage collector and scheduler work. Where it
// stands decides what metering costs, because a call in the middle of a loop makes the engine's register allocator spill
// what the loop carries: see rewriter.surround for the place outside of loops and function bodies.
//
// The host counts what it granted: it starts a call by setting the global to a first slice, adds to what it is given,
// and panics instead when the budget doesn't cover the debt, the deadline has passed, or it shuts down. What a call has
// used is what was granted less the global. A yield adds what was granted to the global too, without writing the local
// back: after a trap the global doesn't know what was used since it was written, but that is the same whatever the slices
// were. Whether the budget was overdrawn after the last check is for the host to compare.
//
// No path through code without loops is longer than checkInstrs instructions or checkCalls calls before it meets another
// check. Where nothing that calls, no bulk instruction, and at most leafCost instructions lie between a function's entry
// and its end or the header of a loop, the entry goes without: its caller's next check, or the loop's, comes soon enough.
//
// memory.fill, copy and init of more than pieceBytes go through a function that does them in pieces, each paid for and
// checked before. They trap before they change anything, as the instructions do.
//
// # Call depth
//
// The lower bits of the global hold how many calls may still be nested. A function that calls takes one at entry, in the
// subtraction that pays for its first block, and gives it back at its end or before a tail call; at none left it yields
// math.MinInt64, which is never a value of fuel, and must not be answered. Functions that call nothing don't count. A tail
// call with more parameters or results than fit registers becomes a nested call, because the engine makes one of it. Two
// globals would be read and written twice for every call: that cost a function that does little but call a fifth of its
// time.
//
//	entry                           body                       end
//	word = global - cost<<20 - 1    block T … end              global = word + 1
//	overflow if its bit 19 is set   (return is br to the end)
//	check if it is negative
//
// # What else changes
//
// The yield function becomes the last import, so that every function index from there on grows by one. Memory and table
// maxima are clamped. memory.grow calls an appended function that notes in a third global that a growth within the limit
// was refused. All mutable globals are exported under private names, and custom sections other than the names of
// functions are left out. Integers are in their shortest form, because the engine has shortcuts that others would fool.
package meter
