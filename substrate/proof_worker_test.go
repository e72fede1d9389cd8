package substrate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/limits"
)

// proofPlan says what a child does. It is given to it in the environment, as JSON.
type proofPlan struct {
	Role    string // "work", "audit" or "full"
	Seed    uint64
	Dirs    []string // of the log; of an audit as many as one likes
	Segment int64
	Seconds int    // how long to fill disks
	Hold    bool   // open the log, and do nothing
	Profile string // "bulk" for payloads that fill memtables, "values" for such that fill value logs
	Reclaim bool   // give space back as often as possible
	Release bool   // an audit gives back what it claimed
	Trace   bool   // stop at system calls that a tracer wants to see
}

const (
	proofWorkers   = 16
	proofRelaxed   = 4 // of these, so many have relaxed topics
	proofUnflushed = 40
	workerAttempts = 3
	proofBacklog   = 60 // messages of a worker, about
)

func workerTopics(worker int) [2]string {
	return [2]string{fmt.Sprintf("w%d/work", worker), fmt.Sprintf("w%d/out", worker)}
}

func proofPolicies() map[TopicName]Policy {
	policies := map[TopicName]Policy{}
	unflushed := int64(proofUnflushed)
	for w := range proofRelaxed {
		for _, topic := range workerTopics(w) {
			policies[TopicName{testTenant, topic}] = Policy{MaxUnflushed: &unflushed}
		}
	}
	return policies
}

func (p *proofPlan) options(dir string) Options {
	o := Options{Dir: dir, SegmentBytes: p.Segment}
	if p.Reclaim {
		o.housekeeping = housekeeping{idle: 10 * time.Millisecond, bytes: 4 * limits.KiB}
	}
	return o
}

// proofWork runs workers on a log until the process is killed.
func proofWork(t *testing.T, p *proofPlan, report *proofReport) {
	t.Helper()
	report.line(proofStep{Kind: "opening"})
	l, err := Open(t.Context(), p.options(p.Dirs[0]))
	if err != nil {
		report.line(proofStep{Fault: err.Error()})
		return
	}
	if err := l.SetDefaults(proofPolicies()); err != nil {
		report.line(proofStep{Fault: err.Error()})
		return
	}
	report.line(proofStep{Kind: "opened"})
	if p.Hold {
		select {}
	}
	var all sync.WaitGroup
	for w := range proofWorkers {
		worker := proofWorker{
			log: l, report: report, number: w, topics: workerTopics(w), profile: p.Profile,
			random: rand.New(rand.NewPCG(p.Seed, uint64(w))),
		}
		all.Go(func() {
			if err := worker.run(t.Context()); err != nil {
				report.line(proofStep{Worker: worker.number, Fault: err.Error()})
				os.Exit(1)
			}
		})
	}
	all.Wait()
}

// proofWorker makes one call after the other, on topics that are its own.
type proofWorker struct {
	log     *Log
	report  *proofReport
	random  *rand.Rand
	number  int
	steps   int
	topics  [2]string
	profile string
	held    []Delivery
	dead    []DeadLetter
	keys    []string // idempotency keys that were used
	firsts  []string // and the messages that were published under them
}

func (w *proofWorker) run(ctx context.Context) error {
	for _, topic := range w.topics {
		letters, err := w.log.DeadLetters(ctx, testTenant, topic, DeadLetterFilter{})
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		w.dead = append(w.dead, letters...)
	}
	for {
		if err := w.step(ctx); err != nil {
			return err
		}
	}
}

func (w *proofWorker) step(ctx context.Context) error {
	backlog := int64(0)
	for _, topic := range w.topics {
		s, _ := w.log.Stats(testTenant, topic)
		backlog += s.Backlog()
	}
	switch n := w.random.IntN(100); {
	case n < 4 && len(w.dead) > 0:
		return w.move(ctx, "redrive")
	case n < 7 && len(w.dead) > 0:
		return w.move(ctx, "discard")
	case n < 10 && len(w.held) > 0:
		return w.extend(ctx)
	case n < 40 && backlog < proofBacklog:
		return w.publish(ctx)
	case n < 65 && len(w.held) < proofBacklog/2:
		return w.claim(ctx)
	case len(w.held) > 0:
		return w.settle(ctx)
	default:
		return w.claim(ctx)
	}
}

// call reports a step, makes it, and reports what came of it.
func (w *proofWorker) call(s proofStep, do func(s *proofStep) error) error {
	w.steps++
	s.Worker, s.Number, s.Relaxed = w.number, w.steps, w.number < proofRelaxed
	w.report.line(s)
	if err := do(&s); err != nil {
		return fmt.Errorf("%s: %w", s.Kind, err)
	}
	s.Done = true
	w.report.line(s)
	return nil
}

func (w *proofWorker) size() int {
	switch n := w.random.IntN(100); {
	case w.profile == "values" && n < 90:
		return 70_000 + w.random.IntN(60_000)
	case w.profile == "bulk" && n < 90:
		return 20_000 + w.random.IntN(40_000)
	case n < 85:
		return w.random.IntN(2_000)
	case n < 96:
		return w.random.IntN(20_000)
	default:
		return 65_000 + w.random.IntN(100_000)
	}
}

