package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

func (c *command) historyCommand() *cobra.Command {
	var f deployFlags
	cmd := &cobra.Command{
		Use: "history", Short: "List the versions of a tenant's consumers, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			admin, err := c.deployAdmin(&f)
			if err != nil {
				return err
			}
			list, err := admin.Deployments(cmd.Context(), f.tenant)
			if err != nil {
				return fmt.Errorf("list the versions: %w", err)
			}
			return c.print(historyResult(list))
		},
	}
	f.add(cmd, defaultTenant, "tenant")
	return cmd
}

// listed is a list of versions as programs get it: with the tag.
func listed(list wire.VersionList) any {
	return struct {
		Tag string `json:"tag"`
		wire.VersionList
	}{list.Tag, list}
}

func historyResult(list wire.VersionList) result {
	r := result{value: listed(list), head: []string{"VERSION", "RUNS", "AT", "BY", "WHAT", "DIGEST", "CONSUMERS"}}
	for _, v := range list.Versions {
		runs := ""
		if v.Runs {
			runs = "yes"
		}
		names := make([]string, len(v.Consumers))
		for i, one := range v.Consumers {
			names[i] = one.Name
		}
		r.rows = append(r.rows, []string{
			strconv.Itoa(v.Version), runs, when(v.At, time.DateTime), v.By, v.What, short(v.Digest), strings.Join(names, ","),
		})
		r.names = append(r.names, strconv.Itoa(v.Version))
	}
	return r
}

func (c *command) rollbackCommand() *cobra.Command {
	var f deployFlags
	cmd := &cobra.Command{
		Use: "rollback [VERSION]", Short: "Make an earlier version run again: the last other one, if none is named", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var r wire.Rollback
			if len(args) == 1 {
				var err error
				if r.Version, err = strconv.Atoi(args[0]); err != nil || r.Version < 1 {
					return usage(fmt.Errorf("%.40q is no version: want a number that `longshore history` shows", args[0]))
				}
			}
			admin, err := c.deployAdmin(&f)
			if err != nil {
				return err
			}
			out, err := admin.Rollback(cmd.Context(), f.tenant, f.tag, r)
			if err != nil {
				return fmt.Errorf("roll back: %w", err)
			}
			return c.deployed(cmd.Context(), admin, &f, &out)
		},
	}
	f.add(cmd, defaultTenant, "tenant")
	f.addChange(cmd)
	return cmd
}

func (c *command) promoteCommand() *cobra.Command {
	var f deployFlags
	cmd := &cobra.Command{
		Use: "promote [CONSUMER]", Short: "Give the canary of a consumer, or all canaries of a tenant, all messages", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			admin, err := c.deployAdmin(&f)
			if err != nil {
				return err
			}
			out, err := admin.Promote(cmd.Context(), f.tenant, f.tag, wire.Promote{Consumer: strings.Join(args, "")})
			if err != nil {
				return fmt.Errorf("promote: %w", err)
			}
			return c.deployed(cmd.Context(), admin, &f, &out)
		},
	}
	f.add(cmd, defaultTenant, "tenant")
	f.addChange(cmd)
	return cmd
}
