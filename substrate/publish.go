package substrate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/longshore/longshore/limits"
)

// entryOverheadBytes bounds what a message costs in a frame beside its record: names, lengths, and their varints.
const entryOverheadBytes = limits.TopicBytes + limits.TenantBytes + 32

// MintID returns a new message id, never used before on this log. It is good for one message, which is published before
// the log is closed and before limits.MintedIDs further ids were minted. Safe for concurrent use.
func (l *Log) MintID() string { return l.mint.next(time.Now()).String() }

// Publish stores messages, all or none, in the order given, over any mix of topics, and returns when they are durable. If
// ctx ends while it waits, it returns ctx's error and the messages may still be stored, all of them.
//
// It refuses with *NameError (names, ids), *limits.Error (sizes), *DepthError, *RateError, ErrStorageFull, ErrClosed.
func (l *Log) Publish(ctx context.Context, msgs ...Message) ([]Receipt, error) {
	return l.publish(ctx, nil, msgs)
}

// PublishHeld is Publish for whoever handles messages: it stores nothing, and returns ErrLeaseLost, if one of the leases is
// another's, or nobody's, at that moment.
func (l *Log) PublishHeld(ctx context.Context, held []Lease, msgs ...Message) ([]Receipt, error) {
	return l.publish(ctx, held, msgs)
}

func (l *Log) publish(ctx context.Context, held []Lease, msgs []Message) ([]Receipt, error) {
	if len(msgs) == 0 {
		return nil, nil
	}
	entries, bytes, err := l.encodeMessages(msgs)
	if err != nil {
		return nil, err
	}
	p := &publishing{frame: publishFrame{entries: entries}, receipts: make([]Receipt, len(msgs))}
	p.request = request{bytes: bytes, need: needMuch, abandonable: true, plan: func(now time.Time) (frame, error) {
		for _, lease := range held {
			if l.holds(lease) == nil {
				return nil, ErrLeaseLost
			}
		}
		if err := l.planPublish(&p.frame, p.receipts, now, false); err != nil || len(p.frame.entries) == 0 {
			return nil, err
		}
		return &p.frame, nil
	}}
	if err = l.submit(ctx, &p.request); err != nil {
		return nil, err
	}
	return p.receipts, nil
}

// publishing is what a call of Publish needs, in one piece.
type publishing struct {
	request  request
	frame    publishFrame
	receipts []Receipt
}

// encodeMessages validates messages and makes their records. It runs in the publisher, not in the committer.
func (l *Log) encodeMessages(msgs []Message) ([]published, int64, error) {
	if err := limits.Check(limits.NameBatchMessages, int64(len(msgs)), limits.BatchMessages); err != nil {
		return nil, 0, err
	}
	entries := make([]published, len(msgs))
	var bytes int64
	for i := range msgs {
		e, err := encodeEntry(&msgs[i])
		if err != nil {
			if len(msgs) > 1 {
				err = fmt.Errorf("message %d of %d: %w", i+1, len(msgs), err)
			}
			return nil, 0, err
		}
		entries[i] = e
		bytes += int64(len(e.body)) + entryOverheadBytes
	}
	return entries, bytes, nil
}

func encodeEntry(m *Message) (published, error) {
	if err := validName(m.Tenant, m.Topic); err != nil {
		return published{}, err
	}
	id, err := parseID(m.ID)
	if err != nil {
		return published{}, err
	}
	if err := checkSizes(m); err != nil {
		return published{}, err
	}
	size := len(m.Payload) + len(m.Envelope) + len(m.Parent) + len(m.ContentType) + metadataBytes(m.Metadata) + 64
	e := published{
		name:    TopicName{m.Tenant, m.Topic},
		text:    m.ID,
		origin:  origin{id: id, payloadBytes: len(m.Payload), priority: m.Options.Priority, order: m.Options.order()},
		body:    appendMessage(make([]byte, 0, size), id, m),
		options: m.Options,

		reservation: m.Reservation,
	}
	if m.Options.IdempotencyKey != "" {
		e.key = &firstUse{hash: hashKey(&m.Options), id: id}
	}
	return e, nil
}

func checkSizes(m *Message) error {
	if err := limits.Check(limits.NameMessageBytes, int64(len(m.Payload)), limits.MessageCeilingBytes); err != nil {
		return err
	}
	if err := limits.Check(limits.NameMetadataPairs, int64(len(m.Metadata)), limits.MetadataPairs); err != nil {
		return err
	}
	if err := limits.Check(limits.NameMetadataBytes, int64(metadataBytes(m.Metadata)), limits.MetadataBytes); err != nil {
		return err
	}
	if err := limits.Check("envelope bytes", int64(len(m.Envelope)), limits.EnvelopeBytes); err != nil {
		return err
	}
	longest := max(len(m.ContentType), len(m.Parent))
	if err := limits.Check(limits.NameKeyBytes, int64(longest), limits.KeyBytes); err != nil {
		return err
	}
	return m.Options.validate()
}

