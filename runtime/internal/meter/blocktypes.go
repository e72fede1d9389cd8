package meter

import "github.com/longshore/longshore/runtime/internal/wasmbin"

// blockTypes gives types for blocks, adding them to a module.
type blockTypes struct {
	m     *wasmbin.Module
	index map[string]int
}

// results returns the encoding of the type of a block that takes nothing and leaves the given values.
func (b *blockTypes) results(results []wasmbin.ValueType) []byte {
	switch len(results) {
	case 0:
		return empty()
	case 1:
		return []byte{byte(results[0])}
	}
	return b.typ(wasmbin.FuncType{Results: results})
}

// bulk returns the encoding of the type of a block that takes the operands of a bulk instruction.
func (b *blockTypes) bulk() []byte {
	return b.typ(wasmbin.FuncType{Params: []wasmbin.ValueType{wasmbin.I32, wasmbin.I32, wasmbin.I32}})
}

func (b *blockTypes) typ(t wasmbin.FuncType) []byte {
	key := make([]byte, 0, len(t.Params)+1+len(t.Results))
	for _, v := range t.Params {
		key = append(key, byte(v))
	}
	key = append(key, 0)
	for _, v := range t.Results {
		key = append(key, byte(v))
	}
	i, ok := b.index[string(key)]
	if !ok {
		i = len(b.m.Types)
		b.index[string(key)] = i
		b.m.Types = append(b.m.Types, t)
	}
	return wasmbin.AppendS64(nil, int64(i))
}
