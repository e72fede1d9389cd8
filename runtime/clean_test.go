package runtime_test

import (
	"bytes"
	"context"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/runtime/internal/cow"
	"github.com/longshore/longshore/wasi/messaging"
)

// Instructions of small guests that look at their state, and trap if they find it written.
const (
	getGlobal0, setGlobal0 = "\x23\x00", "\x24\x00"
	trapIf                 = "\x04\x40\x00\x0b" // if unreachable end
	tableGet0, tableSet0   = "\x25\x00", "\x26\x00"
	refFunc0, refNull      = "\xd2\x00", "\xd0\x70"
	refIsNull              = "\xd1"
	memorySize             = "\x3f\x00"
	opEqz, opNe, opI32Ge   = "\x45", "\x47", "\x4e"
	tableSize0             = "\xfc\x10\x00"
	tableGrow0             = "\xfc\x0f\x00"
)

// ways are the ways of cleaning an instance that this machine has.
func ways(t *testing.T) map[string]*runtime.Engine {
	t.Helper()
	engines := map[string]*runtime.Engine{}
	o := runtime.Options{CacheDir: t.TempDir()} // one compilation for all
	for _, method := range []cow.Method{cow.Scan, cow.Pagemap, cow.Copy, cow.Heap} {
		e, err := runtime.NewWith(t.Context(), o, method)
		if err != nil && (method != cow.Heap || goruntime.GOOS != "linux") {
			t.Logf("not tested: %v", err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, method.String(), e.Cleaning())
		t.Cleanup(func() { require.NoError(t, e.Close(context.WithoutCancel(t.Context()))) })
		engines[method.String()] = e
	}
	require.NotEmpty(t, engines)
	return engines
}

// stateful are guests that write everything they have, and trap if they find it written before. The last three change what
// a snapshot doesn't hold, so that they get new instances.
func stateful() map[string]wasmModule {
	memory := opLoad(4096) + trapIf + opStore(4096) +
		// what grew is zero, and is written to its end
		memorySize + opConst(1) + opNe + trapIf + opConst(3) + opGrow + opDrop +
		opLoad(2*65536) + trapIf + opStore(2*65536) + opLoad(4*65536-4) + trapIf + opStore(4*65536-4) +
		getGlobal0 + trapIf + opConst(1) + setGlobal0 +
		opLoad(1024) + opConst(7) + opNe + trapIf + opConst(1024) + opConst(8) + "\x36\x02\x00"
	seven := []byte{7, 0, 0, 0}
	table := opConst(3) + tableGet0 + refIsNull + opEqz + trapIf + opConst(3) + refFunc0 + tableSet0
	return map[string]wasmModule{
		"Memory":  {handler: []byte(memory + opConst(0)), data: seven},
		"Maximum": {handler: []byte(memory + opConst(1019) + opGrow + opDrop + opConst(0)), data: seven}, // 1023 pages of 1024
		"All":     {handler: []byte(memory + opConst(1020) + opGrow + opConst(-1) + "\x46" + trapIf + opConst(0)), data: seven},
		"Tables":  {table: true, handler: []byte(table + memory + opConst(0)), data: seven},
		"TableGrows": {table: true, data: seven, handler: []byte(tableSize0 + opConst(10) + opNe + trapIf +
			refNull + opConst(5) + tableGrow0 + opDrop + memory + opConst(0))},
		"Segments": {
			passive: []byte("xxxx"),
			handler: []byte(opConst(64) + opConst(0) + opConst(4) + opInit0 + opDataDrop0 + opConst(0)),
		},
	}
}

// No message sees what another one did, whichever way instances are cleaned.
func TestCleanInstance(t *testing.T) {
	for way, e := range ways(t) {
		for name, guest := range stateful() {
			t.Run(way+"/"+name, func(t *testing.T) {
				m, err := e.Compile(t.Context(), "small", guest.assemble(), testLimits())
				require.NoError(t, err)
				for range 5 {
					o := m.Invoke(t.Context(), newCall("", nil))
					require.Equal(t, runtime.OK, o.Class, o.Err)
				}
			})
		}
		t.Run(way+"/TheGuestsWouldNotice", func(t *testing.T) {
			for name, guest := range stateful() {
				m, err := e.CompileFor(t.Context(), "small", guest.assemble(), testLimits(), runtime.Instances{Reuse: true})
				require.NoError(t, err)
				require.Equal(t, runtime.OK, m.Invoke(t.Context(), newCall("", nil)).Class)
				require.Equal(t, runtime.Trap, m.Invoke(t.Context(), newCall("", nil)).Class, name)
			}
		})
		t.Run(way+"/Go", func(t *testing.T) {
			wasm, err := goGuestWasm()
			require.NoError(t, err)
			m, err := e.Compile(t.Context(), "guest", wasm, testLimits())
			require.NoError(t, err)
			for i := range 3 {
				require.Equal(t, `call 1, cell ""`, m.Invoke(t.Context(), newCall(fmt.Sprintf("remember %d", i), nil)).GuestText)
			}
			require.Equal(t, runtime.Trap, m.Invoke(t.Context(), newCall("remember-then-panic x", nil)).Class)
			require.Equal(t, `call 1, cell ""`, m.Invoke(t.Context(), newCall("remember y", nil)).GuestText)
			require.Equal(t, runtime.OutOfMemory, m.Invoke(t.Context(), newCall("hoard", nil)).Class)
			require.Equal(t, `call 1, cell ""`, m.Invoke(t.Context(), newCall("remember z", nil)).GuestText)
			concurrentMessages(t, m)
			require.NoError(t, m.Close(t.Context()))
		})
	}
}

// concurrentMessages sends messages from several goroutines, each of which must see its own alone.
func concurrentMessages(t *testing.T, m *runtime.Module) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 20 {
				secret := strings.Repeat(fmt.Sprintf("%d-%d ", i, j), 500)
				if o := m.Invoke(context.WithoutCancel(t.Context()), newCall("remember "+secret, nil)); o.GuestText != `call 1, cell ""` {
					t.Errorf("worker %d, message %d: %.100q %v", i, j, o.GuestText, o.Err)
				}
				call := newCall("echo "+secret, nil)
				o := m.Invoke(context.WithoutCancel(t.Context()), call)
				if out := call.Outbox(); o.Class != runtime.OK || len(out) != 1 || !bytes.Equal(out[0].Message.Data, []byte(strings.ToUpper(secret))) {
					t.Errorf("worker %d, message %d: %s", i, j, o.Reason())
				}
			}
		})
	}
	wg.Wait()
}

