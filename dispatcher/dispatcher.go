package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore/longshore/limits"
)

// Dispatcher runs consumers on a queue. Make one with New.
type Dispatcher struct {
	options  Options // without its consumers
	shared   shared
	started  atomic.Bool
	swapping chan struct{} // full while a swap, or what waits for one, is under way

	running sync.WaitGroup // of consumers; added to under mu, while phases are set

	mu        sync.Mutex
	consumers []*consumer
	ending    map[*consumer]struct{} // of earlier plans, until their last delivery ended
	phases    *phases                // while consumers may be started
	stopped   bool
	logs      map[string]*guestLog // by tenant
}

// New makes a Dispatcher, or returns every fault of o at once. It starts nothing.
func New(o Options) (*Dispatcher, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	crew := &crew{}
	d := &Dispatcher{
		options: o,
		shared: shared{
			queue:     o.Queue,
			context:   o.Context,
			observer:  o.Observer,
			log:       o.Logger,
			workers:   newWorkers(o.Workers, o.Shares, o.Caps, crew),
			crew:      crew,
			hostSlots: newBudget(room{messages: limits.HostInFlightMsgs, bytes: limits.HostInFlightBytes}),
			maxAge:    o.MaxAge,
			hooks:     o.Hooks,
			inquiries: newInquiries(),
			audience:  &audience{},
		},
		swapping: make(chan struct{}, 1),
		ending:   map[*consumer]struct{}{},
	}
	d.shared.others = d.current
	d.options.Consumers = nil
	d.replace(o.Consumers)
	return d, nil
}

// ErrStarted says that Run was called twice.
var ErrStarted = errors.New("dispatcher: already started")

// Run runs all consumers until ctx is done, and returns when everything that it started has ended. When ctx is done it
// claims nothing more; messages that wait for a worker are released; running guests get the grace period, then they are
// stopped, and their messages released. No message is charged for that. The error is nil or ErrStarted.
func (d *Dispatcher) Run(ctx context.Context) error {
	if d.started.Swap(true) {
		return ErrStarted
	}
	p := newPhases(ctx)
	defer p.end()
	d.begin(&p) //nolint:contextcheck // three contexts end the work, not one: they travel in phases
	<-ctx.Done()
	d.startNoMore()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.running.Wait()
	}()
	p.windDown(d.options.Grace, ended)
	<-ended
	d.shared.crew.end()
	return nil
}

// begin starts the consumers that there are, and lets swaps start others.
func (d *Dispatcher) begin(p *phases) {
	d.swapping <- struct{}{}
	defer func() { <-d.swapping }()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.phases = p
	for _, c := range d.consumers {
		d.start(c)
	}
	d.running.Go(func() { d.tellExpired(p) })
}

func (d *Dispatcher) startNoMore() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.phases, d.stopped = nil, true
}

// start runs a consumer until it is retired or the dispatcher stops.
func (d *Dispatcher) start(c *consumer) {
	p := *d.phases
	p.claim, c.retire = context.WithCancel(p.claim)
	d.running.Go(func() {
		defer c.retire()
		c.run(p)
		d.ended(context.WithoutCancel(p.settle), c)
	})
}

// Consumers returns the state of every consumer, in the order in which they were given.
func (d *Dispatcher) Consumers() []ConsumerStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]ConsumerStatus, 0, len(d.consumers))
	for _, c := range d.consumers {
		s := c.status()
		for earlier := range d.ending {
			if earlier != c && earlier.name() == c.name() {
				s.Draining += earlier.status().InFlight
			}
		}
		out = append(out, s)
	}
	return out
}

// Resume lets those paused consumers go on for which which holds, and returns how many they were. Each claims again; if the
// cause of its pause is still there, it pauses again.
func (d *Dispatcher) Resume(which func(ConsumerStatus) bool) int {
	n := 0
	for _, c := range d.current() {
		if which(c.status()) && c.resume() {
			n++
		}
	}
	return n
}

// current returns the consumers of the plan.
func (d *Dispatcher) current() []*consumer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.consumers)
}

// phases are the three ends of a dispatcher's work, each later than the one before it.
type phases struct {
	stop   context.Context // done: the dispatcher is stopping, and whatever waits for others gives up
	claim  context.Context // done: nothing more is claimed or started; for one consumer that may be earlier
	run    context.Context // done: running guests are stopped
	settle context.Context // done: settlements that the storage still refuses are given up

	cut    context.CancelCauseFunc
	giveUp context.CancelFunc
}

var errStopping = errors.New("the host is stopping")

func newPhases(ctx context.Context) phases {
	base := context.WithoutCancel(ctx)
	p := phases{stop: ctx, claim: ctx}
	p.run, p.cut = context.WithCancelCause(base)
	p.settle, p.giveUp = context.WithCancel(base)
	return p
}

// windDown lets the work end by itself for the grace period, then cuts it, and gives settlements a last moment.
func (p phases) windDown(grace time.Duration, ended <-chan struct{}) {
	if endsWithin(ended, grace) {
		return
	}
	p.cut(fmt.Errorf("%w: the grace period of %s is over", errStopping, grace))
	if endsWithin(ended, limits.SettleAtStop) {
		return
	}
	p.giveUp()
}

func (p phases) end() {
	p.cut(nil)
	p.giveUp()
}

func endsWithin(ended <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}
