package messaging

import (
	"bytes"
	"context"
	"encoding/binary"
	"strconv"

	"github.com/longshore/longshore/limits"
)

// Store is the key-value store as one call sees it: what the call wrote is what it reads. Its functions run on the goroutine
// of the call. Names and keys are as the guest gave them, in UTF-8; the slices that are passed belong to the callee.
type Store interface {
	// Open says whether the guest may use a bucket.
	Open(bucket string) *StoreError
	// Get returns a value, and whether there is one.
	Get(bucket, key string) (value []byte, found bool, err *StoreError)
	Set(bucket, key string, value []byte) *StoreError
	Delete(bucket, key string) *StoreError
	// List returns some of the keys after one, in order, and whether there are more; those that follow the last of them.
	List(ctx context.Context, bucket, after string) (keys []string, more bool, err *StoreError)
}

// StoreCase is a case of wasi:keyvalue's variant error, numbered as in the WIT.
type StoreCase uint8

// The cases of wasi:keyvalue's error. StoreOther alone carries a text.
const (
	NoSuchStore StoreCase = iota
	StoreAccessDenied
	StoreOther
)

// StoreError is a value of wasi:keyvalue's variant error.
type StoreError struct {
	Case StoreCase
	Text string // of StoreOther: the host's own words
}

// Error implements error.
func (e *StoreError) Error() string {
	switch e.Case {
	case NoSuchStore:
		return "no-such-store"
	case StoreAccessDenied:
		return "access-denied"
	case StoreOther:
	}
	return "other: " + e.Text
}

// bucket is the resource bucket.
type bucket struct{ name string }

// The versions of wasi:keyvalue. They differ in the cursor of list-keys: a number, or a text.
const (
	keyvalueDraft  = "0.2.0-draft"
	keyvalueDraft2 = "0.2.0-draft2"
)

// keyvalueInterfaces are those of wasi:keyvalue.
func keyvalueInterfaces() []hostInterface {
	funcs := func(list hostFunc) []hostFunc {
		return []hostFunc{
			{name: "open", params: "iii", allocs: true, call: storeOpen},
			{name: "[method]bucket.get", params: "iiii", allocs: true, call: bucketGet},
			{name: "[method]bucket.set", params: "iiiiii", allocs: true, call: bucketSet},
			{name: "[method]bucket.delete", params: "iiii", allocs: true, call: bucketDelete},
			{name: "[method]bucket.exists", params: "iiii", allocs: true, call: bucketExists},
			list,
			{name: "[resource-drop]bucket", params: "i", call: bucketDrop},
		}
	}
	list := hostFunc{name: "[method]bucket.list-keys", params: "iili", allocs: true, call: bucketListKeys}
	list2 := hostFunc{name: "[method]bucket.list-keys", params: "iiiii", allocs: true, call: bucketListKeys2}
	return []hostInterface{
		{name: "wasi:keyvalue/store", versions: []string{keyvalueDraft}, funcs: funcs(list)},
		{name: "wasi:keyvalue/store", versions: []string{keyvalueDraft2}, funcs: funcs(list2)},
	}
}

// storeOpen is store's open: func(identifier: string) -> result<bucket, error>.
//
//	identifier ptr, len, ret | result<own<bucket>, error>
func storeOpen(ctx context.Context, c *Call, stack []uint64) {
	name := string(c.guest.text(arg(stack, 0), arg(stack, 1)))
	err := c.storeTurn()
	if err == nil {
		err = c.o.Store.Open(name)
	}
	b := make([]byte, bucketResultShape.size)
	if err == nil {
		binary.LittleEndian.PutUint32(b[bucketResultShape.payload:], c.handles.add(&bucket{name}))
	}
	c.returnStored(ctx, arg(stack, 2), bucketResultShape, b, err)
}

