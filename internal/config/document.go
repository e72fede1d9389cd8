package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/longshore/longshore/limits"
)

// Bounds of a file itself.
const (
	maxFileBytes = 1 * limits.MiB
	maxDepth     = 16 // of nested mappings and lists
	maxKeyBytes  = 64
	maxItems     = 10_000 // of one mapping or list
)

// document is one parsed file as JSON values, with the place of each. Paths are like consumers[0].limits.fuel.
type document struct {
	file   string
	root   any              // map[string]any, []any, string, json.Number, bool or nil
	values map[string]place // where the value of a path begins
	keys   map[string]place // where the key of a path begins
	bad    map[string]bool  // paths with a fault: their values in root are void
	faults Faults
}

// place is where something stands. name, if set, is what the reader knows it by instead of its path.
type place struct {
	line, col int
	name      string
}

func newDocument(file string) *document {
	return &document{file: file, values: map[string]place{}, keys: map[string]place{}, bad: map[string]bool{}}
}

// readFile reads a file, but no more of it than shows that it is too large.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path) // which file to read is the operator's to say
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	return data, errors.Join(err, file.Close())
}

// parseDocument reads one YAML document strictly. It always returns a document; one that has no tree at all has a fault
// and a nil root.
func parseDocument(file string, data []byte) *document {
	d := newDocument(file)
	if len(data) > maxFileBytes {
		d.addAt(place{}, "", fmt.Sprintf("the file is larger than %s", FormatSize(maxFileBytes)), "split it")
		return d
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !d.checkText(data) {
		return d
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	if err := decoder.Decode(&first); errors.Is(err, io.EOF) {
		return d
	} else if err != nil {
		d.addSyntax(data, err)
		return d
	}
	if err := decoder.Decode(&second); err == nil {
		d.addAt(place{line: second.Line, col: second.Column}, "", "a second document begins here", "one document a file")
	} else if !errors.Is(err, io.EOF) {
		d.addSyntax(data, err)
	}
	if len(first.Content) == 1 && first.Content[0].ShortTag() != "!!null" {
		d.root = d.convert(first.Content[0], "", 0)
	}
	return d
}

// checkText refuses what is no text, naming its place, before the YAML parser sees it.
func (d *document) checkText(data []byte) bool {
	line, col := 1, 1
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			d.addAt(place{line: line, col: col}, "", fmt.Sprintf("byte 0x%02x is not UTF-8", data[i]), "save the file as UTF-8")
			return false
		case r < 0x20 && r != '\t' && r != '\n' && r != '\r', r == 0x7f:
			d.addAt(place{line: line, col: col}, "", fmt.Sprintf("control character U+%04X", r), "remove it")
			return false
		case r == '\n':
			line, col = line+1, 0
		}
		i += size
		col++
	}
	return true
}

// addSyntax reports what the YAML parser couldn't read.
func (d *document) addSyntax(data []byte, err error) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = regexp.MustCompile(`^line \d+: `).ReplaceAllString(text, "")
	at := firstUnreadable(data)
	if tab := findIndentingTab(data, at.line); tab.line > 0 {
		d.addAt(tab, "", "a tab indents this line", "indent with spaces")
		return
	}
	fix := "YAML"
	for _, hint := range syntaxHints {
		if strings.Contains(text, hint.says) {
			fix = hint.fix
		}
	}
	d.addAt(at, "", "not YAML: "+escaped(text, 120), "want "+fix)
}

// syntaxHints say what is mostly meant where the parser says so.
var syntaxHints = [...]struct{ says, fix string }{
	{"mapping values are not allowed", "a space after the colon of the key before, or quotes around a value with a colon in it"},
	{"did not find expected '-' indicator", "the keys of one entry below each other"},
	{"did not find expected key", "the keys of one entry below each other"},
	{"alphabetic or numeric character", "quotes around a value that begins with * or &"},
}

