package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

func (c *command) tenantsCommand() *cobra.Command {
	tenants := &cobra.Command{Use: "tenants", Short: "Tenants: list, delete", RunE: needsSubcommand}
	tenants.AddCommand(c.tenantsListCommand(), c.tenantsDeleteCommand())
	return tenants
}

func (c *command) tenantsListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the tenants with what they have", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			admin, err := c.admin()
			if err != nil {
				return err
			}
			list, err := admin.Tenants(cmd.Context())
			if err != nil {
				return fmt.Errorf("list the tenants: %w", err)
			}
			return c.print(tenantsResult(list))
		},
	}
}

func tenantsResult(list []wire.Tenant) result {
	if list == nil {
		list = []wire.Tenant{}
	}
	r := result{
		value: wire.TenantList{Tenants: list},
		head:  []string{"TENANT", "TOPICS", "MESSAGES", "BYTES", "DEAD", "GROUPS", "BUCKETS", "VALUE BYTES", "CONSUMERS", "VERSIONS", "STATE"},
	}
	for _, t := range list {
		state := "-"
		if t.Deleting {
			state = "deleting"
		}
		row := []string{t.Name}
		for _, n := range []int64{
			int64(t.Topics), t.Messages, t.Bytes, t.DeadLetters, int64(t.Groups), int64(t.Buckets), t.ValueBytes,
			int64(len(t.Consumers)), int64(t.Versions),
		} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		r.rows = append(r.rows, append(row, state))
		r.names = append(r.names, t.Name)
	}
	return r
}

func (c *command) tenantsDeleteCommand() *cobra.Command {
	var yes, dryRun bool
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Delete all of a tenant for good", Args: exactArgs("NAME"),
		Long: `Delete all of a tenant for good: topics with their messages, groups, dead letters, quarantine, fence marks,
idempotency keys and policies, stored values, and the versions of its consumers with modules that nobody else has. It shows what
goes, and asks. It is refused while consumers of the tenant run: deploy a manifest without them first. What the host config says
of the tenant stays there.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			admin, err := c.admin()
			if err != nil {
				return err
			}
			t, err := admin.Tenant(cmd.Context(), args[0])
			if err != nil {
				return fmt.Errorf("look at tenant %s: %w", args[0], err)
			}
			c.say("tenant %s has %s, %s, %s of values, %s", t.Name, counted(t.Topics, "topic"), counted(int(t.Messages), "stored message"),
				counted(int(t.ValueBytes), "byte"), counted(t.Versions, "version"))
			if len(t.Consumers) > 0 {
				return &wire.Problem{Status: 409, Title: "Conflict", Code: wire.CodeConflict, Detail: fmt.Sprintf(
					"tenant %s can't be deleted while its consumers run (%s): deploy a manifest without them first", t.Name, strings.Join(t.Consumers, ", "))}
			}
			if dryRun {
				return c.print(tenantsResult([]wire.Tenant{t}))
			}
			if err := c.agree("tenants delete", "delete all of it for good?", yes); err != nil {
				return err
			}
			gone, err := admin.DeleteTenant(cmd.Context(), t.Name)
			var p *wire.Problem
			if errors.As(err, &p) && p.Code == wire.CodeTimeout {
				return fmt.Errorf("delete tenant %s: it takes longer, and goes on; `longshore tenants list` shows when it is gone: %w", t.Name, err)
			}
			if err != nil {
				return fmt.Errorf("delete tenant %s: %w", t.Name, err)
			}
			return c.print(tenantsResult([]wire.Tenant{gone}))
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would go")
	return cmd
}
