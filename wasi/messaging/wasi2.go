package messaging

import (
	"context"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// The interfaces of WASI 0.2 that the modules inside ordinary components import. As with preview 1, nothing is granted:
// no files, network, arguments or environment. Clocks tick in milliseconds, random is the system's, standard input is
// empty, and standard output and error are the call's log.

// wasi2Track is any release of WASI 0.2.
const wasi2Track = "0.2.*"

// wasi2Interfaces lists them.
func wasi2Interfaces() []hostInterface {
	iface := func(name string, funcs ...hostFunc) hostInterface {
		return hostInterface{name: "wasi:" + name, versions: []string{wasi2Track}, funcs: funcs}
	}
	return []hostInterface{
		iface("cli/environment",
			hostFunc{name: "get-environment", params: "i", call: returnEmptyList},
			hostFunc{name: "get-arguments", params: "i", call: returnEmptyList},
			hostFunc{name: "initial-cwd", params: "i", call: returnNoText}),
		iface("cli/exit",
			hostFunc{name: "exit", params: "i", call: wasiExit},
			hostFunc{name: "exit-with-code", params: "i", call: wasiExitCode}),
		iface("cli/stdin", hostFunc{name: "get-stdin", results: "i", call: stdio(handleStdin)}),
		iface("cli/stdout", hostFunc{name: "get-stdout", results: "i", call: stdio(handleStdout)}),
		iface("cli/stderr", hostFunc{name: "get-stderr", results: "i", call: stdio(handleStderr)}),
		iface("cli/terminal-input", hostFunc{name: "[resource-drop]terminal-input", params: "i", call: dropNothing}),
		iface("cli/terminal-output", hostFunc{name: "[resource-drop]terminal-output", params: "i", call: dropNothing}),
		iface("cli/terminal-stdin", hostFunc{name: "get-terminal-stdin", params: "i", call: returnNoHandle}),
		iface("cli/terminal-stdout", hostFunc{name: "get-terminal-stdout", params: "i", call: returnNoHandle}),
		iface("cli/terminal-stderr", hostFunc{name: "get-terminal-stderr", params: "i", call: returnNoHandle}),
		iface("clocks/monotonic-clock",
			hostFunc{name: "now", results: "l", call: monotonicNow},
			hostFunc{name: "resolution", results: "l", call: monotonicResolution},
			hostFunc{name: "subscribe-instant", params: "l", results: "i", call: subscribeInstant},
			hostFunc{name: "subscribe-duration", params: "l", results: "i", call: subscribeDuration}),
		iface("clocks/wall-clock",
			hostFunc{name: "now", params: "i", call: wallNow},
			hostFunc{name: "resolution", params: "i", call: wallResolution}),
		iface("filesystem/preopens", hostFunc{name: "get-directories", params: "i", call: returnEmptyList}),
		iface("io/error",
			hostFunc{name: "[method]error.to-debug-string", params: "ii", call: dropNothing},
			hostFunc{name: "[resource-drop]error", params: "i", call: dropNothing}),
		iface("io/poll",
			hostFunc{name: "[method]pollable.ready", params: "i", results: "i", call: pollableReady},
			hostFunc{name: "[method]pollable.block", params: "i", call: pollableBlock},
			hostFunc{name: "[resource-drop]pollable", params: "i", call: pollableDrop},
			hostFunc{name: "poll", params: "iii", allocs: true, call: pollList}),
		iface("io/streams", append(inputStreamFuncs(), outputStreamFuncs()...)...),
		iface("random/random",
			hostFunc{name: "get-random-bytes", params: "li", allocs: true, call: randomBytes},
			hostFunc{name: "get-random-u64", results: "l", call: randomU64}),
		iface("random/insecure",
			hostFunc{name: "get-insecure-random-bytes", params: "li", allocs: true, call: randomBytes},
			hostFunc{name: "get-insecure-random-u64", results: "l", call: randomU64}),
		iface("random/insecure-seed", hostFunc{name: "insecure-seed", params: "i", call: randomSeed}),
	}
}

// denied returns a function that ends the call, for an import from a package that is never granted. Toolchains link such
// packages into every component, used or not.
func denied(module string, d api.FunctionDefinition) (hostFunc, bool) {
	_, iface, version := splitModule(module)
	pkg, _, _ := strings.Cut(iface, "/")
	switch pkg {
	case "wasi:http", "wasi:sockets", "wasi:filesystem":
	default:
		return hostFunc{}, false
	}
	if version != "0.2" && !strings.HasPrefix(version, "0.2.") {
		return hostFunc{}, false
	}
	_, name, _ := d.Import()
	return hostFunc{
		name: name, params: letters(d.ParamTypes()), results: letters(d.ResultTypes()),
		call: func(context.Context, *Call, []uint64) {
			panic(&ABIError{Problem: "the host grants nothing of " + pkg + " to guests"})
		},
	}, true
}

// letters is the inverse of valueTypes.
func letters(types []api.ValueType) string {
	var b strings.Builder
	for _, t := range types {
		switch t {
		case api.ValueTypeI64:
			b.WriteByte('l')
		case api.ValueTypeF32:
			b.WriteByte('f')
		case api.ValueTypeF64:
			b.WriteByte('d')
		default:
			b.WriteByte('i')
		}
	}
	return b.String()
}

// returnEmptyList writes a list without elements to ret.
func returnEmptyList(_ context.Context, c *Call, stack []uint64) {
	c.guest.store(arg(stack, 0), textShape, make([]byte, textShape.size))
}

// returnNoText writes none of an option<string> to ret.
func returnNoText(_ context.Context, c *Call, stack []uint64) {
	c.guest.store(arg(stack, 0), optionTextShape, make([]byte, optionTextShape.size))
}

// returnNoHandle writes none of an option<own<…>> to ret.
func returnNoHandle(_ context.Context, c *Call, stack []uint64) {
	s := optionOf(handleShape)
	c.guest.store(arg(stack, 0), s, make([]byte, s.size))
}

// dropNothing takes a handle of a resource of which there is none.
func dropNothing(_ context.Context, _ *Call, stack []uint64) {
	panic(&ABIError{Problem: "there is no resource of that type, and so no handle"})
}

// wasiExit is cli's exit: func(status: result).
func wasiExit(_ context.Context, _ *Call, stack []uint64) {
	panic(&ExitError{Code: checkFlatCase(2, arg(stack, 0))})
}

// wasiExitCode is cli's exit-with-code: func(status-code: u8).
func wasiExitCode(_ context.Context, _ *Call, stack []uint64) {
	panic(&ExitError{Code: arg(stack, 0) & 0xff})
}

// monotonicNow is monotonic-clock's now: func() -> instant, in nanoseconds.
func monotonicNow(_ context.Context, _ *Call, stack []uint64) { stack[0] = uint64(MonotonicNow()) }

// monotonicResolution is monotonic-clock's resolution: func() -> duration, in nanoseconds.
func monotonicResolution(_ context.Context, _ *Call, stack []uint64) { stack[0] = uint64(ClockGrain) }

// datetimeShape is wall-clock's datetime.
var datetimeShape = recordOf(field{name: "seconds", shape: u64Shape}, field{name: "nanoseconds", shape: u32Shape})

// wallNow is wall-clock's now: func() -> datetime.
func wallNow(ctx context.Context, c *Call, stack []uint64) {
	now := WallNow()
	c.returnDatetime(ctx, arg(stack, 0), uint64(max(now.Unix(), 0)), uint32(now.Nanosecond()))
}

// wallResolution is wall-clock's resolution: func() -> datetime.
func wallResolution(ctx context.Context, c *Call, stack []uint64) {
	c.returnDatetime(ctx, arg(stack, 0), 0, uint32(ClockGrain/time.Nanosecond))
}

func (c *Call) returnDatetime(ctx context.Context, ret uint32, seconds uint64, nanoseconds uint32) {
	b := make([]byte, datetimeShape.size)
	w := recordWriter{ctx: ctx, guest: &c.guest, shape: datetimeShape, at: b}
	w.u64("seconds", seconds)
	w.u32("nanoseconds", nanoseconds)
	c.guest.store(ret, datetimeShape, b)
}
