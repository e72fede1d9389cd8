package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/wire"
)

func (c *command) policyCommand() *cobra.Command {
	policy := &cobra.Command{Use: "policy", Short: "What a topic takes: get, set, unset", RunE: needsSubcommand}
	policy.AddCommand(
		c.policyReadCommand("get", "Show the policy in force, and where each value comes from", (*client.Admin).Policy),
		c.policySetCommand(),
		c.policyReadCommand("unset", "Forget what was set; the host config counts again", (*client.Admin).UnsetPolicy))
	return policy
}

// policyCall is a method of client.Admin that answers with a policy.
type policyCall func(a *client.Admin, ctx context.Context, tenant, topic string) (wire.PolicyView, error)

func (c *command) policyReadCommand(name, short string, call policyCall) *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use: name + " TOPIC", Short: short, Args: exactArgs("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			admin, err := c.admin()
			if err != nil {
				return err
			}
			v, err := call(admin, cmd.Context(), tenant, args[0])
			if err != nil {
				return fmt.Errorf("%s the policy of %s: %w", name, args[0], err)
			}
			return c.print(policyResult(v))
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", defaultTenant, "tenant of the topic")
	return cmd
}

func (c *command) policySetCommand() *cobra.Command {
	var tenant string
	flags := map[string]*string{}
	cmd := &cobra.Command{
		Use: "set TOPIC [BOUND=VALUE ...]", Short: "Set bounds of a topic; those that aren't given stay as they are",
		Long: "Set bounds of a topic. Those that aren't given stay as they are. What is set wins over the host config until it is unset.\n\n" +
			boundsHelp() + "\nThe flags do the same as BOUND=VALUE.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%s takes TOPIC and what to set, as max_depth=1000; none given", cmd.CommandPath())
			}
			return nil
		},
		Example: "  longshore policy set orders keep=1h retention=72h max_depth=100000\n  longshore policy set orders --max-rate-per-sec 500",
		RunE: func(cmd *cobra.Command, args []string) error {
			given := args[1:]
			for _, b := range policyBounds() {
				if cmd.Flags().Changed(b.flag()) {
					given = append(given, b.name+"="+*flags[b.name])
				}
			}
			change, err := parseChange(given)
			if err != nil {
				return usage(err)
			}
			return c.setPolicy(cmd.Context(), tenant, args[0], change)
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", defaultTenant, "tenant of the topic")
	for _, b := range policyBounds() {
		flags[b.name] = cmd.Flags().String(b.flag(), "", b.about)
	}
	return cmd
}

func (c *command) setPolicy(ctx context.Context, tenant, topic string, change wire.PolicyChange) error {
	admin, err := c.admin()
	if err != nil {
		return err
	}
	v, err := admin.SetPolicy(ctx, tenant, topic, change)
	if err != nil {
		return fmt.Errorf("set the policy of %s: %w", topic, err)
	}
	return c.print(policyResult(v))
}

func policyResult(v wire.PolicyView) result {
	r := result{value: v, head: []string{"BOUND", "VALUE", "SOURCE"}}
	for _, b := range policyBounds() {
		value, source := b.show(&v)
		if value == "" {
			value = "none"
		}
		r.rows = append(r.rows, []string{b.name, value, source})
		r.names = append(r.names, b.name)
	}
	return r
}
