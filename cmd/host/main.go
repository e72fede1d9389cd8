// Command longshore runs WebAssembly consumers on a durable log: see the commands in package cli, and package app for
// how a host is put together.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/longshore/longshore/cmd/host/internal/cli"
)

func main() {
	ctx, stop := untilSignal(context.Background())
	code := cli.Execute(ctx, cli.Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTerminal:  isTerminal(os.Stdin),
		OutTerminal: isTerminal(os.Stdout),
		ErrTerminal: isTerminal(os.Stderr),
		Environ:     os.Environ(),
	}, os.Args[1:])
	stop()
	os.Exit(code)
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// signalsAsOne is how long after the first signal others count as that one: timeout(1) and terminals send it twice.
const signalsAsOne = time.Second

// untilSignal returns a context that ends with the first SIGINT or SIGTERM. A second one ends the process at once: the log
// is made for that.
func untilSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		var first time.Time
		select {
		case <-signals:
			first = time.Now()
			cancel()
		case <-done:
			return
		}
		for {
			select {
			case s := <-signals:
				if time.Since(first) >= signalsAsOne {
					fmt.Fprintf(os.Stderr, "longshore: second signal (%s): ending at once\n", s)
					os.Exit(cli.ExitFailed)
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}
