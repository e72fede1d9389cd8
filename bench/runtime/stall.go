package main

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"time"

	"github.com/longshore/longshore/internal/hostile"
	"github.com/longshore/longshore/runtime"
)

// warmUp is when an endless guest does what it is there for.
const warmUp = 100 * time.Millisecond

// beside runs work while a guest runs that never ends.
func (b *bench) beside(ctx context.Context, w workload, work func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan runtime.Outcome, 1)
	go func() { ended <- b.own.send(ctx, w.guest, message(w.number, 0, 0), unbounded()) }()
	time.Sleep(warmUp)
	err := work()
	cancel()
	if o := <-ended; o.Class != runtime.Interrupted {
		return fmt.Errorf("guest %s should run until it is interrupted: %s: %w", w.name, o.Reason(), o.Err)
	}
	return err
}

// collections measures how long the garbage collector of the host waits for guests.
func (b *bench) collections(ctx context.Context) error {
	collect := func() (series, error) {
		goruntime.GC() // what others left behind, and
		goruntime.GC() // what their finalizers kept
		times, err := interleaved(b.collects, func() error { goruntime.GC(); return nil })
		if err != nil {
			return nil, err
		}
		return times[0], nil
	}
	alone, err := collect()
	if err != nil {
		return err
	}
	note("collections alone: mean %v, worst %v", alone.mean(), alone.worst())
	var all series
	for _, w := range endless() {
		var times series
		err := b.beside(ctx, w, func() (err error) {
			times, err = collect()
			return err
		})
		if err != nil {
			return err
		}
		note("collections beside %s: mean %v, worst %v", w.name, times.mean(), times.worst())
		all = append(all, times...)
	}
	figure("gc_stall_ms_avg", milliseconds(all.mean()))
	figure("gc_stall_ms_worst", milliseconds(all.worst()))
	return nil
}

// deadlines measures how long after its deadline a guest that never ends gives up: the endless ones, and those of the corpus
// of hostile modules.
func (b *bench) deadlines(ctx context.Context) error {
	var worst time.Duration
	for _, w := range endless() {
		if err := b.late(ctx, b.own, w.name, w.guest, message(w.number, 0, 0), &worst); err != nil {
			return err
		}
	}
	for _, m := range hostile.Corpus() {
		if !m.Endless {
			continue
		}
		p, err := newOwn(ctx, runtime.Options{}, runtime.Instances{}, map[string][]byte{m.Name: m.Wasm()})
		if err != nil {
			return err
		}
		err = b.late(ctx, p, m.Name, m.Name, []byte("hello"), &worst)
		if err := errors.Join(err, p.close(ctx)); err != nil {
			return err
		}
	}
	figure("deadline_overrun_ms_max", milliseconds(worst))
	return nil
}

// late gives a guest little time, and raises worst to what it took beyond that.
func (b *bench) late(ctx context.Context, p *own, name, guest string, data []byte, worst *time.Duration) error {
	for range b.rounds / 3 {
		start := time.Now()
		o := p.send(ctx, guest, data, hostile.Timed())
		late := time.Since(start) - hostile.StopDuration
		if o.Class != runtime.Timeout {
			return fmt.Errorf("guest %s should time out: %s: %w", name, o.Reason(), o.Err)
		}
		if late > *worst {
			*worst = late
			note("%s: %v after its deadline, the latest so far", name, late)
		}
	}
	return nil
}

// neighbours measures what a tenant that fills its one worker with guests that never end does to the messages of another
// one, which has a worker too.
func (b *bench) neighbours(ctx context.Context) error {
	for _, handler := range []struct {
		name  string
		lasts time.Duration
	}{{"10ms", 10 * time.Millisecond}, {"1ms", time.Millisecond}} {
		if err := b.neighbour(ctx, handler.name, handler.lasts); err != nil {
			return err
		}
	}
	return nil
}

// neighbour measures a handler that lasts so long, beside each endless guest. The worst ratio counts.
func (b *bench) neighbour(ctx context.Context, name string, lasts time.Duration) error {
	const fib = 3
	amount, want, err := b.lasting(ctx, lasts)
	if err != nil {
		return err
	}
	messages := int(b.neighbourTime / lasts)
	handle := func() ([]series, error) {
		return interleaved(messages, func() error { return b.own.run(ctx, guestC, fib, amount, want) })
	}
	var worst float64
	for _, w := range endless() {
		alone, err := handle()
		if err != nil {
			return err
		}
		var noisy []series
		err = b.beside(ctx, w, func() (err error) {
			noisy, err = handle()
			return err
		})
		if err != nil {
			return err
		}
		quiet, loud := alone[0].quantile(0.99), noisy[0].quantile(0.99)
		note("neighbour of %s: p99 of a handler of %s is %v alone, %v beside it", w.name, name, quiet, loud)
		worst = max(worst, over(loud, quiet))
	}
	figure("neighbour_p99_ratio_"+name, worst)
	return nil
}

// lasting returns an amount of work, with its result, that takes the guest about so long: at its best, as what it takes once
// may be anything.
func (b *bench) lasting(ctx context.Context, d time.Duration) (amount, want uint32, err error) {
	const tries, fib = 20, 3
	for amount = 10; ; amount++ {
		if want, err = b.plain.result(ctx, guestC, fib, amount); err != nil {
			return 0, 0, err
		}
		times, err := interleaved(tries, func() error { return b.own.run(ctx, guestC, fib, amount, want) })
		if err != nil || times[0].best() > d*4/5 {
			return amount, want, err
		}
	}
}
