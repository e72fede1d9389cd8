package hostile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
)

// childEnv names the module that a child runs.
const childEnv = "LONGSHORE_HOSTILE_MODULE"

// AddressSpaceBytes is all that a child may map.
const AddressSpaceBytes = 4 * limits.GiB

// Report is what a child says of its module.
type Report struct {
	Verdict
	DeployBytes int64 // by which resident memory rose at most while the module was deployed
	CallBytes   int64 // and while it was called
}

// IsChild reports whether this process was started by InChild. Then it must do nothing but ChildMain.
func IsChild() bool { return os.Getenv(childEnv) != "" }

// ChildMain runs the module that InChild named, and returns the exit status of the process. Modules are compiled by
// processes of the given command, see runtime.Options; without one, in this process.
func ChildMain(compiler []string) int {
	r, err := child(context.Background(), os.Getenv(childEnv), compiler)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// InChild runs the module of that name in another process of this executable, whose main must ask IsChild. The child may
// map no more than AddressSpaceBytes.
func InChild(ctx context.Context, name string) (r Report, err error) {
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return r, fmt.Errorf("the process of %q: %w: %s", name, err, said.Bytes()[:min(said.Len(), 4*limits.KiB)])
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return r, fmt.Errorf("the process of %q said %.200q: %w", name, out.Bytes(), err)
	}
	return r, nil
}

func child(ctx context.Context, name string, compiler []string) (r Report, err error) {
	m, ok := Find(name)
	if !ok {
		return r, fmt.Errorf("there is no module %q", name)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: AddressSpaceBytes, Max: AddressSpaceBytes}); err != nil {
		return r, fmt.Errorf("limit the address space: %w", err)
	}
	wasm := m.Wasm() // its bytes are not the runtime's
	m.Wasm = func() []byte { return wasm }
	o := runtime.Options{Compiler: compiler}
	if len(compiler) > 0 {
		if o.CacheDir, err = os.MkdirTemp("", "hostile-"); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.CacheDir)) }()
	}
	e, err := runtime.New(ctx, o)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, e.Close(ctx)) }()
	if _, err := Run(ctx, e, ends("harmless", "", guest{})); err != nil {
		return r, err
	}
	var module *runtime.Module
	r.DeployBytes, err = rise(func() error {
		module, err = deploy(ctx, e, m, &r.Verdict)
		return err
	})
	if module == nil || err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, module.Close(ctx)) }()
	r.CallBytes, err = rise(func() error {
		m.call(ctx, module, &r.Verdict)
		return nil
	})
	return r, err
}

// rise returns by how much the resident memory of the process grew at most while f ran.
func rise(f func() error) (int64, error) {
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // sets the peak back
		return 0, fmt.Errorf("reset the peak of memory: %w", err)
	}
	before, err := status("VmRSS")
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	peak, err := status("VmHWM")
	return peak - before, err
}

// status returns a field of /proc/self/status, in bytes.
func status(field string) (int64, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(b), "\n"+field+":")
	kilobytes, _, found := strings.Cut(after, " kB")
	n, err := strconv.ParseInt(strings.TrimSpace(kilobytes), 10, 64)
	if err != nil || !found {
		return 0, errors.Join(io.ErrUnexpectedEOF, err)
	}
	return n * limits.KiB, nil
}
