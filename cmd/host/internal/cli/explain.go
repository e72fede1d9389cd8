package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/explain"
)

const (
	explainColumns = 100 // that an explanation is wide
	explainShown   = 60  // bytes of a code that nobody knows
)

func (c *command) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use: "explain [CODE]", Short: "Say what an error code, an exit code or a failure reason means, and what to do",
		Long: `Say what a code means, and what to do: one that a command printed with its error, the code of a problem over HTTP, an exit code
as a number, or a failure reason as dlq list shows it. Without one, all codes are listed.`,
		Example:           "  longshore explain quota-exceeded\n  longshore explain guest-error: other\n  longshore explain 4",
		ValidArgsFunction: completeCodes,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.print(codesResult(explain.All()))
			}
			code := strings.Join(args, " ")
			entries := explain.Find(code)
			if len(entries) == 0 {
				return usage(unknownCode(code))
			}
			if c.format != formatTable {
				return c.print(codesResult(entries))
			}
			return c.explain(entries)
		},
	}
}

func completeCodes(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return explain.Codes(), cobra.ShellCompDirectiveNoFileComp
}

// unknownCode says which codes may be meant.
func unknownCode(code string) error {
	if near := explain.Near(code); len(near) > 0 {
		return fmt.Errorf("%.*q is no code; did you mean %s?", explainShown, code, strings.Join(near, ", "))
	}
	return fmt.Errorf("%.*q is no code: `longshore explain` lists them", explainShown, code)
}

func codesResult(entries []explain.Entry) result {
	r := result{value: map[string]any{"codes": entries}, head: []string{"CODE", "KIND", "SECTION"}}
	for _, e := range entries {
		r.rows = append(r.rows, []string{e.Code, e.Kind, e.Section})
		r.names = append(r.names, e.Code)
	}
	return r
}

// explain prints entries as text.
func (c *command) explain(entries []explain.Entry) error {
	var errs []error
	write := func(format string, args ...any) {
		_, err := fmt.Fprintf(c.Out, format, args...)
		errs = append(errs, err)
	}
	for i, e := range entries {
		if i > 0 {
			write("\n")
		}
		write("%s: %s\n", e.Code, strings.TrimSuffix(e.Kind+". "+e.Section, ". "))
		width := 0
		for _, f := range e.Says {
			width = max(width, len(f.Label))
		}
		for _, f := range e.Says {
			label := f.Label
			for _, line := range wrap(f.Text, explainColumns-width-3) {
				write("  %-*s %s\n", width, label, line)
				label = ""
			}
		}
	}
	return errors.Join(errs...)
}

// wrap breaks a text into lines of at most so many bytes, or of one word.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}
