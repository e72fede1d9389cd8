package cli

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/scaffold"
)

func (c *command) newCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "new", Short: "Begin something new"}
	cmd.AddCommand(c.newConsumerCommand())
	return cmd
}

func (c *command) newConsumerCommand() *cobra.Command {
	var language, dir string
	languages := strings.Join(scaffold.Languages(), ", ")
	cmd := &cobra.Command{
		Use: "consumer NAME", Short: "Write a consumer to begin with: source, manifest, SDK", Args: exactArgs("NAME"),
		Long: `Write a folder with a consumer to begin with: its source, a manifest, the SDK of its language, and a README with the
commands that come next. Nothing is downloaded.`,
		Example: "  longshore new consumer shout --lang rust",
		RunE: func(_ *cobra.Command, args []string) error {
			if dir == "" {
				dir = args[0]
			}
			files, err := scaffold.New(filepath.Clean(dir), args[0], language)
			if err != nil {
				return usage(err)
			}
			return c.printNew(dir, files)
		},
	}
	cmd.Flags().StringVar(&language, "lang", "go", "language: "+languages)
	cmd.Flags().StringVar(&dir, "dir", "", "folder to make (default: the name)")
	return cmd
}

// printNew lists what was written outside of the SDK.
func (c *command) printNew(dir string, files []string) error {
	r := result{head: []string{"FILE"}, value: map[string]any{"dir": dir, "files": files}}
	for _, f := range files {
		r.names = append(r.names, f)
		if !strings.HasPrefix(f, "sdk/") {
			r.rows = append(r.rows, []string{filepath.Join(dir, filepath.FromSlash(f))})
		}
	}
	c.say("%s says what comes next", filepath.Join(dir, "README.md"))
	return c.print(r)
}
