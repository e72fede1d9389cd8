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
	tenant  string
	timeout time.Duration
}

func (c *command) drainCommand() *cobra.Command {
	var f drainFlags
	cmd := &cobra.Command{
		Use: "drain TOPIC", Short: "Stop the deliveries of a topic, and wait until those that run have ended", Args: exactArgs("TOPIC"),
		Long: `Stop the deliveries of a topic, and wait until no message of it is held by a consumer, of the default lane. The topic
stays paused, also if the wait is over before that; resume goes on.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.timeout <= 0 {
				return usage(fmt.Errorf("--timeout %s: want a duration over 0, as 90s or 5m", f.timeout))
			}
			return c.drain(cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().StringVar(&f.tenant, "tenant", defaultTenant, "tenant of the topic")
	cmd.Flags().DurationVar(&f.timeout, "timeout", drainTimeout, "how long to wait")
	return cmd
}

// drainReport is what drain answers.
type drainReport struct {
	Tenant string `json:"tenant"`
	Topic  string `json:"topic"`
	Paused bool   `json:"paused"`
	Leased int64  `json:"leased"`
}

func (c *command) drain(ctx context.Context, topic string, f drainFlags) error {
	admin, err := c.admin()
	if err != nil {
		return err
	}
	if err := admin.Pause(ctx, f.tenant, topic, true); err != nil {
		return fmt.Errorf("drain %s: %w", topic, err)
	}
	s, err := waitDrained(ctx, admin, topic, f)
	if err != nil {
		return fmt.Errorf("drain %s: %w", topic, err)
	}
	report := drainReport{f.tenant, topic, s.Paused, s.Leased}
	err = c.print(result{
		value: report,
		head:  []string{"TENANT", "TOPIC", "PAUSED", "LEASED"},
		rows:  [][]string{{f.tenant, topic, yesNo(s.Paused), strconv.FormatInt(s.Leased, 10)}},
		names: []string{topic},
	})
	if err == nil && s.Leased > 0 {
		err = fmt.Errorf("drain %s: %s is held after %s; the topic stays paused: %w", topic, counted(int(s.Leased), "message"),
			f.timeout, context.DeadlineExceeded)
	}
	return err
}

// waitDrained looks at a topic until nothing of it is held, or the time is over.
func waitDrained(ctx context.Context, admin *client.Admin, topic string, f drainFlags) (wire.TopicStats, error) {
	over := time.After(f.timeout)
	look := time.NewTicker(drainLook)
	defer look.Stop()
	for {
		s, err := admin.Topic(ctx, f.tenant, topic)
		if err != nil || s.Leased == 0 {
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
