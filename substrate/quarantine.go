package substrate

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/store"
)

// QuarantineEntry describes a record that does not check. Its bytes are where they were, are never delivered, and are
// deleted by DiscardQuarantined alone.
type QuarantineEntry struct {
	ID       string // "position-" and its position, or "hash-" and the hash of its bytes in hex, if it has no position
	Tenant   string
	Topic    string
	Position uint64 // 0 if that is not known
	Reason   string // ReasonCorrupt or ReasonMissing
	Error    string // what is wrong with it, in the log's own words
	Length   int    // bytes of the record as it is stored; 0 if it can't be read
	Preview  string // the first of them in hex, at most limits.PreviewBytes
	At       time.Time
	Lanes    []string // that it was taken from; known only in the ClaimResult that tells of it
}

// Prefixes of the ids of entries.
const (
	positionPrefix = "position-"
	hashPrefix     = "hash-"
)

func (q *quarantined) id() string {
	if q.hash {
		return fmt.Sprintf("%s%016x", hashPrefix, q.number)
	}
	return positionPrefix + strconv.FormatUint(q.number, 10)
}

func (q *quarantined) entry(t *topic) QuarantineEntry {
	e := QuarantineEntry{
		ID: q.id(), Tenant: t.name.Tenant, Topic: t.name.Topic, Reason: q.reason, Error: q.fault, Length: q.length,
		Preview: hex.EncodeToString(q.preview), At: time.Unix(0, q.at),
	}
	if !q.hash {
		e.Position = q.number
	}
	return e
}

func entriesOf(t *topic, list []*quarantined) []QuarantineEntry {
	var entries []QuarantineEntry
	for _, q := range list {
		entries = append(entries, q.entry(t))
	}
	return entries
}

// entryRef returns what an id names. It has the one form that id gives it.
func (t *topic) entryRef(id string) (entryRef, error) {
	r := entryRef{topic: t}
	var err error
	if text, found := strings.CutPrefix(id, positionPrefix); found {
		r.number, err = strconv.ParseUint(text, 10, 64)
	} else {
		r.hash = true
		r.number, err = strconv.ParseUint(strings.TrimPrefix(id, hashPrefix), 16, 64)
	}
	if err != nil || (&quarantined{number: r.number, hash: r.hash}).id() != id {
		return entryRef{}, &NameError{"quarantine entry", id, "position- and a number, or hash- and 16 hexadecimal digits, as they are listed"}
	}
	return r, nil
}

// Quarantined returns up to n entries of the quarantine of a topic, those with a position first, in the order of their
// positions. after is the ID of the last one seen, or "". An n that is not positive, or above limits.QuarantinePage, is that.
//
// Errors: ErrNotFound if there is no such topic.
func (l *Log) Quarantined(ctx context.Context, tenant, topic, after string, n int) ([]QuarantineEntry, error) {
	if n <= 0 || n > limits.QuarantinePage {
		n = limits.QuarantinePage
	}
	t, list, err := l.listQuarantined(ctx, tenant, topic, after, QuarantineFilter{Limit: n})
	if err != nil {
		return nil, err
	}
	return entriesOf(t, list), nil
}

// QuarantinedEntry returns one entry with its bytes as they are stored: none if they can't be read.
//
// Errors: ErrNotFound.
func (l *Log) QuarantinedEntry(ctx context.Context, tenant, topic, id string) (QuarantineEntry, []byte, error) {
	t, list, err := l.listQuarantined(ctx, tenant, topic, "", QuarantineFilter{ID: id, Limit: 1})
	if err != nil {
		return QuarantineEntry{}, nil, err
	}
	if len(list) == 0 {
		return QuarantineEntry{}, nil, ErrNotFound
	}
	q := list[0]
	if !q.hash {
		return q.entry(t), l.rawRecord(t, q.number), nil
	}
	var raw []byte
	for i := len(q.places) - 1; i >= 0 && len(raw) == 0; i-- { // as they were met: see addStray
		raw, err = l.store.Raw(t.key().Key(q.places[i]))
		if errors.Is(err, store.ErrClosed) {
			return QuarantineEntry{}, nil, ErrClosed
		}
	}
	return q.entry(t), raw, nil
}