// What a call hands out is its own: neither the next message in the same instance nor the end of the module changes it.
func TestOutboxOutlivesTheInstance(t *testing.T) {
	wasm, err := goGuestWasm()
	require.NoError(t, err)
	m, err := newEngine(t).Compile(t.Context(), "guest", wasm, testLimits())
	require.NoError(t, err)
	var calls []*messaging.Call
	for i := range 5 {
		calls = append(calls, newCall(fmt.Sprintf("echo message %d", i), nil))
		require.Equal(t, runtime.OK, m.Invoke(t.Context(), calls[i]).Class)
	}
	refused := m.Invoke(t.Context(), newCall("remember x", nil))
	require.NoError(t, m.Close(t.Context()))
	for i, call := range calls {
		require.Equal(t, fmt.Sprintf("MESSAGE %d", i), string(call.Outbox()[0].Message.Data))
	}
	require.Equal(t, `call 1, cell ""`, refused.GuestText)
}

func TestSnapshot(t *testing.T) {
	t.Run("InitialisationIsNotRepeatedButItsStateIsThere", func(t *testing.T) {
		m := compile(t, wasmModule{
			data:    []byte{7, 0, 0, 0},
			start:   []byte(opConst(1028) + opLoad(1024) + "\x36\x02\x00"),
			init:    []byte(opConst(1032) + opLoad(1028) + "\x36\x02\x00" + opConst(2) + opGrow + opDrop),
			handler: []byte(opLoad(1032) + opConst(7) + opNe + trapIf + memorySize + opConst(3) + opNe + trapIf + opStore(1032) + opConst(0)),
		})
		for range 3 {
			o := m.Invoke(t.Context(), newCall("", nil))
			require.Equal(t, runtime.OK, o.Class, o.Err)
		}
	})
	t.Run("AModuleThatChangesATableAfterwardsHasItsInitialisation", func(t *testing.T) {
		m := compile(t, wasmModule{
			table:   true,
			init:    []byte(opStore(1024)),
			handler: []byte(opLoad(1024) + opEqz + trapIf + opConst(3) + refFunc0 + tableSet0 + opConst(1024) + opConst(0) + "\x36\x02\x00" + opConst(0)),
		})
		for range 2 {
			o := m.Invoke(t.Context(), newCall("", nil))
			require.Equal(t, runtime.OK, o.Class, o.Err)
		}
	})
	for name, init := range map[string]wasmModule{
		"ATable":   {table: true, init: []byte(opConst(3) + refFunc0 + tableSet0)},
		"ASegment": {passive: []byte("x"), start: []byte(opDataDrop0)},
	} {
		t.Run("AnInitialisationThatChanges"+name+"IsRefused", func(t *testing.T) {
			init.handler = []byte(opConst(0))
			_, err := newEngine(t).Compile(t.Context(), "bad", init.assemble(), testLimits())
			var refused *runtime.ModuleError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, runtime.StageInitialise, refused.Stage)
			require.ErrorContains(t, err, "changes a table, drops a segment")
		})
	}
}

