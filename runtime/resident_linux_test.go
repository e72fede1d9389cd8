package runtime_test

import (
	"os"
	goruntime "runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
)

// status returns a size of the process in bytes, by its name in /proc/self/status.
func status(t *testing.T, name string) int64 {
	t.Helper()
	all, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	for line := range strings.Lines(string(all)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			kib, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			require.NoError(t, err)
			return kib * limits.KiB
		}
	}
	require.FailNow(t, "no "+name)
	return 0
}

// A guest that grows page by page, and writes to everything, makes the process no larger than by its limit and a little.
func TestResidentMemory(t *testing.T) {
	const slack = 32 * limits.MiB
	g := testLimits()
	g.MemoryBytes = 128 * limits.MiB
	g.Fuel = 1 << 40
	const (
		loop, end, brIf0 = "\x03\x40", "\x0b", "\x0d\x00"
		tee1, shl        = "\x22\x01", "\x74"
	)
	// loop: page = grow(1); if it was given: fill it with ones, and again.
	hungry := loop + opConst(1) + opGrow + tee1 + opConst(-1) + opNe + "\x04\x40" +
		opGet(1) + opConst(16) + shl + opConst(1) + opConst(65536) + opFill + "\x0c\x01" + end + end
	m, err := newEngine(t).Compile(t.Context(), "hungry", wasmModule{handler: []byte(hungry + opConst(0))}.assemble(), g)
	require.NoError(t, err)
	peak := func(messages int) int64 {
		goruntime.GC()
		debug.FreeOSMemory()
		require.NoError(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0), "resets the peak")
		before := status(t, "VmRSS")
		for range messages {
			call := newCall("", nil)
			o := m.Invoke(t.Context(), call)
			require.Equal(t, runtime.OK, o.Class, o.Err)
			require.Equal(t, g.MemoryBytes, o.PeakMemoryBytes)
		}
		return status(t, "VmHWM") - before
	}
	used := peak(3)
	require.Greater(t, used, g.MemoryBytes/2, "the measurement sees what the guest takes")
	require.LessOrEqual(t, used, g.MemoryBytes+slack)
	require.Less(t, status(t, "VmRSS"), status(t, "VmHWM")-g.MemoryBytes/2, "afterwards it gives back what it grew")
}
