package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/demo"
)

func (c *command) demoCommand() *cobra.Command {
	var figures, keep bool
	var messages int
	cmd := &cobra.Command{
		Use: "demo", Short: "See the whole job done on real input, and checked", Args: cobra.NoArgs,
		Long: `Build the consumers of examples/orders, run them on a host of their own, kill it, start it again, and count.
It needs a checkout of the repository and the Go toolchain, and works in a temporary folder.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if messages < demo.MinMessages {
				return usage(fmt.Errorf("--messages %d: want at least %d", messages, demo.MinMessages))
			}
			binary, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			from, err := os.Getwd()
			if err != nil {
				return fmt.Errorf("find the checkout: %w", err)
			}
			o := demo.Options{Binary: binary, From: from, Messages: messages, Keep: keep, Screen: c.screen(figures)}
			figs, err := demo.Run(cmd.Context(), o)
			if figures {
				for _, f := range figs {
					_, _ = fmt.Fprintf(c.Out, "figure %s %d\n", f.Name, f.Value)
				}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&figures, "json", false, "print the figures to stdout, one a line, and the story to stderr")
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the folder that the demo worked in")
	cmd.Flags().IntVar(&messages, "messages", 10_000, "orders to publish")
	return cmd
}

// screen is stdout, or stderr if stdout is for the figures.
func (c *command) screen(figures bool) *demo.Screen {
	e := c.env()
	live, out := c.OutTerminal, c.Out
	if figures {
		live, out = c.ErrTerminal, c.Err
	}
	live = live && e["TERM"] != "dumb"
	return &demo.Screen{Out: out, Live: live, Colour: live && e["NO_COLOR"] == ""}
}
