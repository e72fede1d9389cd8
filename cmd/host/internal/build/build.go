// Package build runs the build commands of a manifest.
package build

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// waitDuration is what a build gets to end after it was told to, until it is killed.
const waitDuration = 2 * time.Second

// Run runs a command, word by word and without a shell, in a folder. What it and its children write goes to w as they write
// it. When ctx is done they are told to end, all of them, and then killed.
func Run(ctx context.Context, dir string, command []string, w io.Writer) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // the user's own command
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a group, so that the children can be reached
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = waitDuration
	err := cmd.Run()
	if ctx.Err() != nil {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what is left of the group, if anything
		}
		return fmt.Errorf("the build was stopped: %w", context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	return nil
}
