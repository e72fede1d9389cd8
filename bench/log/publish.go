package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
)

// target is something to publish to. publish returns when n messages are stored, all or none, as safely as the target
// stores them.
type target interface {
	publish(ctx context.Context, topic string, n int) error
}

// The log and its peers, by the names that figures have for them.
const (
	onRaw     = "raw"
	onSync    = "jetstream_sync"    // JetStream that syncs every message
	onDefault = "jetstream_default" // JetStream that syncs now and then
	onLog     = "log"
	onRelaxed = "relaxed" // the log on topics that are answered before they are on disk
)

// load is a way of publishing, and whom the log is compared with under it.
type load struct {
	name       string
	publishers int // each waits for its last message before it publishes the next
	batch      int // messages a publish
	topics     int
	peers      []string
	relaxed    bool // compare the log's relaxed topics with JetStream as it comes
	latency    bool // print the latencies too
}

func (p plan) loads() []load {
	both := []string{onRaw, onSync}
	if p.short {
		both = both[:1:1]
	}
	return []load{
		{name: "c1", publishers: 1, batch: 1, topics: 1, peers: append(both, onDefault), relaxed: true},
		{name: "c64", publishers: 64, batch: 1, topics: 1, peers: []string{onRaw, onSync, onDefault}, relaxed: true, latency: true},
		{name: "c256", publishers: 256, batch: 1, topics: 1, peers: both},
		{name: "batch100", publishers: 8, batch: 100, topics: 1, peers: both},
		{name: "1000topics_c64", publishers: 64, batch: 1, topics: 1_000, peers: []string{onRaw}},
	}
}

// drive publishes to t for span and returns the messages a second and the p99 of the publishes.
func (l load) drive(ctx context.Context, t target, span time.Duration) (rate float64, p99 time.Duration, err error) {
	type outcome struct {
		latencies []time.Duration
		err       error
	}
	outcomes := make(chan outcome)
	start := time.Now()
	end := start.Add(span)
	for publisher := range l.publishers {
		go func() {
			latencies, err := l.publisher(ctx, t, publisher, end)
			outcomes <- outcome{latencies, err}
		}()
	}
	var latencies []time.Duration
	for range l.publishers {
		o := <-outcomes
		latencies, err = append(latencies, o.latencies...), errors.Join(err, o.err)
	}
	took := time.Since(start)
	return float64(len(latencies)*l.batch) / took.Seconds(), figures.Quantile(latencies, 0.99), err
}

// publisher publishes until end, to the topics in turn.
func (l load) publisher(ctx context.Context, t target, i int, end time.Time) (latencies []time.Duration, err error) {
	for start := time.Now(); start.Before(end); i += l.publishers {
		if err := t.publish(ctx, fmt.Sprintf("%s/%d", l.name, i%l.topics), l.batch); err != nil {
			return latencies, err
		}
		now := time.Now()
		latencies = append(latencies, now.Sub(start))
		start = now
	}
	return latencies, nil
}

// samples are what the rounds of one load gave, by target.
type samples struct {
	rates map[string][]float64
	p99s  map[string][]time.Duration
}

// publishing compares publishes to the log with those to its peers: each round measures all of them, one after the other.
func (p plan) publishing(ctx context.Context, dir string) (err error) {
	targets := map[string]target{}
	defer func() {
		for _, t := range targets {
			if c, is := t.(interface{ Close() error }); is {
				err = errors.Join(err, c.Close())
			}
		}
	}()
	if err := p.openTargets(ctx, dir, targets); err != nil {
		return err
	}
	for _, l := range p.loads() {
		if p.only != "" && p.only != "publish" && p.only != l.name {
			continue
		}
		s, err := p.rounds(ctx, l, targets)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		l.report(s)
	}
	return nil
}

// openTargets opens the log and its peers.
func (p plan) openTargets(ctx context.Context, dir string, targets map[string]target) error {
	file, err := openRaw(dir+"/raw", p.payload)
	if err != nil {
		return err
	}
	targets[onRaw] = file
	for name, always := range map[string]bool{onSync: true, onDefault: false} {
		j, err := openJetStream(ctx, dir+"/"+name, always, p.payload)
		if err != nil {
			return err
		}
		targets[name] = j
	}
	d, err := openDurable(ctx, dir+"/log", p.payload)
	if err != nil {
		return err
	}
	targets[onLog] = d
	r, err := openRelaxed(ctx, dir+"/relaxed", p.payload, "c1/0", "c64/0")
	if err != nil {
		return err
	}
	targets[onRelaxed] = r
	return errors.Join(d.warm(ctx), r.warm(ctx))
}

func (p plan) rounds(ctx context.Context, l load, targets map[string]target) (samples, error) {
	s := samples{map[string][]float64{}, map[string][]time.Duration{}}
	names := append([]string{onLog}, l.peers...)
	if l.relaxed {
		names = append(names, onRelaxed)
	}
	for round := range p.repeats {
		for i := range names {
			name := names[(round+i)%len(names)] // nobody always comes after the same
			p.quiet()
			rate, p99, err := l.drive(ctx, targets[name], p.span)
			if err != nil {
				return s, fmt.Errorf("%s: %w", name, err)
			}
			s.rates[name], s.p99s[name] = append(s.rates[name], rate), append(s.p99s[name], p99)
		}
	}
	return s, nil
}

func (l load) report(s samples) {
	var b strings.Builder
	for _, name := range append([]string{onLog}, l.peers...) {
		fmt.Fprintf(&b, "; %s %.0f/s (%s) p99 %s", name, figures.Median(s.rates[name]), span(s.rates[name]), figures.Median(s.p99s[name]).Round(10*time.Microsecond))
	}
	figures.Note("publish %s%s", l.name, b.String())
	for _, name := range l.peers {
		figures.Print("durable_vs_"+name+"_"+l.name, medianRatio(s.rates[onLog], s.rates[name]))
	}
	if l.relaxed {
		figures.Note("publish %s; %s %.0f/s (%s)", l.name, onRelaxed, figures.Median(s.rates[onRelaxed]), span(s.rates[onRelaxed]))
		figures.Print("relaxed_vs_"+onDefault+"_"+l.name, medianRatio(s.rates[onRelaxed], s.rates[onDefault]))
	}
	if l.latency {
		figures.Print("publish_p99_ms_"+l.name, figures.Milliseconds(figures.Median(s.p99s[onLog])))
		figures.Print("raw_publish_p99_ms_"+l.name, figures.Milliseconds(figures.Median(s.p99s[onRaw])))
	}
}
