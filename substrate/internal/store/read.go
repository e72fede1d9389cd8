package store

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/dgraph-io/badger/v4"
)

// Get returns a copy of the body under key: ErrNotFound, or a *CorruptError if it does not check.
func (s *Store) Get(key []byte) ([]byte, error) {
	s.use.RLock()
	defer s.use.RUnlock()
	if s.closed {
		return nil, ErrClosed
	}
	body, err := s.get(key)
	if corrupt := new(CorruptError); errors.As(err, &corrupt) {
		body, err = s.get(key) // its value may have been moved meanwhile, see collectValues
	}
	return body, err
}

func (s *Store) get(key []byte) (body []byte, err error) {
	var b *block
	t, position, isMessage := parseMessage(key)
	if isMessage {
		b = s.index.holding(t, position) // before the transaction begins: what was in a block later is seen by itself
	}
	err = s.view(func(txn *badger.Txn) error {
		if b != nil {
			if body, err = b.get(txn, t, position); !errors.Is(err, ErrNotFound) {
				return err
			}
		}
		body, err = getIn(txn, key)
		return err
	})
	return body, err
}

// Raw returns a copy of what stands under key as it is stored, whether it checks or not; ErrNotFound if nothing does.
func (s *Store) Raw(key []byte) (value []byte, err error) {
	s.use.RLock()
	defer s.use.RUnlock()
	if s.closed {
		return nil, ErrClosed
	}
	var b *block
	t, position, isMessage := parseMessage(key)
	if isMessage {
		b = s.index.holding(t, position) // as for get
	}
	err = s.view(func(txn *badger.Txn) error {
		if b != nil {
			if value, err = b.raw(txn, t, position); !errors.Is(err, ErrNotFound) {
				return err
			}
		}
		item, err := getItem(txn, key)
		if err != nil {
			return err
		}
		if value, err = item.ValueCopy(nil); err != nil {
			return unreadable(item, err)
		}
		return nil
	})
	return value, err
}

// raw returns a copy of the record of the message at position.
func (b *block) raw(txn *badger.Txn, t Topic, position uint64) (record []byte, err error) {
	places, err := b.left(txn, t)
	if err != nil {
		return nil, err
	}
	i := find(places, position)
	if i < 0 {
		return nil, ErrNotFound
	}
	b.eachRecord(txn, t, places[i:i+1], func(_, found []byte, fault error) bool {
		record, err = append([]byte(nil), found...), fault
		return false
	})
	return record, err
}

func (s *Store) view(f func(txn *badger.Txn) error) error {
	txn := s.db.NewTransaction(false)
	defer txn.Discard()
	return f(txn)
}

func getIn(txn *badger.Txn, key []byte) ([]byte, error) {
	item, err := getItem(txn, key)
	if err != nil {
		return nil, err
	}
	return read(item)
}

func getItem(txn *badger.Txn, key []byte) (*badger.Item, error) {
	item, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("store: get: %w", err)
	}
	return item, nil
}

func read(item *badger.Item) ([]byte, error) {
	value, err := item.ValueCopy(nil)
	if err != nil {
		return nil, unreadable(item, err)
	}
	return open(item.Key(), value)
}

func unreadable(item *badger.Item, err error) error {
	if errors.Is(err, syscall.EIO) {
		return fmt.Errorf("store: read: %w", err)
	}
	return &CorruptError{Key: item.KeyCopy(nil), Reason: err.Error()}
}

// places returns where the block's messages are, or ErrNotFound if the block is no more.
func (b *block) places(txn *badger.Txn, t Topic) ([]place, error) {
	key := t.block(b.first)
	body, err := getIn(txn, key)
	if err != nil {
		return nil, err
	}
	places, ok := parsePlaces(b.first, body)
	if !ok || len(places) != int(b.count) {
		return nil, &CorruptError{Key: key, Reason: "it does not say what the block holds"}
	}
	return places, nil
}

// left returns the places of the block's messages that are not deleted.
func (b *block) left(txn *badger.Txn, t Topic) ([]place, error) {
	places, err := b.places(txn, t)
	if err != nil {
		return nil, err
	}
	done, err := getIn(txn, t.done(b.first))
	if errors.Is(err, ErrNotFound) {
		return places, nil
	}
	if err != nil {
		return nil, err
	}
	left := places[:0]
	for i, p := range places {
		if !marked(done, i) {
			left = append(left, p)
		}
	}
	return left, nil
}

// get returns the body of the message at position.
func (b *block) get(txn *badger.Txn, t Topic, position uint64) (body []byte, err error) {
	places, err := b.left(txn, t)
	if err != nil {
		return nil, err
	}
	i := find(places, position)
	if i < 0 {
		return nil, ErrNotFound
	}
	b.each(txn, t, places[i:i+1], func(_, found []byte, fault error) bool {
		body, err = found, fault
		return false
	})
	return body, err
}

// each calls yield with the key and a copy of the body of the messages at places, until it returns false, and reports
// whether it never did. What does not check is yielded with its error.
func (b *block) each(txn *badger.Txn, t Topic, places []place, yield func(key, body []byte, err error) bool) (more bool) {
	return b.eachRecord(txn, t, places, func(key, record []byte, err error) bool {
		if err != nil {
			return yield(key, nil, err)
		}
		body, err := open(key, record)
		if err != nil {
			return yield(key, nil, err)
		}
		return yield(key, append(make([]byte, 0, len(body)), body...), nil)
	})
}

