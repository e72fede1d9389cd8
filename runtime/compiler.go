package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/longshore/longshore/limits"
)

// refusedStatus is the exit status of a compiler that refuses the module, and says why on its standard error.
const refusedStatus = 3

// slowStatus is the exit status of a compiler that has used up its processor time.
const slowStatus = 4

// saidBytes is how much of what a compiler says is kept.
const saidBytes = 64 * limits.KiB

// ServeCompiler is all that the process of a compiler does, see Options.Compiler: it compiles the module that it reads from
// in into the folder dir, within the bounds on address space and processor time of package limits, and returns the exit
// status of the process. What there is to say goes to out.
func ServeCompiler(ctx context.Context, dir string, in io.Reader, out io.Writer) (status int) {
	b := defaultCompilerBounds()
	if s, err := strconv.Atoi(os.Getenv(compileCPUVariable)); err == nil {
		b = b.within(time.Duration(s) * time.Second)
	}
	return serveCompiler(ctx, dir, in, out, b)
}

// compileCPUVariable tells the process of a compiler how many seconds of a processor it may take, if these are fewer than usual.
const compileCPUVariable = "LONGSHORE_COMPILE_CPU"

// compilerBounds are what the process of a compiler may use.
type compilerBounds struct {
	bytes uint64        // of address space, beyond what it has at its start
	cpu   time.Duration // in whole seconds
	wall  time.Duration
}

func defaultCompilerBounds() compilerBounds {
	return compilerBounds{bytes: limits.CompileBytes, cpu: limits.CompileCPU, wall: limits.CompileDuration}
}

// within returns bounds with no more time of a processor than cpu, if that isn't 0.
func (b compilerBounds) within(cpu time.Duration) compilerBounds {
	if cpu > 0 {
		b.cpu = min(b.cpu, cpu)
	}
	return b
}

func serveCompiler(ctx context.Context, dir string, in io.Reader, out io.Writer, b compilerBounds) (status int) {
	if err := b.limitSelf(); err != nil {
		_, _ = fmt.Fprintln(out, "limit the compiler:", err)
		return 1
	}
	metered, err := io.ReadAll(in)
	if err != nil {
		_, _ = fmt.Fprintln(out, "read the module:", err)
		return 1
	}
	if err := compileInto(ctx, dir, metered); err != nil {
		_, _ = fmt.Fprintln(out, err)
		return refusedStatus
	}
	return 0
}

// compileInto compiles a metered module and stores its code below dir, as the engine does it.
func compileInto(ctx context.Context, dir string, metered []byte) (err error) {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return err
	}
	r := wazero.NewRuntimeWithConfig(ctx, runtimeConfig(false).WithCompilationCache(cache))
	defer func() { err = errors.Join(err, r.Close(ctx), cache.Close(ctx)) }()
	_, err = compileModule(ctx, r, metered)
	return err
}

// compileHere is compileInto as a compiler: nothing bounds the time that it takes.
func compileHere(ctx context.Context, dir string, metered []byte, _ time.Duration) error {
	return compileInto(ctx, dir, metered)
}

// compileElsewhere returns a compiler that is a process of its own for each module.
func compileElsewhere(command []string, b compilerBounds) compiler {
	return func(ctx context.Context, dir string, metered []byte, cpu time.Duration) error {
		b := b.within(cpu)
		bounded, cancel := context.WithTimeoutCause(ctx, b.wall, overTime(b.wall))
		defer cancel()
		cmd := exec.CommandContext(bounded, command[0], append(command[1:len(command):len(command)], dir)...) //nolint:gosec // the host's own command
		cmd.Env = append(os.Environ(), "GOTRACEBACK=none", compileCPUVariable+"="+strconv.Itoa(int(b.cpu/time.Second)))
		cmd.Stdin = bytes.NewReader(metered)
		said := &firstBytes{most: saidBytes}
		cmd.Stderr = said
		cmd.WaitDelay = time.Second
		err := cmd.Run()
		if err == nil {
			return nil
		}
		var exit *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return &hostFault{context.Cause(ctx)}
		case bounded.Err() != nil:
			return context.Cause(bounded)
		case !errors.As(err, &exit):
			return &hostFault{fmt.Errorf("run the compiler: %w", err)}
		}
		return b.refusal(exit, said.String())
	}
}

// refusal says why the process of a compiler has failed.
func (b *compilerBounds) refusal(exit *exec.ExitError, said string) error {
	switch {
	case strings.Contains(said, "out of memory"), strings.Contains(said, "cannot allocate memory"):
		return &limits.Error{Name: limits.NameCompileMemory, Limit: int64(b.bytes), Actual: int64(b.bytes) + 1, Where: "the compiler"}
	case exit.ExitCode() == refusedStatus:
		return &guestError{errors.New(strings.TrimSpace(said))}
	case exit.ExitCode() == 1:
		return &hostFault{fmt.Errorf("the compiler failed: %w", &guestError{errors.New(strings.TrimSpace(said))})}
	case exit.ExitCode() == slowStatus, !exit.Exited() && exit.SystemTime()+exit.UserTime() >= b.cpu-b.cpu/10:
		return overTime(b.cpu)
	}
	return fmt.Errorf("the compiler ended with %w", &guestError{errors.New(exit.String() + ": " + strings.TrimSpace(said))})
}

func overTime(d time.Duration) error {
	ms := d.Milliseconds()
	return &limits.Error{Name: limits.NameCompileTime, Limit: ms, Actual: ms + 1, Where: "the compiler"}
}

// firstBytes keeps the first bytes that are written to it.
type firstBytes struct {
	strings.Builder
	most int
}

// Write implements io.Writer; it never fails.
func (b *firstBytes) Write(p []byte) (int, error) {
	_, _ = b.Builder.Write(p[:min(len(p), b.most-b.Len())])
	return len(p), nil
}
