package longshore

import (
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// Bucket is a bucket of values, which belong to the consumer's tenant. Get it with OpenBucket in the handler that uses it.
//
// A handler is one transaction: it reads what it wrote, and what it wrote is stored when it has returned nil, with what it
// published, or not at all. If by then something that it read has changed, the host runs it again from the start.
type Bucket struct{ handle uint32 }

// ValueCase is a case of wasi:keyvalue's error, numbered as in the WIT.
type ValueCase uint8

// The cases of a ValueError.
const (
	ValueNoSuchStore  ValueCase = iota // the host knows no such bucket
	ValueAccessDenied                  // the manifest doesn't grant the bucket
	ValueOther                         // anything else, such as a bound that is exceeded
)

// ValueError says why a bucket didn't do what it was asked.
type ValueError struct {
	Case ValueCase
	Text string // of ValueOther
}

// Error implements error.
func (e *ValueError) Error() string {
	switch e.Case {
	case ValueNoSuchStore:
		return "no-such-store"
	case ValueAccessDenied:
		return "access-denied"
	case ValueOther:
		return join("other", e.Text)
	}
	return "case " + strconv.Itoa(int(e.Case))
}

// OpenBucket returns a bucket that the manifest grants, by its name. It is good until the handler returns. The error is a
// *ValueError.
func OpenBucket(name string) (*Bucket, error) {
	if err := checkKey(name); err != nil {
		return nil, err
	}
	var ret area
	abiStoreOpen(name, &ret)
	v := ret.view()
	if err := guest.heap.liftValueError(v, layoutResultBucket); err != nil {
		return nil, err
	}
	return &Bucket{v.u32(layoutResultBucket.at(payload))}, nil
}

// Close gives the bucket back before the handler returns. It need not be called.
func (b *Bucket) Close() { abiBucketDrop(b.handle) }

// Get returns the value under key, and whether there is one. The error is a *ValueError.
func (b *Bucket) Get(key string) (value []byte, found bool, err error) {
	if err := checkKey(key); err != nil {
		return nil, false, err
	}
	var ret area
	abiBucketGet(b.handle, key, &ret)
	v := ret.view()
	if err := guest.heap.liftValueError(v, layoutResultValue); err != nil {
		return nil, false, err
	}
	v = v[layoutResultValue.at(payload):]
	if v.u8(layoutOptList.at(discriminant)) == 0 {
		return nil, false, nil
	}
	return guest.heap.liftBytes(v, layoutOptList.at(payload)), true, nil
}

// Exists reports whether there is a value under key. The error is a *ValueError.
func (b *Bucket) Exists(key string) (bool, error) {
	if err := checkKey(key); err != nil {
		return false, err
	}
	var ret area
	abiBucketExists(b.handle, key, &ret)
	v := ret.view()
	if err := guest.heap.liftValueError(v, layoutResultBool); err != nil {
		return false, err
	}
	return v.u8(layoutResultBool.at(payload)) != 0, nil
}

// Set sets the value under key, which is 1 to 256 bytes of UTF-8. The error is a *ValueError.
func (b *Bucket) Set(key string, value []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	var ret area
	abiBucketSet(b.handle, key, unsafe.SliceData(value), uint32(len(value)), &ret) //nolint:gosec // 32-bit memory
	return guest.heap.liftValueError(ret.view(), layoutResultStored)
}

// Delete deletes the value under key, if there is one. The error is a *ValueError.
func (b *Bucket) Delete(key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	var ret area
	abiBucketDelete(b.handle, key, &ret)
	return guest.heap.liftValueError(ret.view(), layoutResultStored)
}

// Keys returns all keys of the bucket, in the order of their bytes. The host gives a few hundred at a time, each of which is
// an operation. A handler that has listed them runs again if by the end of it others were added or deleted. The error is a
// *ValueError.
func (b *Bucket) Keys() ([]string, error) {
	var keys []string
	for some, cursor := uint32(0), uint64(0); ; some = 1 {
		var ret area
		abiBucketListKeys(b.handle, some, cursor, &ret)
		v := ret.view()
		if err := guest.heap.liftValueError(v, layoutResultKeys); err != nil {
			return nil, err
		}
		v = v[layoutResultKeys.at(payload):]
		guest.heap.liftList(v, layoutKeys.at(0), layoutString, func(e view) { keys = append(keys, guest.heap.liftString(e, 0)) })
		next := v[layoutKeys.at(1):]
		if next.u8(layoutOptU64.at(discriminant)) == 0 {
			return keys, nil
		}
		cursor = next.u64(layoutOptU64.at(payload))
	}
}

// checkKey returns an error for what the host would take for a fault of the module.
func checkKey(key string) error {
	if !utf8.ValidString(key) {
		return &ValueError{Case: ValueOther, Text: "the name is not UTF-8"}
	}
	return nil
}

// liftValueError adopts the error of a result of layout l; nil if there is none.
func (h *heap) liftValueError(v view, l layout) error {
	if v.u8(l.at(discriminant)) == 0 {
		return nil
	}
	v = v[l.at(payload):]
	e := &ValueError{Case: ValueCase(v.u8(layoutValueError.at(discriminant)))}
	if e.Case == ValueOther {
		e.Text = h.liftString(v, layoutValueError.at(payload))
	}
	return e
}
