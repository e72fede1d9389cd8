package dispatcher

import (
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
)

// divide runs the guest on deliveries. If it fails on several in a way that says nothing about which is to blame, each half
// is run again, and so on, so that what one message breaks is charged to that one alone. All calls together get
// limits.BatchTimes of the time of one; what is not told apart by then is given back, and is run alone the next time.
func (c *consumer) divide(p phases, j *job, open []*delivery) {
	left := c.Limits.CallDuration
	if len(open) > 1 {
		left *= limits.BatchTimes
	}
	for todo := [][]*delivery{open}; len(todo) > 0; {
		some := todo[0]
		todo = todo[1:]
		allotted := min(left, c.Limits.CallDuration)
		if allotted <= 0 {
			unresolved(some)
			continue
		}
		began := time.Now()
		r := c.call(p, j, some, allotted)
		left -= time.Since(began) - r.paused
		short := r.outcome.Class == runtime.Timeout && allotted < c.Limits.CallDuration
		switch {
		case divisible(r.outcome.Class, len(some)):
			r.outbox.release()
			first, second := halves(some)
			todo = append([][]*delivery{first, second}, todo...)
		case short:
			r.outbox.release()
			unresolved(some)
		default:
			j.runs = append(j.runs, r)
			c.conclude(r)
		}
	}
}

// halves splits what is more than one, the first half being the larger by one if they differ.
func halves[T any](all []T) (first, second []T) {
	middle := (len(all) + 1) / 2
	return all[:middle], all[middle:]
}

// divisible reports whether a call on n messages ended so that one of them may be to blame for all.
func divisible(c runtime.Class, n int) bool {
	switch c {
	case runtime.Trap, runtime.OutOfFuel, runtime.Timeout, runtime.OutOfMemory, runtime.StackOverflow, runtime.Exit, runtime.BadABI,
		runtime.HostCallLimit, runtime.HandleLimit, runtime.OutputLimit, runtime.HostPanic:
		return n > 1
	case runtime.OK, runtime.GuestError, runtime.Interrupted, runtime.ModuleFault:
	}
	return false
}

// unresolved says of deliveries that there was no time to tell which one is to blame.
func unresolved(deliveries []*delivery) {
	for _, d := range deliveries {
		d.comesTo(finding{end: atDivision})
	}
}
