// Package explain says what the codes mean that the program prints, as the pages in docs say it.
package explain

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/docs"
)

// Entry is what a page says of a code. A code may have several, of different kinds.
type Entry struct {
	Code    string  `json:"code"`
	Kind    string  `json:"kind"`
	Section string  `json:"section,omitempty"` // heading that a failure reason stands under: what such have in common
	Says    []Field `json:"says"`
}

// Field is a cell of the row of a code.
type Field struct {
	Label string `json:"label"` // heading of its column
	Text  string `json:"text"`
}

const kindReason = "failure reason"

// All returns the entries of all pages, in their order.
func All() []Entry {
	var all []Entry
	for _, t := range []struct{ page, column, kind string }{
		{docs.Errors(), "exit code", "exit code"},
		{docs.Errors(), "code", "error of a command"},
		{docs.HTTP(), "code", "problem over HTTP"},
		{docs.FailureReasons(), "reason", kindReason},
	} {
		all = append(all, read(t.page, t.column, t.kind)...)
	}
	for i := range all {
		if all[i].Kind != kindReason {
			all[i].Section = ""
		}
	}
	return all
}

// read returns the rows of those tables of a page whose first column has a heading.
func read(page, column, kind string) (out []Entry) {
	row := regexp.MustCompile("^\\| `([a-z0-9-]+)` \\|")
	section, labels := "", []string(nil)
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		if heading, is := strings.CutPrefix(line, "## "); is {
			section = heading
		}
		if !strings.HasPrefix(line, "|") {
			labels = nil
			continue
		}
		cells := cellsOf(line)
		if labels == nil {
			labels = cells
		}
		code := row.FindStringSubmatch(line)
		if code == nil || labels[0] != column || len(cells) != len(labels) {
			continue
		}
		e := Entry{Code: code[1], Kind: kind, Section: section}
		for i, text := range cells[1:] {
			e.Says = append(e.Says, Field{labels[i+1], text})
		}
		out = append(out, e)
	}
	return out
}

// cellsOf returns the cells of a row, with links as their text.
func cellsOf(line string) []string {
	line = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(line, "$1")
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// Find returns the entries of a code. What may follow one in a message's failure reason, as in "guest-error: other" and "exit 3",
// counts for nothing.
func Find(code string) (out []Entry) {
	code = strings.ToLower(strings.TrimSpace(code))
	if end := strings.IndexAny(code, ": "); end > 0 {
		code = code[:end]
	}
	for _, e := range All() {
		if e.Code == code {
			out = append(out, e)
		}
	}
	return out
}

// Codes returns all codes, each once.
func Codes() (out []string) {
	known := map[string]bool{}
	for _, e := range All() {
		if !known[e.Code] {
			known[e.Code] = true
			out = append(out, e.Code)
		}
	}
	return out
}

// nearDistance is how many letters of a code may be wrong.
const nearDistance = 3

// Near returns the codes that somebody may mean: those that differ in a few letters, and those that have the word in them.
func Near(word string) (out []string) {
	word = strings.ToLower(word)
	like := &cobra.Command{SuggestionsMinimumDistance: min(nearDistance, len(word)/2)}
	for _, code := range Codes() {
		like.AddCommand(&cobra.Command{Use: code, Run: func(*cobra.Command, []string) {}})
	}
	known := map[string]bool{}
	for _, code := range like.SuggestionsFor(word) {
		known[code] = true
	}
	for _, code := range Codes() {
		if known[code] || len(word) > nearDistance && strings.Contains(code, word) {
			out = append(out, code)
		}
	}
	return out
}