// QuarantineFilter selects entries of the quarantine: all conditions that are set must hold. The zero value selects all.
type QuarantineFilter struct {
	ID        string
	OlderThan time.Duration // since it was quarantined, inclusive; 0 does not filter
	Limit     int           // in the order of Quarantined; 0 is no limit
}

// DiscardQuarantined deletes entries of the quarantine, with the bytes that they are about and the dead letters of the same
// messages, and returns how many. What was deleted before an error stays so.
//
// Errors: ErrNotFound if there is no such topic.
func (l *Log) DiscardQuarantined(ctx context.Context, tenant, topic string, f QuarantineFilter) (int, error) {
	count, after, left := 0, "", f.Limit
	for {
		f.Limit = quarantinesPerFrame
		if left > 0 {
			f.Limit = min(f.Limit, left-count)
		}
		t, list, err := l.listQuarantined(ctx, tenant, topic, after, f)
		if err != nil || len(list) == 0 {
			return count, err
		}
		n, err := l.discardEntries(ctx, t, list)
		count += n
		if err != nil || len(list) < f.Limit || left > 0 && count >= left {
			return count, err
		}
		after = list[len(list)-1].id()
	}
}

// discardEntries commits the deletion of those entries that are still there.
func (l *Log) discardEntries(ctx context.Context, t *topic, list []*quarantined) (n int, err error) {
	err = l.submit(ctx, &request{bytes: quarantineBytes, need: needNothing, plan: func(time.Time) (frame, error) {
		f := &quarantineFrame{name: t.name, what: quarantineDiscarded}
		if l.state.topics[t.name] != t {
			return nil, nil
		}
		for _, q := range list {
			if q.hash && t.strays[q.number] != nil || !q.hash && t.quarantined.has(q.number) {
				f.items = append(f.items, &quarantined{number: q.number, hash: q.hash, payloadBytes: q.payloadBytes})
			}
		}
		if n = len(f.items); n == 0 {
			return nil, nil
		}
		return f, nil
	}})
	return n, err
}

// listQuarantined reads entries from the store, once that is up to date. A limit of 0 is none.
func (l *Log) listQuarantined(ctx context.Context, tenant, topic, after string, f QuarantineFilter) (*topic, []*quarantined, error) {
	if err := validName(tenant, topic); err != nil {
		return nil, nil, err
	}
	if err := l.submit(ctx, &request{}); err != nil {
		return nil, nil, err
	}
	t := l.find(TopicName{tenant, topic})
	if t == nil {
		return nil, nil, ErrNotFound
	}
	key := t.key()
	from, only := key.Quarantined(), ""
	for _, id := range []string{after, f.ID} {
		if id == "" {
			continue
		}
		r, err := t.entryRef(id)
		if err != nil {
			return nil, nil, err
		}
		from, only = r.key(), f.ID
	}
	now := l.now()
	var list []*quarantined
	var err error
	scanned := l.store.Scan(key.Quarantined(), from, func(k, body []byte, recordErr error) bool {
		if err = ctx.Err(); err != nil {
			return false
		}
		q := readEntry(key, k, body, recordErr)
		switch {
		case q.id() == after:
			return true
		case only != "" && q.id() != only:
			return false
		case now.Sub(time.Unix(0, q.at)) >= f.OlderThan:
			list = append(list, q)
		}
		return f.Limit == 0 || len(list) < f.Limit
	})
	return t, list, errors.Join(err, closedOr(scanned))
}

// readEntry returns what an entry's record tells. One that does not check is one all the same.
func readEntry(of store.Topic, key, body []byte, err error) *quarantined {
	q := &quarantined{reason: ReasonCorrupt}
	if err == nil {
		if read, err := decodeQuarantined(body); err == nil {
			q = read
		}
	}
	q.number, q.hash = of.QuarantineID(key)
	return q
}
