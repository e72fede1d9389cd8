package main

import (
	"bytes"
	"math"
	"testing"
)

func TestPreinitialise_LeavesAGuestThatWorksWithoutInitialisation(t *testing.T) {
	b := newTestBench(t)
	p, err := newPooled(t.Context(), b.guests[guestGo])
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	for range 3 {
		if err := p.fresh(guestGo, goTouch, dirtyPages, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestSigned_ReadsWhatItWrites(t *testing.T) {
	for _, v := range []int64{0, 1, -1, 63, 64, -64, -65, 1 << 31, -1 << 31, math.MaxInt64, math.MinInt64} {
		if got := readSigned(bytes.NewReader(appendSigned(nil, v))); got != v {
			t.Errorf("%d is read as %d", v, got)
		}
	}
}
