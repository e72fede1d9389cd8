package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/limits"
)

// fromDead is how --from asks for dead letters.
const fromDead = "dlq"

// rehearseFlags are the flags of rehearse.
type rehearseFlags struct {
	deployFlags
	file     string
	from     string
	since    time.Duration
	reason   string
	n        int
	figures  bool
	failDiff bool
}

func (c *command) rehearseCommand() *cobra.Command {
	var f rehearseFlags
	cmd := &cobra.Command{
		Use: "rehearse CONSUMER", Short: "Try a new version of a consumer on old messages, and keep nothing of it", Args: exactArgs("CONSUMER"),
		Long: `Run old messages on the version of a consumer that a manifest has, and on the one that runs, and show in what they end
otherwise: verdicts, what they publish, fuel. The manifest is resolved and the module compiled by the host, as apply does.

Nothing is deployed, settled, published, written or charged. What the guest publishes is checked against its grants and the
topics' limits, and shown; values are read as they are now; requests are refused. The guests take turns with those that deliver, one message
at a time.

The messages are the dead letters of the consumer's lane, as if they were redriven now. --from with a position or a time, or
--since, takes messages that the topic has stored instead, whether they are done or not.

Exit code: 0 no message ends worse, 1 one does, or with --fail-on-difference one differs; 2 not valid, 4 the module is refused or the
host has no room for a rehearsal, 5 another one of the tenant is under way.`,
		Example: `  longshore rehearse intake -f consumers.yaml
  longshore rehearse intake --from 1041 -n 500 -o json
  longshore rehearse intake --since 24h --fail-on-difference`,
		RunE: func(cmd *cobra.Command, args []string) error {
			q := wire.Rehearse{Consumer: args[0], Reason: f.reason, Max: f.n}
			if err := f.messages(cmd, &q); err != nil {
				return err
			}
			return c.rehearse(cmd.Context(), &f, q)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "file", "f", defaultManifest, "manifest")
	flags.StringVar(&f.from, "from", fromDead, "dlq, or messages that are stored: from a position on, or published at a time (RFC 3339) or later")
	flags.DurationVar(&f.since, "since", 0, "messages that are stored and were published so long ago or later, as 24h")
	flags.StringVar(&f.reason, "reason", "", "only dead letters whose reason contains this text")
	flags.IntVarP(&f.n, "count", "n", limits.RehearsalFewMessages, "at most so many messages")
	flags.BoolVar(&f.failDiff, "fail-on-difference", false, "exit code 1 also if a message ends otherwise and not worse")
	flags.BoolVar(&f.figures, "json", false, "print the figures to stdout, one a line, and the rest to stderr")
	f.add(cmd, "", "tenant of the consumer (default: that of the manifest's only consumer of the name)")
	return cmd
}

// messages says in q which messages the flags ask for.
func (f *rehearseFlags) messages(cmd *cobra.Command, q *wire.Rehearse) error {
	if f.n < 1 || f.n > limits.RehearsalMessages {
		return usage(fmt.Errorf("-n %d: want 1 to %d", f.n, limits.RehearsalMessages))
	}
	if cmd.Flags().Changed("reason") && f.reason == "" {
		return usage(errors.New("--reason is empty: leave it out for all reasons"))
	}
	since := cmd.Flags().Changed("since")
	switch {
	case since && cmd.Flags().Changed("from"):
		return usage(errors.New("--from and --since are given: want one of them"))
	case since && f.since <= 0:
		return usage(fmt.Errorf("--since %s: want a duration over 0, as 24h", f.since))
	case since:
		q.Since = time.Now().Add(-f.since).UTC().Format(time.RFC3339)
	case f.from != fromDead:
		position, err := parsePosition(f.from)
		if q.From = position; err == nil && position > 0 {
			break
		}
		at, err := time.Parse(time.RFC3339, f.from)
		if err != nil {
			return usage(fmt.Errorf("--from %.40q: want dlq, a position, or a time as 2030-01-31T12:00:00Z", f.from))
		}
		q.Since = at.UTC().Format(time.RFC3339)
	}
	if f.reason != "" && q.From+uint64(len(q.Since)) > 0 {
		return usage(errors.New("--reason is of dead letters: want --from dlq with it"))
	}
	return nil
}

// rehearse prints what the host says of the messages. The error says that one would end worse.
func (c *command) rehearse(ctx context.Context, f *rehearseFlags, q wire.Rehearse) error {
	admin, err := c.deployAdmin(&f.deployFlags)
	if err != nil {
		return err
	}
	out, err := c.sendRehearsal(ctx, admin, f, q)
	if err != nil {
		return err
	}
	return c.printRehearsed(out, f)
}

// sendRehearsal uploads the consumer's module if the host doesn't have it, and asks for the rehearsal.
func (c *command) sendRehearsal(ctx context.Context, admin *client.Admin, f *rehearseFlags, q wire.Rehearse) (*wire.Rehearsed, error) {
	text, err := os.ReadFile(f.file)
	if err != nil {
		return nil, missingIsUsage(fmt.Errorf("read the manifest: %w", err))
	}
	consumers, err := config.Modules(f.file, text)
	if err != nil {
		return nil, err
	}
	one, err := onlyOne(consumers, q.Consumer, f.tenant)
	if err != nil {
		return nil, err
	}
	modules, faults, err := readModules([]config.Consumer{one})
	if err != nil {
		return nil, err
	}
	if len(faults) > 0 {
		return nil, faults
	}
	if err := c.upload(ctx, admin, one.Tenant, modules); err != nil {
		return nil, err
	}
	q.File, q.Manifest = filepath.Base(f.file), string(text)
	q.Modules = map[string]string{modules[0].path: modules[0].digest}
	out, err := admin.Rehearse(ctx, one.Tenant, q)
	if all := allFaults(nil, err); len(all) > 0 {
		return nil, all
	}
	if err != nil {
		return nil, fmt.Errorf("rehearse %s: %w", q.Consumer, err)
	}
	return &out, nil
}

// onlyOne returns the consumer of a name, and of a tenant unless that is "".
func onlyOne(consumers []config.Consumer, name, tenant string) (one config.Consumer, err error) {
	found := 0
	for i := range consumers {
		if c := &consumers[i]; c.Name == name && (tenant == "" || c.Tenant == tenant) {
			one = *c
			found++
		}
	}
	switch {
	case found == 0 && tenant != "":
		return one, usage(fmt.Errorf("the manifest has no consumer %.80q of tenant %.80q", name, tenant))
	case found == 0:
		return one, usage(fmt.Errorf("the manifest has no consumer %.80q", name))
	case found > 1:
		return one, usage(fmt.Errorf("the manifest has consumers %.80q of %d tenants: say --tenant", name, found))
	}
	return one, nil
}
