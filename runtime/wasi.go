package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/longshore/longshore/wasi/messaging"
)

// moduleWASI is the import module of WASI preview 1.
const moduleWASI = "wasi_snapshot_preview1"

// errno is an error number of WASI preview 1.
type errno uint32

const (
	errnoSuccess errno = 0
	errnoBadf    errno = 8  // no such file descriptor
	errnoFault   errno = 21 // a pointer outside of memory
	errnoInval   errno = 28
	errnoNosys   errno = 52
	errnoSpipe   errno = 70 // can't seek
)

// wasiFunc is one function of WASI preview 1. Each parameter is a letter of params: i = i32, l = i64. All but proc_exit
// return an errno.
type wasiFunc struct {
	name   string
	params string
	call   func(ctx context.Context, w wasiCall) errno
}

// wasiCall is one call of such a function.
type wasiCall struct {
	call   *messaging.Call
	module api.Module
	stack  []uint64
}

// wasiFuncs lists preview 1. Nothing is granted: there are no arguments, variables, files or sockets, and of the
// standard streams, input is empty while output and error are the call's log. The state of a guest is in the guest
// alone.
func wasiFuncs() []wasiFunc {
	return []wasiFunc{
		{"args_get", "ii", wasiNothing},
		{"args_sizes_get", "ii", wasiNoStrings},
		{"environ_get", "ii", wasiNothing},
		{"environ_sizes_get", "ii", wasiNoStrings},
		{"clock_res_get", "ii", wasiClockRes},
		{"clock_time_get", "ili", wasiClockTime},
		{"fd_advise", "illi", wasiBadf},
		{"fd_allocate", "ill", wasiBadf},
		{"fd_close", "i", wasiStreamOnly},
		{"fd_datasync", "i", wasiBadf},
		{"fd_fdstat_get", "ii", wasiFdstat},
		{"fd_fdstat_set_flags", "ii", wasiStreamOnly},
		{"fd_fdstat_set_rights", "ill", wasiBadf},
		{"fd_filestat_get", "ii", wasiBadf},
		{"fd_filestat_set_size", "il", wasiBadf},
		{"fd_filestat_set_times", "illi", wasiBadf},
		{"fd_pread", "iiili", wasiBadf},
		{"fd_prestat_get", "ii", wasiBadf},
		{"fd_prestat_dir_name", "iii", wasiBadf},
		{"fd_pwrite", "iiili", wasiBadf},
		{"fd_read", "iiii", wasiRead},
		{"fd_readdir", "iiili", wasiBadf},
		{"fd_renumber", "ii", wasiBadf},
		{"fd_seek", "ilii", wasiSeek},
		{"fd_sync", "i", wasiBadf},
		{"fd_tell", "ii", wasiSeek},
		{"fd_write", "iiii", wasiWrite},
		{"path_create_directory", "iii", wasiBadf},
		{"path_filestat_get", "iiiii", wasiBadf},
		{"path_filestat_set_times", "iiiilli", wasiBadf},
		{"path_link", "iiiiiii", wasiBadf},
		{"path_open", "iiiiillii", wasiBadf},
		{"path_readlink", "iiiiii", wasiBadf},
		{"path_remove_directory", "iii", wasiBadf},
		{"path_rename", "iiiiii", wasiBadf},
		{"path_symlink", "iiiii", wasiBadf},
		{"path_unlink_file", "iii", wasiBadf},
		{"poll_oneoff", "iiii", wasiPoll},
		{"proc_exit", "i", wasiExit},
		{"proc_raise", "i", wasiNosys},
		{"sched_yield", "", wasiNothing},
		{"random_get", "ii", wasiRandom},
		{"sock_accept", "iii", wasiBadf},
		{"sock_recv", "iiiiii", wasiBadf},
		{"sock_send", "iiiii", wasiBadf},
		{"sock_shutdown", "ii", wasiBadf},
	}
}

// registerWASI makes preview 1 available to the modules of r.
func registerWASI(ctx context.Context, r wazero.Runtime) error {
	b := r.NewHostModuleBuilder(moduleWASI)
	for _, f := range wasiFuncs() {
		params, results := f.signature()
		b.NewFunctionBuilder().WithGoModuleFunction(f.adapt(), params, results).Export(f.name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return fmt.Errorf("runtime: registering WASI: %w", err)
	}
	return nil
}

// checkWASI refuses imports from preview 1 that aren't served; wazero checks the signatures when it links.
func checkWASI(m wazero.CompiledModule) error {
	known := map[string]bool{}
	for _, f := range wasiFuncs() {
		known[f.name] = true
	}
	var faults []error
	for _, d := range m.ImportedFunctions() {
		if module, name, _ := d.Import(); module == moduleWASI && !known[name] {
			faults = append(faults, fmt.Errorf("import %q %.120q is not served: preview 1 has no such function", module, name))
		}
	}
	return errors.Join(faults...)
}

// adapt makes f what wazero calls.
func (f wasiFunc) adapt() api.GoModuleFunc {
	return func(ctx context.Context, m api.Module, stack []uint64) {
		c := fuelOf(ctx).call
		c.Enter(ctx)
		e := f.call(ctx, wasiCall{call: c, module: m, stack: stack})
		if len(stack) > 0 { // proc_exit doesn't come back
			stack[0] = uint64(e)
		}
	}
}

func (f wasiFunc) signature() (params, results []api.ValueType) {
	for _, p := range f.params {
		t := api.ValueTypeI32
		if p == 'l' {
			t = api.ValueTypeI64
		}
		params = append(params, t)
	}
	if f.name != "proc_exit" {
		results = []api.ValueType{api.ValueTypeI32}
	}
	return params, results
}

// memory returns the memory of the guest.
func (w wasiCall) memory() api.Memory { return w.module.Memory() }

// arg returns parameter i as an i32.
func (w wasiCall) arg(i int) uint32 { return api.DecodeU32(w.stack[i]) }

// isStream says whether the first parameter is a standard stream.
func (w wasiCall) isStream() bool { return w.arg(0) <= fdStderr }

func wasiNothing(context.Context, wasiCall) errno { return errnoSuccess }
func wasiBadf(context.Context, wasiCall) errno    { return errnoBadf }
func wasiNosys(context.Context, wasiCall) errno   { return errnoNosys }

// wasiStreamOnly takes a standard stream and does nothing to it.
func wasiStreamOnly(_ context.Context, w wasiCall) errno {
	if !w.isStream() {
		return errnoBadf
	}
	return errnoSuccess
}

// wasiSeek fails: streams can't seek, and there is nothing else.
func wasiSeek(_ context.Context, w wasiCall) errno {
	if !w.isStream() {
		return errnoBadf
	}
	return errnoSpipe
}

// wasiNoStrings answers that there are no strings, of no bytes.
//
//	ret count u32, ret bytes u32
func wasiNoStrings(_ context.Context, w wasiCall) errno {
	if !w.memory().WriteUint32Le(w.arg(0), 0) || !w.memory().WriteUint32Le(w.arg(1), 0) {
		return errnoFault
	}
	return errnoSuccess
}

// wasiExit ends the call.
func wasiExit(_ context.Context, w wasiCall) errno { panic(&messaging.ExitError{Code: w.arg(0)}) }
