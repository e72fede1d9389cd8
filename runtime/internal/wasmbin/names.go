package wasmbin

import (
	"strings"
	"unicode/utf8"
)

// nameFunctions is the subsection of the custom section "name" that names functions.
const nameFunctions = 1

// Bounds of the names that FunctionNames keeps, in bytes.
const (
	functionNameBytes  = 256
	functionNamesBytes = 8 << 20 // all together
)

// FunctionNames returns a custom section "name" with the function names of content alone, and by added to every index
// at or above from. It keeps names of functions below the number of funcs, in ascending order, and cuts long ones; from
// where content isn't well-formed or goes over the bounds, functions stay without a name. Names are only a help in
// stack traces, and the engine would take whatever stands there at its word. It returns nil if there are none.
func FunctionNames(content []byte, funcs, from, by uint32) []byte {
	c := &cursor{buf: content, section: "name"}
	for !c.atEnd() {
		id := c.byte()
		s := c.sub(c.u32(), c.section)
		if id != nameFunctions || c.err != nil {
			continue
		}
		names, n := functionNames(s, funcs, from, by)
		if n == 0 {
			return nil
		}
		names = append(AppendU32(nil, n), names...)
		return AppendName([]byte{nameFunctions}, names)
	}
	return nil
}

// functionNames copies a vector of index and name from s, and returns its items and their number.
func functionNames(s *cursor, funcs, from, by uint32) (items []byte, n uint32) {
	next, bytes := uint32(0), 0
	for left := s.u32(); left > 0; left-- {
		i := s.u32()
		name := s.bytes(int(s.u32()))
		name = name[:min(len(name), functionNameBytes)]
		bytes += len(name)
		if s.err != nil || i < next || i >= funcs || bytes > functionNamesBytes {
			break
		}
		next = i + 1
		if i >= from {
			i += by
		}
		text := string(name)
		if !utf8.ValidString(text) {
			text = strings.ToValidUTF8(text, "")
		}
		items, n = AppendName(AppendU32(items, i), text), n+1
	}
	return items, n
}