// messages makes n messages, and what to report of them.
func (w *proofWorker) messages(topic string, n int) (msgs []Message, sent []proofSent) {
	for bytes := 0; len(msgs) < n && bytes < limits.MiB/3; {
		m := w.log.newMessage(topic, "")
		m.Payload = proofPayload(m.ID, topic, w.size())
		bytes += len(m.Payload)
		switch w.random.IntN(12) {
		case 0:
			m.Options.TTL = time.Hour
		case 1:
			m.Options.Delay = time.Duration(w.random.IntN(20)) * time.Millisecond
		case 2:
			m.Metadata, m.ContentType = []Pair{{"a", "b"}}, "text/plain"
		}
		msgs = append(msgs, m)
		sent = append(sent, proofSent{m.ID, topic, proofDigest(m.Payload)})
	}
	return msgs, sent
}

func (w *proofWorker) publish(ctx context.Context) error {
	if len(w.keys) > 0 && w.random.IntN(8) == 0 {
		return w.publishTwice(ctx)
	}
	msgs, sent := w.messages(w.topics[0], 1+w.random.IntN(12))
	keyed := w.random.IntN(4) == 0
	if keyed {
		msgs[0].Options.IdempotencyKey = msgs[0].ID
	}
	err := w.call(proofStep{Kind: "publish", Messages: sent}, func(s *proofStep) error {
		receipts, err := w.log.Publish(ctx, msgs...)
		for _, r := range receipts {
			s.Last = max(s.Last, r.Position)
		}
		return err
	})
	if keyed {
		w.keys, w.firsts = append(w.keys, msgs[0].ID), append(w.firsts, msgs[0].ID)
	}
	return err
}

// publishTwice publishes under a key that was used: that stores nothing.
func (w *proofWorker) publishTwice(ctx context.Context) error {
	i := w.random.IntN(len(w.keys))
	m := w.log.newMessage(w.topics[0], "again")
	m.Options.IdempotencyKey = w.keys[i]
	return w.call(proofStep{Kind: "publish"}, func(*proofStep) error {
		receipts, err := w.log.Publish(ctx, m)
		if err == nil && (!receipts[0].Duplicate || receipts[0].ID != w.firsts[i]) {
			err = fmt.Errorf("the key of %s was forgotten: %v", w.firsts[i], receipts[0])
		}
		return err
	})
}

func (w *proofWorker) claim(ctx context.Context) error {
	r := claimRequest(w.topics[w.random.IntN(2)], 1+w.random.IntN(16))
	r.Lease, r.MaxAttempts = time.Hour, workerAttempts
	return w.call(proofStep{Kind: "claim", Attempts: r.MaxAttempts}, func(s *proofStep) error {
		got, err := w.log.Claim(ctx, r)
		for _, d := range got.Deliveries {
			s.Taken = append(s.Taken, proofTaken{d.Message.ID, proofDigest(d.Message.Payload), d.Attempt})
		}
		for _, d := range got.Buried {
			s.Buried = append(s.Buried, d.ID)
		}
		w.held, w.dead = append(w.held, got.Deliveries...), append(w.dead, got.Buried...)
		return err
	})
}

func (w *proofWorker) settle(ctx context.Context) error {
	n := min(1+w.random.IntN(12), len(w.held))
	w.random.Shuffle(len(w.held), func(i, j int) { w.held[i], w.held[j] = w.held[j], w.held[i] })
	s := proofStep{Kind: "settle"}
	var settlements []Settlement
	var died []DeadLetter
	acks := 0
	for _, d := range w.held[:n] {
		verdict, reason := Ack, ""
		switch v := w.random.IntN(100); {
		case v < 12:
			verdict, reason = Retry, fmt.Sprintf("retry %d", w.random.IntN(1000))
		case v < 18:
			verdict = Release
		case v < 28:
			verdict, reason = Bury, fmt.Sprintf("bury %d", w.random.IntN(1000))
			died = append(died, DeadLetter{ID: d.Message.ID, Topic: d.Message.Topic})
		default:
			acks++
		}
		settlements = append(settlements, Settlement{Lease: d.Lease, Verdict: verdict, Reason: reason})
		s.Settled = append(s.Settled, proofVerdict{d.Message.ID, reason, verdict})
	}
	var outbox []Message
	if acks > 0 && w.random.IntN(2) == 0 {
		outbox, s.Messages = w.messages(w.topics[1], 1+w.random.IntN(3))
	}
	w.held = slices.Delete(w.held, 0, n)
	w.dead = append(w.dead, died...)
	return w.call(s, func(*proofStep) error { return w.log.Settle(ctx, settlements, outbox) })
}

func (w *proofWorker) extend(ctx context.Context) error {
	d := w.held[w.random.IntN(len(w.held))]
	return w.call(proofStep{Kind: "extend"}, func(*proofStep) error {
		_, err := w.log.Extend(ctx, d.Lease, 2*time.Hour)
		return err
	})
}

// move redrives or discards a dead letter.
func (w *proofWorker) move(ctx context.Context, kind string) error {
	i := w.random.IntN(len(w.dead))
	d := w.dead[i]
	w.dead = slices.Delete(w.dead, i, i+1)
	return w.call(proofStep{Kind: kind, ID: d.ID}, func(*proofStep) error {
		filter := DeadLetterFilter{ID: d.ID}
		moved, err := 0, error(nil)
		if kind == "redrive" {
			var r RedriveResult
			r, err = w.log.Redrive(ctx, testTenant, d.Topic, Redrive{Filter: filter, Operator: "proof"})
			moved = r.Moved
		} else {
			moved, err = w.log.Discard(ctx, testTenant, d.Topic, filter)
		}
		if err == nil && moved != 1 {
			err = fmt.Errorf("dead letter %s: %d were moved", d.ID, moved)
		}
		return err
	})
}
