// Command proof runs the proofs: the tests named TestProof…, which try to break the log for as long as they are given. It
// passes on what they print, and prints the figures that they yield at the end, one line each:
//
//	figure <name> <value>
//
// PROOF_SECONDS says how long each test may take; without it all together take about four minutes, with LONG=1 about an hour.
// The exit status is not 0 if a test fails, or if one of the figures that must be 0 is not.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
)

// Environment of the tests, and how long each takes, in seconds, if nobody says it.
const (
	secondsEnv   = "PROOF_SECONDS"
	longEnv      = "LONG"
	shortSeconds = "18"
	longSeconds  = "360"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ok := run(ctx, os.Stdout)
	stop()
	if !ok {
		os.Exit(1)
	}
}

// run runs the proofs with the build tags that they need, and reports whether all holds.
func run(ctx context.Context, out io.Writer) bool {
	f := figures{}
	ok := true
	for _, args := range [][]string{{"-run", "^TestProof"}, {"-tags", "failpoint", "-run", "^TestProofOfFailpoints$"}} {
		if err := test(ctx, args, f.watch(out)); err != nil {
			fmt.Fprintln(out, "proof:", err)
			ok = false
		}
	}
	f.print(out)
	for _, name := range f.broken() {
		fmt.Fprintf(out, "proof: %s is not 0\n", name)
		ok = false
	}
	return ok
}

// test runs tests of the log with their environment.
func test(ctx context.Context, args []string, out io.Writer) error {
	seconds := os.Getenv(secondsEnv)
	if seconds == "" {
		seconds = shortSeconds
		if os.Getenv(longEnv) != "" {
			seconds = longSeconds
		}
	}
	args = append([]string{"test", "-v", "-count=1", "-timeout", "3h"}, args...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./substrate/...")...) //nolint:gosec // the arguments are constants
	cmd.Env = append(os.Environ(), secondsEnv+"="+seconds)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%v: %w", cmd.Args, err)
	}
	return nil
}
