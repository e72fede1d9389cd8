package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// dlqFlags are the flags that the dlq commands share.
type dlqFlags struct {
	tenant    string
	filter    wire.Filter
	olderThan time.Duration
}

func (c *command) dlqCommand() *cobra.Command {
	dlq := &cobra.Command{Use: "dlq", Short: "Dead letters: list, show, redrive, discard", RunE: needsSubcommand}
	dlq.AddCommand(c.dlqListCommand(), c.dlqShowCommand(),
		c.dlqMoveCommand("redrive", "Make dead letters ready again, after the cause is fixed", "redriven", (*client.Admin).Redrive),
		c.dlqMoveCommand("discard", "Delete dead letters for good", "discarded", (*client.Admin).Discard))
	return dlq
}

// needsSubcommand refuses a command that is only a group of others.
func needsSubcommand(cmd *cobra.Command, _ []string) error {
	names := ""
	for _, sub := range cmd.Commands() {
		names += " " + sub.Name()
	}
	return usage(fmt.Errorf("%s needs one of:%s", cmd.CommandPath(), names))
}

// addFilter adds the flags of the filter. All that are given must hold.
func (f *dlqFlags) addFilter(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.tenant, "tenant", defaultTenant, "tenant of the topic")
	flags.StringVar(&f.filter.ID, "id", "", "only the message of this id")
	flags.StringVar(&f.filter.Lane, "lane", "", "only this lane; \"default\" is the default lane")
	flags.DurationVar(&f.olderThan, "older-than", 0, "only messages published so long ago or longer, as 90s or 24h")
	flags.StringVar(&f.filter.Reason, "reason", "", "only those whose reason contains this text")
	flags.IntVar(&f.filter.Limit, "limit", 0, "at most so many, oldest position first; 0 is all")
}

// resolved returns the filter that the flags of cmd ask for. One that is given but empty is refused, as is an age of 0: each
// would select everything, and is mostly a variable that isn't set.
func (f *dlqFlags) resolved(cmd *cobra.Command) (wire.Filter, error) {
	out := f.filter
	for _, text := range []struct{ flag, value, want string }{
		{"id", out.ID, "an id, as the list shows it"},
		{"lane", out.Lane, wantLane},
		{"reason", out.Reason, "a part of the reason, as guest-error"},
	} {
		if cmd.Flags().Changed(text.flag) && text.value == "" {
			return out, usage(fmt.Errorf("--%s is empty: want %s; leave it out to select all", text.flag, text.want))
		}
	}
	if out.Limit < 0 {
		return out, usage(fmt.Errorf("--limit %d: want 0 (all) or more", out.Limit))
	}
	if cmd.Flags().Changed("older-than") {
		if f.olderThan <= 0 {
			return out, usage(fmt.Errorf("--older-than %s: want a duration over 0, as 90s or 24h; leave it out to select all", f.olderThan))
		}
		out.OlderThan = f.olderThan.String()
	}
	return out, nil
}

func (c *command) dlqListCommand() *cobra.Command {
	var f dlqFlags
	cmd := &cobra.Command{
		Use: "list TOPIC", Short: "List the dead letters of a topic with their reasons", Args: exactArgs("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.resolved(cmd)
			if err != nil {
				return err
			}
			admin, err := c.admin()
			if err != nil {
				return err
			}
			list, err := admin.DeadLetters(cmd.Context(), f.tenant, args[0], filter)
			if err != nil {
				return fmt.Errorf("list the dead letters of %s: %w", args[0], err)
			}
			return c.print(deadResult(list))
		},
	}
	f.addFilter(cmd)
	return cmd
}

func deadResult(list []wire.DeadLetter) result {
	if list == nil {
		list = []wire.DeadLetter{}
	}
	r := result{
		value: wire.DeadLetterList{DeadLetters: list},
		head:  []string{"ID", "LANE", "POSITION", "DIED", "ATTEMPTS", "REDRIVEN", "BYTES", "REASON"},
	}
	for _, d := range list {
		r.rows = append(r.rows, []string{
			d.ID, laneName(d.Lane), strconv.FormatUint(d.Position, 10), when(d.Died, time.DateTime), strconv.Itoa(d.Attempts),
			strconv.Itoa(d.Redriven), strconv.Itoa(d.PayloadBytes), d.Reason,
		})
		r.names = append(r.names, d.ID)
	}
	return r
}

