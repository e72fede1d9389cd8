package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/wire"
)

const (
	startTimeout = 5 * time.Minute // compiling the Go guests takes a while on a slow or busy machine
	stopTimeout  = 30 * time.Second
	pollInterval = 100 * time.Millisecond
)

// child is a host that runs in a process of its own.
type child struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
	err   error         // of the process; valid after ended
	log   string        // file that it logs to

	admin *client.Admin
	data  *client.Data
	info  wire.HostInfo
}

// startChild starts binary as the host of a workspace and waits until it is ready. It is killed if ctx ends.
func startChild(ctx context.Context, binary string, w workspace, socket string) (*child, error) {
	logFile, err := os.OpenFile(w.file(hostLogFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the host's log: %w", err)
	}
	defer func() { _ = logFile.Close() }() // the child has its own
	//nolint:gosec // this program itself
	cmd := exec.CommandContext(ctx, binary, "run", "--config", w.file(configFile), "--manifest", w.file(manifestFile))
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt of the terminal is ours to handle
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the host: %w", err)
	}
	c := &child{cmd: cmd, ended: make(chan struct{}), log: w.file(hostLogFile), admin: client.NewAdmin(socket)}
	go func() {
		defer close(c.ended)
		c.err = cmd.Wait()
	}()
	if err := c.waitReady(ctx); err != nil {
		c.kill()
		return nil, err
	}
	c.data = client.NewData(c.info.HTTP)
	return c, nil
}

// waitReady waits until the process itself answers, not one that was there before.
func (c *child) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return c.poll(ctx, "the host to become ready", func() (bool, error) {
		info, err := c.admin.Host(ctx)
		var gone *client.UnreachableError
		if errors.As(err, &gone) {
			return false, nil
		}
		c.info = info
		return err == nil && info.PID == c.cmd.Process.Pid, err
	})
}

// poll calls done until it is true, ctx ends, or the host does.
func (c *child) poll(ctx context.Context, what string, done func() (bool, error)) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-c.ended:
			return fmt.Errorf("the host ended while the demo waited for %s: %w; the end of its log:\n%s", what, c.err, c.logTail())
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; the end of the host's log:\n%s", what, ctx.Err(), c.logTail())
		}
	}
}

// kill is kill -9.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.ended
}

// stop asks the host to stop and waits until it has.
func (c *child) stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop the host: %w", err)
	}
	select {
	case <-c.ended:
	case <-time.After(stopTimeout):
		c.kill()
		return fmt.Errorf("the host did not stop within %s", stopTimeout)
	}
	if c.err != nil {
		return fmt.Errorf("the host stopped with %w; the end of its log:\n%s", c.err, c.logTail())
	}
	return nil
}

// logTail returns the last lines that the host logged.
func (c *child) logTail() []byte {
	const lines = 8
	raw, err := os.ReadFile(c.log)
	if err != nil {
		return []byte(err.Error())
	}
	all := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
	return bytes.Join(all[max(0, len(all)-lines):], []byte("\n"))
}
