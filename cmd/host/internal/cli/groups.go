package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// startHelp says how a flag gives a start.
const startHelp = "earliest, latest, a position as 4711, or a time as 2030-01-31T12:00:00Z"

func (c *command) groupsCommand() *cobra.Command {
	groups := &cobra.Command{Use: "groups", Short: "Consumer groups of a topic: list, create, reset, delete", RunE: needsSubcommand}
	groups.AddCommand(c.groupsListCommand(), c.groupsCreateCommand(), c.groupsResetCommand(), c.groupsDeleteCommand())
	return groups
}

func (c *command) groupsListCommand() *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use: "list TOPIC", Short: "List the consumer groups of a topic", Args: exactArgs("TOPIC"),
		Long: `List the consumer groups of a topic. LAG is what a group is owed and has not met, IN FLIGHT what it holds or is to try
again, SKIPPED what retention took from it. PAUSED is "topic" if the whole topic is.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			admin, err := c.admin()
			if err != nil {
				return err
			}
			list, err := admin.Groups(cmd.Context(), tenant, args[0])
			var topic wire.TopicStats
			if err == nil {
				topic, err = admin.Topic(cmd.Context(), tenant, args[0])
			}
			if err != nil {
				return fmt.Errorf("list the groups of %s: %w", args[0], err)
			}
			return c.print(groupsResult(wire.GroupList{Groups: list}, list, topic.Paused, time.Now()))
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", defaultTenant, "tenant of the topic")
	return cmd
}

func groupsResult(value any, list []wire.Group, topicPaused bool, now time.Time) result {
	r := result{
		value: value,
		head:  []string{"GROUP", "CURSOR", "LAG", "IN FLIGHT", "DEAD", "OLDEST", "SKIPPED", "PAUSED", "ORDERING", "START"},
	}
	for _, g := range list {
		paused := yesNo(g.Paused)
		if topicPaused {
			paused = "topic"
		}
		r.rows = append(r.rows, []string{
			g.Name, strconv.FormatUint(g.Cursor, 10), strconv.FormatInt(g.Lag, 10), strconv.FormatInt(g.InFlight, 10),
			strconv.FormatInt(g.DeadLetters, 10), age(g.OldestUnacked, now), strconv.FormatUint(g.Skipped, 10), paused, g.Ordering, g.Start,
		})
		r.names = append(r.names, g.Name)
	}
	return r
}

func (c *command) groupsCreateCommand() *cobra.Command {
	var tenant string
	var g wire.NewGroup
	cmd := &cobra.Command{
		Use: "create TOPIC GROUP", Short: "Make a consumer group, which is owed every message from its start on", Args: exactArgs("TOPIC", "GROUP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("start") && g.Start == "" {
				return usage(fmt.Errorf("--start is empty: want %s", startHelp))
			}
			admin, err := c.admin()
			if err != nil {
				return err
			}
			g.Name = args[1]
			got, err := admin.CreateGroup(cmd.Context(), tenant, args[0], g)
			if err != nil {
				return fmt.Errorf("create group %s of %s: %w", args[1], args[0], err)
			}
			if !got.Made {
				c.say("group %s of %s was there before, and is as it was", args[1], args[0])
			}
			return c.print(groupsResult(got, []wire.Group{got.Group}, false, time.Now()))
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", defaultTenant, "tenant of the topic")
	cmd.Flags().StringVar(&g.Start, "start", "earliest", startHelp)
	cmd.Flags().StringVar(&g.Ordering, "ordering", "none", "none, key or topic")
	return cmd
}

// groupChange is a command that changes a group, after it asked.
type groupChange struct {
	name, tenant, topic, group string
	yes                        bool
}

func (g *groupChange) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&g.tenant, "tenant", defaultTenant, "tenant of the topic")
	cmd.Flags().BoolVarP(&g.yes, "yes", "y", false, "don't ask")
}

// failed says which command failed.
func (g *groupChange) failed(err error) error {
	return fmt.Errorf("%s group %s of %s: %w", g.name, g.group, g.topic, err)
}

// find returns the group as it is, and whether there is one.
func (g *groupChange) find(ctx context.Context, admin *client.Admin) (wire.Group, bool, error) {
	list, err := admin.Groups(ctx, g.tenant, g.topic)
	for _, is := range list {
		if is.Name == g.group {
			return is, true, nil
		}
	}
	return wire.Group{}, false, err
}

func (c *command) groupsResetCommand() *cobra.Command {
	g := groupChange{name: "reset"}
	var start string
	cmd := &cobra.Command{
		Use: "reset TOPIC GROUP --start START", Short: "Move a group's cursor, back or ahead", Args: exactArgs("TOPIC", "GROUP"),
		Long: `Move a group's cursor to a start. What is stored from there on is owed to the group, also what it was done with; what it
