package rehearse

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"time"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

// message is one that is to be run.
type message struct {
	delivery substrate.Delivery
	died     string // of a dead letter: its reason
}

// read returns the messages that are asked for. An error is the last that it yields. Those whose records do not check are
// counted, and left out.
func (w *work) read(ctx context.Context, q wire.Rehearse) iter.Seq2[message, error] {
	start := substrate.Start{Kind: substrate.StartPosition, Position: q.From}
	switch {
	case q.From > 0 && q.Since != "":
		return refused("from and since are given; give one of them")
	case q.Reason != "" && (q.From > 0 || q.Since != ""):
		return refused("reason is of dead letters, and from or since asks for others; give one of them")
	case q.Since != "":
		at, err := time.Parse(time.RFC3339, q.Since)
		if err != nil {
			return refused("since is no time; give one as 2030-01-31T12:00:00Z")
		}
		start = substrate.Start{Kind: substrate.StartTime, Time: at}
	case q.From == 0:
		return w.dead(ctx, q.Reason)
	}
	return w.stored(ctx, start)
}

// refused yields a problem with what is asked.
func refused(detail string) iter.Seq2[message, error] {
	return failed(&wire.Problem{Title: http.StatusText(http.StatusBadRequest), Status: http.StatusBadRequest, Code: wire.CodeInvalid, Detail: detail})
}

func failed(err error) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) { yield(message{}, err) }
}

// stored returns messages that are stored of the topic, for whatever reason.
func (w *work) stored(ctx context.Context, start substrate.Start) iter.Seq2[message, error] {
	r, err := w.Log.Replay(ctx, w.out.Tenant, w.out.Topic, start)
	if err != nil {
		return failed(err)
	}
	return func(yield func(message, error) bool) {
		for m, err := range r.Messages(ctx) {
			w.out.Summary.Unreadable = r.Damaged()
			if !yield(w.message(m.Position, m.Message), err) {
				return
			}
		}
		w.out.Summary.Unreadable = r.Damaged()
	}
}

// dead returns the dead letters of the lane.
func (w *work) dead(ctx context.Context, reason string) iter.Seq2[message, error] {
	f := substrate.DeadLetterFilter{Lane: w.lane, LaneSet: true, ReasonContains: reason, Limit: min(w.bounds.messages+1, limits.DeadLetterPage)}
	return func(yield func(message, error) bool) {
		for {
			letters, err := w.Log.DeadLetters(ctx, w.out.Tenant, w.out.Topic, f)
			if err != nil {
				yield(message{}, err)
				return
			}
			for i := range letters {
				m, err := w.deadMessage(ctx, letters[i])
				if errors.Is(err, substrate.ErrNotFound) {
					w.out.Summary.Unreadable++
					continue
				}
				if !yield(m, err) || err != nil {
					return
				}
			}
			if len(letters) < f.Limit {
				return
			}
			last := letters[len(letters)-1]
			f.After, f.AfterLane = last.Position, last.Lane
		}
	}
}

// deadMessage returns a dead letter as it would be delivered if it were redriven now.
func (w *work) deadMessage(ctx context.Context, d substrate.DeadLetter) (message, error) {
	stored, err := w.Log.DeadMessage(ctx, d)
	if err != nil {
		return message{}, err
	}
	m := w.message(d.Position, stored)
	m.died, m.delivery.Operator = d.Reason, d.Operator
	by := signedctx.Operator{Act: w.subject, At: time.Now(), Why: "rehearsal"}
	if sealed, err := w.Context.SealOperator(by, stored.Envelope, dispatcher.Binding(stored)); err == nil {
		m.delivery.Operator = sealed
	}
	return m, nil
}

// message returns a message as its first delivery.
func (w *work) message(position uint64, m substrate.Message) message {
	return message{delivery: substrate.Delivery{
		Message: m, Attempt: 1,
		Lease: substrate.Lease{Tenant: w.out.Tenant, Topic: w.out.Topic, Lane: w.lane, Position: position},
	}}
}
