package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/invopop/jsonschema"
)

// formatInstant is the format of a time of the schema that the host checks in Go.
const formatInstant = "longshore-time"

// Start says where a consumer group begins when it is made.
type Start struct {
	Kind     StartKind
	Position uint64    // of StartPosition
	Time     time.Time // of StartTime
}

// StartKind is a kind of start.
type StartKind uint8

// The kinds of starts.
const (
	StartEarliest StartKind = iota // with all that is stored
	StartLatest                    // with what comes from then on
	StartPosition                  // with the first message at a position or above
	StartTime                      // with the first message that was published at a time or later
)

// startFile is a Start as the manifest has it.
type startFile Start

// JSONSchema describes a start: a word, or a mapping of one key.
func (startFile) JSONSchema() *jsonschema.Schema {
	properties := jsonschema.NewProperties()
	properties.Set("position", &jsonschema.Schema{
		Type: "integer", Minimum: "1", Maximum: "9223372036854775807", Title: "a position, such as 4711",
		Description: "With the first message at this position or above.",
	})
	properties.Set("time", &jsonschema.Schema{
		Type: "string", Pattern: `^[0-9]{4}-[0-9]{2}-[0-9]{2}T`, Format: formatInstant, Title: "a time such as 2030-01-31T12:00:00Z",
		Description: "With the first message that was published then or later.",
	})
	one := uint64(1)
	return &jsonschema.Schema{
		Pattern: "^(earliest|latest)$", Properties: properties, AdditionalProperties: jsonschema.FalseSchema,
		MinProperties: &one, MaxProperties: &one,
		Title:  "earliest, latest, {position: 4711} or {time: 2030-01-31T12:00:00Z}",
		Extras: map[string]any{"type": []string{"string", "object"}},
	}
}

// UnmarshalJSON reads a start.
func (s *startFile) UnmarshalJSON(data []byte) error {
	var word string
	if json.Unmarshal(data, &word) == nil {
		if *s = (startFile{}); word == "latest" {
			s.Kind = StartLatest
		}
		return nil
	}
	var at struct {
		Position *uint64
		Time     *time.Time
	}
	if err := json.Unmarshal(data, &at); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	switch {
	case at.Position != nil:
		*s = startFile{Kind: StartPosition, Position: *at.Position}
	case at.Time != nil:
		*s = startFile{Kind: StartTime, Time: *at.Time}
	}
	return nil
}

// checkInstant accepts times that the log can tell apart from none.
func checkInstant(value any) error {
	text, ok := value.(string)
	if !ok {
		return nil // a fault of type, which the schema reports itself
	}
	at, err := time.Parse(time.RFC3339, text)
	if err == nil && at.UnixMilli() < 1 {
		err = errors.New("time: before 1970")
	}
	return err
}
