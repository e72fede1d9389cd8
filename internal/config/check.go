package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// check reports all that the schema finds wrong in a document, and takes it out of the tree, so that the rest can be
// decoded. It then decodes the rest into file.
func (s *schema) check(d *document, file any) error {
	invalid := new(validator.ValidationError)
	if err := s.compiled.Validate(d.root); errors.As(err, &invalid) {
		all := leaves(invalid, nil)
		slices.SortStableFunc(all, func(a, b *validator.ValidationError) int { // inner ones first: an outer one voids them
			return len(b.InstanceLocation) - len(a.InstanceLocation)
		})
		for _, leaf := range all[:min(len(all), maxFaults)] {
			s.report(d, leaf)
		}
	} else if err != nil {
		return fmt.Errorf("%s: check against the schema: %w", d.file, err)
	}
	if d.full() {
		return nil // what is left in the tree may not decode, and nobody will miss it
	}
	rest, err := json.Marshal(d.root)
	if err != nil {
		return fmt.Errorf("%s: rewrite as JSON: %w", d.file, err)
	}
	if err := json.Unmarshal(rest, file); err != nil {
		return fmt.Errorf("%s: decode: %w", d.file, err)
	}
	return nil
}

// leaves appends the faults that no others explain.
func leaves(e *validator.ValidationError, to []*validator.ValidationError) []*validator.ValidationError {
	if len(e.Causes) == 0 {
		return append(to, e)
	}
	for _, cause := range e.Causes {
		to = leaves(cause, to)
	}
	return to
}

// report turns one fault of the schema's into ours.
func (s *schema) report(d *document, e *validator.ValidationError) {
	path, part := d.lookup(e.InstanceLocation), s.at(e.SchemaURL)
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, key := range k.Properties {
			d.report(d.keys[join(path, key)], join(path, key), "unknown key", s.suggest(part, key))
			d.void(append(slices.Clone(e.InstanceLocation), key))
		}
	case *kind.Required:
		for _, key := range k.Missing {
			d.report(d.values[path], path, fmt.Sprintf("%q is missing", key), want(s.property(part, key)))
			d.bad[join(path, key)] = true
		}
	default:
		value := valueAt(d.root, e.InstanceLocation)
		if d.sound(path) { // else that fault is enough
			d.add(path, problem(value, e.ErrorKind), wantOf(e.ErrorKind, part))
		}
		d.void(e.InstanceLocation)
	}
}

func valueAt(root any, tokens []string) any {
	for _, token := range tokens {
		root = child(root, token)
	}
	return root
}

// problem says what is wrong with a value.
func problem(value any, k validator.ErrorKind) string {
	is := describe(value)
	switch k := k.(type) {
	case *kind.Type:
		if value == nil {
			return "has no value"
		}
		return is + " is of the wrong type"
	case *kind.Enum:
		return is + " is not one of the choices"
	case *kind.Minimum:
		return is + " is too small"
	case *kind.Maximum:
		return is + " is too large"
	case *kind.MaxLength:
		return fmt.Sprintf("%s is %d characters long", is, k.Got)
	case *kind.MinItems:
		return is + " is too short"
	case *kind.MaxItems:
		return is + " is too long"
	case *kind.UniqueItems:
		return fmt.Sprintf("items %d and %d are the same", k.Duplicates[0]+1, k.Duplicates[1]+1)
	}
	return is + " is not valid"
}

// describe names a value of a file in an error's words.
func describe(value any) string {
	switch value := value.(type) {
	case string:
		return quoted(value)
	case json.Number:
		return value.String()
	case []any:
		return fmt.Sprintf("a list of %d", len(value))
	case map[string]any:
		return "a mapping"
	}
	return fmt.Sprint(value) // a bool, or nothing
}

// wantOf says what would be right for a fault of this kind.
func wantOf(k validator.ErrorKind, part map[string]any) string {
	switch k := k.(type) {
	case *kind.MinItems:
		return fmt.Sprintf("want at least %d", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("want at most %d", k.Want)
	case *kind.UniqueItems:
		return "want each once"
	}
	return want(part)
}

// want says what a part of the schema takes.
func want(part map[string]any) string {
	if part["type"] == "object" && part["properties"] != nil {
		return "want a mapping of " + strings.Join(keysOf(part), ", ")
	}
	if title, ok := part["title"].(string); ok {
		return "want " + title
	}
	if choices, ok := part["enum"].([]any); ok {
		words := make([]string, len(choices))
		for i, choice := range choices {
			words[i] = fmt.Sprint(choice)
		}
		return "want " + orList(words)
	}
	return ""
}

func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

func keysOf(part map[string]any) []string {
	properties, _ := part["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}

// suggest names the known key that an unknown one is nearest to, or else all known keys.
func (s *schema) suggest(part map[string]any, key string) string {
	known := keysOf(part)
	best, bestDistance := "", 3
	for _, k := range known {
		if n := distance(key, k); n < bestDistance && n < len(k) {
			best, bestDistance = k, n
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "known keys: " + strings.Join(known, ", ")
}

// distance returns how many bytes to insert, delete, replace or swap with their neighbour make a into b.
func distance(a, b string) int {
	before, previous, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(b)]
}
