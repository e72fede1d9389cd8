package cli

import (
	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/telemetry"
)

func (c *command) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show which binary this is", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := telemetry.ReadBuild()
			rows := [][]string{{"longshore", b.Version}, {"go", b.Go}, {"platform", b.Platform}}
			if b.Revision != "" {
				rows = append(rows, []string{"revision", b.Revision})
			}
			return c.print(result{value: b, rows: rows, names: []string{b.Version}})
		},
	}
}
