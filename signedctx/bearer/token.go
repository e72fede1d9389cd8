package bearer

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/longshore/longshore/limits"
)

const (
	maxSeconds  = 253_402_300_799 // the end of the year 9999
	maxKeyID    = 256
	maxDepth    = 8   // of the claims
	maxMembers  = 256 // of all objects of a part
	maxAudience = 16
)

// token is a token that was read strictly, and isn't verified.
type token struct {
	algorithm, keyID           string
	issuer, subject            string
	audience                   []string
	issued, notBefore, expires int64 // seconds since 1970
	signed                     string
	signature                  []byte
}

// isFor reports whether a token is for an audience.
func (t token) isFor(audience string) bool { return slices.Contains(t.audience, audience) }

// parse reads a token. Errors don't quote it.
func parse(raw string) (token, error) {
	if err := limits.Check(limits.NameTokenBytes, int64(len(raw)), limits.TokenBytes); err != nil {
		return token{}, err
	}
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		return token{}, errors.New("is no JWT of three parts")
	}
	t := token{signed: parts[0] + "." + parts[1]}
	if err := t.readHeader(parts[0]); err != nil {
		return token{}, fmt.Errorf("has a header that %w", err)
	}
	if err := t.readClaims(parts[1]); err != nil {
		return token{}, fmt.Errorf("has claims of which one %w", err)
	}
	var err error
	if t.signature, err = decodeSegment(parts[2]); err != nil {
		return token{}, fmt.Errorf("has a signature that %w", err)
	}
	return t, nil
}

// readHeader takes alg, kid and typ. Thumbprints of certificates are let be; any other member, crit and places of keys among
// them, is refused.
func (t *token) readHeader(segment string) error {
	o, err := object(segment)
	if err != nil {
		return err
	}
	for name := range o {
		if !slices.Contains([]string{"alg", "kid", "typ", "x5t", "x5t#S256"}, name) {
			return errors.New("has a member other than alg, kid, typ and x5t")
		}
	}
	if typ, given := o["typ"]; given && typ != "JWT" && typ != "at+jwt" {
		return errors.New("has a typ other than JWT and at+jwt")
	}
	t.algorithm, _ = o["alg"].(string)
	t.keyID, _ = o["kid"].(string)
	switch {
	case !slices.Contains(Algorithms(), t.algorithm):
		return fmt.Errorf("has an alg other than %v", Algorithms())
	case t.keyID == "" || len(t.keyID) > maxKeyID:
		return fmt.Errorf("has no kid of 1 to %d bytes", maxKeyID)
	}
	return nil
}

// readClaims takes the claims that say who, for whom and when.
func (t *token) readClaims(segment string) (err error) {
	o, err := object(segment)
	if err != nil {
		return err
	}
	t.issuer, _ = o["iss"].(string)
	t.subject, _ = o["sub"].(string)
	if t.issuer == "" || t.subject == "" {
		return errors.New("is missing: iss and sub are texts with something in them")
	}
	if len(t.subject) > limits.BearerSubjectBytes || strings.ContainsFunc(t.subject, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("is wrong: sub has at most %d bytes, which print", limits.BearerSubjectBytes)
	}
	if t.audience, err = audienceOf(o["aud"]); err != nil {
		return err
	}
	var errs [3]error
	t.issued, errs[0] = seconds(o, "iat")
	t.expires, errs[1] = seconds(o, "exp")
	if _, given := o["nbf"]; given {
		t.notBefore, errs[2] = seconds(o, "nbf")
	}
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	if t.expires <= t.issued {
		return errors.New("is wrong: exp is not after iat")
	}
	return nil
}

// audienceOf reads aud: a text, or, as RFC 7519 has it too, a list of texts.
func audienceOf(aud any) ([]string, error) {
	if one, ok := aud.(string); ok {
		return []string{one}, nil
	}
	list, _ := aud.([]any)
	var all []string
	for _, a := range list {
		text, ok := a.(string)
		if !ok {
			return nil, errors.New("is wrong: aud is not a text or a list of texts")
		}
		all = append(all, text)
	}
	if len(all) == 0 || len(all) > maxAudience {
		return nil, fmt.Errorf("is wrong: aud has to be one text or 1 to %d", maxAudience)
	}
	return all, nil
}

// seconds reads a whole number of seconds since 1970.
func seconds(o map[string]any, name string) (int64, error) {
	number, _ := o[name].(json.Number)
	n, err := strconv.ParseInt(number.String(), 10, 64)
	if err != nil || n < 0 || n > maxSeconds || strconv.FormatInt(n, 10) != number.String() {
		return 0, fmt.Errorf("is wrong: %s is not a whole number of seconds from 1970 to 9999", name)
	}
	return n, nil
}

// object reads one part of a token: canonical base64url of one JSON object in which no object has a key twice, whatever its
// case. Claims of ours are flat texts and read more strictly; issuers send what they like beside what is asked for.
func object(segment string) (map[string]any, error) {
	raw, err := decodeSegment(segment)
	if err != nil {
		return nil, err
	}
	return strictObject(raw)
}

func strictObject(raw []byte) (map[string]any, error) {
	if !utf8.Valid(raw) || bytes.Contains(raw, []byte(`\u0000`)) {
		return nil, errors.New("is not valid text")
	}
	if !json.Valid(raw) || len(bytes.TrimSpace(raw)) == 0 || bytes.TrimSpace(raw)[0] != '{' {
		return nil, errors.New("is no JSON object")
	}
	members := 0
	if err := unique(json.NewDecoder(bytes.NewReader(raw)), 0, &members); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var o map[string]any
	if err := d.Decode(&o); err != nil {
		return nil, errors.New("is no JSON object")
	}
	return o, nil
}

// unique reads one value and refuses objects with a key twice, up to case.
func unique(d *json.Decoder, depth int, members *int) error {
	t, err := d.Token()
	if err != nil {
		return errors.New("is no JSON object")
	}
	open, ok := t.(json.Delim)
	if !ok {
		return nil
	}
	if depth == maxDepth {
		return fmt.Errorf("is nested more than %d deep", maxDepth)
	}
	seen := map[string]bool{}
	for d.More() {
		if *members++; *members > maxMembers {
			return fmt.Errorf("has more than %d members", maxMembers)
		}
		if open == '{' {
			key, err := d.Token()
			if err != nil {
				return errors.New("is no JSON object")
			}
			folded := foldCase(fmt.Sprint(key))
			if seen[folded] {
				return errors.New("has the same key twice, up to case")
			}
			seen[folded] = true
		}
		if err := unique(d, depth+1, members); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// foldCase returns the same text for all that strings.EqualFold takes for equal.
func foldCase(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}

// decodeSegment decodes base64url in the one form that encodes back to itself.
func decodeSegment(s string) ([]byte, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || base64.RawURLEncoding.EncodeToString(b) != s {
		return nil, errors.New("is not canonical base64url")
	}
	return b, nil
}
