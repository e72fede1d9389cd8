package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore/longshore/limits"
)

// Dispatcher runs consumers on a queue. Make one with New.
type Dispatcher struct {
	grace     time.Duration
	consumers []*consumer
	crew      *crew
	started   atomic.Bool
}

// New makes a Dispatcher, or returns every fault of o at once. It starts nothing.
func New(o Options) (*Dispatcher, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	crew := &crew{}
	shared := shared{
		queue:     o.Queue,
		context:   o.Context,
		observer:  o.Observer,
		log:       o.Logger,
		workers:   newWorkers(o.Workers, o.Shares, crew),
		crew:      crew,
		hostSlots: newBudget(room{messages: limits.HostInFlightMsgs, bytes: limits.HostInFlightBytes}),
		guests:    newGuestLogs(o.Logger, o.Consumers),
		maxAge:    o.MaxAge,
		hooks:     o.Hooks,
	}
	d := &Dispatcher{grace: o.Grace, crew: shared.crew}
	for _, c := range o.Consumers {
		d.consumers = append(d.consumers, newConsumer(c, shared))
	}
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
	var running sync.WaitGroup
	for _, c := range d.consumers {
		running.Go(func() { c.run(p) }) //nolint:contextcheck // three contexts end the work, not one: they travel in phases
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		running.Wait()
	}()
	<-ctx.Done()
	p.windDown(d.grace, ended)
	<-ended
	d.crew.end()
	return nil
}

// Consumers returns the state of every consumer, in the order of the options.
func (d *Dispatcher) Consumers() []ConsumerStatus {
	out := make([]ConsumerStatus, 0, len(d.consumers))
	for _, c := range d.consumers {
		out = append(out, c.status())
	}
	return out
}

// Resume lets those paused consumers go on for which which holds, and returns how many they were. Each claims again; if the
// cause of its pause is still there, it pauses again.
func (d *Dispatcher) Resume(which func(ConsumerStatus) bool) int {
	n := 0
	for _, c := range d.consumers {
		if which(c.status()) && c.resume() {
			n++
		}
	}
	return n
}

// phases are the three ends of a dispatcher's work, each later than the one before it.
type phases struct {
	claim  context.Context // done: nothing more is claimed or started
	run    context.Context // done: running guests are stopped
	settle context.Context // done: settlements that the storage still refuses are given up

	cut    context.CancelCauseFunc
	giveUp context.CancelFunc
}

var errStopping = errors.New("the host is stopping")

func newPhases(ctx context.Context) phases {
	base := context.WithoutCancel(ctx)
	p := phases{claim: ctx}
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
