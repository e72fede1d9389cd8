package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/longshore/longshore/limits"
)

// Formats of the schema that the host checks in Go, beyond the pattern that editors know.
const (
	formatDuration = "longshore-duration"
	formatBytes    = "longshore-size"
)

// duration is a time such as 5s, 1m30s or 250ms.
type duration time.Duration

// JSONSchema describes a duration's text.
func (duration) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type:    "string",
		Pattern: `^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`,
		Format:  formatDuration,
		Title:   "a duration such as 5s, 1m30s or 250ms",
	}
}

// UnmarshalJSON reads a duration's text.
func (d *duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("duration: %w", err)
	}
	parsed, err := time.ParseDuration(text)
	*d = duration(parsed)
	return err
}

func checkDuration(value any) error {
	text, ok := value.(string)
	if !ok {
		return nil // a fault of type, which the schema reports itself
	}
	_, err := time.ParseDuration(text)
	return err
}

// FormatDuration writes a duration the way the files do: without the zero parts that time.Duration prints.
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// size is a number of bytes, such as 64KiB, or as a plain number.
type size int64

// JSONSchema describes a size's text.
func (size) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{
		Pattern: `^[0-9]+(B|KiB|MiB|GiB)$`,
		Format:  formatBytes,
		Title:   "a size such as 64KiB, 10MiB or 1GiB",
		Minimum: "0",
		Extras:  map[string]any{"type": []string{"string", "integer"}},
	}
}

// UnmarshalJSON reads a size's text or number.
func (s *size) UnmarshalJSON(data []byte) error {
	text := string(data)
	if data[0] == '"' {
		if err := json.Unmarshal(data, &text); err != nil {
			return fmt.Errorf("size: %w", err)
		}
	}
	parsed, err := ParseSize(text)
	*s = size(parsed)
	return err
}

func checkSize(value any) error {
	switch value := value.(type) {
	case string:
		_, err := ParseSize(value)
		return err
	case json.Number:
		_, err := ParseSize(value.String())
		return err
	}
	return nil // a fault of type, which the schema reports itself
}

// ParseSize reads a number of bytes as the files have it: 64KiB, or as a plain number.
func ParseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, "BGKMi")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("size: %w", err)
	}
	units := map[string]int64{"": 1, "B": 1, "KiB": limits.KiB, "MiB": limits.MiB, "GiB": limits.GiB}
	unit, ok := units[text[len(digits):]]
	if !ok || n > math.MaxInt64/unit {
		return 0, errors.New("size: unknown unit or too large")
	}
	return n * unit, nil
}

// FormatSize writes a number of bytes the way the files do.
func FormatSize(n int64) string {
	for _, unit := range []struct {
		name  string
		bytes int64
	}{{"GiB", limits.GiB}, {"MiB", limits.MiB}, {"KiB", limits.KiB}} {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return strconv.FormatInt(n/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}
