//go:build failpoint

package failpoint

import "sync"

// Enabled says whether the points are part of the program.
const Enabled = true

// point is what is known of one name.
type point struct {
	hits  int
	at    int // the hit that acts; 0 if none
	fired chan struct{}
	act   func() error
}

// registry holds the points of the process: the code that hits them has no place to keep them.
var registry = struct {
	sync.Mutex
	points map[string]*point
}{points: map[string]*point{}}

// Hit notes that the named moment has come. It returns the error of what was armed for this hit, after it was done in the
// caller's goroutine, else nil.
func Hit(name string) error {
	registry.Lock()
	p := lookup(name)
	p.hits++
	if p.at == 0 || p.hits != p.at {
		registry.Unlock()
		return nil
	}
	act, fired := p.act, p.fired
	registry.Unlock()
	close(fired)
	return act()
}

// Arm lets act happen, once, at the nth hit of the named point from now on, which is 1 or more. It returns a channel that
// is closed when that has come. Arming again replaces what was armed before. Safe for concurrent use.
func Arm(name string, nth int, act func() error) (fired <-chan struct{}) {
	registry.Lock()
	defer registry.Unlock()
	p := lookup(name)
	p.at, p.act, p.fired = p.hits+nth, act, make(chan struct{})
	return p.fired
}

// Reset forgets what was armed and counted.
func Reset() {
	registry.Lock()
	defer registry.Unlock()
	clear(registry.points)
}

// Hits returns how often the named point was hit since Reset.
func Hits(name string) int {
	registry.Lock()
	defer registry.Unlock()
	return lookup(name).hits
}

// lookup is called under the registry's lock.
func lookup(name string) *point {
	p := registry.points[name]
	if p == nil {
		p = &point{}
		registry.points[name] = p
	}
	return p
}
