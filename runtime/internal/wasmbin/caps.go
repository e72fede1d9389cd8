package wasmbin

import "github.com/longshore/longshore/limits"

// Caps bound what Decode accepts. They exist because compilation has no bounds of its own: its time and memory grow
// with products of these counts, so that a few kilobytes can ask for minutes or gigabytes. Zero allows nothing: start
// from DefaultCaps.
type Caps struct {
	ModuleBytes    int64
	CustomSections int64
	NameBytes      int64 // each name of an import, export or custom section
	Types          int64
	Params         int64 // of a type
	Results        int64 // of a type
	Imports        int64
	Exports        int64
	Functions      int64 // imported and defined
	Tables         int64 // imported and defined
	TableElements  int64 // the minimum sizes of all tables together
	Globals        int64 // imported and defined
	MutableGlobals int64
	Elements       int64 // element segments
	ElementItems   int64 // items of all element segments together
	DataSegments   int64
	ConstInstrs    int64 // instructions of one constant expression

	// Of one function. Branches are br, br_if, if, each target of br_table, and one for what metering adds to a loop, and
	// to an instruction that pays by length.
	BodyBytes        int64
	Locals           int64 // parameters included
	Nesting          int64 // blocks inside blocks
	Blocks           int64 // block, loop and if
	Branches         int64
	BulkInstrs       int64 // instructions that pay by length
	BrTable          int64 // targets of one br_table
	LocalsByBranches int64 // locals × (blocks + branches)
	CarriedValues    int64 // values that blocks, branches and calls take and give, all together
	GlobalsByCalls   int64 // mutable globals × calls
	Trapping         int64 // div, rem, trunc, call_indirect, table.get and table.set
	Operands         int64 // on the stack at once: with the locals, they are what a call takes of the engine's stack

	// Sums over all functions.
	ModuleLocals           int64 // locals
	ModuleLocalsByBranches int64 // LocalsByBranches
	ModuleBranchesSquared  int64 // Branches²
	ModuleBulkInstrs       int64
	ModuleCarriedValues    int64
	ModuleGlobalsByCalls   int64
	ModuleTrapping         int64
}

// DefaultCaps returns the caps of a host. They are set between two measurements: what real toolchains emit, and what
// makes the compiler explode. The largest found in a 21 MB Go program (net/http, go/types), in SQLite compiled from C and in
// SpiderMonkey, the 12 MB that a JavaScript program becomes, are given beside the caps that come close. Rust, AssemblyScript
// and small C programs stay far below. At the caps for one function, it compiles for up to 1.5 s and in up to 200 MiB.
func DefaultCaps() Caps {
	return Caps{
		ModuleBytes:    limits.GuestModuleBytes,
		CustomSections: 100,
		NameBytes:      1_024,
		Types:          10_000,
		Params:         100,
		Results:        100,
		Imports:        1_000,
		Exports:        10_000,
		Functions:      100_000, // Go 12,193
		Tables:         4,
		TableElements:  limits.TableElements,
		Globals:        10_000,
		MutableGlobals: 1_000,
		Elements:       10_000,
		ElementItems:   200_000,
		DataSegments:   100_000, // Go 100,000: its linker stops there
		ConstInstrs:    64,

		BodyBytes:        512 * limits.KiB, // Go 62,479
		Locals:           2_000,
		Nesting:          2_000, // Go 1,076, even fmt has 549: one block a resume point
		Blocks:           8_192, // JavaScript 4,216
		Branches:         8_192, // JavaScript 7,265; a chain of 8,000 br_ifs compiles for 6 s, one of 16,384 br_ifs compiles for 12 s
		BulkInstrs:       1_000, // 4,000 compile for 2.6 s
		BrTable:          4_096,
		LocalsByBranches: 750_000, // JavaScript 571,844; 1,000,000 can compile for 15 s
		CarriedValues:    200_000, // SQLite 2,459
		GlobalsByCalls:   200_000, // Go 7,194
		Operands:         1_000,
		Trapping:         8_000, // SQLite 118; 250,000 compile for 8 s in 2 GiB

		ModuleLocals:           5_000_000,
		ModuleLocalsByBranches: 20_000_000,  // Go 8,331,998
		ModuleBranchesSquared:  500_000_000, // Go 186,213,909
		ModuleBulkInstrs:       25_000,      // Go 4,407
		ModuleCarriedValues:    3_000_000,   // Go 189,438; 30,000,000 compile for 22 s
		ModuleGlobalsByCalls:   20_000_000,  // Go 1,085,018
		ModuleTrapping:         50_000,      // Go 4,540; 100,000 compile for 5 s
	}
}

// Names of the caps, as the *limits.Error of Decode carries them.
const (
	NameModuleBytes            limits.Name = "module bytes"
	NameNameBytes              limits.Name = "name bytes"
	NameTypes                  limits.Name = "types"
	NameParams                 limits.Name = "parameters of a type"
	NameResults                limits.Name = "results of a type"
	NameImports                limits.Name = "imports"
	NameExports                limits.Name = "exports"
	NameFunctions              limits.Name = "functions"
	NameTables                 limits.Name = "tables"
	NameGlobals                limits.Name = "globals"
	NameMutableGlobals         limits.Name = "mutable globals"
	NameElements               limits.Name = "element segments"
	NameElementItems           limits.Name = "items of element segments"
	NameDataSegments           limits.Name = "data segments"
	NameModuleLocals           limits.Name = "locals of a module"
	NameModuleLocalsByBranches limits.Name = "locals times branches of a module"
	NameModuleBranchesSquared  limits.Name = "squared branches of a module"
	NameBodyBytes              limits.Name = "function body bytes"
	NameLocals                 limits.Name = "locals of a function"
	NameNesting                limits.Name = "nesting of blocks"
	NameBlocks                 limits.Name = "blocks of a function"
	NameLocalsByBranches       limits.Name = "locals times branches of a function"
	NameBrTable                limits.Name = "targets of a br_table"
	NameBranches               limits.Name = "branches of a function"
	NameCarriedValues          limits.Name = "values at blocks, branches and calls of a function"
	NameBulkInstrs             limits.Name = "bulk instructions of a function"
	NameGlobalsByCalls         limits.Name = "mutable globals times calls of a function"
	NameTrapping               limits.Name = "trapping instructions of a function"
	NameOperands               limits.Name = "operands of a function"
	NameModuleBulkInstrs       limits.Name = "bulk instructions of a module"
	NameModuleCarriedValues    limits.Name = "values at blocks, branches and calls of a module"
	NameModuleGlobalsByCalls   limits.Name = "mutable globals times calls of a module"
	NameModuleTrapping         limits.Name = "trapping instructions of a module"
	NameConstInstrs            limits.Name = "instructions of a constant expression"
	NameCustomSections         limits.Name = "custom sections"
)
