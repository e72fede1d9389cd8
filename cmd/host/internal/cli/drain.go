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

const (
	drainTimeout = time.Minute            // by default
	drainLook    = 100 * time.Millisecond // between two looks at what is held
)

// drainFlags are the flags of drain.
type drainFlags struct {
	pauseFlags
	timeout time.Duration
}

func (c *command) drainCommand() *cobra.Command {
	var f drainFlags
	cmd := &cobra.Command{
		Use: "drain TOPIC", Short: "Stop the deliveries of a topic or a lane, and wait until those that run have ended", Args: exactArgs("TOPIC"),
		Long: `Stop the deliveries of a topic, or of one lane of it, and wait until no message of it is held by a consumer. It
stays paused, also if the wait is over before that; resume goes on.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.timeout <= 0 {
				return usage(fmt.Errorf("--timeout %s: want a duration over 0, as 90s or 5m", f.timeout))
			}
			if err := f.check(cmd); err != nil {
				return err
			}
			return c.drain(cmd.Context(), args[0], f)
		},
	}
	f.add(cmd)
	cmd.Flags().DurationVar(&f.timeout, "timeout", drainTimeout, "how long to wait")
	return cmd
}

// drainReport is what drain answers.
type drainReport struct {
	Tenant string `json:"tenant"`
	Topic  string `json:"topic"`
	Lane   string `json:"lane,omitempty"`
	Paused bool   `json:"paused"`
	Leased int64  `json:"leased"`
}

func (c *command) drain(ctx context.Context, topic string, f drainFlags) error {
	admin, err := c.admin()
	if err != nil {
		return err
	}
	if err := f.set(ctx, admin, topic, true); err != nil {
		return fmt.Errorf("drain %s: %w", topic, err)
	}
	s, err := f.wait(ctx, admin, topic)
	if err != nil {
		return fmt.Errorf("drain %s: %w", topic, err)
	}
	report := drainReport{f.tenant, topic, f.lane, s.paused, s.leased}
	err = c.print(result{
		value: report,
		head:  []string{"TENANT", "TOPIC", "LANE", "PAUSED", "LEASED"},
		rows:  [][]string{{f.tenant, topic, f.shownLane(), yesNo(s.paused), strconv.FormatInt(s.leased, 10)}},
		names: []string{topic},
	})
	if err == nil && s.leased > 0 {
		what := "the topic"
		if f.lane != "" {
			what = "the lane"
		}
		err = fmt.Errorf("drain %s: %s is held after %s; %s stays paused: %w", topic, counted(int(s.leased), "message"),
			f.timeout, what, context.DeadlineExceeded)
	}
	return err
}

// held is what consumers hold of what is drained, and whether that is paused.
type held struct {
	leased int64
	paused bool
}

// wait looks at what is drained until nothing of it is held, or the time is over.
func (f *drainFlags) wait(ctx context.Context, admin *client.Admin, topic string) (held, error) {
	over := time.After(f.timeout)
	look := time.NewTicker(drainLook)
	defer look.Stop()
	for {
		s, err := f.look(ctx, admin, topic)
		if err != nil || s.leased == 0 {
			return s, err
		}
		select {
		case <-look.C:
		case <-over:
			return s, nil
		case <-ctx.Done():
			return s, ctx.Err()
		}
	}
}

// look counts what is held of a lane, or of all lanes of a topic.
func (f *drainFlags) look(ctx context.Context, admin *client.Admin, topic string) (held, error) {
	s, err := admin.Topic(ctx, f.tenant, topic)
	if err != nil || f.lane == wire.DefaultLane {
		return held{s.Leased, s.LanePaused}, err
	}
	groups, err := admin.Groups(ctx, f.tenant, topic)
	all := held{s.Leased, s.Paused}
	for _, g := range groups {
		if g.Name == f.lane {
			return held{g.Leased, g.Paused}, err
		}
		all.leased += g.Leased
	}
	if err == nil && f.lane != "" {
		err = fmt.Errorf("group %s is gone", f.lane)
	}
	return all, err
}
