package longshore

import "encoding/binary"

// arena is one block of memory that holds a value for the host with all that it points to: first the fixed part, then the
// strings. Its size is known when it is made. It must be kept until the host has read it.
type arena struct {
	block []uint64
	bytes []byte // of block
	base  uint32 // address of block
	end   uint32 // offset of the next string
}

// newArena makes an arena whose fixed part is n values of this layout, and that has room for so many bytes of strings.
func newArena(l layout, n, stringBytes int) *arena {
	fixed := int(l.size) * n
	block := make([]uint64, (fixed+stringBytes+wordBytes-1)/wordBytes)
	return &arena{block: block, bytes: bytesOf(block), base: addressOf(block), end: uint32(fixed)} //nolint:gosec // 32-bit memory
}

func (a *arena) putU8(at uint32, v uint8) { a.bytes[at] = v }

func (a *arena) putU32(at, v uint32) { binary.LittleEndian.PutUint32(a.bytes[at:], v) }

func (a *arena) putU64(at uint32, v uint64) { binary.LittleEndian.PutUint64(a.bytes[at:], v) }

// putOptU64 writes an option<u64>; 0 is none.
func (a *arena) putOptU64(at uint32, v uint64) {
	if v == 0 {
		return
	}
	a.putU8(at+layoutOptU64.at(discriminant), 1)
	a.putU64(at+layoutOptU64.at(payload), v)
}

// putOptString writes an option<string>; "" is none.
func (a *arena) putOptString(at uint32, s string) {
	if s == "" {
		return
	}
	a.putU8(at+layoutOptString.at(discriminant), 1)
	a.putString(at+layoutOptString.at(payload), s)
}

// putList makes room for n items behind the fixed part, and writes its address and length at an offset of that. It returns
// the offset of the items.
func (a *arena) putList(at uint32, item layout, n int) uint32 {
	items := alignUp(a.end, item.align)
	a.end = items + item.size*uint32(n) //nolint:gosec // 32-bit memory
	a.putU32(at+layoutList.at(0), a.base+items)
	a.putU32(at+layoutList.at(1), uint32(n)) //nolint:gosec // 32-bit memory
	return items
}

// putString writes a string's bytes behind the fixed part, and its address and length at an offset of that.
func (a *arena) putString(at uint32, s string) {
	length := uint32(copy(a.bytes[a.end:], s)) //nolint:gosec // 32-bit memory
	a.putU32(at+layoutString.at(0), a.base+a.end)
	a.putU32(at+layoutString.at(1), length)
	a.end += length
}

// lowerResult writes a handler's result<_, error>.
func lowerResult(err error) *arena {
	if err == nil {
		return newArena(layoutResultNone, 1, 0)
	}
	errorCase, text := toHost(err)
	a := newArena(layoutResultNone, 1, len(text))
	a.putU8(layoutResultNone.at(discriminant), 1)
	at := layoutResultNone.at(payload)
	a.putU8(at+layoutError.at(discriminant), uint8(errorCase))
	if errorCase != CaseTimeout {
		a.putString(at+layoutError.at(payload), text)
	}
	return a
}

// lowerMetadata writes a list of pairs.
func lowerMetadata(pairs []Pair) *arena {
	size := 0
	for _, p := range pairs {
		size += len(p.Key) + len(p.Value)
	}
	a := newArena(layoutPair, len(pairs), size)
	for i, p := range pairs {
		at := layoutPair.size * uint32(i) //nolint:gosec // 32-bit memory
		a.putString(at+layoutPair.at(pairKey), p.Key)
		a.putString(at+layoutPair.at(pairValue), p.Value)
	}
	return a
}

// lowerBatch writes a list of outgoing. messages are the handles of the batch's messages.
func lowerBatch(batch []Outgoing, messages []uint32) *arena {
	size := 0
	for _, o := range batch {
		size += len(o.Topic) + o.Options.bytes()
	}
	a := newArena(layoutOutgoing, len(batch), size)
	for i, o := range batch {
		at := layoutOutgoing.size * uint32(i) //nolint:gosec // 32-bit memory
		a.putString(at+layoutOutgoing.at(outgoingTopic), o.Topic)
		a.putU32(at+layoutOutgoing.at(outgoingMessage), messages[i])
		a.putOptions(at+layoutOutgoing.at(outgoingOptions), o.Options)
	}
	return a
}

// lowerPublish writes the arguments of publish, which are too many for parameters.
func lowerPublish(client uint32, topic string, message uint32, o *Options) *arena {
	a := newArena(layoutPublish, 1, len(topic)+o.bytes())
	a.putU32(layoutPublish.at(publishClient), client)
	a.putString(layoutPublish.at(publishTopic), topic)
	a.putU32(layoutPublish.at(publishMessage), message)
	a.putOptions(layoutPublish.at(publishOptions), o)
	return a
}
