package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
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

// deadlines measures how long after its deadline a guest that never ends gives up: the endless ones, and those of the corpus
// of hostile modules. What is late once may be the machine's doing; what is late in most tries is the guest's.
func (b *bench) deadlines(ctx context.Context) error {
	var once, mostly time.Duration
	late := func(p *own, name, guest string, data []byte) error {
		times, err := b.late(ctx, p, guest, data)
		if err != nil {
			return fmt.Errorf("guest %s: %w", name, err)
		}
		if times.worst() > once || times.quantile(0.5) > mostly {
			figures.Note("%s: %v after its deadline", name, times)
		}
		once, mostly = max(once, times.worst()), max(mostly, times.quantile(0.5))
		return nil
	}
	for _, w := range endless() {
		if err := late(b.own, w.name, w.guest, message(w.number, 0, 0)); err != nil {
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
		err = late(p, m.Name, m.Name, []byte("hello"))
		if err := errors.Join(err, p.close(ctx)); err != nil {
			return err
		}
	}
	figures.Print("deadline_overrun_ms_max", figures.Milliseconds(once))
	figures.Print("deadline_overrun_ms_mostly", figures.Milliseconds(mostly))
	return nil
}

// late gives a guest little time, a few times, and returns what it took beyond that.
func (b *bench) late(ctx context.Context, p *own, guest string, data []byte) (times series, err error) {
	for range max(b.rounds/3, 3) {
		start := time.Now()
		o := p.send(ctx, guest, data, hostile.Timed())
		if o.Class != runtime.Timeout {
			return nil, fmt.Errorf("should time out: %s: %w", o.Reason(), o.Err)
		}
		times = append(times, time.Since(start)-hostile.StopDuration)
	}
	return times, nil
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
		figures.Note("neighbour of %s: p99 of a handler of %s is %v alone, %v beside it", w.name, name, quiet, loud)
		worst = max(worst, over(loud, quiet))
	}
	figures.Print("neighbour_p99_ratio_"+name, worst)
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
