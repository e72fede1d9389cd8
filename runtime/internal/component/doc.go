// Package component finds the core module behind a handler that a component exports.
//
// A component is sections of definitions, each of which may use what was defined before it, by its number in the index
// space of its sort. Integers are LEB128:
//
//	┌──────────┬─────────────┬─────────┬─────────┬───
//	│ 00 a s m │ 0d 00 01 00 │ section │ section │ …
//	└──────────┴─────────────┴─────────┴─────────┴───
//	section: │ id u8 │ size u32 │ size bytes │
//
// Core modules (1) are instantiated (2), their exports are given indices (6), lifted to functions (8) and exported (11);
// what a module imports are functions that were lowered (8). Find follows that chain backwards:
//
//	export "…/incoming-handler@…"  instance ─▶ function "handle" ─▶ canon lift ─▶ core function ─▶ core instance ─▶ module
//
// What toolchains put between a module and the outside (the component that gives the exported instance its type, the
// modules that break the cycle between a module's imports and its memory, the adapter from preview 1) isn't run: the host
// serves what the module imports by name, and is given the memory of its caller anyway.
package component
