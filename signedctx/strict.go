package signedctx

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/longshore/longshore/limits"
)

// maxSeconds is the end of the year 9999, the last time that a date can name.
const maxSeconds = 253_402_300_799

// object is a JSON object that was read strictly. A member is a string, a json.Number or an object.
type object map[string]any

// parseObject reads one JSON object and nothing after it. encoding/json, and so golang-jwt, lets the last of two equal
// keys win, matches keys of structs in any case, and repairs invalid UTF-8; here all of these are faults, and so are
// arrays, null, booleans, objects within objects within objects, and more members than a token ever needs. Errors don't
// quote the text.
func parseObject(raw []byte) (object, error) {
	if !json.Valid(raw) {
		return nil, errors.New("is not JSON")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("is not a JSON object")
	}
	return parseMembers(d, true)
}

// parseMembers reads what follows the opening brace of an object.
func parseMembers(d *json.Decoder, outer bool) (object, error) {
	o := object{}
	for d.More() {
		key, err := parseText(d)
		if err != nil {
			return nil, err
		}
		if len(o) == limits.TokenClaims {
			return nil, limits.Check(limits.NameTokenClaims, int64(len(o))+1, limits.TokenClaims)
		}
		if o.has(key) {
			return nil, errors.New("has the same key twice, up to case")
		}
		if o[key], err = parseValue(d, outer); err != nil {
			return nil, err
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("closing brace: %w", err)
	}
	return o, nil
}

func parseValue(d *json.Decoder, outer bool) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("value of a member: %w", err)
	}
	switch v := t.(type) {
	case string:
		return v, checkText(v)
	case json.Number:
		return v, nil
	case json.Delim:
		if outer && v == '{' {
			return parseMembers(d, false)
		}
	}
	return nil, errors.New("has a member of a type that isn't allowed there")
}

func parseText(d *json.Decoder) (string, error) {
	t, err := d.Token()
	if err != nil {
		return "", fmt.Errorf("key of a member: %w", err)
	}
	s, ok := t.(string)
	if !ok {
		return "", errors.New("has a key that is not a string")
	}
	return s, checkText(s)
}

// checkText refuses what doesn't come back from JSON as it went in: invalid UTF-8, and U+FFFD, which is what decoders
// make of it and of an escaped half of a surrogate pair.
func checkText(s string) error {
	if strings.ContainsRune(s, utf8.RuneError) { // true of invalid UTF-8 as well
		return errors.New("has text that is not valid Unicode")
	}
	return nil
}

// has reports whether o has the key in any case. Objects are small.
func (o object) has(key string) bool {
	for k := range o {
		if strings.EqualFold(k, key) {
			return true
		}
	}
	return false
}

// only checks that o has exactly these members.
func (o object) only(names ...string) error {
	for _, n := range names {
		if _, ok := o[n]; !ok {
			return fmt.Errorf("has no %s", n)
		}
	}
	if len(o) != len(names) {
		return fmt.Errorf("has more than %s", strings.Join(names, ", "))
	}
	return nil
}

// text returns a member that must be a string and not empty.
func (o object) text(name string) (string, error) {
	s, ok := o[name].(string)
	if !ok || s == "" {
		return "", fmt.Errorf("%s is not a string with something in it", name)
	}
	return s, nil
}

// seconds returns a member that must be a whole number of seconds since 1970, before the year 10000.
func (o object) seconds(name string) (int64, error) {
	number, _ := o[name].(json.Number)
	n, err := strconv.ParseInt(number.String(), 10, 64)
	if err != nil || n < 0 || n > maxSeconds || strconv.FormatInt(n, 10) != number.String() {
		return 0, fmt.Errorf("%s is not a whole number of seconds from 1970 to 9999", name)
	}
	return n, nil
}

// decodeSegment decodes base64url in the one form that encodes back to itself: without padding, newlines (which
// golang-jwt skips) and bits that are left over.
func decodeSegment(s string) ([]byte, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || encodeSegment(b) != s {
		return nil, errors.New("is not canonical base64url")
	}
	return b, nil
}
