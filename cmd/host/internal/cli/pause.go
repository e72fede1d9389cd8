package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/client"
)

// wholeTopic is how a result writes that all lanes are meant.
const wholeTopic = "all"

// pauseFlags say what is paused: a topic, or one lane of it.
type pauseFlags struct {
	tenant, lane string
}

func (f *pauseFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.tenant, "tenant", defaultTenant, "tenant of the topic")
	cmd.Flags().StringVar(&f.lane, "lane", "", "only this lane: that of a consumer group has its name, \"default\" is the default lane")
}

// check refuses a lane that is given but empty: it would be the whole topic.
func (f *pauseFlags) check(cmd *cobra.Command) error {
	if cmd.Flags().Changed("lane") && f.lane == "" {
		return usage(fmt.Errorf("--lane is empty: want %s; leave it out for the whole topic", wantLane))
	}
	return nil
}

// shownLane is the lane as a table has it.
func (f *pauseFlags) shownLane() string {
	if f.lane == "" {
		return wholeTopic
	}
	return f.lane
}

// set pauses or resumes.
func (f *pauseFlags) set(ctx context.Context, admin *client.Admin, topic string, paused bool) error {
	if f.lane == "" {
		return admin.Pause(ctx, f.tenant, topic, paused)
	}
	return admin.PauseLane(ctx, f.tenant, topic, f.lane, paused)
}

func (c *command) pauseCommand() *cobra.Command {
	return c.setPausedCommand("pause", "Stop the deliveries of a topic or a lane; publishes go on, and what runs is finished", true)
}

func (c *command) resumeCommand() *cobra.Command {
	return c.setPausedCommand("resume", "Go on with the deliveries of a topic or a lane that was paused, or whose consumer paused itself", false)
}

// pauseReport is what pause and resume answer.
type pauseReport struct {
	Tenant string `json:"tenant"`
	Topic  string `json:"topic"`
	Lane   string `json:"lane,omitempty"`
	Paused bool   `json:"paused"`
}

func (c *command) setPausedCommand(name, short string, paused bool) *cobra.Command {
	var f pauseFlags
	cmd := &cobra.Command{
		Use: name + " TOPIC", Short: short, Args: exactArgs("TOPIC"),
		Long: short + ".\n\nA topic and each of its lanes are paused by themselves: a lane delivers if neither it nor its topic is paused.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			admin, err := c.admin()
			if err != nil {
				return err
			}
			if err := f.set(cmd.Context(), admin, args[0], paused); err != nil {
				return fmt.Errorf("%s %s: %w", name, args[0], err)
			}
			return c.print(result{
				value: pauseReport{f.tenant, args[0], f.lane, paused},
				head:  []string{"TENANT", "TOPIC", "LANE", "PAUSED"},
				rows:  [][]string{{f.tenant, args[0], f.shownLane(), yesNo(paused)}},
				names: []string{args[0]},
			})
		},
	}
	f.add(cmd)
	return cmd
}
