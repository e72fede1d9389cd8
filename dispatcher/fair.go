package dispatcher

import (
	"math"
	"time"

	"github.com/longshore/longshore/limits"
)

// Share says what a tenant gets of the workers while others want them too. A tenant that is alone gets all of them.
type Share struct {
	// Weight is how much execution it gets in proportion to others. 0 is 1.
	Weight int
	// FloorPercent of all recent execution comes before any weight: with less, it is served first.
	FloorPercent int
}

// withDefaults returns s with its unset values filled in.
func (s Share) withDefaults() Share {
	if s.Weight == 0 {
		s.Weight = 1
	}
	return s
}

// usage is how much a tenant, or all of them, ran lately: seconds of a worker, of which half is forgotten in each
// limits.FairHalfLife, and what runs now.
type usage struct {
	ended   float64 // seconds, as of at
	at      time.Time
	running int     // turns that are not over
	began   float64 // sum of the seconds at which they began, since an arbitrary time
}

// recent returns the usage at a time, in seconds.
func (u *usage) recent(now time.Time, clock float64) float64 {
	return u.left(now) + float64(u.running)*clock - u.began
}

func (u *usage) left(now time.Time) float64 {
	if u.ended == 0 {
		return 0
	}
	return u.ended * math.Exp2(-now.Sub(u.at).Seconds()/limits.FairHalfLife.Seconds())
}

func (u *usage) begin(clock float64) {
	u.running++
	u.began += clock
}

// end replaces the time that a turn ran, from began on, by what it cost.
func (u *usage) end(now time.Time, began, cost float64) {
	u.ended, u.at = u.left(now)+cost, now
	u.running--
	if u.began -= began; u.running == 0 {
		u.began = 0 // without what rounding left
	}
}

// cost returns the seconds that a turn counts for: those that it held a worker, or those that its instructions are worth, so
// that neither a slow machine nor a coarse clock makes anybody's work cheap.
func cost(held time.Duration, fuel int64) float64 {
	return max(held.Seconds(), float64(fuel)/limits.FairFuelPerSec)
}

// rank says how much a tenant is owed: whoever has the least comes next.
type rank struct {
	aboveFloor bool
	share      float64 // of its floor, or by its weight
	lastServed uint64
}

func (r rank) before(other rank) bool {
	switch {
	case r.aboveFloor != other.aboveFloor:
		return other.aboveFloor
	case r.share < other.share:
		return true
	case r.share > other.share:
		return false
	}
	return r.lastServed < other.lastServed
}

// rank returns the rank of a tenant that used so much of what all used.
func (s Share) rank(used, all float64, lastServed uint64) rank {
	if floor := all * float64(s.FloorPercent) / 100; used < floor {
		return rank{share: used / floor, lastServed: lastServed}
	}
	return rank{aboveFloor: true, share: used / float64(s.Weight), lastServed: lastServed}
}
