package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// moveCall is a method of client.Admin that moves dead letters.
type moveCall func(a *client.Admin, ctx context.Context, tenant, topic string, m wire.Move) (wire.Moved, error)

// dlqMoveCommand makes redrive and discard: count first, ask, then do it.
func (c *command) dlqMoveCommand(name, short, done string, call moveCall) *cobra.Command {
	var f dlqFlags
	m := moved{name: name, noun: "dead letter", done: done}
	var why string
	cmd := &cobra.Command{
		Use: name + " TOPIC", Short: short, Args: exactArgs("TOPIC"),
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
				out, err := call(admin, cmd.Context(), f.tenant, args[0], wire.Move{Filter: filter, DryRun: dry, Why: why})
				if err != nil {
					return out, fmt.Errorf("%s the dead letters of %s: %w", name, args[0], err)
				}
				return out, nil
			}
			m.topic = args[0]
			return c.move(m, run)
		},
	}
	f.addFilter(cmd)
	m.addFlags(cmd)
	if name == "redrive" {
		cmd.Flags().StringVar(&why, "why", "", "kept with each message, beside who you are")
	}
	return cmd
}

// moved says what a command is about to do.
type moved struct {
	name, noun, done string // "discard", "dead letter", "discarded"
	topic            string
	yes, dryRun      bool
}

// addFlags adds the flags of whoever asks before it changes anything.
func (m *moved) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&m.yes, "yes", "y", false, "don't ask")
	cmd.Flags().BoolVar(&m.dryRun, "dry-run", false, "only count")
}

// move counts what would be moved, asks, and moves it.
func (c *command) move(m moved, run func(dry bool) (wire.Moved, error)) error {
	planned, err := run(true)
	if err != nil {
		return err
	}
	c.say("%s of %s would be %s", counted(planned.Count, m.noun), m.topic, m.done)
	if m.dryRun || planned.Count == 0 {
		return c.print(movedResult(m.done, planned))
	}
	if err := c.agree(m.name, m.name+" them?", m.yes); err != nil {
		return err
	}
	result, err := run(false)
	if err != nil {
		return err
	}
	if result.Refused > 0 {
		c.say("%d stay dead: their signed context or their record does not verify", result.Refused)
	}
	return c.print(movedResult(m.done, result))
}

// agree asks whether to do what a command is about to do, unless yes says so already. Its error says that nothing was changed.
func (c *command) agree(name, question string, yes bool) error {
	switch {
	case yes:
		return nil
	case !c.InTerminal:
		return usage(fmt.Errorf("%s asks before it changes anything, and there is no terminal to answer; add --yes", name))
	case !c.confirm(question):
		return errors.New("nothing was changed")
	}
	return nil
}

// confirm asks a question whose default answer is no.
func (c *command) confirm(question string) bool {
	_, _ = fmt.Fprintf(c.Err, "%s [y/N] ", question)
	line, _ := bufio.NewReader(c.In).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true
	}
	return false
}

func movedResult(done string, m wire.Moved) result {
	if m.DryRun {
		done = "would be " + done
	}
	n := strconv.Itoa(m.Count)
	return result{value: m, rows: [][]string{{n, done}}, names: []string{n}}
}
