package cli

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

func (c *command) quarantineCommand() *cobra.Command {
	quarantine := &cobra.Command{Use: "quarantine", Short: "Records that do not check: list, show, discard", RunE: needsSubcommand}
	quarantine.AddCommand(c.quarantineListCommand(), c.quarantineShowCommand(), c.quarantineDiscardCommand())
	return quarantine
}

func (c *command) quarantineListCommand() *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use: "list TOPIC", Short: "List the records of a topic that do not check", Args: exactArgs("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			admin, err := c.admin()
			if err != nil {
				return err
			}
			list, err := admin.Quarantine(cmd.Context(), tenant, args[0])
			if err != nil {
				return fmt.Errorf("list the quarantine of %s: %w", args[0], err)
			}
			return c.print(quarantineResult(list))
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", defaultTenant, "tenant of the topic")
	return cmd
}

func quarantineResult(list []wire.QuarantineEntry) result {
	if list == nil {
		list = []wire.QuarantineEntry{}
	}
	r := result{value: wire.QuarantineList{Entries: list}, head: []string{"ID", "SINCE", "BYTES", "REASON", "ERROR"}}
	for _, e := range list {
		r.rows = append(r.rows, []string{e.ID, when(e.At, time.DateTime), strconv.Itoa(e.Length), e.Reason, e.Error})
		r.names = append(r.names, e.ID)
	}
	return r
}

func (c *command) quarantineShowCommand() *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use: "show TOPIC ID", Short: "Show one record that does not check", Args: exactArgs("TOPIC", "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			admin, err := c.admin()
			if err != nil {
				return err
			}
			d, err := admin.QuarantineEntry(cmd.Context(), tenant, args[0], args[1])
			if err != nil {
				return fmt.Errorf("show %s in the quarantine of %s: %w", args[1], args[0], err)
			}
			e := d.Entry
			return c.print(result{value: d, names: []string{e.ID}, rows: [][]string{
				{"id", e.ID},
				{"tenant", e.Tenant},
				{"topic", e.Topic},
				{"reason", e.Reason},
				{"error", e.Error},
				{"since", when(e.At, time.RFC3339)},
				{"bytes", strconv.Itoa(e.Length)},
				{"record", hexPreview(d.Bytes)},
			}})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", defaultTenant, "tenant of the topic")
	return cmd
}

// hexPreview shows the beginning of bytes in hex.
func hexPreview(s string) string {
	if len(s) <= showPreviewBytes {
		return s
	}
	return s[:showPreviewBytes] + "… (-o json shows all)"
}

// quarantineFlags select entries of the quarantine.
type quarantineFlags struct {
	tenant    string
	filter    wire.QuarantineFilter
	olderThan time.Duration
}

// resolved returns the filter that the flags of cmd ask for. One that is given but empty is refused, as for dead letters.
func (f *quarantineFlags) resolved(cmd *cobra.Command) (wire.QuarantineFilter, error) {
	dead := dlqFlags{filter: wire.Filter{ID: f.filter.ID, Limit: f.filter.Limit}, olderThan: f.olderThan}
	out, err := dead.resolved(cmd)
	return wire.QuarantineFilter{ID: out.ID, OlderThan: out.OlderThan, Limit: out.Limit}, err
}

func (c *command) quarantineDiscardCommand() *cobra.Command {
	var f quarantineFlags
	m := moved{name: "discard", noun: "quarantined record", done: "discarded"}
	cmd := &cobra.Command{
		Use: "discard TOPIC", Short: "Delete records that do not check for good", Args: exactArgs("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.resolved(cmd)
			if err != nil {
				return err
			}
			admin, err := c.admin()
			if err != nil {
				return err
			}
			run := func(dry bool) (wire.Moved, error) {
				if !dry {
					return admin.DiscardQuarantined(cmd.Context(), f.tenant, args[0], filter)
				}
				list, err := admin.Quarantine(cmd.Context(), f.tenant, args[0])
				list = slices.DeleteFunc(list, func(e wire.QuarantineEntry) bool {
					return filter.ID != "" && e.ID != filter.ID || time.Since(e.At) < f.olderThan
				})
				n := len(list)
				if filter.Limit > 0 {
					n = min(n, filter.Limit)
				}
				return wire.Moved{Count: n, DryRun: true}, err
			}
			m.topic = args[0]
			if err := c.move(m, run); err != nil {
				return fmt.Errorf("discard from the quarantine of %s: %w", args[0], err)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.tenant, "tenant", defaultTenant, "tenant of the topic")
	flags.StringVar(&f.filter.ID, "id", "", "only the entry of this id")
	flags.DurationVar(&f.olderThan, "older-than", 0, "only those that are in quarantine for so long or longer, as 90s or 24h")
	flags.IntVar(&f.filter.Limit, "limit", 0, "at most so many; 0 is all")
	m.addFlags(cmd)
	return cmd
}
