package substrate

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/longshore/longshore/limits"
)

// proofFindings is what an audit finds in one folder. A line without End says that it begins.
type proofFindings struct {
	Dir     string
	End     bool
	Refused string // by Open
	Named   bool   // Refused is one of the errors that name damage
	Fault   string // of a call after that
	Found   []proofFound
	Probe   uint64 // position of a message that was published last
	Lost    int64  // messages that the log counts and does not deliver
}

// proofFound is a message that is delivered, or dead.
type proofFound struct {
	ID, Topic, Reason string
	Digest            string // "" if the record does not check
	Dead              bool
	Leased            bool `json:"-"` // as far as the worker knows; an audit doesn't see it
	Attempts          int
	Redriven          int
	Position          uint64
}

const proofProbe = "probe"

// proofAudit opens folders, one after the other, and reports all that is in them.
func proofAudit(t *testing.T, p *proofPlan, report *proofReport) {
	t.Helper()
	for _, dir := range p.Dirs {
		report.line(proofFindings{Dir: dir})
		f := auditOne(t.Context(), p, dir)
		f.End = true
		report.line(f)
	}
}

func auditOne(ctx context.Context, p *proofPlan, dir string) proofFindings {
	f := proofFindings{Dir: dir}
	o := p.options(dir)
	o.LockWait = 10 * time.Second
	l, err := Open(ctx, o)
	if err != nil {
		f.Refused = err.Error()
		f.Named = errors.Is(err, ErrDamaged) || errors.Is(err, ErrJournalMissing)
		return f
	}
	err = f.read(ctx, l, p.Release)
	if err = errors.Join(err, l.Close()); err != nil {
		f.Fault = err.Error()
	}
	return f
}

func (f *proofFindings) read(ctx context.Context, l *Log, release bool) error {
	var leases []Settlement
	for _, s := range provedTopics(l) {
		if s.Topic == proofProbe {
			continue
		}
		more, err := f.claimAll(ctx, l, s.Topic)
		if err != nil {
			return err
		}
		leases = append(leases, more...)
		if err := errors.Join(f.deadLetters(ctx, l, s.Topic), f.quarantined(ctx, l, s.Topic)); err != nil {
			return err
		}
	}
	for len(leases) > 0 && release {
		n := min(len(leases), limits.ClaimCeilingMsgs)
		if err := l.Settle(ctx, leases[:n], nil); err != nil {
			return err
		}
		leases = leases[n:]
	}
	return f.probe(ctx, l)
}

// claimAll claims until nothing is left, and waits for what is delayed.
func (f *proofFindings) claimAll(ctx context.Context, l *Log, topic string) (leases []Settlement, err error) {
	for began := time.Now(); ; {
		r := claimRequest(topic, 1_000)
		r.Lease, r.MaxBytes, r.MaxAttempts = time.Hour, 64*limits.MiB, 1<<20
		allDue := time.Since(began) > time.Second // no delay is so long
		got, err := l.Claim(ctx, r)
		if err != nil {
			return nil, err
		}
		for _, d := range got.Deliveries {
			f.Found = append(f.Found, proofFound{
				ID: d.Message.ID, Topic: topic, Reason: d.PreviousReason, Digest: proofDigest(d.Message.Payload),
				Attempts: d.Attempt - 1, Position: d.Lease.Position,
			})
			leases = append(leases, Settlement{Lease: d.Lease, Verdict: Release})
		}
		s, _ := l.Stats(testTenant, topic)
		left := s.Ready + s.Delayed
		if left == 0 {
			return leases, nil
		}
		if len(got.Deliveries)+len(got.Buried)+len(got.Quarantined) == 0 {
			if allDue {
				f.Lost += left
				return leases, nil
			}
			time.Sleep(time.Millisecond)
		}
	}
}

func (f *proofFindings) deadLetters(ctx context.Context, l *Log, topic string) error {
	for after := uint64(0); ; {
		letters, err := l.DeadLetters(ctx, testTenant, topic, DeadLetterFilter{After: after})
		if err != nil || len(letters) == 0 {
			return err
		}
		for _, d := range letters {
			after = d.Position
			found := proofFound{
				ID: d.ID, Topic: topic, Dead: true, Reason: d.Reason, Attempts: d.Attempts, Redriven: d.Redriven, Position: d.Position,
			}
			_, m, err := l.DeadLetter(ctx, testTenant, topic, d.ID)
			if err != nil {
				return fmt.Errorf("dead letter %s: %w", d.ID, err)
			}
			if len(m.Payload) > 0 {
				found.Digest = proofDigest(m.Payload)
			}
			f.Found = append(f.Found, found)
		}
	}
}

// quarantined finds what does not check.
func (f *proofFindings) quarantined(ctx context.Context, l *Log, topic string) error {
	for after := ""; ; {
		entries, err := l.Quarantined(ctx, testTenant, topic, after, 0)
		if err != nil || len(entries) == 0 {
			return err
		}
		for _, e := range entries {
			after = e.ID
			f.Found = append(f.Found, proofFound{ID: e.ID, Topic: topic, Reason: e.Reason, Position: e.Position})
		}
	}
}

// probe sends a message through the log.
func (f *proofFindings) probe(ctx context.Context, l *Log) error {
	receipts, err := l.Publish(ctx, l.newMessage(proofProbe, "probe"))
	if err != nil {
		return err
	}
	f.Probe = receipts[0].Position
	got, err := l.Claim(ctx, claimRequest(proofProbe, 10))
	if err != nil {
		return err
	}
	var done []Settlement
	for _, d := range got.Deliveries {
		done = append(done, Settlement{Lease: d.Lease, Verdict: Ack})
	}
	return l.Settle(ctx, done, nil)
}