// bucketGet is bucket.get: func(key: string) -> result<option<list<u8>>, error>.
//
//	self, key ptr, len, ret | result<option<list<u8>>, error>
func bucketGet(ctx context.Context, c *Call, stack []uint64) {
	value, found, err := c.lookUp(stack)
	b := make([]byte, valueResultShape.size)
	if found {
		v := b[valueResultShape.payload:]
		v[0] = 1
		c.guest.lowerBytes(ctx, v[optionListShape.payload:], value)
	}
	c.returnStored(ctx, arg(stack, 3), valueResultShape, b, err)
}

// bucketExists is bucket.exists: func(key: string) -> result<bool, error>.
//
//	self, key ptr, len, ret | result<bool, error>
func bucketExists(ctx context.Context, c *Call, stack []uint64) {
	_, found, err := c.lookUp(stack)
	b := make([]byte, existsResultShape.size)
	if found {
		b[existsResultShape.payload] = 1
	}
	c.returnStored(ctx, arg(stack, 3), existsResultShape, b, err)
}

// lookUp reads what a bucket and a key, the first parameters, name.
func (c *Call) lookUp(stack []uint64) (value []byte, found bool, err *StoreError) {
	self := lookup[*bucket](&c.handles, arg(stack, 0))
	key := string(c.guest.text(arg(stack, 1), arg(stack, 2)))
	if err := c.storeTurn(); err != nil {
		return nil, false, err
	}
	return c.o.Store.Get(self.name, key)
}

// bucketSet is bucket.set: func(key: string, value: list<u8>) -> result<_, error>.
//
//	self, key ptr, len, value ptr, len, ret | result<_, error>
func bucketSet(ctx context.Context, c *Call, stack []uint64) {
	self := lookup[*bucket](&c.handles, arg(stack, 0))
	key := string(c.guest.text(arg(stack, 1), arg(stack, 2)))
	value := c.guest.view(arg(stack, 3), arg(stack, 4))
	err := c.storeTurn()
	if err == nil {
		err = storeRefusal(limits.Check(limits.NameStoredValue, int64(len(value)), limits.StoredValueBytes)) // before it is copied
	}
	if err == nil {
		err = c.o.Store.Set(self.name, key, bytes.Clone(value))
	}
	c.returnStored(ctx, arg(stack, 5), storedResultShape, make([]byte, storedResultShape.size), err)
}

// bucketDelete is bucket.delete: func(key: string) -> result<_, error>.
//
//	self, key ptr, len, ret | result<_, error>
func bucketDelete(ctx context.Context, c *Call, stack []uint64) {
	self := lookup[*bucket](&c.handles, arg(stack, 0))
	key := string(c.guest.text(arg(stack, 1), arg(stack, 2)))
	err := c.storeTurn()
	if err == nil {
		err = c.o.Store.Delete(self.name, key)
	}
	c.returnStored(ctx, arg(stack, 3), storedResultShape, make([]byte, storedResultShape.size), err)
}

// bucketListKeys is bucket.list-keys: func(cursor: option<u64>) -> result<key-response, error>. A cursor is one of those that
// the call gave out, counted from 1.
//
//	self, cursor case, cursor, ret | result<key-response, error>
func bucketListKeys(ctx context.Context, c *Call, stack []uint64) {
	self := lookup[*bucket](&c.handles, arg(stack, 0))
	after := ""
	if checkFlatCase(2, arg(stack, 1)) == 1 {
		cursor := stack[2]
		if cursor == 0 || cursor > uint64(len(c.cursors)) {
			err := &StoreError{Case: StoreOther, Text: "the cursor " + strconv.FormatUint(cursor, 10) + " was not given by list-keys in this call"}
			c.returnStored(ctx, arg(stack, 3), keysResultShape, make([]byte, keysResultShape.size), err)
			return
		}
		after = c.cursors[cursor-1]
	}
	keys, more, err := c.listKeys(ctx, self, after)
	b := make([]byte, keysResultShape.size)
	v := b[keysResultShape.payload:]
	c.lowerKeys(ctx, v[keysAt:], keys)
	if more {
		c.cursors = append(c.cursors, keys[len(keys)-1])
		cursor := v[cursorAt:]
		cursor[0] = 1
		binary.LittleEndian.PutUint64(cursor[optionU64Shape.payload:], uint64(len(c.cursors)))
	}
	c.returnStored(ctx, arg(stack, 3), keysResultShape, b, err)
}

