package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

func (c *command) fencesCommand() *cobra.Command {
	fences := &cobra.Command{Use: "fences", Short: "Fence marks: list, reset", RunE: needsSubcommand}
	fences.AddCommand(c.fencesListCommand(), c.fencesResetCommand())
	return fences
}

// laneFlags are the flags that name a lane of a topic.
type laneFlags struct{ tenant, lane string }

func (f *laneFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.tenant, "tenant", defaultTenant, "tenant of the topic")
	cmd.Flags().StringVar(&f.lane, "lane", wire.DefaultLane, "lane: that of a consumer group has its name")
}

func (c *command) fencesListCommand() *cobra.Command {
	var f laneFlags
	cmd := &cobra.Command{
		Use: "list TOPIC", Short: "List the highest token that a lane accepted for each fence key", Args: exactArgs("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			admin, err := c.admin()
			if err != nil {
				return err
			}
			list, err := admin.Fences(cmd.Context(), f.tenant, args[0], f.lane)
			if err != nil {
				return fmt.Errorf("list the fence marks of %s: %w", args[0], err)
			}
			return c.print(fencesResult(list))
		},
	}
	f.add(cmd)
	return cmd
}

func fencesResult(list []wire.Fence) result {
	if list == nil {
		list = []wire.Fence{}
	}
	r := result{value: wire.FenceList{Fences: list}, head: []string{"KEY", "TOKEN", "RAISED"}}
	for _, f := range list {
		r.rows = append(r.rows, []string{f.Key, strconv.FormatUint(f.Token, 10), f.Raised.Local().Format(time.DateTime)})
		r.names = append(r.names, f.Key)
	}
	return r
}

func (c *command) fencesResetCommand() *cobra.Command {
	var f laneFlags
	var key string
	var all bool
	m := moved{name: "reset", noun: "fence mark", done: "reset"}
	cmd := &cobra.Command{
		Use: "reset TOPIC", Short: "Forget fence marks, so that the next token is accepted whatever it is", Args: exactArgs("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (key == "") != all {
				return usage(errors.New("give --key, with the fence key as fences list shows it, or --all"))
			}
			admin, err := c.admin()
			if err != nil {
				return err
			}
			run := func(dry bool) (wire.Moved, error) {
				if !dry {
					return admin.ResetFences(cmd.Context(), f.tenant, args[0], wire.FenceReset{Lane: f.lane, Key: key, All: all})
				}
				list, err := admin.Fences(cmd.Context(), f.tenant, args[0], f.lane)
				list = slices.DeleteFunc(list, func(mark wire.Fence) bool { return !all && mark.Key != key })
				return wire.Moved{Count: len(list), DryRun: true}, err
			}
			m.topic = args[0]
			if err := c.move(m, run); err != nil {
				return fmt.Errorf("reset the fence marks of %s: %w", args[0], err)
			}
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&key, "key", "", "only the mark of this fence key")
	cmd.Flags().BoolVar(&all, "all", false, "all marks of the lane")
	m.addFlags(cmd)
	return cmd
}
