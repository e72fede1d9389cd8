package runtime_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

// WASI as a stock Go guest sees it.
func TestWASI(t *testing.T) {
	m := goGuest(t)
	answer := func(command string) string {
		o := m.Invoke(t.Context(), newCall(command, nil))
		require.Equal(t, runtime.GuestError, o.Class, o.Err)
		return o.GuestText
	}
	t.Run("NothingIsGranted", func(t *testing.T) {
		require.Equal(t, "args 0 env 0 stat false open false read 0 EOF", answer("world"))
	})
	t.Run("RandomIsFresh", func(t *testing.T) {
		a, b := answer("random"), answer("random")
		require.NotEqual(t, a, b)
	})
	t.Run("TheClockIsRealAndTicksInMilliseconds", func(t *testing.T) {
		before := time.Now().Truncate(time.Millisecond)
		ns, err := strconv.ParseInt(answer("now"), 10, 64)
		require.NoError(t, err)
		at := time.Unix(0, ns)
		require.WithinRange(t, at, before, time.Now())
		require.Zero(t, at.Nanosecond()%int(time.Millisecond))
	})
	t.Run("SleepingTakesItsTime", func(t *testing.T) {
		start := time.Now()
		o := m.Invoke(t.Context(), newCall("sleep 20ms", nil))
		require.Equal(t, runtime.OK, o.Class, o.Err, o.GuestText)
		require.GreaterOrEqual(t, time.Since(start), 19*time.Millisecond, "but for a tick of the guest's clock")
	})
	t.Run("OutputIsTheCallsLog", func(t *testing.T) {
		var log []string
		o := m.Invoke(t.Context(), newCall("log hello", func(o *messaging.CallOptions) {
			o.Log = func(stream string, line []byte) { log = append(log, stream+": "+string(line)) }
		}))
		require.Equal(t, runtime.OK, o.Class, o.Err)
		require.Equal(t, []string{"stdout: hello", "stderr: no end"}, log)
	})
	t.Run("TooMuchOutputEndsTheCall", func(t *testing.T) {
		o := m.Invoke(t.Context(), newCall("log 12345678", func(o *messaging.CallOptions) { o.Limits.LogBytes = 8 }))
		require.Equal(t, "output-limit", o.Reason())
		require.ErrorIs(t, o.Err, &limits.Error{Name: limits.NameLogBytes})
	})
}

// Pointers and descriptors that are wrong are answered with an error number; the guest goes on.
func TestWASI_Errno(t *testing.T) {
	const (
		success, badf, fault, inval, nosys, spipe = 0, 8, 21, 28, 52, 70
		outside                                   = -4
	)
	words := func(n int) string { return i32x(n) }
	cases := []struct {
		name   string
		params string
		args   string
		want   int32
	}{
		{"args_sizes_get", words(2), opConst(0) + opConst(4), success},
		{"args_sizes_get", words(2), opConst(outside) + opConst(4), fault},
		{"clock_time_get", i32 + i64 + i32, opConst(0) + opConst64 + opConst(8), success},
		{"clock_time_get", i32 + i64 + i32, opConst(2) + opConst64 + opConst(8), inval},
		{"clock_time_get", i32 + i64 + i32, opConst(1) + opConst64 + opConst(outside), fault},
		{"clock_res_get", words(2), opConst(1) + opConst(8), success},
		{"clock_res_get", words(2), opConst(9) + opConst(8), inval},
		{"fd_write", words(4), opConst(3) + opConst(64) + opConst(1) + opConst(32), badf},
		{"fd_write", words(4), opConst(1) + opConst(outside) + opConst(1) + opConst(32), fault},
		{"fd_write", words(4), opConst(1) + opConst(64) + opConst(-1) + opConst(32), inval},
		{"fd_write", words(4), opConst(1) + opConst(0) + opConst(1024) + opConst(32), success},
		{"fd_write", words(4), opConst(1) + opConst(0) + opConst(1025) + opConst(32), inval},
		{"fd_write", words(4), opConst(1) + opConst(64) + opConst(1) + opConst(outside), fault},
		{"fd_read", words(4), opConst(0) + opConst(0) + opConst(1025) + opConst(32), inval},
		{"fd_read", words(4), opConst(0) + opConst(64) + opConst(1) + opConst(32), success},
		{"fd_read", words(4), opConst(1) + opConst(64) + opConst(1) + opConst(32), badf},
		{"fd_fdstat_get", words(2), opConst(2) + opConst(64), success},
		{"fd_fdstat_get", words(2), opConst(3) + opConst(64), badf},
		{"fd_fdstat_get", words(2), opConst(2) + opConst(outside), fault},
		{"fd_prestat_get", words(2), opConst(3) + opConst(64), badf},
		{"fd_seek", i32 + i64 + words(2), opConst(1) + opConst64 + opConst(0) + opConst(0), spipe},
		{"fd_close", i32, opConst(1), success},
		{"fd_close", i32, opConst(3), badf},
		{"poll_oneoff", words(4), opConst(64) + opConst(256) + opConst(0) + opConst(32), inval},
		{"poll_oneoff", words(4), opConst(64) + opConst(256) + opConst(1<<30) + opConst(32), inval},
		{"poll_oneoff", words(4), opConst(outside) + opConst(256) + opConst(1) + opConst(32), fault},
		{"poll_oneoff", words(4), opConst(64) + opConst(outside) + opConst(1) + opConst(32), fault},
		{"poll_oneoff", words(4), opConst(64) + opConst(256) + opConst(1) + opConst(32), success},
		{"random_get", words(2), opConst(64) + opConst(-1), fault},
		{"random_get", words(2), opConst(64) + opConst(16), success},
		{"proc_raise", i32, opConst(9), nosys},
		{"sched_yield", "", "", success},
	}
	e := newEngine(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			module := wasmModule{
				imports: []wasmImport{{"wasi_snapshot_preview1", c.name, c.params, i32}},
				handler: []byte(c.args + opCall(0) + opConst(c.want) + "\x47\x04\x40\x00\x0b" + opConst(4096)), // trap if another
			}
			m, err := e.Compile(t.Context(), c.name, module.assemble(), testLimits())
			require.NoError(t, err)
			o := m.Invoke(t.Context(), newCall("", nil))
			require.Equal(t, runtime.OK, o.Class, "%s is not answered with %d: %v", c.name, c.want, o.Err)
		})
	}
}

const opConst64 = "\x42\x00"

func i32x(n int) (s string) {
	for range n {
		s += i32
	}
	return s
}
