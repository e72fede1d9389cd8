package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/longshore/longshore/limits"
)

// Bounds of the JSON of a body. Its bytes alone bound little: three of them, as in "{},", decode to hundreds.
const (
	jsonValues = 1 << 19              // of all kinds, keys not counted
	jsonItems  = limits.BatchMessages // of one list, or members of one object
	jsonDepth  = 16                   // of lists and objects within each other
)

// errJSONBound says that a body holds more than one of these bounds.
var errJSONBound = errors.New("it holds too much")

// jsonFewKeys are compared with each other one by one.
const jsonFewKeys = 16

// checkJSON looks at the JSON of a body before it is decoded: whether it is one value, within the bounds, and of one meaning.
// encoding/json lets the last of two equal keys win, whatever their case, so that what was validated under one name could be
// replaced under another. Its error says where.
func checkJSON(raw []byte) error {
	if !utf8.Valid(raw) {
		return errors.New("it is not UTF-8")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(raw, &whole); err != nil { // looks at all of it and allocates nothing for what is within
		return err
	}
	s := jsonScan{raw: raw}
	return s.value(0, false)
}

// jsonScan walks through JSON that is known to be valid.
type jsonScan struct {
	raw        []byte
	at, values int
}

// value goes past a value. named says that it is an object whose keys are names of the sender's own, in which case counts.
func (s *jsonScan) value(depth int, named bool) error {
	if s.values++; s.values > jsonValues {
		return fmt.Errorf("%w: more than %d values", errJSONBound, jsonValues)
	}
	s.skipSpace()
	switch s.raw[s.at] {
	case '"':
		s.text()
	case '{', '[':
		if depth == jsonDepth {
			return fmt.Errorf("%w: lists and objects more than %d deep, at byte %d", errJSONBound, jsonDepth, s.at)
		}
		return s.items(depth, named)
	default:
		for s.at < len(s.raw) && !isSpace(s.raw[s.at]) && s.raw[s.at] != ',' && s.raw[s.at] != ']' && s.raw[s.at] != '}' {
			s.at++
		}
	}
	return nil
}

// items goes past a list or an object.
func (s *jsonScan) items(depth int, named bool) error {
	object := s.raw[s.at] == '{'
	seen := keySet{exact: named}
	s.at++
	for n := 0; ; n++ {
		s.skipSpace()
		switch s.raw[s.at] {
		case '}', ']':
			s.at++
			return nil
		case ',':
			s.at++
			s.skipSpace()
		}
		if n == jsonItems {
			return fmt.Errorf("%w: more than %d items in a list or an object, at byte %d", errJSONBound, jsonItems, s.at)
		}
		modules := false
		if object {
			at := s.at
			key := s.key()
			if !seen.add(key) {
				return fmt.Errorf("the key %.40q is there twice, at byte %d; give it once", key, at)
			}
			modules = depth == 0 && string(key) == "modules" // of wire.Apply: by path
		}
		if err := s.value(depth+1, modules); err != nil {
			return err
		}
	}
}

// key goes past the key of a member and its colon, and returns it.
func (s *jsonScan) key() []byte {
	begin := s.at
	s.text()
	quoted := s.raw[begin:s.at]
	s.skipSpace()
	s.at++ // the colon
	if !bytes.ContainsRune(quoted, '\\') {
		return quoted[1 : len(quoted)-1]
	}
	var key string
	_ = json.Unmarshal(quoted, &key) // it is valid
	return []byte(key)
}

// text goes past a text.
func (s *jsonScan) text() {
	for s.at++; s.raw[s.at] != '"'; s.at++ {
		if s.raw[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
}

func (s *jsonScan) skipSpace() {
	for s.at < len(s.raw) && isSpace(s.raw[s.at]) {
		s.at++
	}
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\r' || b == '\n' }

// keySet is the keys of an object, equal up to case unless exact.
type keySet struct {
	exact bool
	few   [][]byte
	many  map[string]bool
}

// add reports whether the key is a new one. It keeps the key.
func (k *keySet) add(key []byte) bool {
	if k.many == nil && len(k.few) < jsonFewKeys {
		for _, other := range k.few {
			if k.equal(key, other) {
				return false
			}
		}
		k.few = append(k.few, key)
		return true
	}
	if k.many == nil {
		k.many = map[string]bool{}
		for _, other := range k.few {
			k.many[k.folded(other)] = true
		}
	}
	folded := k.folded(key)
	if k.many[folded] {
		return false
	}
	k.many[folded] = true
	return true
}

func (k *keySet) equal(a, b []byte) bool {
	if k.exact {
		return bytes.Equal(a, b)
	}
	return bytes.EqualFold(a, b)
}

// folded returns the same text for all keys that are equal.
func (k *keySet) folded(key []byte) string {
	if k.exact {
		return string(key)
	}
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, string(key))
}

// decodedTimes is how many times its bytes a body of JSON is reckoned to take while it is decoded and validated.
const decodedTimes = 8

// decodedBytes is what a body of JSON counts against a room of bytes.
func decodedBytes(body, room int64) int64 { return min(decodedTimes*body, room/2) }

// problemErrors of an answer say what is wrong with a request; more of them would be as many as somebody likes.
const problemErrors = 20

// fewErrors shortens what huma says of a body that isn't valid: each fault comes with the value that has it.
func fewErrors(_ huma.Context, _ string, v any) (any, error) {
	if m, ok := v.(*huma.ErrorModel); ok {
		m.Errors = m.Errors[:min(len(m.Errors), problemErrors)]
		for i, e := range m.Errors {
			m.Errors[i] = &huma.ErrorDetail{Message: e.Message, Location: e.Location}
		}
	}
	return v, nil
}

// strictFormats are huma's, with bodies looked at before they are decoded.
func strictFormats() map[string]huma.Format {
	formats := maps.Clone(huma.DefaultFormats)
	for name, f := range formats {
		decode := f.Unmarshal
		f.Unmarshal = func(raw []byte, v any) error {
			if err := checkJSON(raw); err != nil {
				return err
			}
			return decode(raw, v)
		}
		formats[name] = f
	}
	return formats
}