func TestPool(t *testing.T) {
	ok := wasmModule{handler: []byte(opConst(0))}
	t.Run("AHealthyInstanceIsKept", func(t *testing.T) {
		m := compile(t, ok)
		require.Zero(t, m.Idle())
		for range 3 {
			require.Equal(t, runtime.OK, m.Invoke(t.Context(), newCall("", nil)).Class)
			require.Equal(t, 1, m.Idle())
		}
	})
	for name, body := range map[string]string{"ATrap": opUnreachable, "OutOfFuel": opLoop("")} {
		t.Run("AnInstanceIsThrownAwayAfter"+name, func(t *testing.T) {
			m := compile(t, wasmModule{handler: []byte(body)})
			require.NotEqual(t, runtime.OK, m.Invoke(t.Context(), newCall("", func(o *messaging.CallOptions) { o.Limits.Fuel = 1e6 })).Class)
			require.Zero(t, m.Idle())
		})
	}
	t.Run("ItKeepsNoMoreThanThereAreProcessors", func(t *testing.T) {
		m := goGuest(t)
		concurrentMessages(t, m)
		require.LessOrEqual(t, m.Idle(), goruntime.GOMAXPROCS(0))
	})
	t.Run("ItKeepsNoMoreThanTheHostMay", func(t *testing.T) {
		e := newEngine(t)
		var modules []*runtime.Module
		for i := range limits.IdleInstances + 5 {
			m, err := e.Compile(t.Context(), "small", ok.assemble(), testLimits())
			require.NoError(t, err)
			require.Equal(t, runtime.OK, m.Invoke(t.Context(), newCall("", nil)).Class, i)
			modules = append(modules, m)
		}
		idle := 0
		for _, m := range modules {
			idle += m.Idle()
		}
		require.Equal(t, limits.IdleInstances, idle)
		require.NoError(t, modules[0].Close(t.Context()))
		require.Equal(t, runtime.OK, modules[limits.IdleInstances].Invoke(t.Context(), newCall("", nil)).Class)
		require.Equal(t, 1, modules[limits.IdleInstances].Idle(), "there is room again")
	})
	t.Run("IdleInstancesAreTrimmedAndThenThrownAway", func(t *testing.T) {
		m := compile(t, stateful()["Memory"])
		require.Equal(t, runtime.OK, m.Invoke(t.Context(), newCall("", nil)).Class)
		m.SweepAt(time.Now().Add(limits.InstanceTrim + time.Second))
		require.Equal(t, 1, m.Idle())
		require.Equal(t, runtime.OK, m.Invoke(t.Context(), newCall("", nil)).Class)
		m.SweepAt(time.Now().Add(limits.InstanceIdle - time.Second))
		require.Equal(t, 1, m.Idle())
		m.SweepAt(time.Now().Add(limits.InstanceIdle + time.Second))
		require.Zero(t, m.Idle())
		require.Equal(t, runtime.OK, m.Invoke(t.Context(), newCall("", nil)).Class)
	})
	t.Run("SweepingAndClosingGoTogetherWithMessages", func(t *testing.T) {
		m := compile(t, stateful()["Memory"])
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for range 200 {
					if o := m.Invoke(context.WithoutCancel(t.Context()), newCall("", nil)); o.Class != runtime.OK && o.Class != runtime.ModuleFault {
						t.Error(o.Class, o.Err)
					}
				}
			})
		}
		for i := range 100 {
			m.SweepAt(time.Now().Add(limits.InstanceTrim + time.Duration(i%2)*limits.InstanceIdle))
		}
		require.NoError(t, m.Close(t.Context()))
		wg.Wait()
	})
}

