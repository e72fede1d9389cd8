package longshore

import (
	"encoding/binary"
	"unsafe"
)

// area is where an import returns what doesn't fit into one number: room for the largest, a result of 56 bytes, aligned
// to 8.
type area [7]uint64

func (a *area) view() view { return unsafe.Slice((*byte)(unsafe.Pointer(a)), len(a)*wordBytes) }

// view is a value in memory, as the host wrote it.
type view []byte

func (v view) u8(at uint32) uint8   { return v[at] }
func (v view) u32(at uint32) uint32 { return binary.LittleEndian.Uint32(v[at:]) }
func (v view) u64(at uint32) uint64 { return binary.LittleEndian.Uint64(v[at:]) }

// optU64 returns the option<u64> at an offset; none is 0.
func (v view) optU64(at uint32) uint64 {
	if v.u8(at+layoutOptU64.at(discriminant)) == 0 {
		return 0
	}
	return v.u64(at + layoutOptU64.at(payload))
}

// liftBytes adopts the list<u8> at an offset of v.
func (h *heap) liftBytes(v view, at uint32) []byte {
	return h.adopt(v.u32(at+layoutList.at(0)), v.u32(at+layoutList.at(1)))
}

// liftString adopts the string at an offset of v.
func (h *heap) liftString(v view, at uint32) string { return string(h.liftBytes(v, at)) }

// liftOptString adopts an option<string>; none is "".
func (h *heap) liftOptString(v view) string {
	if v.u8(layoutOptString.at(discriminant)) == 0 {
		return ""
	}
	return h.liftString(v, layoutOptString.at(payload))
}

// liftList adopts the list at an offset of v, whose elements have the layout item, and calls each with every element in
// its order.
func (h *heap) liftList(v view, at uint32, item layout, each func(e view)) {
	length := v.u32(at + layoutList.at(1))
	if length == 0 {
		return
	}
	elements := h.adopt(v.u32(at+layoutList.at(0)), length*item.size)
	for ; len(elements) > 0; elements = elements[item.size:] {
		each(elements[:item.size])
	}
}

// liftPairs adopts a list of pairs.
func (h *heap) liftPairs(v view, at uint32) []Pair {
	pairs := make([]Pair, 0, v.u32(at+layoutList.at(1)))
	h.liftList(v, at, layoutPair, func(e view) {
		pairs = append(pairs, Pair{h.liftString(e, layoutPair.at(pairKey)), h.liftString(e, layoutPair.at(pairValue))})
	})
	return pairs
}

// liftOptPairs adopts an option of a list of pairs; none is nil.
func (h *heap) liftOptPairs(v view) []Pair {
	if v.u8(layoutOptList.at(discriminant)) == 0 {
		return nil
	}
	return h.liftPairs(v, layoutOptList.at(payload))
}

// liftError adopts a wasi:messaging error at an offset of v.
func (h *heap) liftError(v view, at uint32) *Error {
	e := &Error{Case: ErrorCase(v.u8(at + layoutError.at(discriminant)))}
	if e.Case != CaseTimeout {
		e.Text = h.liftString(v, at+layoutError.at(payload))
	}
	return e
}

// liftResultNone adopts a result<_, error>.
func (h *heap) liftResultNone(v view) error {
	if v.u8(layoutResultNone.at(discriminant)) == 0 {
		return nil
	}
	return h.liftError(v, layoutResultNone.at(payload))
}

// liftResultOwn adopts a result<own<resource>, error>.
func (h *heap) liftResultOwn(v view) (handle uint32, err error) {
	if v.u8(layoutResultOwn.at(discriminant)) == 0 {
		return v.u32(layoutResultOwn.at(payload)), nil
	}
	return 0, h.liftError(v, layoutResultOwn.at(payload))
}

// liftPublishError adopts a publish-error at an offset of v.
func (h *heap) liftPublishError(v view, at uint32) *PublishError {
	e := &PublishError{Case: PublishCase(v.u8(at + layoutPublishError.at(discriminant)))}
	at += layoutPublishError.at(payload)
	switch {
	case e.Case <= PublishStorageFull:
		e.Limit = v.u64(at + layoutLimit.at(limitLimit))
		e.Actual = v.u64(at + layoutLimit.at(limitActual))
		e.RetryAfterMillis = v.optU64(at + layoutLimit.at(limitRetryAfter))
		h.liftPairs(v, at+layoutLimit.at(limitExtensions))
	case e.Case != PublishTimeout:
		e.Text = h.liftString(v, at)
	}
	return e
}

// liftBatch adopts the results of publish-batch.
func (h *heap) liftBatch(v view) ([]Result, error) {
	at := layoutResultBatch.at(payload)
	if v.u8(layoutResultBatch.at(discriminant)) != 0 {
		return nil, h.liftPublishError(v, at)
	}
	results := make([]Result, 0, v.u32(at+layoutList.at(1)))
	h.liftList(v, at, layoutResultItem, func(e view) {
		results = append(results, h.liftItem(e))
	})
	return results, nil
}

// liftItem adopts one result<receipt, publish-error>.
func (h *heap) liftItem(v view) Result {
	at := layoutResultItem.at(payload)
	if v.u8(layoutResultItem.at(discriminant)) != 0 {
		return Result{Err: h.liftPublishError(v, at)}
	}
	r := h.liftReceipt(v, at)
	return Result{ID: r.ID, Duplicate: r.Duplicate}
}

// liftReceipt adopts a receipt at an offset of v.
func (h *heap) liftReceipt(v view, at uint32) Receipt {
	r := Receipt{
		ID:        h.liftString(v, at+layoutReceipt.at(receiptID)),
		Duplicate: v.u8(at+layoutReceipt.at(receiptDuplicate)) != 0,
	}
	h.liftPairs(v, at+layoutReceipt.at(receiptExtensions))
	return r
}

// liftAtomic adopts the receipts of publish-atomic.
func (h *heap) liftAtomic(v view) ([]Receipt, error) {
	at := layoutResultBatch.at(payload)
	if v.u8(layoutResultBatch.at(discriminant)) != 0 {
		return nil, h.liftPublishError(v, at)
	}
	receipts := make([]Receipt, 0, v.u32(at+layoutList.at(1)))
	h.liftList(v, at, layoutReceipt, func(e view) {
		receipts = append(receipts, h.liftReceipt(e, 0))
	})
	return receipts, nil
}

// liftMessage reads a delivered message from the host.
func (g *instance) liftMessage(message uint32) *Message {
	m := &Message{handle: message}
	var ret area
	abiMessageTopic(message, &ret)
	m.Topic = g.heap.liftOptString(ret.view())
	abiMessageContentType(message, &ret)
	m.ContentType = g.heap.liftOptString(ret.view())
	abiMessageData(message, &ret)
	m.Data = g.heap.liftBytes(ret.view(), 0)
	abiMessageMetadata(message, &ret)
	m.Metadata = g.heap.liftOptPairs(ret.view())
	return m
}
