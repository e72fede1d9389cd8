package config

import (
	"time"

	"github.com/longshore/longshore/limits"
)

// Breaker is when a consumer holds itself because too many of its messages fail. The zero value is never.
type Breaker struct {
	Percent int           // of those that were handled in the window; 0 is never
	Window  time.Duration // in which they are counted
	Calls   int           // that have to be handled in it first
}

// breaker returns what an entry says of its breaker, and reports what can't be.
func (p *planner) breaker(path string, f *breakerFile) Breaker {
	if f == nil {
		return Breaker{}
	}
	b := Breaker{Percent: int(orNumber(f.Percent, 0)), Window: limits.BreakerWindow, Calls: int(orNumber(f.Calls, limits.BreakerCalls))}
	if f.Window == nil {
		return b
	}
	b.Window = time.Duration(*f.Window)
	if window := path + ".window"; (b.Window < time.Second || b.Window > 24*time.Hour) && p.sound(window) {
		p.add(window, FormatDuration(b.Window)+" is out of bounds", "want 1s to 24h")
	}
	return b
}
