package substrate

import (
	"encoding/binary"
	"fmt"
	"time"
)

// StartKind says where a consumer group begins.
type StartKind uint8

// The kinds of starts.
const (
	StartEarliest StartKind = iota // with all that is stored
	StartLatest                    // with what becomes visible from now on
	StartPosition                  // with the first message at Position or above
	StartTime                      // with the first message that became visible at Time or later
)

// Start says where a consumer group begins, or where it is reset to.
type Start struct {
	Kind     StartKind
	Position uint64    // of StartPosition
	Time     time.Time // of StartTime; milliseconds count
}

// String returns the start as it is written in a manifest: "earliest", "latest", "position 7", or a time.
func (s Start) String() string {
	switch s.Kind {
	case StartEarliest:
		return "earliest"
	case StartLatest:
		return "latest"
	case StartPosition:
		return fmt.Sprintf("position %d", s.Position)
	case StartTime:
		return s.Time.UTC().Format(time.RFC3339Nano)
	default:
		return "unknown"
	}
}

func (s Start) validate() error {
	if s.Kind > StartTime {
		return fmt.Errorf("start: kind %d: want earliest, latest, a position or a time", s.Kind)
	}
	return nil
}

func (s Start) value() uint64 {
	switch s.Kind {
	case StartPosition:
		return s.Position
	case StartTime:
		return uint64(max(s.Time.UnixMilli(), 0))
	case StartEarliest, StartLatest:
	}
	return 0
}

func (s Start) append(b []byte) []byte {
	return binary.AppendUvarint(append(b, byte(s.Kind)), s.value())
}

func (d *decoder) start() Start {
	s := Start{Kind: StartKind(d.byte())}
	v := d.uint()
	switch s.Kind {
	case StartPosition:
		s.Position = v
	case StartTime:
		s.Time = time.UnixMilli(int64(v))
	case StartEarliest, StartLatest:
	}
	return s
}