func TestReuse(t *testing.T) {
	// counter traps at its fourth message in one instance.
	counter := wasmModule{handler: []byte(opLoad(4096) + opConst(3) + opI32Ge + trapIf +
		opConst(4096) + opLoad(4096) + opConst(1) + "\x6a" + "\x36\x02\x00" + opConst(0))}
	reuse := func(t *testing.T, o runtime.Instances) *runtime.Module {
		t.Helper()
		o.Reuse = true
		m, err := newEngine(t).CompileFor(t.Context(), "small", counter.assemble(), testLimits(), o)
		require.NoError(t, err)
		return m
	}
	classes := func(t *testing.T, m *runtime.Module, n int) (all []string) {
		t.Helper()
		for range n {
			all = append(all, m.Invoke(t.Context(), newCall("", nil)).Reason())
		}
		return all
	}
	const trap = "guest-trap: unreachable"
	t.Run("AnInstanceKeepsItsStateUntilItFails", func(t *testing.T) {
		require.Equal(t, []string{"", "", "", trap, "", "", "", trap}, classes(t, reuse(t, runtime.Instances{}), 8))
	})
	t.Run("AnInstanceBeginsAnewAfterItsMessages", func(t *testing.T) {
		require.Equal(t, make([]string, 9), classes(t, reuse(t, runtime.Instances{MaxMessages: 3}), 9))
	})
	t.Run("AnInstanceBeginsAnewAtItsAge", func(t *testing.T) {
		require.Equal(t, make([]string, 9), classes(t, reuse(t, runtime.Instances{MaxAge: 1}), 9))
	})
	t.Run("AModuleThatIsCompiledTwiceHasTwoStates", func(t *testing.T) { // as that of two tenants is
		e := newEngine(t)
		var both []*runtime.Module
		for range 2 {
			m, err := e.CompileFor(t.Context(), "small", counter.assemble(), testLimits(), runtime.Instances{Reuse: true})
			require.NoError(t, err)
			both = append(both, m)
		}
		for range 3 {
			require.Equal(t, []string{""}, classes(t, both[0], 1))
			require.Equal(t, []string{""}, classes(t, both[1], 1))
		}
		require.Equal(t, []string{trap}, classes(t, both[0], 1))
	})
	t.Run("EachMessageHasItsOwnFuel", func(t *testing.T) {
		m := reuse(t, runtime.Instances{})
		first := m.Invoke(t.Context(), newCall("", nil)).FuelUsed
		require.Positive(t, first)
		require.Equal(t, first, m.Invoke(t.Context(), newCall("", nil)).FuelUsed)
	})
	t.Run("TrimmingLeavesItsStateAlone", func(t *testing.T) {
		m := reuse(t, runtime.Instances{})
		require.Equal(t, []string{"", "", ""}, classes(t, m, 3))
		m.SweepAt(time.Now().Add(limits.InstanceTrim + time.Second))
		require.Equal(t, []string{trap}, classes(t, m, 1))
	})
}

func TestWarmUp(t *testing.T) {
	// The handler traps unless the function f left a 1.
	module := func(name string) wasmModule {
		return wasmModule{extra: name, extraBody: opStore(2048) + opConst(0) + opDrop, handler: []byte(opLoad(2048) + opEqz + trapIf + opConst(0))}
	}
	invoke := func(t *testing.T, m wasmModule, warmUp string) string {
		t.Helper()
		module, err := newEngine(t).CompileFor(t.Context(), "small", m.assemble(), testLimits(), runtime.Instances{WarmUp: warmUp})
		require.NoError(t, err)
		return module.Invoke(t.Context(), newCall("", nil)).Reason()
	}
	t.Run("TheFunctionOfTheSDKIsRunBeforeTheFirstMessage", func(t *testing.T) {
		require.Empty(t, invoke(t, module("longshore:guest/warm-up@0.1.0"), ""))
	})
	t.Run("TheDeployerMayNameAnother", func(t *testing.T) {
		require.Empty(t, invoke(t, module("heat"), "heat"))
		require.Equal(t, "guest-trap: unreachable", invoke(t, module("heat"), ""))
	})
	for name, c := range map[string]struct{ export, asked, words string }{
		"OneThatIsntThereIsRefused":       {"heat", "warmth", `no warm-up: the module doesn't export the function "warmth"`},
		"OneThatTakesParametersIsRefused": {"heat", "cabi_realloc", "() -> () is right"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newEngine(t).CompileFor(t.Context(), "small", module(c.export).assemble(), testLimits(), runtime.Instances{WarmUp: c.asked})
			require.ErrorContains(t, err, c.words)
		})
	}
	t.Run("OneThatTrapsIsRefused", func(t *testing.T) {
		m := module("heat")
		m.extraBody = opUnreachable
		_, err := newEngine(t).CompileFor(t.Context(), "small", m.assemble(), testLimits(), runtime.Instances{WarmUp: "heat"})
		require.ErrorContains(t, err, "guest-trap: warm-up")
	})
}
