package store

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"

	"github.com/dgraph-io/badger/v4"
)

// listing returns what the block holds and where, or ErrNotFound if the block is no more.
func (b *block) listing(txn *badger.Txn, t Topic) (listing, error) {
	key := t.block(b.first)
	body, err := getIn(txn, key)
	if err != nil {
		return listing{}, err
	}
	c, ok := parseListing(b.first, body)
	if !ok || len(c.places) != int(b.count) {
		return listing{}, &CorruptError{Key: key, Reason: "it does not say what the block holds"}
	}
	return c, nil
}

// left is listing without the places of messages that are deleted.
func (b *block) left(txn *badger.Txn, t Topic) (listing, error) {
	c, err := b.listing(txn, t)
	if err != nil {
		return listing{}, err
	}
	done, err := getIn(txn, t.done(b.first))
	if errors.Is(err, ErrNotFound) {
		return c, nil
	}
	if err != nil {
		return listing{}, err
	}
	left := c.places[:0]
	for i, p := range c.places {
		if !marked(done, i) {
			left = append(left, p)
		}
	}
	c.places = left
	return c, nil
}

// only returns the listing of a block cut to the message at position, or ErrNotFound.
func (b *block) only(txn *badger.Txn, t Topic, position uint64) (listing, error) {
	c, err := b.left(txn, t)
	if err != nil {
		return listing{}, err
	}
	i := find(c.places, position)
	if i < 0 {
		return listing{}, ErrNotFound
	}
	c.places = c.places[i : i+1]
	return c, nil
}

// getFrom returns the body of the message at position of a block.
func (s *Store) getFrom(b *block, txn *badger.Txn, t Topic, position uint64) (body []byte, err error) {
	c, err := b.only(txn, t, position)
	if err != nil {
		return nil, err
	}
	s.eachOf(b, txn, t, c, func(_, found []byte, fault error) bool {
		body, err = found, fault
		return false
	})
	return body, err
}

// eachOf calls yield with the key and a copy of the body of the messages at the places, until it returns false, and reports
// whether it never did. What does not check is yielded with its error.
func (s *Store) eachOf(b *block, txn *badger.Txn, t Topic, c listing, yield func(key, body []byte, err error) bool) (more bool) {
	return s.eachRecord(b, txn, t, c, func(key, record []byte, err error) bool {
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

// eachRecord is eachOf with the records as they are stored, which are valid during the call.
func (s *Store) eachRecord(b *block, txn *badger.Txn, t Topic, c listing, yield func(key, record []byte, err error) bool) (more bool) {
	key := t.Message(0)
	next := func(records []byte, start int, err error) {
		for more = true; more && len(c.places) > 0; c.places = c.places[1:] {
			p := c.places[0]
			setPosition(key, p.position)
			switch {
			case err != nil:
				more = yield(key, nil, err)
			case p.end-start > len(records):
				more = yield(key, nil, &CorruptError{Key: append([]byte(nil), key...), Reason: "its block ends before it"})
			default:
				more = yield(key, records[p.start-start:p.end-start], nil)
			}
		}
	}
	if len(c.places) == 0 {
		return true
	}
	if c.at.File != 0 {
		s.readPlaced(t.block(b.first), c, next)
		return more
	}
	item, err := getItem(txn, t.records(b.first))
	if errors.Is(err, ErrNotFound) {
		err = &CorruptError{Key: t.records(b.first), Reason: "the records of a block are missing"}
	}
	if err != nil {
		next(nil, 0, err)
		return more
	}
	err = item.Value(func(records []byte) error {
		next(records, 0, nil)
		return nil
	})
	if err != nil {
		next(nil, 0, unreadable(item, err))
	}
	return more
}

// pieces are buffers that blocks are read into.
var pieces = sync.Pool{New: func() any { return new([]byte) }} //nolint:gochecknoglobals // it holds nothing that counts

// readPlaced calls next with the records from the first place to the last, and where those begin in their block.
func (s *Store) readPlaced(key []byte, c listing, next func(records []byte, start int, err error)) {
	buffer := pieces.Get().(*[]byte) //nolint:forcetypeassert // the pool holds nothing else
	defer pieces.Put(buffer)
	start, end := c.places[0].start, c.places[len(c.places)-1].end
	records, err := s.files.Read(*buffer, c.at, start, end-start)
	if records != nil {
		*buffer = records
	}
	switch {
	case err == nil, errors.Is(err, io.ErrUnexpectedEOF):
		next(records, start, nil) // what is missing will be noticed
	case errors.Is(err, syscall.EIO):
		next(nil, start, fmt.Errorf("store: read: %w", err))
	default:
		next(nil, start, &CorruptError{Key: key, Reason: err.Error()})
	}
}

// rawFrom returns a copy of the record of the message at position of a block.
func (s *Store) rawFrom(b *block, txn *badger.Txn, t Topic, position uint64) (record []byte, err error) {
	c, err := b.only(txn, t, position)
	if err != nil {
		return nil, err
	}
	s.eachRecord(b, txn, t, c, func(_, found []byte, fault error) bool {
		record, err = append([]byte(nil), found...), fault
		return false
	})
	return record, err
}
