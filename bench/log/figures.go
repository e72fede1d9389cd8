package main

import (
	"fmt"
	"runtime"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
)

// span formats the smallest and the largest of rates.
func span(rates []float64) string {
	return fmt.Sprintf("%.0f–%.0f", figures.Quantile(rates, 0), figures.Quantile(rates, 1))
}

// medianRatio returns the median of a[i]/b[i]: what was measured in one round is compared within it.
func medianRatio(a, b []float64) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return figures.Median(ratios)
}

// heapBytes returns the bytes of live objects.
func heapBytes() float64 {
	runtime.GC()
	runtime.GC() // finalizers and pools of the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// restingHeapBytes returns what is live once the work in the background is done, and Badger's pools of buffers, which give
// one back every two seconds, are empty: when it has not changed for a while.
func restingHeapBytes() float64 {
	const (
		pause   = 2 * time.Second
		samples = 8 // in a row that differ by less than 1 % from the one before
		most    = 45
	)
	last := heapBytes()
	for i, steady := 0, 0; i < most && steady < samples; i++ {
		time.Sleep(pause)
		now := heapBytes()
		if steady++; now < last*0.99 || now > last*1.01 {
			steady = 0
		}
		last = now
	}
	return last
}
