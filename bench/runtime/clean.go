package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
)

// dirtyPages is what a handler with a little state writes to.
const dirtyPages = 10

// touching has ours dirty pages in a clean instance. touch answers what a byte holds then: 1, if nothing is left of the
// message before.
func (b *bench) touching(ctx context.Context, guest string, number uint32) func() error {
	return func() error { return b.own.run(ctx, guest, number, dirtyPages, 1) }
}

// clean measures what a message costs that starts from a clean instance.
func (b *bench) clean(ctx context.Context) error {
	if err := b.cleanGo(ctx); err != nil {
		return err
	}
	times, err := interleaved(b.rounds, repeated(b.calls, b.touching(ctx, guestC, cTouch)))
	if err != nil {
		return err
	}
	figures.Print("clean_us_c_10pages", figures.Microseconds(times[0].best())/float64(b.calls))
	if err := b.cleanOverReuse(ctx); err != nil {
		return err
	}
	return b.twoWorkers(ctx)
}

// cleanGo compares a message in a clean instance of the Go guest with a new instance of wasmtime's, which initialises
// itself, and with a new one from wasmtime's pool, of a module that was initialised before.
func (b *bench) cleanGo(ctx context.Context) error {
	const fresh = 10 // instances of wasmtime's that are timed together
	theirs, err := newWasmtime(false, map[string][]byte{guestGo: b.guests[guestGo]})
	if err != nil {
		return err
	}
	defer theirs.close()
	pooled, err := newPooled(ctx, b.guests[guestGo])
	if err != nil {
		return err
	}
	defer pooled.close()
	times, err := interleaved(
		b.rounds,
		repeated(b.calls, b.touching(ctx, guestGo, goTouch)),
		repeated(fresh, func() error { return theirs.fresh(guestGo, goTouch, dirtyPages, 1) }),
		repeated(b.calls, func() error { return pooled.fresh(guestGo, goTouch, dirtyPages, 1) }),
	)
	if err != nil {
		return err
	}
	clean := figures.Microseconds(times[0].best()) / float64(b.calls)
	instance, pool := figures.Microseconds(times[1].best())/fresh, figures.Microseconds(times[2].best())/float64(b.calls)
	figures.Note("go, %d pages: clean %.1f µs, new of wasmtime %.0f µs, of its pool and initialised before %.1f µs", dirtyPages, clean, instance, pool)
	figures.Print("clean_us_go_10pages", clean)
	figures.Print("fresh_wasmtime_over_clean_go", instance/clean)
	figures.Print("fresh_wasmtime_pooling_over_clean_go", pool/clean)
	return nil
}

// order is the document of the consumer of JSON, after 12 bytes that tell it so.
func order() []byte {
	line := `{"sku":"A-7781","name":"Bolt \"M8\" zinc","count":250,"price":0.17,"tags":["small","steel",null,true]}`
	lines := strings.Repeat(line+",", 19) + line
	return fmt.Appendf(message(0, 0, 0), `{"id":48213,"customer":{"name":"Ann Lee","city":"Ulm"},"lines":[%s]}`, lines)
}

// cleanOverReuse compares a consumer of JSON whose instance is cleaned after each message with one that keeps it as it is.
func (b *bench) cleanOverReuse(ctx context.Context) error {
	data := order()
	handle := func(p *own) func() error {
		return repeated(b.calls, func() error {
			_, err := p.handle(ctx, guestGo, data)
			return err
		})
	}
	times, err := interleaved(b.rounds, handle(b.own), handle(b.kept))
	if err != nil {
		return err
	}
	clean, reuse := times[0].best(), times[1].best()
	figures.Note("go, JSON of %d bytes: clean %v a message, reused %v", len(data), clean/time.Duration(b.calls), reuse/time.Duration(b.calls))
	figures.Print("clean_over_reuse_go_json", over(clean, reuse))
	return nil
}

// twoWorkers compares the messages that two workers handle in a time with those of one.
func (b *bench) twoWorkers(ctx context.Context) error {
	data := order()
	worker := repeated(b.calls, func() error {
		_, err := b.own.handle(ctx, guestGo, data)
		return err
	})
	times, err := interleaved(b.rounds, worker, func() error { return both(worker, worker) })
	if err != nil {
		return err
	}
	one, two := times[0].best(), times[1].best()
	figures.Note("go, JSON of %d bytes: %v a message; of two workers %v each", len(data), one/time.Duration(b.calls), two/time.Duration(b.calls))
	figures.Print("clean_two_workers_over_one", 2*over(one, two))
	return nil
}

// both runs two jobs at once.
func both(f, g func() error) error {
	var wg sync.WaitGroup
	var errs [2]error
	for i, job := range []func() error{f, g} {
		wg.Go(func() { errs[i] = job() })
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}
