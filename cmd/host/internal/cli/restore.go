package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/longshore/longshore/cmd/host/internal/app"
	"github.com/longshore/longshore/substrate"
)

func (c *command) restoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "restore DIR [FILE]",
		Short: "Make the log of a data folder from a backup, from a file or from stdin",
		Long: `Make the log of the data folder DIR from a backup. DIR may have the keys of the host that the backup is of, but
no log. All of the backup is verified; if there is a fault in it, or no room, DIR has no log afterwards either.

What was done after the backup was taken is not in it: messages that were acknowledged since are delivered again, and
those that were published since are missing.`,
		Example: `  longshore restore /var/lib/longshore /backups/2030-01-31.longshore
  age -d -i key.txt log.longshore.age | longshore restore /var/lib/longshore`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := "-"
			if len(args) == 2 {
				file = args[1]
			}
			return c.restore(cmd.Context(), args[0], file)
		},
	}
}

func (c *command) restore(ctx context.Context, dir, file string) error {
	from, stop, err := c.backupSource(ctx, file)
	if err != nil {
		return err
	}
	info, err := substrate.Restore(ctx, app.LogDir(dir), from)
	stop()
	if err != nil {
		return err
	}
	if info.Damaged > 0 {
		c.say("note: %d records did not check in the log that was backed up already", info.Damaged)
	}
	if !exists(filepath.Join(dir, "keys")) {
		c.say("note: %s is missing: copy there the keys of the host that the backup is of, before a host runs on it;\n"+
			"what was sealed with other keys can't be verified", filepath.Join(dir, "keys"))
	}
	report := reportOf(info)
	report.Folder = dir
	return c.print(result{
		value: report, rows: append([][]string{{"folder", dir}}, report.rows()...), names: []string{dir},
	})
}

// backupSource opens what a backup is read from. When ctx ends, it is closed, so that no read goes on waiting.
func (c *command) backupSource(ctx context.Context, file string) (from io.Reader, stop func(), err error) {
	f, isFile := c.In.(*os.File)
	switch {
	case file != "-":
		if f, err = os.Open(file); err != nil {
			return nil, nil, usage(err)
		}
	case c.InTerminal:
		return nil, nil, usage(errors.New("a backup doesn't come from a terminal; name a FILE, or send one to stdin"))
	case !isFile:
		return c.In, func() {}, nil
	default:
		if f, err = unblocked(f); err != nil {
			return nil, nil, err
		}
	}
	ended := context.AfterFunc(ctx, func() { _ = f.Close() })
	return f, func() {
		if ended() {
			_ = f.Close()
		}
	}, nil
}

// unblocked returns f in a form whose Close ends a Read that waits, as that of stdin doesn't.
func unblocked(f *os.File) (*os.File, error) {
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", f.Name(), err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
