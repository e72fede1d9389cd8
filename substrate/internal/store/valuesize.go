package store

import (
	"encoding/binary"
	"errors"

	"github.com/dgraph-io/badger/v4"
)

// ValueBytes returns what the values of a bucket take: their names in it and their records. It reads no value.
func (s *Store) ValueBytes(b Bucket) (bytes int64, err error) {
	err = s.view(func(txn *badger.Txn) error {
		o := badger.DefaultIteratorOptions
		o.PrefetchValues, o.Prefix = false, b.Values()
		it := txn.NewIterator(o)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			bytes += int64(len(it.Item().Key())-len(b.prefix)) + recordBytes(it.Item())
		}
		return nil
	})
	return bytes, err
}

// RecordBytes returns how long the record under a key is, 0 if there is none. It does not read it.
func (s *Store) RecordBytes(key []byte) (bytes int64, err error) {
	err = s.view(func(txn *badger.Txn) error {
		item, err := txn.Get(key)
		if errors.Is(err, badger.ErrKeyNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		bytes = recordBytes(item)
		return nil
	})
	return bytes, err
}

// recordBytes returns the length of an item's value. Badger knows it of one that stands among its keys; of one in a value log
// it knows the whole entry, of which it takes 6 bytes for the header. That has 3, and the lengths of key and value.
func recordBytes(item *badger.Item) int64 {
	n := item.ValueSize()
	if n < valueThreshold {
		return n
	}
	const taken, fixed, timestamp = 6, 3, 8
	var b [binary.MaxVarintLen64]byte
	key := binary.PutUvarint(b[:], uint64(len(item.Key())+timestamp))
	left := n + taken - fixed - int64(key) // of the value and its length
	for length := int64(1); ; length++ {
		if value := left - length; value < 1<<(7*length) {
			return value
		}
	}
}