func (c *command) dlqShowCommand() *cobra.Command {
	var tenant, lane string
	cmd := &cobra.Command{
		Use: "show TOPIC ID", Short: "Show one dead letter with its message", Args: exactArgs("TOPIC", "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			admin, err := c.admin()
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("lane") && lane == "" {
				return usage(fmt.Errorf("--lane is empty: want %s", wantLane))
			}
			d, err := admin.DeadLetter(cmd.Context(), tenant, args[0], args[1], lane)
			if err != nil {
				return fmt.Errorf("show the dead letter %s of %s: %w", args[1], args[0], err)
			}
			return c.print(detailResult(d))
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", defaultTenant, "tenant of the topic")
	cmd.Flags().StringVar(&lane, "lane", "", "of this lane, where the message is dead in several; \"default\" is the default lane")
	return cmd
}

// redrivenBy says who redrove a dead letter last, and why.
func redrivenBy(o *wire.Operator) string {
	if o == nil {
		return ""
	}
	text := o.Act + ", " + when(o.At, time.RFC3339)
	if o.Why != "" {
		text += ": " + o.Why
	}
	if o.Verified != nil && !*o.Verified {
		text += " (not sealed by this host: it may be made up)"
	}
	return text
}

// wantLane says what a lane is called.
const wantLane = `the name of a consumer group; "default" is the default lane`

func detailResult(d wire.DeadLetterDetail) result {
	l, m := d.DeadLetter, d.Message
	rows := [][]string{
		{"id", l.ID},
		{"tenant", l.Tenant},
		{"topic", l.Topic},
		{"lane", laneName(l.Lane)},
		{"position", strconv.FormatUint(l.Position, 10)},
		{"reason", l.Reason},
		{"attempts", strconv.Itoa(l.Attempts)},
		{"redriven", strconv.Itoa(l.Redriven)},
		{"redriven by", redrivenBy(l.Operator)},
		{"published", when(l.Published, time.RFC3339)},
		{"died", when(l.Died, time.RFC3339)},
		{"parent", m.Parent},
		{"content type", m.ContentType},
	}
	for _, kv := range m.Metadata {
		rows = append(rows, []string{"metadata", kv.Key + "=" + kv.Value})
	}
	rows = append(rows, optionRows(m.Options)...)
	rows = append(rows, []string{"receipt", string(l.Receipt)})
	if d.Unreadable {
		rows = append(rows, []string{"message", "its record does not check; the payload can't be shown"})
	} else {
		rows = append(rows, []string{"payload", preview(m.DataBase64, showPreviewBytes)})
	}
	return result{value: d, rows: rows, names: []string{l.ID}}
}

// optionRows shows the options that a message has.
func optionRows(o *wire.MessageOptions) [][]string {
	if o == nil {
		return nil
	}
	rows := [][]string{{"delay", o.Delay}, {"ttl", o.TTL}}
	if o.Deadline != nil {
		rows = append(rows, []string{"deadline", when(*o.Deadline, time.RFC3339)})
	}
	rows = append(rows, []string{"idempotency key", o.IdempotencyKey})
	if o.Priority > 0 {
		rows = append(rows, []string{"priority", strconv.Itoa(int(o.Priority))})
	}
	rows = append(rows, []string{"ordering key", o.OrderingKey})
	if o.Fence != nil {
		rows = append(rows, []string{"fence", o.Fence.String()})
	}
	rows = append(rows, []string{"features", strings.Join(o.RequiredFeatures, ", ")}, []string{"target", o.Target}, []string{"reply to", o.ReplyTo})
	return slices.DeleteFunc(rows, func(row []string) bool { return row[1] == "" })
}

// when writes a time of a dead letter; one whose own record does not check has none.
func when(t time.Time, layout string) string {
	if t.Unix() <= 0 {
		return "-"
	}
	return t.Local().Format(layout)
}

func laneName(lane string) string {
	if lane == "" {
		return wire.DefaultLane
	}
	return lane
}

// Bytes of a payload that a table shows.
const (
	showPreviewBytes = 1024
	peekPreviewBytes = 80
)

// preview shows the beginning of a payload, cut between runes if it is text.
func preview(p []byte, most int) string {
	if len(p) <= most {
		return string(p)
	}
	for cut := most; cut > most-utf8.UTFMax; cut-- {
		if utf8.RuneStart(p[cut]) {
			most = cut
			break
		}
	}
	return fmt.Sprintf("%s… (%d bytes; -o json shows all)", p[:most], len(p))
}
