package config

import (
	"fmt"
	"time"

	"github.com/longshore/longshore/limits"
)

// Batch is how many messages a consumer's guest is handed in one call.
type Batch struct {
	Max    int           // 1 is each by itself
	Window time.Duration // that a claim waits for more messages
	Latest bool          // hands over only the newest message of each ordering key
}

// batch returns what an entry says of its batches, and reports what can't be.
func (p *planner) batch(path string, f *consumerFile, d Delivery) Batch {
	b := Batch{Max: 1, Latest: f.Coalesce == "latest"}
	if f.Batch != nil {
		b.Max = int(orNumber(f.Batch.Max, 1))
	}
	if b.Max > 1 {
		b.Window = limits.BatchWindowDefault
		if f.Batch.Window != nil {
			b.Window = time.Duration(*f.Batch.Window)
		}
	}
	most, window := path+".batch.max", path+".batch.window"
	if b.Max > d.Concurrency && p.sound(most) {
		p.add(most, fmt.Sprintf("%d is more than the concurrency of %d", b.Max, d.Concurrency), "want at most as many as may be in flight")
	}
	if b.Window > limits.BatchWindow && p.sound(window) {
		p.add(window, FormatDuration(b.Window)+" is too long", "want at most "+FormatDuration(limits.BatchWindow))
	}
	if all := limits.BatchTimes * d.Guest.CallDuration; b.Max > 1 && d.Lease <= all && p.sound(most) {
		p.add(p.nearer(path+".lease", most), fmt.Sprintf("the lease of %s is not longer than the %s that the calls of a batch may take", FormatDuration(d.Lease), FormatDuration(all)),
			fmt.Sprintf("want a lease longer than %d times the call time", limits.BatchTimes))
	}
	if b.Latest && b.Max <= 1 && p.sound(path+".coalesce") {
		p.add(path+".coalesce", "there is no batch", "want a batch of more than 1 beside it")
	}
	return b
}
