package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/wire"
)

func (c *command) keysCommand() *cobra.Command {
	keys := &cobra.Command{Use: "keys", Short: "Keys of signed contexts: list, rotate, retire, reload", RunE: needsSubcommand}
	keys.AddCommand(
		c.keysShowCommand("list", "List the keys, oldest first", (*client.Admin).Keys),
		c.keysRotateCommand(), c.keysRetireCommand(),
		c.keysShowCommand("reload", "Make the host read its keys again", (*client.Admin).ReloadKeys),
	)
	return keys
}

// keysShowCommand makes a command that shows the keys.
func (c *command) keysShowCommand(name, short string, call func(*client.Admin, context.Context) ([]wire.Key, error)) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			admin, err := c.admin()
			if err != nil {
				return err
			}
			keys, err := call(admin, cmd.Context())
			if err != nil {
				return fmt.Errorf("%s the keys: %w", name, err)
			}
			return c.print(keysResult(keys))
		},
	}
}

func keysResult(keys []wire.Key) result {
	r := result{value: wire.KeyList{Keys: keys}, head: []string{"ID", "KIND", "ALGORITHM", "STATE"}}
	for _, k := range keys {
		r.rows = append(r.rows, []string{k.ID, k.Kind, k.Algorithm, k.State})
		r.names = append(r.names, k.ID)
	}
	return r
}

// isKind reports whether a word is a kind of key.
func isKind(kind string) error {
	if kind == "token" || kind == "seal" {
		return nil
	}
	return usage(fmt.Errorf("%.40q is no kind of key: want token or seal", kind))
}

func (c *command) keysRotateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "rotate token|seal", Short: "Make a new key, which signs from now on; the ones before it verify", Args: exactArgs("token|seal"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := isKind(args[0]); err != nil {
				return err
			}
			admin, err := c.admin()
			if err != nil {
				return err
			}
			k, err := admin.RotateKey(cmd.Context(), args[0])
			if err != nil {
				return fmt.Errorf("rotate the %s key: %w", args[0], err)
			}
			return c.print(result{value: k, rows: [][]string{{k.ID, k.Kind, k.Algorithm, k.State}}, names: []string{k.ID}})
		},
	}
}

func (c *command) keysRetireCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "retire token|seal ID", Short: "Take a key out of use that no stored message names", Args: exactArgs("token|seal", "ID"),
		Long: `Take a key out of use that no stored message names. The host reads the whole log to be sure; what is only in a backup
it can't see. The key's file stays in the folder, under a name that ends in .retired: delete it when the key has leaked.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := isKind(args[0]); err != nil {
				return err
			}
			admin, err := c.admin()
			if err != nil {
				return err
			}
			if err := c.agree("retire", "retire "+args[0]+" key "+args[1]+"?", yes); err != nil {
				return err
			}
			done, err := admin.RetireKey(cmd.Context(), args[0], args[1])
			if err != nil {
				return fmt.Errorf("retire the %s key %s: %w", args[0], args[1], err)
			}
			c.say("%s looked at, none names the key", counted(done.Scanned, "stored message"))
			return c.print(result{value: done, rows: [][]string{{args[1], "retired", strconv.Itoa(done.Scanned)}}, names: []string{args[1]}})
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask")
	return cmd
}
