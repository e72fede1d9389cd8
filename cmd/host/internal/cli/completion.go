package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/client"
)

// completeTime is what a host may take to answer somebody who has pressed the tabulator key.
const completeTime = time.Second

func (c *command) completionCommand(root *cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: "completion", Short: "Print what makes a shell complete the commands: bash, zsh, fish, powershell", RunE: needsSubcommand,
		Long: `Print a script that makes a shell complete commands and flags, and topics, consumers and tenants of the host that runs here.

  bash        source <(longshore completion bash)
  zsh         longshore completion zsh > "${fpath[1]}/_longshore"
  fish        longshore completion fish > ~/.config/fish/completions/longshore.fish
  powershell  longshore completion powershell | Out-String | Invoke-Expression`,
	}
	for shell, write := range map[string]func(io.Writer) error{
		"bash":       func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh":        root.GenZshCompletion,
		"fish":       func(w io.Writer) error { return root.GenFishCompletion(w, true) },
		"powershell": root.GenPowerShellCompletionWithDesc,
	} {
		cmd.AddCommand(&cobra.Command{
			Use: shell, Short: "Print the script for " + shell, Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return write(c.Out) },
		})
	}
	return cmd
}

// ask returns what a host has that somebody may mean. No host, or one that is slow, is nothing: nobody wants to hear of it now.
type ask func(ctx context.Context, a *client.Admin, tenant string) ([]string, error)

func askTopics(ctx context.Context, a *client.Admin, tenant string) (names []string, err error) {
	list, err := a.Topics(ctx, tenant)
	for _, t := range list {
		names = append(names, t.Topic)
	}
	return names, err
}

func askConsumers(ctx context.Context, a *client.Admin, tenant string) (names []string, err error) {
	list, err := a.Consumers(ctx)
	for _, k := range list {
		if tenant == "" || k.Tenant == tenant {
			names = append(names, k.Name)
		}
	}
	return names, err
}

func askTenants(ctx context.Context, a *client.Admin, _ string) (names []string, err error) {
	list, err := a.Tenants(ctx)
	for _, t := range list {
		names = append(names, t.Name)
	}
	return names, err
}

// complete returns a function that completes with what the host answers. It is for the first argument, or a flag.
func (c *command) complete(ask ask, first bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if first && len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
		defer cancel()
		admin, err := c.admin()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		tenant := ""
		if f := cmd.Flags().Lookup("tenant"); f != nil {
			tenant = f.Value.String()
		}
		names, err := ask(ctx, admin, tenant)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names = slices.DeleteFunc(names, func(name string) bool {
			return !strings.HasPrefix(name, begun) || visible(name) != name || strings.ContainsAny(name, "\t\n")
		})
		slices.Sort(names)
		return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeAll gives all commands below one the completion of what their usage says that they take.
func (c *command) completeAll(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		c.completeAll(sub)
	}
	what, _, _ := strings.Cut(strings.Trim(strings.TrimPrefix(cmd.Use, cmd.Name()), " []"), " ")
	switch {
	case cmd.ValidArgsFunction != nil:
	case what == "TOPIC":
		cmd.ValidArgsFunction = c.complete(askTopics, true)
	case strings.Trim(what, "].") == "CONSUMER" && cmd.Name() != "build":
		cmd.ValidArgsFunction = c.complete(askConsumers, true)
	case cmd.CommandPath() == "longshore tenants delete":
		cmd.ValidArgsFunction = c.complete(askTenants, true)
	}
	if cmd.Flags().Lookup("tenant") != nil {
		// It fails only for a flag that isn't there, or that has one already.
		_ = cmd.RegisterFlagCompletionFunc("tenant", c.complete(askTenants, false))
	}
}