// firstUnreadable returns the first line that makes the text above it no YAML. The parser's own line numbers are those of
// where it gave up, or of where the block began.
func firstUnreadable(data []byte) place {
	var ends []int // of lines
	for i, c := range data {
		if c == '\n' || i == len(data)-1 {
			ends = append(ends, i+1)
		}
	}
	line := sort.Search(len(ends), func(i int) bool {
		var n yaml.Node
		return yaml.Unmarshal(data[:ends[i]], &n) != nil
	})
	if line == len(ends) {
		return place{line: 1, col: 1}
	}
	start := 0
	if line > 0 {
		start = ends[line-1]
	}
	text := data[start:ends[line]]
	return place{line: line + 1, col: len(text) - len(bytes.TrimLeft(text, " \t")) + 1}
}

// findIndentingTab returns the first tab in the indentation of a line up to one after the given one: the parser's line
// numbers are off by one at times.
func findIndentingTab(data []byte, upTo int) place {
	line := 0
	for text := range bytes.Lines(data) {
		if line++; line > upTo+1 {
			break
		}
		indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
		if i := bytes.IndexByte(indent, '\t'); i >= 0 {
			return place{line: line, col: i + 1}
		}
	}
	return place{}
}

// convert turns a node into JSON values and notes its place and its faults.
func (d *document) convert(n *yaml.Node, path string, depth int) any {
	at := place{line: n.Line, col: n.Column}
	d.values[path] = at
	switch {
	case depth > maxDepth:
		return d.addAt(at, path, "nested too deeply", fmt.Sprintf("at most %d levels", maxDepth))
	case len(n.Content) > maxItems*nodesOf(n):
		return d.addAt(at, path, fmt.Sprintf("%d items are too many", len(n.Content)/nodesOf(n)), fmt.Sprintf("want at most %d", maxItems))
	case n.Kind == yaml.AliasNode:
		return d.addAt(at, path, "an alias stands here", "write the value out: anchors and aliases are not taken")
	case n.Anchor != "":
		return d.addAt(at, path, "an anchor stands here", "write the value without it: anchors and aliases are not taken")
	case n.Style&yaml.TaggedStyle != 0:
		return d.addAt(at, path, "a tag stands here", "write the value without it; quotes make a text")
	case n.Kind == yaml.MappingNode:
		return d.convertMapping(n, path, depth)
	case n.Kind == yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			if d.full() {
				break
			}
			list[i] = d.convert(item, path+"["+strconv.Itoa(i)+"]", depth+1)
		}
		return list
	}
	return d.convertScalar(n, path, at)
}

// nodesOf returns how many nodes make one item of a mapping or a list.
func nodesOf(n *yaml.Node) int {
	if n.Kind == yaml.MappingNode {
		return 2
	}
	return 1
}

func (d *document) convertMapping(n *yaml.Node, path string, depth int) any {
	mapping := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content) && !d.full(); i += 2 {
		key, at := n.Content[i], place{line: n.Content[i].Line, col: n.Content[i].Column}
		if key.Kind != yaml.ScalarNode || key.Anchor != "" || key.Style&yaml.TaggedStyle != 0 {
			d.report(at, path, "a key that is no plain text", "keys are plain words")
			continue
		}
		if len(key.Value) > maxKeyBytes { // paths repeat keys, so these must stay short
			d.report(at, path, "unknown key "+quoted(key.Value), "keys are plain words")
			continue
		}
		child := join(path, key.Value)
		if first, twice := d.keys[child]; twice {
			d.report(at, child, fmt.Sprintf("given twice, first in line %d", first.line), "remove one")
			continue
		}
		d.keys[child] = at
		mapping[key.Value] = d.convert(n.Content[i+1], child, depth+1)
	}
	return mapping
}

func (d *document) convertScalar(n *yaml.Node, path string, at place) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		return d.convertNumber(n, path, at)
	}
	return n.Value
}