holds or is to try again is owed to it again only if it lies there. Its dead letters stay as they are.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if start == "" {
				return usage(fmt.Errorf("give --start: %s", startHelp))
			}
			g.topic, g.group = args[0], args[1]
			return c.resetGroup(cmd.Context(), &g, start)
		},
	}
	g.addFlags(cmd)
	cmd.Flags().StringVar(&start, "start", "", startHelp)
	return cmd
}

func (c *command) resetGroup(ctx context.Context, g *groupChange, start string) error {
	admin, err := c.admin()
	if err != nil {
		return err
	}
	is, there, err := g.find(ctx, admin)
	if err != nil {
		return g.failed(err)
	}
	if there {
		c.say("the cursor of group %s of %s would go from %d to %s; %s in flight would be given up", g.group, g.topic, is.Cursor, start,
			counted(int(is.InFlight), "message"))
		if err := c.agree("reset", "reset it?", g.yes); err != nil {
			return err
		}
	}
	got, err := admin.ResetGroup(ctx, g.tenant, g.topic, g.group, start)
	if err != nil {
		return g.failed(err)
	}
	return c.print(groupsResult(got, []wire.Group{got}, false, time.Now()))
}

func (c *command) groupsDeleteCommand() *cobra.Command {
	g := groupChange{name: "delete"}
	cmd := &cobra.Command{
		Use: "delete TOPIC GROUP", Short: "End a consumer group, with its dead letters", Args: exactArgs("TOPIC", "GROUP"),
		Long: `End a consumer group. What it is owed, what it holds and its dead letters are gone for it; messages that another lane
needs stay. Without such a group it does nothing.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			g.topic, g.group = args[0], args[1]
			return c.deleteGroup(cmd.Context(), &g)
		},
	}
	g.addFlags(cmd)
	return cmd
}

func (c *command) deleteGroup(ctx context.Context, g *groupChange) error {
	admin, err := c.admin()
	if err != nil {
		return err
	}
	is, there, err := g.find(ctx, admin)
	if err != nil {
		return g.failed(err)
	}
	if there {
		c.say("group %s of %s would be deleted, with %s that it is owed, %d in flight and %s", g.group, g.topic,
			counted(int(is.Lag), "message"), is.InFlight, counted(int(is.DeadLetters), "dead letter"))
		c.sayConsumers(ctx, admin, g)
		if err := c.agree("delete", "delete it?", g.yes); err != nil {
			return err
		}
	}
	got, err := admin.DeleteGroup(ctx, g.tenant, g.topic, g.group)
	if err != nil {
		return g.failed(err)
	}
	if !got.Deleted {
		c.say("there is no group %s of %s: nothing was changed", g.group, g.topic)
	}
	return c.print(result{
		value: got,
		head:  []string{"GROUP", "DELETED", "LAG", "IN FLIGHT", "DEAD"},
		rows: [][]string{{
			g.group, yesNo(got.Deleted), strconv.FormatInt(got.Lag, 10), strconv.FormatInt(got.InFlight, 10), strconv.FormatInt(got.DeadLetters, 10),
		}},
		names: []string{g.group},
	})
}

// sayConsumers names the consumers that would get nothing more.
func (c *command) sayConsumers(ctx context.Context, admin *client.Admin, g *groupChange) {
	consumers, err := admin.Consumers(ctx)
	if err != nil {
		return // it is a remark
	}
	for _, k := range consumers {
		if k.Tenant == g.tenant && k.Topic == g.topic && k.Lane == g.group {
			c.say("consumer %s takes its messages: it gets none until the host is started again, which makes the group anew", k.Name)
		}
	}
}
