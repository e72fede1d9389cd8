// Package hostile is a corpus of WebAssembly modules that mean harm: bombs for the compiler, loops and recursions without
// end, floods of every host function, pointers and handles that are lies. Each says what must become of it, and the host
// must survive all of them: Corpus lists them, Run and Child run one and measure it, Beside measures what a neighbour
// feels of it.
//
// The modules are made by code, from a small assembler in asm.go. Nothing here is part of the program: tests and
// benchmarks use it.
package hostile
