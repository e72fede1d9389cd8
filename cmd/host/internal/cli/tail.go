package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/telemetry"
	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// errEnough says that as many messages were shown as were asked for.
var errEnough = errors.New("enough")

// eventFlags are the flags of tail and replay.
type eventFlags struct {
	tenant string
	from   string
	n      int
}

func (f *eventFlags) add(cmd *cobra.Command, from string) {
	cmd.Flags().StringVar(&f.tenant, "tenant", defaultTenant, "tenant of the topic")
	cmd.Flags().StringVar(&f.from, "from", "", from)
	cmd.Flags().IntVarP(&f.n, "count", "n", 0, "end after so many messages; 0 is all")
}

func (f *eventFlags) check(cmd *cobra.Command, want string) error {
	if f.n < 0 {
		return usage(fmt.Errorf("-n %d: want 0 (all) or more", f.n))
	}
	if cmd.Flags().Changed("from") && f.from == "" {
		return usage(fmt.Errorf("--from is empty: want %s; leave it out to begin where none is given", want))
	}
	return nil
}

func (c *command) tailCommand() *cobra.Command {
	const want = "the position of the last message that was seen"
	var f eventFlags
	cmd := &cobra.Command{
		Use: "tail TOPIC", Short: "Show messages as they are published, until it is stopped", Args: exactArgs("TOPIC"),
		Long: `Show the messages of a topic as they are published, without taking them from their consumers, until Ctrl-C. Those with
a delay are shown at once, without a position, and not again when they become visible.

What can't be shown fast enough is left out, and how much that was is said on stderr. With --from it goes on after a message
that was seen before, with what is stored since; if the topic does not hold that message any more, that is said too.`,
		Example: `  longshore tail orders
  longshore tail orders --from 1041 -o json | jq -r .message.id`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, want); err != nil {
				return err
			}
			after, err := parsePosition(f.from)
			if err != nil {
				return usage(fmt.Errorf("--from %q: want %s, from 1", f.from, want))
			}
			return c.tail(cmd.Context(), args[0], after, f)
		},
	}
	f.add(cmd, "go on after this position, that of the last message that was seen (default: only what is published from now on)")
	return cmd
}

func (c *command) replayCommand() *cobra.Command {
	const want = "a position, or a time as 2030-01-31T12:00:00Z"
	var f eventFlags
	cmd := &cobra.Command{
		Use: "replay TOPIC", Short: "Show messages that are stored, whether they are done or not", Args: exactArgs("TOPIC"),
		Long: `Show the messages of a topic that are stored: those that wait, those that a consumer holds, dead letters, and those that
are done and kept for a while. It takes nothing from a consumer, and ends with what was published when it began.`,
		Example: `  longshore replay orders --from 1000 -n 20
  longshore replay orders --from 2030-01-31T12:00:00Z -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, want); err != nil {
				return err
			}
			from, err := parsePosition(f.from)
			var since time.Time
			if err != nil {
				if since, err = time.Parse(time.RFC3339, f.from); err != nil {
					return usage(fmt.Errorf("--from %q: want %s", f.from, want))
				}
			}
			return c.replay(cmd.Context(), args[0], from, since, f)
		},
	}
	f.add(cmd, "begin at this position, or with what was published at this time (RFC 3339) or later (default: all)")
	return cmd
}

// parsePosition reads a position, or 0 if there is none.
func parsePosition(s string) (uint64, error) {
	if s == "" {
		return 0, nil
	}
	position, err := strconv.ParseUint(s, 10, 64)
	if err == nil && position == 0 {
		err = strconv.ErrRange
	}
	return position, err
}

func (c *command) tail(ctx context.Context, topic string, after uint64, f eventFlags) error {
	admin, err := c.admin()
	if err != nil {
		return err
	}
	show := &eventPrinter{command: c, left: f.n}
	err = admin.Tail(ctx, f.tenant, topic, after, show.event)
	if errors.Is(err, errEnough) || errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return fmt.Errorf("tail %s: %w", topic, err)
}

func (c *command) replay(ctx context.Context, topic string, from uint64, since time.Time, f eventFlags) error {
	admin, err := c.admin()
	if err != nil {
		return err
	}
	show := &eventPrinter{command: c, left: f.n}
	if err := admin.Replay(ctx, f.tenant, topic, from, since, show.event); err != nil && !errors.Is(err, errEnough) {
		return fmt.Errorf("replay %s: %w", topic, err)
	}
	return nil
}

// eventPrinter prints events as they come.
type eventPrinter struct {
	*command
	left  int // messages still to be shown; 0 is no bound
	began bool
}

// event prints one event. It returns errEnough after the last.
func (p *eventPrinter) event(e wire.Event) error {
	switch {
	case e.Gap != nil:
		p.say("gap: nothing of the topic is stored at positions %d to %d", e.Gap.From, e.Gap.To-1)
	case e.Dropped > 0:
		p.say("gap: %s left out, because this could not show them fast enough", were(e.Dropped))
	case e.Damaged > 0:
		p.say("gap: %s left out, because their records do not check", were(e.Damaged))
	}
	if e.Message == nil {
		return nil
	}
	if err := p.message(e); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	p.began = true
	if p.left--; p.left == 0 {
		return errEnough
	}
	return nil
}

func were(n uint64) string {
	if n == 1 {
		return "1 message was"
	}
	return strconv.FormatUint(n, 10) + " messages were"
}

func (p *eventPrinter) message(e wire.Event) error {
	switch p.format {
	case formatJSON:
		return p.jsonLine(e)
	case formatYAML:
		if _, err := fmt.Fprintln(p.Out, "---"); err != nil {
			return err
		}
		return printYAML(p.Out, e)
	case formatName:
		_, err := fmt.Fprintln(p.Out, visible(e.Message.ID))
		return err
	}
	if !p.began {
		if err := p.row("POSITION", "ID", "CONTENT TYPE", "PAYLOAD"); err != nil {
			return err
		}
	}
	position := "-"
	if e.Position > 0 {
		position = strconv.FormatUint(e.Position, 10)
	}
	return p.row(position, e.Message.ID, e.Message.ContentType, preview(e.Message.DataBase64, peekPreviewBytes))
}

// row writes a line whose columns stand below each other in most cases: those that follow are not known yet.
func (p *eventPrinter) row(position, id, contentType, payload string) error {
	line := fmt.Sprintf("%-8s  %-30s  %-16s  %s", position, visible(id), visible(contentType), visible(payload))
	_, err := fmt.Fprintln(p.Out, line)
	return err
}

// jsonLine writes an event as a JSON object in one line, with what has no visible form escaped.
func (p *eventPrinter) jsonLine(e wire.Event) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return err
	}
	_, err := p.Out.Write(telemetry.Escape(b.Bytes()))
	return err
}
