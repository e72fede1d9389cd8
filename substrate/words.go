package substrate

import "fmt"

// laneModes and orderings are the words for the modes and orderings, by their values.
var (
	laneModes = [...]string{LaneAuto: "auto", LaneOn: "on", LaneOff: "off"}
	orderings = [...]string{OrderNone: "none", OrderKey: "key", OrderTopic: "topic"}
)

// String returns "auto", "on" or "off".
func (m LaneMode) String() string { return word(laneModes[:], int(m)) }

// ParseLaneMode reads a mode as String writes it.
func ParseLaneMode(s string) (LaneMode, error) {
	for m, w := range laneModes {
		if w == s {
			return LaneMode(m), nil
		}
	}
	return 0, fmt.Errorf("default lane %.40q: want auto, on or off", s)
}

// String returns "none", "key" or "topic".
func (o Ordering) String() string { return word(orderings[:], int(o)) }

// ParseOrdering reads an ordering as String writes it.
func ParseOrdering(s string) (Ordering, error) {
	for o, w := range orderings {
		if w == s {
			return Ordering(o), nil
		}
	}
	return 0, fmt.Errorf("ordering %.40q: want none, key or topic", s)
}

func word(words []string, i int) string {
	if i < len(words) {
		return words[i]
	}
	return "unknown"
}
