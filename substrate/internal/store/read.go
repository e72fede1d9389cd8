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
			if body, err = s.getFrom(b, txn, t, position); !errors.Is(err, ErrNotFound) {
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
			if value, err = s.rawFrom(b, txn, t, position); !errors.Is(err, ErrNotFound) {
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

// view calls f with a transaction that reads, while which no payload file goes.
func (s *Store) view(f func(txn *badger.Txn) error) error {
	defer s.files.Pin()() // before the transaction begins: what that sees has to be there
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

// Scan calls yield for each record under prefix from the key from on, in order, until yield returns false. A record that
// does not check is yielded with its error. The key is valid during the call; the body belongs to the callee, which must
// not close the store. The error is ErrClosed or nil.
func (s *Store) Scan(prefix, from []byte, yield func(key, body []byte, err error) bool) error {
	return s.walk(prefix, from, walker{
		single: func(item *badger.Item) bool {
			body, err := read(item)
			return yield(item.Key(), body, err)
		},
		block: func(txn *badger.Txn, t Topic, position uint64, b *block) bool {
			return s.scan(b, txn, t, position, yield)
		},
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
	c, err := b.left(txn, t)
	switch {
	case errors.Is(err, ErrNotFound):
		return true
	case err != nil:
		return yield(t.Message(max(b.first, from)))
	}
	for _, p := range c.places {
		if p.position >= from && !yield(t.Message(p.position)) {
			return false
		}
	}
	return true
}

// scan yields a block's messages from a position on, and reports whether to go on.
func (s *Store) scan(b *block, txn *badger.Txn, t Topic, from uint64, yield func(key, body []byte, err error) bool) (more bool) {
	c, err := b.left(txn, t)
	if errors.Is(err, ErrNotFound) {
		return true
	}
	if err != nil {
		return yield(t.Message(max(b.first, from)), nil, err)
	}
	for len(c.places) > 0 && c.places[0].position < from {
		c.places = c.places[1:]
	}
	return s.eachOf(b, txn, t, c, yield)
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