// bucketListKeys2 is bucket.list-keys of draft2: func(cursor: option<string>) -> result<key-response, error>. A cursor is the
// last key of the page before.
//
//	self, cursor case, cursor ptr, len, ret | result<key-response, error>
func bucketListKeys2(ctx context.Context, c *Call, stack []uint64) {
	self := lookup[*bucket](&c.handles, arg(stack, 0))
	after := ""
	if checkFlatCase(2, arg(stack, 1)) == 1 {
		after = string(c.guest.text(arg(stack, 2), arg(stack, 3)))
	}
	keys, more, err := c.listKeys(ctx, self, after)
	b := make([]byte, keysResultShape2.size)
	v := b[keysResultShape2.payload:]
	c.lowerKeys(ctx, v[keysAt2:], keys)
	if more {
		cursor := v[cursorAt2:]
		cursor[0] = 1
		c.guest.lowerText(ctx, cursor[optionTextShape.payload:], keys[len(keys)-1])
	}
	c.returnStored(ctx, arg(stack, 4), keysResultShape2, b, err)
}

func (c *Call) listKeys(ctx context.Context, of *bucket, after string) (keys []string, more bool, err *StoreError) {
	if err := c.storeTurn(); err != nil {
		return nil, false, err
	}
	if len(after) > limits.StoredKeyBytes {
		return nil, false, storeRefusal(limits.Check(limits.NameStoredKey, int64(len(after)), limits.StoredKeyBytes))
	}
	keys, more, err = c.o.Store.List(ctx, of.name, after)
	return keys, more && len(keys) > 0, err
}

// lowerKeys copies keys into memory that the guest allocates, and writes pointer and length to at.
func (c *Call) lowerKeys(ctx context.Context, at []byte, keys []string) {
	if len(keys) == 0 {
		putList(at, textShape.align, 0)
		return
	}
	buf := make([]byte, len(keys)*int(textShape.size))
	ptr := c.guest.alloc(ctx, len(keys), textShape)
	for i, key := range keys {
		c.guest.lowerText(ctx, buf[i*int(textShape.size):], key)
	}
	copy(c.guest.view(ptr, uint32(len(buf))), buf)
	putList(at, ptr, len(keys))
}

// bucketDrop drops an own<bucket>.
func bucketDrop(_ context.Context, c *Call, stack []uint64) {
	lookup[*bucket](&c.handles, arg(stack, 0))
	c.handles.remove(arg(stack, 0))
}

// storeTurn counts an operation, and returns why there can't be another one.
func (c *Call) storeTurn() *StoreError {
	if c.o.Store == nil {
		return &StoreError{Case: StoreAccessDenied}
	}
	c.storeOps++
	return storeRefusal(limits.Check(limits.NameStoreOps, c.storeOps, limits.StoreOperations))
}

// storeRefusal words an error of the host for the guest; nil for nil.
func storeRefusal(err error) *StoreError {
	if err == nil {
		return nil
	}
	return &StoreError{Case: StoreOther, Text: err.Error()}
}

// returnStored writes a result to ptr: b, which holds its ok case, or err, if that is not nil.
func (c *Call) returnStored(ctx context.Context, ptr uint32, s shape, b []byte, err *StoreError) {
	if err != nil {
		clear(b)
		b[0] = 1
		v := b[s.payload:]
		v[0] = byte(err.Case)
		if err.Case == StoreOther {
			c.guest.lowerText(ctx, v[storeErrorShape.payload:], err.Text)
		}
	}
	c.guest.store(ptr, s, b)
}
