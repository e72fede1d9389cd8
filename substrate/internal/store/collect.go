package store

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/failpoint"
	"github.com/longshore/longshore/substrate/internal/payload"
)

// collectFiles moves the blocks of payload files that are mostly garbage to the end of the youngest file, and deletes the
// files.
func (s *Store) collectFiles() error {
	worn := map[uint32]bool{}
	for _, file := range s.files.Numbers() {
		size, err := s.files.Size(file)
		if err != nil {
			return err
		}
		if held := s.index.heldIn(file); float64(size-held) > gcRatio*float64(size) {
			worn[file] = true
			if err := s.files.Leave(file); err != nil {
				return err
			}
		}
	}
	if len(worn) == 0 {
		return nil
	}
	var blocks []placed
	s.index.each(func(t Topic, b *block) {
		if worn[b.file] {
			blocks = append(blocks, placed{t, b})
		}
	})
	for len(blocks) > 0 {
		if err := failpoint.Hit("reclaim.move"); err != nil {
			return err
		}
		n, err := s.moveBlocks(blocks)
		if err != nil {
			return err
		}
		blocks = blocks[n:]
	}
	return s.flush() // which deletes what is empty now
}

// maxMovedBytes bounds the records that are moved at once.
const maxMovedBytes = 16 * limits.MiB

// moveBlocks moves the first of blocks, and returns how many those are. One that can't be read stays where it is.
func (s *Store) moveBlocks(blocks []placed) (n int, err error) {
	defer s.files.Pin()()
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	var moved []placed
	var to []uint32
	for bytes := 0; n < len(blocks) && bytes < maxMovedBytes; n++ {
		b := blocks[n]
		c, err := b.listing(txn, b.topic)
		if err == nil {
			c.at, err = s.moveRecords(c.at)
		}
		if corrupt := new(CorruptError); errors.As(err, &corrupt) || errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return 0, err
		}
		bytes += c.at.Bytes
		key := b.topic.block(b.first)
		record := sealListing(key, c)
		s.grown.add(len(key), len(record))
		if err := txn.Set(key, record); err != nil {
			return 0, fmt.Errorf("move: %w", err)
		}
		moved, to = append(moved, b), append(to, c.at.File)
	}
	s.grown.values = true
	if err := s.files.Flush(); err != nil {
		return 0, err
	}
	if err := failpoint.Hit("reclaim.moved"); err != nil {
		return 0, err
	}
	if err := s.files.Sync(); err != nil { // no power cut may leave the new places alone
		return 0, err
	}
	if err := txn.Commit(); err != nil {
		return 0, fmt.Errorf("move: %w", err)
	}
	for i, b := range moved {
		s.index.move(b.block, to[i])
	}
	return n, nil
}

// moveRecords copies records as they are: what does not check will not check elsewhere either.
func (s *Store) moveRecords(at payload.Place) (payload.Place, error) {
	records, err := s.files.Read(nil, at, 0, at.Bytes)
	switch {
	case errors.Is(err, syscall.EIO):
		return payload.Place{}, err
	case err != nil:
		return payload.Place{}, &CorruptError{Reason: err.Error()}
	}
	return s.files.Add(len(records), func(b []byte) []byte { return append(b, records...) })
}
