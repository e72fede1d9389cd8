package substrate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/longshore/longshore/limits"
)

const (
	proofAttempts = 4
	proofKeys     = 60
	relaxedTopic  = "relaxed"
	ackedBucket   = "acked" // has a value for each message that is acknowledged, written with that
)

var proofTopics = []string{testTopic, testTopic + "/lines", relaxedTopic}

// workload drives a log with everything that can be asked of it, from several goroutines, until ctx ends or the log fails.
// What it asks and is answered it records.
type workload struct {
	log *Log
	rec *recorder
}

func (w *workload) run(ctx context.Context, seed uint64) {
	jobs := []func(context.Context, *rand.Rand) error{w.publish, w.publish, w.consume, w.consume, w.consume, w.operate, w.pass}
	var all sync.WaitGroup
	for i, job := range jobs {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() {
			for ctx.Err() == nil {
				if err := job(ctx, rng); errors.Is(err, ErrClosed) {
					return
				}
			}
		})
	}
	all.Wait()
}

// pass lets a tenant come and go. What becomes of it is no part of the history; the others must not notice.
func (w *workload) pass(ctx context.Context, rng *rand.Rand) error {
	var msgs []Message
	for i := range 1 + rng.IntN(20) {
		m := w.log.newMessage(fmt.Sprint("passing/", i%3), "passing")
		m.Tenant = "passing"
		msgs = append(msgs, m)
	}
	if _, err := w.log.Publish(ctx, msgs...); err != nil {
		return err
	}
	time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
	return w.log.DeleteTenant(ctx, "passing", nil)
}

// relax makes one of the topics a relaxed one.
func (w *workload) relax(ctx context.Context) error {
	n := int64(300)
	return w.log.SetPolicy(ctx, testTenant, relaxedTopic, Policy{MaxUnflushed: &n})
}

// message makes a message of a random size with random options.
func (w *workload) message(rng *rand.Rand, options bool) Message {
	sizes := []int{rng.IntN(400), rng.IntN(400), rng.IntN(400), 8_000}
	size := sizes[rng.IntN(len(sizes))]
	if rng.IntN(12) == 0 {
		size = limits.InlinePayloadBytes + rng.IntN(5_000)
	}
	m := w.log.newMessage(proofTopics[rng.IntN(len(proofTopics))], "")
	m.Payload = make([]byte, size)
	for i := range m.Payload {
		m.Payload[i] = byte(rng.Uint32())
	}
	if !options {
		return m
	}
	if rng.IntN(6) == 0 {
		m.Options.Delay = time.Duration(1+rng.IntN(40)) * time.Millisecond
	}
	if rng.IntN(10) == 0 {
		m.Options.TTL = time.Duration(1+rng.IntN(30)) * time.Millisecond
	}
	if rng.IntN(6) == 0 {
		m.Options.IdempotencyKey, m.Options.Principal = fmt.Sprint(rng.IntN(proofKeys)), "p"
	}
	return m
}

func (w *workload) publish(ctx context.Context, rng *rand.Rand) error {
	if w.backlog() > 400 {
		time.Sleep(time.Millisecond)
		return nil
	}
	n := 1
	if rng.IntN(3) == 0 {
		n = 2 + rng.IntN(5)
	}
	msgs, notes := make([]Message, n), make([]note, n)
	for i := range msgs {
		msgs[i] = w.message(rng, true)
		notes[i] = noteIn(&msgs[i])
	}
	if rng.IntN(10) == 0 { // a publisher that may not want to wait
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(2_000))*time.Microsecond)
		defer cancel()
	}
	answer := w.rec.ask(act{Kind: "publish", Messages: notes})
	receipts, err := w.log.Publish(ctx, msgs...)
	if ctx.Err() != nil && err != nil && !errors.Is(err, ErrClosed) {
		err = context.Canceled
	}
	answer(err, act{Receipts: receipts})
	return err
}

// publishPlain publishes a message without options.
func (w *workload) publishPlain(ctx context.Context) error {
	m := w.log.newMessage(testTopic, "plain")
	answer := w.rec.ask(act{Kind: "publish", Messages: []note{noteIn(&m)}})
	receipts, err := w.log.Publish(ctx, m)
	answer(err, act{Receipts: receipts})
	return err
}

func (w *workload) backlog() (n int64) {
	for _, name := range proofTopics {
		s, _ := w.log.Stats(testTenant, name)
		n += s.Ready + s.Leased
	}
	return n
}

