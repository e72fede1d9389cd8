package runtime

import (
	"encoding/binary"
	"strings"

	"github.com/longshore/longshore/runtime/internal/component"
	"github.com/longshore/longshore/wasi/messaging"
)

// topicMethod is the function by whose result the drafts of wasi:messaging differ.
const topicMethod = "[method]message.topic"

// typesSection begins the names of the custom sections in which binding generators leave a module's types.
const typesSection = "component-type"

// draftOf tells, by the types that a component or a core module has of what it imports, for which draft it was made; "" if
// they don't tell. The module was found to be well-formed.
func draftOf(wasm []byte) messaging.Draft {
	for _, types := range typesIn(wasm) {
		switch plain, found := component.ReturnsString(types, topicMethod); {
		case plain:
			return messaging.DraftB
		case found:
			return messaging.DraftC
		}
	}
	return ""
}

// typesIn returns the components in which types of the module may be: a component itself, or what a core module's custom
// sections hold.
func typesIn(wasm []byte) (types [][]byte) {
	const preamble = 8
	if isComponent, err := messaging.CheckPreamble(wasm); err != nil || isComponent {
		return [][]byte{wasm}
	}
	for rest := wasm[preamble:]; len(rest) > 0; {
		id := rest[0]
		section, after, ok := cut(rest[1:])
		if rest = after; !ok {
			break
		}
		if name, content, ok := cut(section); id == 0 && ok && strings.HasPrefix(string(name), typesSection) {
			types = append(types, content)
		}
	}
	return types
}

// cut cuts what a length is before off b.
func cut(b []byte) (first, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	return b[size : size+int(n)], b[size+int(n):], true
}
