package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Bounds of what is reported: how many faults of one file are looked for, and how many of them Error lists.
const (
	maxFaults       = 1_000
	maxListedFaults = 100
)

// Fault is one thing wrong in a file, in the environment or in the flags.
type Fault struct {
	File      string // as the caller named it; "environment" or "flags" for a setting given there
	Line, Col int    // from 1; 0 if the place has none
	Path      string // of the key, such as consumers[0].limits.fuel; "" for the file as a whole
	Problem   string // what is wrong
	Fix       string // what would be right; may be empty
}

// String returns the fault as one line: file:line:col: path: what is wrong (what would be right).
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", f.Line, f.Col)
	}
	if f.Path != "" {
		b.WriteString(": " + f.Path)
	}
	b.WriteString(": " + f.Problem)
	if f.Fix != "" {
		b.WriteString(" (" + f.Fix + ")")
	}
	return b.String()
}

// Error implements error, so that a single fault can be returned as one.
func (f Fault) Error() string { return f.String() }

// Faults is every fault of one load (the first thousand, if a file has more), in the order of the file. As an error it is
// one line each.
type Faults []Fault

// Error implements error.
func (f Faults) Error() string {
	lines := make([]string, 0, min(len(f), maxListedFaults)+1)
	for _, fault := range f[:min(len(f), maxListedFaults)] {
		lines = append(lines, fault.String())
	}
	if more := len(f) - maxListedFaults; more > 0 {
		least := ""
		if len(f) >= maxFaults {
			least = "at least "
		}
		lines = append(lines, fmt.Sprintf("%s: %s%d more faults are not listed", f[0].File, least, more))
	}
	return strings.Join(lines, "\n")
}

// err returns the faults as an error, sorted by place and name, or nil if there are none.
func (f Faults) err() error {
	if len(f) == 0 {
		return nil
	}
	slices.SortStableFunc(f, func(a, b Fault) int {
		if a.Line == 0 && b.Line == 0 { // settings have names instead of places
			return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Path, b.Path))
		}
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return f
}

// quoted returns untrusted text as a string literal of bounded length.
func quoted(s string) string { return `"` + escaped(s, 60) + `"` }

// escaped returns at most so many runes of untrusted text, in ASCII, without control characters.
func escaped(s string, maxRunes int) string {
	end, more := len(s), ""
	for i := range s {
		if maxRunes--; maxRunes < 0 {
			end, more = i, "..."
			break
		}
	}
	literal := strconv.QuoteToASCII(s[:end])
	return literal[1:len(literal)-1] + more
}