func (d *document) convertNumber(n *yaml.Node, path string, at place) any {
	digits := strings.TrimLeft(n.Value, "+-")
	if len(digits) > 1 && digits[0] == '0' && strings.Trim(digits, "0123456789_") == "" {
		return d.addAt(at, path, quoted(n.Value)+" may be read as octal", "write the number without the leading zero")
	}
	var integer int64
	if n.Decode(&integer) == nil && n.ShortTag() == "!!int" {
		return json.Number(strconv.FormatInt(integer, 10))
	}
	var float float64
	if err := n.Decode(&float); err != nil || math.IsInf(float, 0) || math.IsNaN(float) {
		return d.addAt(at, path, quoted(n.Value)+" is not a finite number", "write a number")
	}
	if float == math.Trunc(float) && math.Abs(float) < 1<<62 {
		return json.Number(strconv.FormatInt(int64(float), 10))
	}
	return json.Number(strconv.FormatFloat(float, 'g', -1, 64))
}

// add reports a fault of the value at path; its place is that of the nearest part of the path that the document has.
func (d *document) add(path, problem, fix string) {
	for near := path; ; near = parent(near) {
		at, ok := d.values[near]
		if ok || near == "" {
			d.addAt(at, path, problem, fix)
			return
		}
	}
}

// addAt reports a fault and voids the value at path. It returns that void value.
func (d *document) addAt(at place, path, problem, fix string) any {
	d.bad[path] = true
	d.report(at, path, problem, fix)
	return nil
}

// report adds a fault that leaves the value at path as good as it was.
func (d *document) report(at place, path, problem, fix string) {
	if at.name != "" {
		path = at.name
	} else if at.line == 0 && path != "" {
		at.line, at.col = 1, 1
	}
	d.faults = append(d.faults, Fault{File: d.file, Line: at.line, Col: at.col, Path: path, Problem: problem, Fix: fix})
}

// full reports whether there are so many faults that looking for more is idle: the rest of the file is left unread.
func (d *document) full() bool { return len(d.faults) >= maxFaults }

// sound reports whether neither the value at path nor anything that it lies in has a fault.
func (d *document) sound(path string) bool {
	for ; ; path = parent(path) {
		if d.bad[path] {
			return false
		}
		if path == "" {
			return true
		}
	}
}

// join appends a key to a path. Only plain words are appended as they are, so that two paths are never the same text.
func join(path, key string) string {
	for i, r := range key {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r != '-' && (r < '0' || r > '9')) {
			key = strconv.QuoteToASCII(key)
			break
		}
	}
	if key == "" {
		key = `""`
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// parent returns the path that holds the value at path; "" is the document's.
func parent(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// lookup returns the path of the value to which a JSON pointer's tokens lead, as join makes it.
func (d *document) lookup(tokens []string) string {
	path, at := "", d.root
	for _, token := range tokens {
		switch value := at.(type) {
		case []any:
			path += "[" + token + "]"
			if i, err := strconv.Atoi(token); err == nil && i < len(value) {
				at = value[i]
			}
		case map[string]any:
			path, at = join(path, token), value[token]
		}
	}
	return path
}

// void takes the value at a JSON pointer's tokens out of the tree: a key is removed, a list's item becomes nil.
func (d *document) void(tokens []string) {
	if len(tokens) == 0 {
		d.root = nil
		return
	}
	at, last := d.root, tokens[len(tokens)-1]
	for _, token := range tokens[:len(tokens)-1] {
		at = child(at, token)
	}
	switch value := at.(type) {
	case []any:
		if i, err := strconv.Atoi(last); err == nil && i < len(value) {
			value[i] = nil
		}
	case map[string]any:
		delete(value, last)
	}
}

// child returns what token leads to in a mapping or a list, or nil.
func child(of any, token string) any {
	switch value := of.(type) {
	case []any:
		if i, err := strconv.Atoi(token); err == nil && i < len(value) {
			return value[i]
		}
	case map[string]any:
		return value[token]
	}
	return nil
}
