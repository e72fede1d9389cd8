package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/app"
	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/substrate"
)

// partialSuffix is of the file that a backup is written to before it gets its name.
const partialSuffix = ".partial"

// errExists says that a file would be overwritten.
var errExists = errors.New("there is a file of this name already; nothing was written")

func (c *command) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup [FILE]",
		Short: "Copy the log, while its host works or while none runs, to a file or to stdout",
		Long: `Copy the log as it is at one moment, for restore: topics, messages, dead letters, delays, idempotency keys, policies.
A host that runs goes on meanwhile. If none runs, the log in the data folder is opened for it.

The file is readable for you alone, and gets its name when it is whole; no file is overwritten. Without FILE, or with -,
the backup goes to stdout, and what it holds is said on stderr.

The keys that messages are sealed with are not in it: keep a copy of their folder apart.`,
		Example: `  longshore backup /backups/$(date +%F).longshore
  longshore backup | age -r "$RECIPIENT" > log.longshore.age`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "-" {
				return c.backupToStdout(cmd.Context())
			}
			return c.backupToFile(cmd.Context(), args[0])
		},
	}
}

func (c *command) backupToStdout(ctx context.Context) error {
	if c.OutTerminal {
		return usage(errors.New("a backup is nothing for a terminal; name a FILE, or send stdout to one or to a program"))
	}
	info, err := c.backup(ctx, c.Out)
	if err != nil {
		return err
	}
	if err := backupResult(info, "").print(c.Err, c.format); err != nil {
		return fmt.Errorf("write what was copied: %w", err)
	}
	return nil
}

func (c *command) backupToFile(ctx context.Context, name string) error {
	if _, err := os.Lstat(name); err == nil {
		return fmt.Errorf("%s: %w", name, errExists)
	}
	partial := name + partialSuffix
	f, err := os.OpenFile(partial, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: another backup is writing it, or was killed: then delete it (%w)", partial, errExists)
	}
	if err != nil {
		return err
	}
	info, err := c.backup(ctx, f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = nameFile(partial, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(partial))
	}
	return c.print(backupResult(info, name))
}

// nameFile gives a finished file its name, unless there is one of that name by now.
func nameFile(partial, name string) error {
	err := os.Link(partial, name)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s: %w", name, errExists)
	case err == nil:
		err = os.Remove(partial)
	default: // a file system without links
		err = os.Rename(partial, name)
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// backup writes a backup of the host's log to w, or of that in the data folder if no host runs. It checks what it writes.
func (c *command) backup(ctx context.Context, w io.Writer) (info substrate.BackupInfo, err error) {
	host, err := c.host()
	if err != nil {
		return info, err
	}
	admin := client.NewAdmin(host.Listen.Admin)
	_, err = admin.Host(ctx)
	var none *client.UnreachableError
	switch {
	case errors.As(err, &none):
		info, err = c.backupFolder(ctx, host, none, w)
	case err == nil:
		info, err = checked(w, func(w io.Writer) error { return admin.Backup(ctx, w) })
	}
	if err != nil {
		return info, fmt.Errorf("back up the log: %w", err)
	}
	if info.Damaged > 0 {
		c.say("note: %d records did not check in the log already, and are copied as they are", info.Damaged)
	}
	return info, nil
}

// backupFolder opens the log that no host has open.
func (c *command) backupFolder(ctx context.Context, h *config.Host, none error, w io.Writer) (info substrate.BackupInfo, err error) {
	if dir := app.LogDir(h.Data); !exists(dir) {
		return info, fmt.Errorf("%w; and there is no log in %s", none, dir)
	}
	log, err := app.OpenLog(ctx, h, nil)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	c.say("no host runs: the log in %s was opened", h.Data)
	return log.Backup(ctx, w)
}

// checked reads along what write writes to w, and says what it is.
func checked(w io.Writer, write func(io.Writer) error) (substrate.BackupInfo, error) {
	type answer struct {
		info substrate.BackupInfo
		err  error
	}
	from, to := io.Pipe()
	done := make(chan answer, 1)
	go func() {
		info, err := substrate.CheckBackup(from)
		_ = from.CloseWithError(err) // a write after that fails with it
		done <- answer{info, err}
	}()
	err := write(io.MultiWriter(w, to))
	_ = to.CloseWithError(err)
	read := <-done
	if err != nil {
		return substrate.BackupInfo{}, err
	}
	return read.info, read.err
}

// backupReport is what backup and restore answer.
type backupReport struct {
	File        string    `json:"file,omitempty"`
	Folder      string    `json:"folder,omitempty"`
	Topics      int       `json:"topics"`
	Backlog     int64     `json:"backlog"`
	DeadLetters int64     `json:"dead_letters"`
	Records     uint64    `json:"records"`
	Damaged     uint64    `json:"damaged"`
	Bytes       int64     `json:"bytes"`
	Frame       uint64    `json:"frame"`
	Taken       time.Time `json:"taken"`
}

func reportOf(i substrate.BackupInfo) backupReport {
	return backupReport{
		Topics: i.Topics, Backlog: i.Backlog, DeadLetters: i.DeadLetters, Records: i.Records, Damaged: i.Damaged, Bytes: i.Bytes,
		Frame: i.Frame, Taken: i.Taken.UTC(),
	}
}

func (r backupReport) rows() [][]string {
	return [][]string{
		{"topics", strconv.Itoa(r.Topics)},
		{"backlog", strconv.FormatInt(r.Backlog, 10)},
		{"dead letters", strconv.FormatInt(r.DeadLetters, 10)},
		{"bytes", strconv.FormatInt(r.Bytes, 10)},
		{"frame", strconv.FormatUint(r.Frame, 10)},
		{"taken", r.Taken.Local().Format(time.RFC3339)},
	}
}

func backupResult(i substrate.BackupInfo, file string) result {
	report := reportOf(i)
	report.File = file
	r := result{value: report, rows: report.rows()}
	if file != "" {
		r.rows, r.names = append([][]string{{"file", file}}, r.rows...), []string{file}
	}
	return r
}
