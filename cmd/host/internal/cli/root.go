// Package cli holds the commands of the longshore binary.
//
// Data goes to stdout, talk to stderr. Colour, bars and questions are for terminals only. A command that works on a
// running host reaches it over its admin socket, so that one process owns the log.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/internal/config"
)

const (
	defaultConfig   = "longshore.yaml"
	defaultManifest = "consumers.yaml"
	defaultTenant   = "default"
)

// Streams are what a command reads and writes, and what it knows about the ends of them.
type Streams struct {
	In          io.Reader
	Out, Err    io.Writer
	InTerminal  bool
	OutTerminal bool
	ErrTerminal bool
	Environ     []string // key=value
}

// env returns the environment by name.
func (s Streams) env() map[string]string {
	m := make(map[string]string, len(s.Environ))
	for _, kv := range s.Environ {
		k, v, _ := strings.Cut(kv, "=")
		m[k] = v
	}
	return m
}

// command is the state that the commands share: the streams and the flags that all of them have.
type command struct {
	Streams
	configFile string
	settings   config.Settings
	format     string
}

// Execute runs the command line args and returns the exit code. Errors are printed to s.Err.
func Execute(ctx context.Context, s Streams, args []string) int {
	c := &command{Streams: s}
	began := false
	root := c.root(&began) //nolint:contextcheck // the commands get ctx from cobra
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	err := root.ExecuteContext(ctx)
	var status statusError
	if errors.As(err, &status) {
		return int(status)
	}
	if err != nil && !began {
		err = usage(err) // cobra's own: unknown commands, flags, numbers of arguments
	}
	if err != nil {
		c.printError(err)
	}
	return ExitCode(err)
}

// root returns the tree of commands. began becomes true when a command's own code starts.
func (c *command) root(began *bool) *cobra.Command {
	root := &cobra.Command{
		Use:           "longshore",
		Short:         "Run WebAssembly consumers on a durable log",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if err := checkFormat(c.format); err != nil {
				return err
			}
			*began = true
			return nil
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	flags := root.PersistentFlags()
	flags.StringVarP(&c.configFile, "config", "c", "", "host config (default: "+defaultConfig+", if it is there)")
	flags.StringVar(&c.settings.Data, "data-dir", "", "data folder")
	flags.StringVar(&c.settings.ListenAdmin, "socket", "", "admin socket (default: admin.sock in the data folder)")
	flags.StringVarP(&c.format, "output", "o", formatTable, "table, json, yaml or name")
	root.AddCommand(
		c.runCommand(), c.devCommand(), c.demoCommand(), c.newCommand(), c.buildCommand(), c.validateCommand(), c.invokeCommand(), c.publishCommand(),
		c.applyCommand(), c.diffCommand(), c.rehearseCommand(), c.historyCommand(), c.rollbackCommand(), c.promoteCommand(),
		c.topicsCommand(), c.peekCommand(), c.tailCommand(), c.replayCommand(),
		c.pauseCommand(), c.resumeCommand(), c.drainCommand(), c.groupsCommand(), c.policyCommand(), c.tenantsCommand(), c.getCommand(),
		c.dlqCommand(), c.quarantineCommand(), c.fencesCommand(), c.keysCommand(), c.backupCommand(), c.restoreCommand(), c.versionCommand(),
		c.compileChildCommand(),
	)
	return root
}

// printError says what went wrong, one line for each fault of a file.
func (c *command) printError(err error) {
	var faults config.Faults
	if errors.As(err, &faults) {
		for line := range strings.SplitSeq(faults.Error(), "\n") {
			c.say("%s", visible(line))
		}
		return
	}
	label := "longshore: "
	if c.colour() {
		label = "\x1b[31m" + label + "\x1b[0m"
	}
	for i, line := range strings.Split(err.Error(), "\n") {
		if i > 0 {
			label = "  "
		}
		c.say("%s%s", label, visible(line))
	}
	if hint := hintOf(err); hint != "" {
		c.say("  %s", hint)
	}
}

// hintOf says what would be right where the error alone doesn't.
func hintOf(err error) string {
	var unreachable *client.UnreachableError
	switch ExitCode(err) {
	case ExitUnreachable:
		if errors.As(err, &unreachable) && unreachable.Remote {
			return "want the host:port of its listen.admin_http in --server, and a way there"
		}
		return "start one with `longshore run`, or name its socket with --socket or its data folder with --data-dir"
	case ExitUsage:
		var use usageError
		if errors.As(err, &use) {
			return "`longshore help` lists the commands, and `longshore help COMMAND` the flags"
		}
	}
	return ""
}

// say writes a line of talk.
func (c *command) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.Err, format+"\n", args...)
}

// colour reports whether talk may be coloured.
func (c *command) colour() bool {
	e := c.env()
	return c.ErrTerminal && e["NO_COLOR"] == "" && e["TERM"] != "dumb"
}

// print writes a result in the form that was asked for.
func (c *command) print(r result) error {
	if err := r.print(c.Out, c.format); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// host loads the host config: the file that is named, or the default one if it is there, or none.
func (c *command) host() (*config.Host, error) {
	file := c.configFile
	if file == "" && exists(defaultConfig) {
		file = defaultConfig
	}
	h, err := config.LoadHost(file, config.Overrides{Flags: c.settings, Environment: c.env()})
	return h, missingIsUsage(err)
}

// missingIsUsage marks a file that was named but isn't there, or is a folder, as a fault of the command line.
func missingIsUsage(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ENOTDIR) {
		return usage(err)
	}
	return err
}

// admin returns a client of the host that the config describes.
func (c *command) admin() (*client.Admin, error) {
	h, err := c.host()
	if err != nil {
		return nil, err
	}
	return client.NewAdmin(h.Listen.Admin), nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}

// exactArgs is cobra.ExactArgs with names.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return fmt.Errorf("%s takes %s; %d given", cmd.CommandPath(), strings.Join(names, " and "), len(args))
		}
		return nil
	}
}
