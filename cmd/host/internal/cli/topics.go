package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// Bounds of peek.
const (
	peekMessages     = 20   // by default
	peekMostMessages = 1000 // of one answer of the host
)

func (c *command) topicsCommand() *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use: "topics", Short: "List the topics with what waits in them", Args: cobra.NoArgs,
		Long: `List the topics. READY to LEASED, and OLDEST, are about the default lane; DEAD counts the dead letters of all lanes. GROUPS
says how many consumer groups there are: groups list shows them. PAUSED is "lane" if only the default lane is.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			admin, err := c.admin()
			if err != nil {
				return err
			}
			list, err := admin.Topics(cmd.Context(), tenant)
			if err != nil {
				return fmt.Errorf("list the topics: %w", err)
			}
			return c.print(topicsResult(list, time.Now()))
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "only this tenant's (default: all)")
	return cmd
}

func topicsResult(list []wire.TopicStats, now time.Time) result {
	r := result{
		value: wire.TopicList{Topics: list},
		head:  []string{"TENANT", "TOPIC", "READY", "PARKED", "DELAYED", "LEASED", "DEAD", "OLDEST", "GROUPS", "PAUSED"},
	}
	for _, s := range list {
		row := []string{s.Tenant, s.Topic}
		for _, n := range []int64{s.Ready, s.Parked, s.Delayed, s.Leased, s.DeadLetters} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		r.rows = append(r.rows, append(row, age(s.OldestUnacked, now), strconv.Itoa(s.Groups), topicPaused(s)))
		r.names = append(r.names, s.Topic)
	}
	return r
}

// topicPaused says whether a topic delivers nothing, or its default lane alone.
func topicPaused(s wire.TopicStats) string {
	if s.LanePaused && !s.Paused {
		return "lane"
	}
	return yesNo(s.Paused)
}

// age says how long ago a time was, in seconds, or "-" for none.
func age(at *time.Time, now time.Time) string {
	if at == nil {
		return "-"
	}
	return max(0, now.Sub(*at)).Truncate(time.Second).String()
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func (c *command) peekCommand() *cobra.Command {
	var tenant, lane string
	var limit int
	var after uint64
	cmd := &cobra.Command{
		Use: "peek TOPIC", Short: "Show messages that are not done, without taking them", Args: exactArgs("TOPIC"),
		Long: `Show messages of a topic that are not done, without taking them from their consumer: those that were delivered
before or are behind one of their ordering key, then those that weren't, then those that were published with a delay, which
have no position until they become visible. UNTIL is the end of a lease, or when the message can be delivered.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || limit > peekMostMessages {
				return usage(fmt.Errorf("--limit %d: want 1 to %d; --after shows what follows", limit, peekMostMessages))
			}
			admin, err := c.admin()
			if err != nil {
				return err
			}
			list, err := admin.PeekLane(cmd.Context(), tenant, args[0], lane, after, limit)
			if err != nil {
				return fmt.Errorf("peek at %s: %w", args[0], err)
			}
			return c.print(peekedResult(list))
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", defaultTenant, "tenant of the topic")
	cmd.Flags().StringVar(&lane, "lane", wire.DefaultLane, "lane: that of a consumer group has its name")
	cmd.Flags().IntVar(&limit, "limit", peekMessages, fmt.Sprintf("at most so many, up to %d", peekMostMessages))
	cmd.Flags().Uint64Var(&after, "after", 0, "only positions above it")
	return cmd
}

func peekedResult(list []wire.Peeked) result {
	r := result{
		value: wire.PeekedList{Messages: list},
		head:  []string{"POSITION", "STATE", "UNTIL", "ATTEMPTS", "ID", "CONTENT TYPE", "PAYLOAD"},
	}
	for _, p := range list {
		position, until := "-", "-"
		if p.Position > 0 {
			position = strconv.FormatUint(p.Position, 10)
		}
		if p.At != nil {
			until = p.At.Local().Format(time.DateTime)
		}
		r.rows = append(r.rows, []string{
			position, p.State, until, strconv.Itoa(p.Attempts), p.Message.ID, p.Message.ContentType,
			preview(p.Message.DataBase64, peekPreviewBytes),
		})
		r.names = append(r.names, p.Message.ID)
	}
	return r
}
