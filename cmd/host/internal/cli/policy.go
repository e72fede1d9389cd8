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
	get := func(a *client.Admin, ctx context.Context, tenant, topic, _ string) (wire.PolicyView, error) {
		return a.Policy(ctx, tenant, topic)
	}
	unset := c.policyCommandOf("unset", "Forget what was set; the host config counts again", (*client.Admin).UnsetPolicy)
	ifMatchFlag(unset)
	policy.AddCommand(c.policyCommandOf("get", "Show the policy in force, and where each value comes from", get), c.policySetCommand(), unset)
	return policy
}

// policyCall is a method of client.Admin that answers with a policy.
type policyCall func(a *client.Admin, ctx context.Context, tenant, topic, tag string) (wire.PolicyView, error)

// ifMatchFlag adds --if-match of a policy.
func ifMatchFlag(cmd *cobra.Command) {
	cmd.Flags().String("if-match", "", "refuse if the policy is another than the one that has this tag, as policy get -o json shows it")
}

// ifMatch returns the tag that was given; "" is none, also where the command takes none.
func ifMatch(cmd *cobra.Command) string {
	if f := cmd.Flags().Lookup("if-match"); f != nil {
		return f.Value.String()
	}
	return ""
}

func (c *command) policyCommandOf(name, short string, call policyCall) *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use: name + " TOPIC", Short: short, Args: exactArgs("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.policy(cmd, name, tenant, args[0], call)
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", defaultTenant, "tenant of the topic")
	return cmd
}

// policy makes a call and prints the policy that it answers with.
func (c *command) policy(cmd *cobra.Command, what, tenant, topic string, call policyCall) error {
	admin, err := c.admin()
	if err != nil {
		return err
	}
	v, err := call(admin, cmd.Context(), tenant, topic, ifMatch(cmd))
	if err != nil {
		return fmt.Errorf("%s the policy of %s: %w", what, topic, err)
	}
	return c.print(policyResult(v))
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
			return c.policy(cmd, "set", tenant, args[0],
				func(a *client.Admin, ctx context.Context, tenant, topic, tag string) (wire.PolicyView, error) {
					return a.SetPolicy(ctx, tenant, topic, tag, change)
				})
		},
	}
	ifMatchFlag(cmd)
	cmd.Flags().StringVar(&tenant, "tenant", defaultTenant, "tenant of the topic")
	for _, b := range policyBounds() {
		flags[b.name] = cmd.Flags().String(b.flag(), "", b.about)
	}
	return cmd
}

func policyResult(v wire.PolicyView) result {
	r := result{value: struct {
		Tag string `json:"tag"`
		wire.PolicyView
	}{v.Tag, v}, head: []string{"BOUND", "VALUE", "SOURCE"}}
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
