package cli

import (
	"context"
	"fmt"
	"strconv"

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
	var depth, rate, bytes, unflushed int64
	cmd := &cobra.Command{
		Use: "set TOPIC", Short: "Set bounds of a topic; those that aren't given stay as they are", Args: exactArgs("TOPIC"),
		Example: "  longshore policy set orders --max-depth 100000 --max-rate-per-sec 500",
		RunE: func(cmd *cobra.Command, args []string) error {
			var change wire.PolicyChange
			given := false
			for _, f := range []struct {
				name  string
				value *int64
				field **int64
			}{
				{"max-depth", &depth, &change.MaxDepth},
				{"max-rate-per-sec", &rate, &change.MaxRatePerSec},
				{"max-message-bytes", &bytes, &change.MaxMessageBytes},
				{"max-unflushed", &unflushed, &change.MaxUnflushed},
			} {
				if cmd.Flags().Changed(f.name) {
					*f.field, given = f.value, true
				}
			}
			if !given {
				return usage(fmt.Errorf("nothing to set; give --max-depth, --max-rate-per-sec, --max-message-bytes or --max-unflushed"))
			}
			return c.setPolicy(cmd.Context(), tenant, args[0], change)
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", defaultTenant, "tenant of the topic")
	cmd.Flags().Int64Var(&depth, "max-depth", 0, "messages that are not yet settled")
	cmd.Flags().Int64Var(&rate, "max-rate-per-sec", 0, "messages published in a second")
	cmd.Flags().Int64Var(&bytes, "max-message-bytes", 0, "bytes of one payload")
	cmd.Flags().Int64Var(&unflushed, "max-unflushed", 0, "publishes and acknowledgements answered before they are on disk: a crash of\n"+
		"the machine may lose them, one of the process not; 0 is none")
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
	for _, f := range []struct {
		name  string
		value wire.PolicyValue
	}{
		{"max_depth", v.MaxDepth},
		{"max_rate_per_sec", v.MaxRatePerSec},
		{"max_message_bytes", v.MaxMessageBytes},
		{"max_unflushed", v.MaxUnflushed},
	} {
		value := "none"
		if f.value.Value != nil {
			value = strconv.FormatInt(*f.value.Value, 10)
		}
		r.rows = append(r.rows, []string{f.name, value, f.value.Source})
		r.names = append(r.names, f.name)
	}
	return r
}