func metadataBytes(pairs []Pair) int {
	n := 0
	for _, p := range pairs {
		n += len(p.Key) + len(p.Value)
	}
	return n
}

// planPublish leaves duplicates out of the frame, admits the rest and gives them their positions and times. It fills a
// receipt for each message. On an error nothing was drawn or marked. inner is as for admission.admit.
func (l *Log) planPublish(f *publishFrame, receipts []Receipt, now time.Time, inner bool) error {
	all := f.entries
	f.at, f.first = now.UnixNano(), l.state.nextPosition
	f.entries = l.dropDuplicates(all, receipts, f)
	if err := l.checkTopics(f.entries); err != nil {
		return err
	}
	if err := l.admission.checkPriorities(l.state, f.entries); err != nil {
		return err
	}
	if err := l.useIDs(f.entries); err != nil {
		return err
	}
	if err := l.admission.admit(l.state, demandsOf(f.entries), now, inner); err != nil {
		l.unuseIDs(f.entries)
		return err
	}
	f.relaxed = l.relaxed(len(f.entries), func(i int) TopicName { return f.entries[i].name })
	for i := range all {
		if e := &all[i]; e.reservation.holds(e.name) {
			l.admission.free(e.reservation)
		}
	}
	return nil
}

// dropDuplicates returns the entries that are stored, with their times, and makes the receipts of all.
func (l *Log) dropDuplicates(all []published, receipts []Receipt, f *publishFrame) []published {
	type key struct {
		name TopicName
		hash keyHash
	}
	var kept []published // made when the first duplicate is found
	duplicates := false
	position := f.first
	var seen map[key]Receipt
	for i := range all {
		e := &all[i]
		if e.key != nil {
			first, is := seen[key{e.name, e.key.hash}]
			if use := l.firstUse(e, f.at); use != nil && !is {
				first, is = Receipt{ID: use.id.String(), Position: use.position, Duplicate: true}, true
			}
			if is {
				receipts[i] = first
				if !duplicates {
					duplicates, kept = true, append(kept, all[:i]...)
				}
				continue
			}
		}
		receipts[i] = Receipt{ID: e.text}
		if e.options.Delay != 0 {
			e.due = f.at + int64(e.options.Delay)
		} else {
			receipts[i].Position = position
			position++
		}
		e.origin.expires, e.origin.deadline = e.options.expires(visibleAt(f.at, e.due))
		if e.key != nil {
			e.key.until = f.at + l.admission.view(l.state, e.name).IdempotencyWindowMilli.Value*int64(time.Millisecond)
			if seen == nil {
				seen = map[key]Receipt{}
			}
			seen[key{e.name, e.key.hash}] = Receipt{ID: receipts[i].ID, Position: receipts[i].Position, Duplicate: true}
		}
		if duplicates {
			kept = append(kept, *e)
		}
	}
	if !duplicates {
		return all
	}
	return kept
}

func (l *Log) firstUse(e *published, now int64) *firstUse {
	t := l.state.topics[e.name]
	if t == nil {
		return nil
	}
	return t.keys.find(e.key.hash, now)
}

// checkTopics refuses a publish that would make too many topics for a tenant.
func (l *Log) checkTopics(entries []published) error {
	if !slices.ContainsFunc(entries, func(e published) bool { return l.state.topics[e.name] == nil }) {
		return nil
	}
	made := map[TopicName]struct{}{}
	perTenant := map[string]int{}
	for i := range entries {
		name := entries[i].name
		if _, seen := made[name]; seen || l.state.topics[name] != nil {
			continue
		}
		made[name] = struct{}{}
		perTenant[name.Tenant]++
		if err := l.roomForTopics(name.Tenant, perTenant[name.Tenant]); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) useIDs(entries []published) error {
	for i := range entries {
		if err := l.mint.check(entries[i].origin.id); err != nil {
			l.unuseIDs(entries[:i])
			return err
		}
		l.mint.use(entries[i].origin.id)
	}
	return nil
}

func (l *Log) unuseIDs(entries []published) {
	for i := range entries {
		l.mint.unuse(entries[i].origin.id)
	}
}

// demandsOf sums up, per topic, the messages that no reservation has admitted yet.
func demandsOf(entries []published) []demand {
	if len(entries) == 1 && !entries[0].reservation.holds(entries[0].name) {
		d := demand{name: entries[0].name}
		d.add(int64(entries[0].origin.payloadBytes))
		return []demand{d}
	}
	var demands []demand
	index := map[TopicName]int{}
	for i := range entries {
		e := &entries[i]
		if e.reservation.holds(e.name) {
			continue
		}
		at, seen := index[e.name]
		if !seen {
			at = len(demands)
			index[e.name] = at
			demands = append(demands, demand{name: e.name})
		}
		demands[at].add(int64(e.origin.payloadBytes))
	}
	return demands
}

// holds reports whether the reservation stands for a message of the named topic.
func (r *Reservation) holds(name TopicName) bool { return r != nil && !r.used && r.name == name }