// eachRecord is each with the records as they are stored, which are valid during the call.
func (b *block) eachRecord(txn *badger.Txn, t Topic, places []place, yield func(key, record []byte, err error) bool) (more bool) {
	key := t.Message(0)
	next := func(records []byte, err error) {
		for more = true; more && len(places) > 0; places = places[1:] {
			p := places[0]
			setPosition(key, p.position)
			switch {
			case err != nil:
				more = yield(key, nil, err)
			case p.end > len(records):
				more = yield(key, nil, &CorruptError{Key: append([]byte(nil), key...), Reason: "its block ends before it"})
			default:
				more = yield(key, records[p.start:p.end], nil)
			}
		}
	}
	item, err := getItem(txn, t.records(b.first))
	if errors.Is(err, ErrNotFound) {
		err = &CorruptError{Key: t.records(b.first), Reason: "the records of a block are missing"}
	}
	if err != nil {
		next(nil, err)
		return more
	}
	err = item.Value(func(records []byte) error {
		next(records, nil)
		return nil
	})
	if err != nil {
		next(nil, unreadable(item, err))
	}
	return more
}

// Scan calls yield for each record under prefix from the key from on, in order, until yield returns false. A record that
// does not check is yielded with its error. The key is valid during the call; the body belongs to the callee, which must
// not close the store. The error is ErrClosed or nil.
func (s *Store) Scan(prefix, from []byte, yield func(key, body []byte, err error) bool) error {
	return s.walk(prefix, from, walker{
		single: func(item *badger.Item) bool {
			body, err := read(item)
			return yield(item.Key(), body, err)
		},
		block: func(txn *badger.Txn, t Topic, position uint64, b *block) bool { return b.scan(txn, t, position, yield) },
	})
}

// Keys calls yield for each key that Scan would yield a record for, whether that checks or not. It reads no records.
func (s *Store) Keys(prefix, from []byte, yield func(key []byte) bool) error {
	return s.walk(prefix, from, walker{
		single: func(item *badger.Item) bool { return yield(item.Key()) },
		block:  func(txn *badger.Txn, t Topic, position uint64, b *block) bool { return b.keys(txn, t, position, yield) },
	})
}

// walker is given what walk meets, until it returns false: entries, and blocks of messages from a position on.
type walker struct {
	single func(*badger.Item) bool
	block  func(txn *badger.Txn, t Topic, position uint64, b *block) bool
}

// walk goes through what is stored under prefix from the key from on, in order.
func (s *Store) walk(prefix, from []byte, w walker) error {
	s.use.RLock()
	defer s.use.RUnlock()
	if s.closed {
		return ErrClosed
	}
	var blocks []*block
	t, position, isMessage := parseMessage(from)
	if isMessage {
		blocks = s.index.from(t, position) // before the transaction begins, as for get
	}
	return s.view(func(txn *badger.Txn) error {
		// Values are not prefetched: Badger would read them on goroutines of its own, and a panic in one ends the process.
		it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix}) // it holds the value logs of the blocks too
		defer it.Close()
		it.Seek(from)
		for more := true; more; {
			single := it.ValidForPrefix(prefix)
			switch {
			case len(blocks) > 0 && (!single || blocks[0].first < Position(it.Item().Key())):
				more = w.block(txn, t, position, blocks[0])
				blocks = blocks[1:]
			case single:
				more = w.single(it.Item())
				it.Next()
			default:
				more = false
			}
		}
		return nil
	})
}

// keys yields the keys of the block's messages from a position on, and reports whether to go on. Of a block that does not
// say what it holds it yields the first.
func (b *block) keys(txn *badger.Txn, t Topic, from uint64, yield func(key []byte) bool) (more bool) {
	places, err := b.left(txn, t)
	switch {
	case errors.Is(err, ErrNotFound):
		return true
	case err != nil:
		return yield(t.Message(max(b.first, from)))
	}
	for _, p := range places {
		if p.position >= from && !yield(t.Message(p.position)) {
			return false
		}
	}
	return true
}

// scan yields the block's messages from a position on, and reports whether to go on.
func (b *block) scan(txn *badger.Txn, t Topic, from uint64, yield func(key, body []byte, err error) bool) (more bool) {
	places, err := b.left(txn, t)
	if errors.Is(err, ErrNotFound) {
		return true
	}
	if err != nil {
		return yield(t.Message(max(b.first, from)), nil, err)
	}
	for len(places) > 0 && places[0].position < from {
		places = places[1:]
	}
	return len(places) == 0 || b.each(txn, t, places, yield)
}

// Topics calls yield for each topic that has a state, in order, hopping over everything else. A topic may have messages and
// no state yet: those of a batch that a crash cut short (see Write). Nobody knows of them before the journal is replayed.
func (s *Store) Topics(yield func(tenant, topic string, state []byte, err error) error) error {
	return s.view(func(txn *badger.Txn) error {
		return eachTopic(txn, func(_ *badger.Iterator, t Topic) error {
			state, err := s.get(t.State())
			if errors.Is(err, ErrNotFound) {
				return nil
			}
			tenant, topic, _ := parseTopic(t.State())
			return yield(tenant, topic, state, err)
		})
	})
}

// eachTopic calls yield for each topic that has a key, in order, with an iterator that it may move within the topic.
func eachTopic(txn *badger.Txn, yield func(it *badger.Iterator, t Topic) error) error {
	o := badger.DefaultIteratorOptions
	o.PrefetchValues = false // as for Scan
	it := txn.NewIterator(o)
	defer it.Close()
	for it.Seek([]byte{metaTenant + 1}); it.Valid(); {
		if end := tenantEnd(it.Item().Key()); end != nil {
			it.Seek(end)
			continue
		}
		tenant, topic, ok := parseTopic(it.Item().Key())
		if !ok {
			return &CorruptError{Key: it.Item().KeyCopy(nil), Reason: "the key is not one of a topic"}
		}
		t := TopicOf(tenant, topic)
		if err := yield(it, t); err != nil {
			return err
		}
		it.Seek(t.end())
	}
	return nil
}
