package store

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"github.com/longshore/longshore/substrate/internal/failpoint"
)

// Erasure is the deletion of all keys of a tenant, some at a time. While it is under way a record of the log itself says so:
// see ErasureKey. Then the tenant's keys mean nothing, and may be there or not in any combination.
type Erasure struct {
	Tenant string
	Done   bool  // nothing is left
	Bytes  int64 // deleted by the last step, about

	from []byte // all keys below are deleted
}

// erasureName begins the names of the records that say that a tenant is being erased.
const erasureName = "erasure/"

// ErasureKey returns the key of the record that says that a tenant is being erased. It must be durable before the first step.
func ErasureKey(tenant string) []byte { return metaKey(erasureName + tenant) }

// Erasures returns the tenants that are being erased.
func (s *Store) Erasures() (tenants []string, err error) {
	err = s.view(func(txn *badger.Txn) error {
		tenants = erasuresIn(txn)
		return nil
	})
	return tenants, err
}

func erasuresIn(txn *badger.Txn) (tenants []string) {
	o := badger.DefaultIteratorOptions
	o.PrefetchValues, o.Prefix = false, metaKey(erasureName)
	it := txn.NewIterator(o)
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		tenants = append(tenants, strings.TrimPrefix(string(it.Item().Key()), string(o.Prefix)))
	}
	return tenants
}

// Erase is Write, and deletes up to most keys of a tenant before. Nothing of the tenant may be among what is written.
func (s *Store) Erase(e *Erasure, most int, early, last []Op, checkpoint []byte) (synced bool, err error) {
	s.grown.begin()
	if err := s.eraseSome(e, most); err != nil {
		return false, err
	}
	return s.write(early, last, checkpoint)
}

// EraseAll deletes all keys of a tenant. It comes before the first Write.
func (s *Store) EraseAll(tenant string, step int) error {
	s.grown.begin()
	e := &Erasure{Tenant: tenant}
	for !e.Done {
		if err := s.eraseSome(e, step); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) eraseSome(e *Erasure, most int) error {
	prefix := append([]byte{byte(len(e.Tenant))}, e.Tenant...)
	var placed int64 // bytes beside the database
	if e.from == nil {
		placed = s.forgetTenant(prefix)
		e.from = prefix
	}
	if err := failpoint.Hit("store.erase"); err != nil {
		return err
	}
	var ops []Op
	e.Bytes = placed
	err := s.view(func(txn *badger.Txn) error {
		o := badger.DefaultIteratorOptions
		o.PrefetchValues, o.Prefix = false, prefix
		it := txn.NewIterator(o)
		defer it.Close()
		for it.Seek(e.from); it.Valid() && len(ops) < most; it.Next() {
			ops = append(ops, Op{Key: it.Item().KeyCopy(nil)})
			e.Bytes += it.Item().EstimatedSize()
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("store: erase: %w", err)
	}
	if e.Done = len(ops) < most; len(ops) > 0 {
		e.from = ops[len(ops)-1].Key
	}
	for len(ops) > 0 {
		n := fitting(ops)
		if err := s.commitCounted(ops[:n]); err != nil {
			return err
		}
		ops = ops[n:]
	}
	return nil
}

// forgetTenant takes the blocks of the tenant whose keys begin with prefix out of the index, and returns the bytes of their
// records that are not in the database.
func (s *Store) forgetTenant(prefix []byte) (held int64) {
	held = s.index.removeAll(func(topic string) bool { return strings.HasPrefix(topic, string(prefix)) })
	kept := s.spent[:0]
	for _, b := range s.spent {
		if !bytes.HasPrefix(b.topic.prefix, prefix) {
			kept = append(kept, b)
		}
	}
	s.spent = kept
	return held
}
