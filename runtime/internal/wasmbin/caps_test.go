package wasmbin

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// capTest is a module that breaks one cap of DefaultCaps, and only that.
type capTest struct {
	name  limits.Name
	build func(c Caps) *Module
}

// oneFunction returns a module with one function of the given type and code.
func oneFunction(t FuncType, locals int64, expr []byte) *Module {
	m := &Module{Types: []FuncType{t}, Functions: []uint32{0}, Code: []Body{{Expr: append(expr, 0x0b)}}}
	if locals > 0 {
		m.Code[0].Locals = []LocalGroup{{Count: uint32(locals), Type: I32}}
	}
	return m
}

func repeated[T any](n int64, item T) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = item
	}
	return s
}

// functions returns m with its only function n times.
func functions(n int64, m *Module) *Module {
	m.Functions, m.Code = repeated(n, m.Functions[0]), repeated(n, m.Code[0])
	return m
}

func brIfs(n int64) []byte { return bytes.Repeat([]byte{0x41, 0, 0x0d, 0}, int(n)) }

func brTable(n int64) []byte {
	return append(AppendU32([]byte{0x41, 0, 0x0e}, uint32(n)), make([]byte, n+1)...)
}

func declarationCaps() []capTest {
	global := Global{Type: GlobalType{Type: I32}, Init: ConstI32(0)}
	mutable := Global{Type: GlobalType{Type: I32, Mutable: true}, Init: ConstI32(0)}
	return []capTest{
		{NameModuleBytes, func(c Caps) *Module { return &Module{Customs: []Custom{{Bytes: make([]byte, c.ModuleBytes)}}} }},
		{NameCustomSections, func(c Caps) *Module { return &Module{Customs: make([]Custom, c.CustomSections+1)} }},
		{NameNameBytes, func(c Caps) *Module {
			return &Module{Customs: []Custom{{Name: string(make([]byte, c.NameBytes+1))}}}
		}},
		{NameTypes, func(c Caps) *Module { return &Module{Types: make([]FuncType, c.Types+1)} }},
		{NameParams, func(c Caps) *Module { return &Module{Types: []FuncType{{Params: repeated(c.Params+1, I32)}}} }},
		{NameResults, func(c Caps) *Module { return &Module{Types: []FuncType{{Results: repeated(c.Results+1, I32)}}} }},
		{NameImports, func(c Caps) *Module {
			return &Module{Types: []FuncType{{}}, Imports: make([]Import, c.Imports+1)}
		}},
		{NameExports, func(c Caps) *Module {
			m := oneFunction(FuncType{}, 0, nil)
			for i := range c.Exports + 1 {
				m.Exports = append(m.Exports, Export{Name: fmt.Sprint(i)})
			}
			return m
		}},
		{NameFunctions, func(c Caps) *Module {
			m := functions(c.Functions, oneFunction(FuncType{}, 0, nil))
			m.Imports = make([]Import, 1)
			return m
		}},
		{NameTables, func(c Caps) *Module { return &Module{Tables: repeated(c.Tables+1, Table{Type: FuncRef})} }},
		{limits.NameTableElements, func(c Caps) *Module {
			half := Table{Type: FuncRef, Limits: Limits{Min: uint32(c.TableElements/2 + 1)}}
			return &Module{Tables: []Table{half, half}}
		}},
		{NameGlobals, func(c Caps) *Module { return &Module{Globals: repeated(c.Globals+1, global)} }},
		{NameMutableGlobals, func(c Caps) *Module { return &Module{Globals: repeated(c.MutableGlobals+1, mutable)} }},
		{NameElements, func(c Caps) *Module {
			return &Module{Elements: repeated(c.Elements+1, Element{Mode: Passive, Type: FuncRef})}
		}},
		{NameElementItems, func(c Caps) *Module {
			m := oneFunction(FuncType{}, 0, nil)
			half := Element{Mode: Passive, Type: FuncRef, Funcs: make([]uint32, c.ElementItems/2+1)}
			m.Elements = []Element{half, half}
			return m
		}},
		{NameDataSegments, func(c Caps) *Module { return &Module{Data: repeated(c.DataSegments+1, Data{Mode: Passive})} }},
		{NameConstInstrs, func(c Caps) *Module {
			e := append(bytes.Repeat([]byte{0x41, 0}, int(c.ConstInstrs)), 0x0b)
			return &Module{Globals: []Global{{Type: global.Type, Init: e}}}
		}},
	}
}