func (w *workload) consume(ctx context.Context, rng *rand.Rand) error {
	r := claimRequest(proofTopics[rng.IntN(len(proofTopics))], 1+rng.IntN(8))
	r.MaxAttempts = proofAttempts
	if rng.IntN(12) == 0 {
		r.Lease = time.Duration(1+rng.IntN(5)) * time.Millisecond
	}
	answer := w.rec.ask(act{Kind: "claim", Topic: r.Topic})
	got, err := w.log.Claim(context.WithoutCancel(ctx), r)
	var taken []taking
	for _, d := range got.Deliveries {
		taken = append(taken, taking{ID: d.Message.ID, Lease: d.Lease, Attempt: d.Attempt})
	}
	var buried []string
	for _, d := range got.Buried {
		buried = append(buried, d.ID)
	}
	answer(err, act{Topic: r.Topic, Taken: taken, IDs: buried})
	if err != nil {
		return err
	}
	if len(taken) == 0 {
		time.Sleep(200 * time.Microsecond)
	}
	for len(taken) > 0 {
		n := min(len(taken), 1+rng.IntN(3))
		if err := w.settle(ctx, rng, taken[:n]); err != nil {
			return err
		}
		taken = taken[n:]
	}
	return nil
}

// settle ends some deliveries in one commit, or leaves them to their leases.
func (w *workload) settle(ctx context.Context, rng *rand.Rand, taken []taking) error {
	ctx = context.WithoutCancel(ctx)
	if rng.IntN(25) == 0 {
		return nil
	}
	if rng.IntN(15) == 0 {
		if _, err := w.log.Extend(ctx, taken[0].Lease, time.Minute); errors.Is(err, ErrClosed) {
			return err
		}
	}
	var settlements []Settlement
	acks := 0
	var values ValueChanges
	for i := range taken {
		t := &taken[i]
		t.Verdict = []Verdict{Ack, Ack, Ack, Ack, Ack, Ack, Retry, Release, Bury}[rng.IntN(9)]
		s := Settlement{Lease: t.Lease, Verdict: t.Verdict}
		switch t.Verdict {
		case Retry, Release:
			s.Delay = time.Duration(rng.IntN(10)) * time.Millisecond
		case Bury:
			s.Reason = "bury " + t.ID
		default:
			acks++
			values.Writes = append(values.Writes, ValueWrite{Bucket: ackedBucket, Key: t.ID, Data: []byte(t.ID)})
		}
		t.Reason = s.Reason
		settlements = append(settlements, s)
	}
	var outbox []Message
	var notes []note
	if acks > 0 && rng.IntN(3) == 0 && w.backlog() < 600 {
		for range 1 + rng.IntN(3) {
			outbox = append(outbox, w.message(rng, false))
			notes = append(notes, noteIn(&outbox[len(outbox)-1]))
		}
	}
	answer := w.rec.ask(act{Kind: "settle", Taken: taken, Messages: notes})
	err := w.log.SettleValues(ctx, settlements, outbox, values)
	answer(err, act{})
	return err
}

// operate does what operators do, now and then.
func (w *workload) operate(ctx context.Context, rng *rand.Rand) error {
	ctx = context.WithoutCancel(ctx)
	time.Sleep(time.Duration(rng.IntN(8)) * time.Millisecond)
	topic := proofTopics[rng.IntN(len(proofTopics))]
	if _, known := w.log.Stats(testTenant, topic); !known {
		return nil
	}
	switch rng.IntN(4) {
	case 0:
		answer := w.rec.ask(act{Kind: "redrive", Topic: topic})
		r, err := w.log.Redrive(ctx, testTenant, topic, Redrive{Filter: DeadLetterFilter{Limit: 1 + rng.IntN(5)}, Operator: "op"})
		answer(err, act{Topic: topic, Count: r.Moved})
		return err
	case 1:
		letters, err := w.log.DeadLetters(ctx, testTenant, topic, DeadLetterFilter{})
		if err != nil || len(letters) == 0 {
			return err
		}
		id := letters[rng.IntN(len(letters))].ID
		answer := w.rec.ask(act{Kind: "discard", Topic: topic, IDs: []string{id}})
		n, err := w.log.Discard(ctx, testTenant, topic, DeadLetterFilter{ID: id})
		answer(err, act{Topic: topic, IDs: []string{id}, Count: n})
		return err
	case 2:
		if err := w.pause(ctx, topic, true); err != nil {
			return err
		}
		time.Sleep(time.Duration(rng.IntN(4)) * time.Millisecond)
		return w.pause(ctx, topic, false)
	default:
		_, err := w.log.Peek(ctx, testTenant, topic, "", 0, 20)
		return err
	}
}

func (w *workload) pause(ctx context.Context, topic string, paused bool) error {
	answer := w.rec.ask(act{Kind: "pause", Topic: topic, Paused: paused})
	err := w.log.Pause(ctx, testTenant, topic, paused)
	answer(err, act{Topic: topic, Paused: paused})
	return err
}
