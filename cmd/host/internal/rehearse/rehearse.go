// Package rehearse runs messages that are there on a version of a consumer that is to come, beside the one that runs, and says
// in what they differ. It reads the log and changes nothing: see dispatcher.Rehearsal.
package rehearse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

// Parts are what a rehearsal works with. All are required.
type Parts struct {
	Log     *substrate.Log
	Context *signedctx.Context
	Options func(substrate.MessageOptions) *wire.MessageOptions // as the wire has them
}

// bounds end a rehearsal early.
type bounds struct {
	messages     int
	payloadBytes int
	duration     time.Duration
	reportBytes  int
}

// Run runs the messages that are asked for, in the order of their positions, and compares. subject is who asks: dead letters are
// taken as if they had just been redriven by them. At a bound it ends early, and says at which.
//
// Errors are those of substrate.Log.DeadLetters and Replay, a *wire.Problem for what is asked, the cause of ctx, and
// dispatcher.ErrStopped.
func (p Parts) Run(ctx context.Context, r *dispatcher.Rehearsal, subject string, q wire.Rehearse) (*wire.Rehearsed, error) {
	most := q.Max
	if most == 0 {
		most = limits.RehearsalFewMessages
	}
	return p.run(ctx, r, subject, q, bounds{
		messages: min(most, limits.RehearsalMessages), payloadBytes: limits.RehearsalBytes,
		duration: limits.RehearsalDuration, reportBytes: limits.RehearsalReportBytes,
	})
}

func (p Parts) run(ctx context.Context, r *dispatcher.Rehearsal, subject string, q wire.Rehearse, b bounds) (*wire.Rehearsed, error) {
	next := r.Next()
	w := &work{Parts: p, versions: r, bounds: b, batch: max(next.Batch.Max, 1), lane: next.Lane, subject: subject, out: &wire.Rehearsed{
		Tenant: next.Tenant, Consumer: next.Name, Topic: next.Topic,
		After: versionOf(next), Messages: []wire.RehearsedMessage{},
	}}
	if now, runs := r.Now(); runs {
		v := versionOf(now)
		w.out.Before, w.lane, w.batch = &v, now.Lane, max(w.batch, now.Batch.Max)
	}
	w.out.Lane = w.lane
	timed, cancel := context.WithTimeout(ctx, b.duration)
	defer cancel()
	err := w.all(timed, q)
	if err != nil && ctx.Err() == nil && errors.Is(timed.Err(), context.DeadlineExceeded) {
		w.out.Summary.Ended, err = wire.EndedTime, nil
	}
	if err != nil {
		return nil, err
	}
	w.summarise()
	return w.out, nil
}

func versionOf(c dispatcher.Consumer) wire.RehearsedVersion {
	return wire.RehearsedVersion{Module: c.Guest.Digest(), Version: c.Version}
}

// work is one rehearsal under way.
type work struct {
	Parts
	versions *dispatcher.Rehearsal
	bounds   bounds
	batch    int    // messages that are run together at most
	lane     string // that the messages are of
	subject  string
	out      *wire.Rehearsed

	waiting      []message // to be run together
	waitingBytes int
	messages     int
	payloadBytes int
	reportBytes  int
}

// all runs messages until there are no more, or a bound is reached.
func (w *work) all(ctx context.Context, q wire.Rehearse) error {
	s := &w.out.Summary
	for m, err := range w.read(ctx, q) {
		if err != nil {
			return err
		}
		n := len(m.delivery.Message.Payload)
		if len(w.waiting) == w.batch || len(w.waiting) > 0 && w.waitingBytes+n > limits.CallBytes {
			if err := w.flush(ctx); err != nil {
				return err
			}
		}
		if s.Ended = w.reached(n); s.Ended != "" {
			return w.flush(ctx)
		}
		w.waiting = append(w.waiting, m)
		w.waitingBytes += n
		w.messages++
		w.payloadBytes += n
	}
	s.Ended = wire.EndedAll
	return w.flush(ctx)
}

// reached returns the bound that keeps another message, with a payload of n bytes, from being run; "" if none does.
func (w *work) reached(n int) string {
	switch {
	case w.messages == w.bounds.messages:
		return wire.EndedMax
	case w.payloadBytes+n > w.bounds.payloadBytes:
		return wire.EndedBytes
	case w.reportBytes >= w.bounds.reportBytes:
		return wire.EndedReport
	}
	return ""
}

// flush runs the messages that wait, and reports on them.
func (w *work) flush(ctx context.Context) error {
	if len(w.waiting) == 0 {
		return nil
	}
	deliveries := make([]substrate.Delivery, len(w.waiting))
	for i, m := range w.waiting {
		deliveries[i] = m.delivery
	}
	before, after, err := w.versions.Run(ctx, deliveries)
	if err != nil {
		return err
	}
	for i, m := range w.waiting {
		one := wire.RehearsedMessage{
			Position: m.delivery.Lease.Position, ID: m.delivery.Message.ID, DeadReason: m.died, After: w.side(after[i]),
		}
		if before != nil {
			side := w.side(before[i])
			one.Before = &side
			compare(&one, before[i], after[i])
		}
		text, err := json.Marshal(one)
		if err != nil {
			return fmt.Errorf("report on message %s: %w", one.ID, err)
		}
		w.reportBytes += len(text)
		w.out.Messages = append(w.out.Messages, one)
	}
	w.waiting, w.waitingBytes = nil, 0
	return nil
}