func functionCaps() []capTest {
	wide := FuncType{Params: repeated(100, I32), Results: repeated(100, I32)}
	return []capTest{
		{NameBodyBytes, func(c Caps) *Module {
			return oneFunction(FuncType{}, 0, bytes.Repeat([]byte{1}, int(c.BodyBytes)))
		}},
		{NameLocals, func(c Caps) *Module {
			return oneFunction(FuncType{Params: []ValueType{I32}}, c.Locals, nil)
		}},
		{NameNesting, func(c Caps) *Module {
			n := int(c.Nesting + 1)
			return oneFunction(FuncType{}, 0, append(bytes.Repeat([]byte{0x02, 0x40}, n), bytes.Repeat([]byte{0x0b}, n)...))
		}},
		{NameBlocks, func(c Caps) *Module {
			return oneFunction(FuncType{}, 0, bytes.Repeat([]byte{0x02, 0x40, 0x0b}, int(c.Blocks+1)))
		}},
		{NameBranches, func(c Caps) *Module { return oneFunction(FuncType{}, 0, brIfs(c.Branches+1)) }},
		{NameBulkInstrs, func(c Caps) *Module {
			m := oneFunction(FuncType{}, 0, bytes.Repeat([]byte{0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 11, 0}, int(c.BulkInstrs+1)))
			m.Memories = []Limits{{}}
			return m
		}},
		{NameBrTable, func(c Caps) *Module { return oneFunction(FuncType{}, 0, brTable(c.BrTable+1)) }},
		{NameLocalsByBranches, func(c Caps) *Module {
			return oneFunction(FuncType{}, 1_000, brIfs(c.LocalsByBranches/1_000+1))
		}},
		{NameCarriedValues, func(c Caps) *Module {
			return oneFunction(wide, 0, bytes.Repeat([]byte{0x10, 0}, int(c.CarriedValues/200+1)))
		}},
		{NameGlobalsByCalls, func(c Caps) *Module {
			m := oneFunction(FuncType{}, 0, bytes.Repeat([]byte{0x10, 0}, int(c.GlobalsByCalls/(500+addedGlobals)+1)))
			m.Globals = repeated(500, Global{Type: GlobalType{Type: I32, Mutable: true}, Init: ConstI32(0)})
			return m
		}},
		{NameTrapping, func(c Caps) *Module {
			return oneFunction(FuncType{}, 0, bytes.Repeat([]byte{0x41, 1, 0x41, 1, 0x6d, 0x1a}, int(c.Trapping+1)))
		}},
		{NameOperands, func(c Caps) *Module {
			return oneFunction(FuncType{}, 0, bytes.Repeat([]byte{0x41, 1}, int(c.Operands+1)))
		}},
		{NameModuleTrapping, func(c Caps) *Module {
			return functions(c.ModuleTrapping/c.Trapping+1, oneFunction(FuncType{}, 0, bytes.Repeat([]byte{0x41, 1, 0x41, 1, 0x6d, 0x1a}, int(c.Trapping))))
		}},
		{NameModuleBulkInstrs, func(c Caps) *Module {
			m := oneFunction(FuncType{}, 0, bytes.Repeat([]byte{0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 11, 0}, int(c.BulkInstrs)))
			m.Memories = []Limits{{}}
			return functions(c.ModuleBulkInstrs/c.BulkInstrs+1, m)
		}},
		{NameModuleCarriedValues, func(c Caps) *Module {
			return functions(c.ModuleCarriedValues/c.CarriedValues+1, oneFunction(wide, 0, bytes.Repeat([]byte{0x10, 0}, int(c.CarriedValues/200))))
		}},
		{NameModuleGlobalsByCalls, func(c Caps) *Module {
			const globals = 500 - addedGlobals
			m := oneFunction(FuncType{}, 0, bytes.Repeat([]byte{0x10, 0}, int(c.GlobalsByCalls/500)))
			m.Globals = repeated(globals, Global{Type: GlobalType{Type: I32, Mutable: true}, Init: ConstI32(0)})
			return functions(c.ModuleGlobalsByCalls/c.GlobalsByCalls+1, m)
		}},
		{NameModuleLocals, func(c Caps) *Module {
			return functions(c.ModuleLocals/c.Locals+1, oneFunction(FuncType{}, c.Locals, nil))
		}},
		{NameModuleLocalsByBranches, func(c Caps) *Module {
			return functions(c.ModuleLocalsByBranches/c.LocalsByBranches+1, oneFunction(FuncType{}, 1_000, brIfs(c.LocalsByBranches/1_000)))
		}},
		{NameModuleBranchesSquared, func(c Caps) *Module {
			return functions(c.ModuleBranchesSquared/(c.Branches*c.Branches)+1, oneFunction(FuncType{}, 0, brIfs(c.Branches)))
		}},
	}
}

func TestCaps(t *testing.T) {
	for _, tt := range append(declarationCaps(), functionCaps()...) {
		t.Run(string(tt.name), func(t *testing.T) {
			_, err := Decode(tt.build(DefaultCaps()).Encode(), DefaultCaps())
			var le *limits.Error
			require.ErrorAs(t, err, &le)
			require.Equal(t, tt.name, le.Name)
			require.Greater(t, le.Actual, le.Limit)
		})
	}
}
