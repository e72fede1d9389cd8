package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// mustBeZero names the figures of what must never happen.
func mustBeZero() []string { return []string{"acked_lost", "acked_redelivered", "corrupt_delivered"} }

// figures are the figures by name. Counts of several tests are added up; of ratios the greatest counts.
type figures map[string]float64

// add takes a line of output, if it is one of a figure.
func (f figures) add(line string) {
	fields := strings.Fields(line)
	if len(fields) != 3 || fields[0] != "figure" {
		return
	}
	name := fields[1]
	value, err := strconv.ParseFloat(fields[2], 64)
	if err != nil {
		return
	}
	if strings.Contains(fields[2], ".") {
		f[name] = max(f[name], value)
	} else {
		f[name] += value
	}
}

// print prints the figures by name.
func (f figures) print(out io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		fmt.Fprintf(out, "figure %s %s\n", name, strconv.FormatFloat(f[name], 'f', -1, 64))
	}
}

// broken returns the figures that must be 0 and are not.
func (f figures) broken() (names []string) {
	for _, name := range mustBeZero() {
		if f[name] != 0 {
			names = append(names, name)
		}
	}
	return names
}

// watch returns a writer that passes on to out, and takes the figures from it. The tests' own lines of figures are left to
// the end.
func (f figures) watch(out io.Writer) io.Writer { return &watcher{figures: f, out: out} }

type watcher struct {
	figures figures
	out     io.Writer
	line    []byte // what came since the last end of a line
}

// Write implements io.Writer.
func (w *watcher) Write(b []byte) (int, error) {
	w.line = append(w.line, b...)
	for {
		i := bytes.IndexByte(w.line, '\n')
		if i < 0 {
			return len(b), nil
		}
		line := w.line[:i+1]
		if bytes.HasPrefix(line, []byte("figure ")) {
			w.figures.add(string(line))
		} else if _, err := w.out.Write(line); err != nil {
			return 0, err
		}
		w.line = w.line[i+1:]
	}
}
