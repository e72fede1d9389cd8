package main

import (
	"os/exec"
	"testing"

	"github.com/longshore/longshore/runtime"
)

// newTestBench builds the guests.
func newTestBench(t *testing.T) *bench {
	t.Helper()
	for _, tool := range []string{"clang", "wasm-ld"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("guests in C can't be built: ", err)
		}
	}
	b := newBench(true)
	if err := b.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFuel_IsTheSameCompiledAndInterpretedAndASecondTime(t *testing.T) {
	if testing.Short() {
		t.Skip("an interpreter initialises a Go guest")
	}
	b := newTestBench(t)
	defer func() {
		if err := b.close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	if err := b.sameFuel(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestGuests_NoticeAWrongResult(t *testing.T) {
	b := newTestBench(t)
	for _, w := range workloads() {
		want, err := b.plain.result(t.Context(), w.guest, w.number, w.little)
		if err != nil {
			t.Fatal(err)
		}
		if o := b.own.send(t.Context(), w.guest, message(w.number, w.little, want+1), unbounded()); o.Class == runtime.OK {
			t.Errorf("workload %s takes a wrong result for right", w.name)
		}
	}
	if err := b.close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
