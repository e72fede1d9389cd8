package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/runtime"
)

// BenchmarkInvoke compares a clean instance with one that is reused: the difference is what cleaning costs.
func BenchmarkInvoke(b *testing.B) {
	wasm, err := goGuestWasm()
	require.NoError(b, err)
	touching := opConst(0)
	for page := range int32(10) {
		touching = opStore((page+1)*3*4096) + touching
	}
	guests := []struct {
		name, data string
		wasm       []byte
	}{
		{"Go", "echo hello", wasm},
		{"Tiny", "", wasmModule{handler: []byte(opConst(0))}.assemble()},
		{"TenPages", "", wasmModule{handler: []byte(opConst(1) + opGrow + opDrop + touching)}.assemble()},
	}
	for _, guest := range guests {
		for name, instances := range map[string]runtime.Instances{"Clean": {}, "Reuse": {Reuse: true}} {
			m, err := newEngine(b).CompileFor(b.Context(), "guest", guest.wasm, testLimits(), instances)
			require.NoError(b, err)
			invoke := func(b *testing.B) {
				b.Helper()
				if o := m.Invoke(b.Context(), newCall(guest.data, nil)); o.Class != runtime.OK {
					b.Fatal(o.Class, o.Err)
				}
			}
			b.Run(guest.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					invoke(b)
				}
			})
			b.Run(guest.name+"/"+name+"/Parallel", func(b *testing.B) {
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						invoke(b)
					}
				})
			})
		}
	}
}
