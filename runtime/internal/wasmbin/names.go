package wasmbin

// Subsections of the custom section "name" that name functions and what is inside them.
const (
	nameFunctions = 1
	nameLocals    = 2
	nameLabels    = 3
)

// ShiftNames returns the content of the custom section "name" with by added to every function index at or above from.
// It reports false if the content isn't well-formed; names are only a help to debuggers, so it is best left out then.
func ShiftNames(content []byte, from, by uint32) ([]byte, bool) {
	c := &cursor{buf: content, section: "name"}
	out := make([]byte, 0, len(content)+len(content)/64)
	var sub []byte
	for !c.atEnd() {
		id := c.byte()
		s := c.sub(c.u32(), "name")
		sub = sub[:0]
		switch id {
		case nameFunctions:
			sub = shiftNameMap(sub, s, from, by)
		case nameLocals, nameLabels:
			n := s.u32()
			sub = AppendU32(sub, n)
			for i := uint32(0); i < n && s.err == nil; i++ {
				sub = AppendU32(sub, shifted(s.u32(), from, by))
				sub = shiftNameMap(sub, s, ^uint32(0), 0)
			}
		default:
			sub = append(sub, s.bytes(s.left())...)
		}
		c.join(s)
		out = AppendName(append(out, id), sub)
	}
	return out, c.err == nil
}

// shiftNameMap copies a vector of index and name from s to b.
func shiftNameMap(b []byte, s *cursor, from, by uint32) []byte {
	n := s.u32()
	b = AppendU32(b, n)
	for i := uint32(0); i < n && s.err == nil; i++ {
		b = AppendU32(b, shifted(s.u32(), from, by))
		b = AppendName(b, s.bytes(int(s.u32())))
	}
	return b
}

func shifted(i, from, by uint32) uint32 {
	if i >= from {
		return i + by
	}
	return i
}
