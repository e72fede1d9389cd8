package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/longshore/longshore/cmd/host/internal/telemetry"
)

// result is what a command prints to stdout, in the form that -o asks for.
type result struct {
	value any        // json, yaml
	head  []string   // table
	rows  [][]string // table
	names []string   // name
}

// formats of -o.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatYAML  = "yaml"
	formatName  = "name"
)

func checkFormat(format string) error {
	switch format {
	case formatTable, formatJSON, formatYAML, formatName:
		return nil
	}
	return usage(fmt.Errorf("-o %q is unknown; use table, json, yaml or name", format))
}

// print writes r to w. What a table shows is made visible: it may hold text of strangers.
func (r result) print(w io.Writer, format string) error {
	switch format {
	case formatJSON:
		return printJSON(w, r.value)
	case formatYAML:
		return printYAML(w, r.value)
	case formatName:
		for _, n := range r.names {
			if _, err := fmt.Fprintln(w, visible(n)); err != nil {
				return err
			}
		}
		return nil
	default:
		return r.printTable(w)
	}
}

func (r result) printTable(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	lines := r.rows
	if len(r.head) > 0 {
		lines = append([][]string{r.head}, r.rows...)
	}
	for _, row := range lines {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = strings.ReplaceAll(visible(c), "\t", " ")
		}
		if _, err := fmt.Fprintln(tw, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return tw.Flush()
}

// counted writes a number of things, as "1 consumer" and "2 consumers".
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}

// visible escapes what has no visible form of its own, newlines included.
func visible(s string) string {
	trimmed := strings.TrimSuffix(s, "\n")
	return string(telemetry.Escape([]byte(trimmed)))
}
