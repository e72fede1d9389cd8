package cow

// heapSystem keeps memories on the Go heap.
type heapSystem struct{}

func (heapSystem) template(limit uint64) (Template, error) { return &heapMemory{limit: limit}, nil }

func (heapSystem) bound(int64) {}

func (heapSystem) close() error { return nil }

// heapImage is an image on the Go heap.
type heapImage []byte

// Memory implements Image.
func (i heapImage) Memory(limit uint64) (Memory, error) {
	m := &heapMemory{image: i, limit: limit, buf: make([]byte, len(i))}
	copy(m.buf, i)
	return m, nil
}

// Close implements Image.
func (i heapImage) Close() error { return nil }

// heapMemory is a memory on the Go heap, which moves when it grows. Bytes between the length and the capacity of buf are
// zero, or are cleared by the next Reset.
type heapMemory struct {
	image   heapImage
	limit   uint64 // most bytes
	buf     []byte
	high    uint64 // most bytes since the last Reset
	publish uint64 // what the next Reallocate returns; 0 = what it is asked for
}

// Reallocate implements Memory. When memory moves, it doubles, and takes all of its limit once that is over half of it. So
// growing page by page costs linear time, and what is left behind for the garbage collector is less, all together, than
// the limit.
func (m *heapMemory) Reallocate(size uint64) []byte {
	if m.publish != 0 {
		size, m.publish = m.publish, 0
	}
	if size > m.limit {
		return nil
	}
	if size > uint64(cap(m.buf)) {
		room := 2 * size
		if room > m.limit/2 {
			room = max(size, m.limit)
		}
		grown := make([]byte, size, room)
		copy(grown, m.buf)
		m.buf = grown
	}
	m.buf = m.buf[:size]
	m.high = max(m.high, size)
	return m.buf
}

// Publish implements Memory.
func (m *heapMemory) Publish(size uint64) { m.publish = size }

// Free implements Memory.
func (m *heapMemory) Free() {}

// Reset implements Memory. It writes everything.
func (m *heapMemory) Reset() (pages int, err error) {
	all := m.buf[:max(m.high, uint64(len(m.image)))]
	n := copy(all, m.image)
	clear(all[n:])
	m.high = uint64(len(m.image))
	return len(all) / pageBytes, nil
}

// Touched implements Memory. It knows nothing.
func (m *heapMemory) Touched() uint64 { return 0 }

// Look implements Memory.
func (m *heapMemory) Look() {}

// Trim implements Memory. It does nothing: an instance still points to the memory.
func (m *heapMemory) Trim() error { return nil }

// Close implements Memory.
func (m *heapMemory) Close() error {
	m.buf, m.limit = nil, 0
	return nil
}

// Freeze implements Template.
func (m *heapMemory) Freeze(size uint64) (Image, error) {
	return heapImage(append(make([]byte, 0, size), m.buf[:size]...)), nil
}
