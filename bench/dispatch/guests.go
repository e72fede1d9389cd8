package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// language is one that the guests are written in.
type language string

// The languages.
const (
	inGo language = "go"
	inC  language = "c"
)

func languages() []language { return []language{inGo, inC} }

// role is what a guest is.
type role string

// The roles. The first three do the same work on an order.
const (
	consumer role = "consumer" // one order a call, for Longshore
	batch    role = "batch"    // many orders a call, for Longshore
	plugin   role = "plugin"   // one order a call, for Extism
	burn     role = "burn"     // computes; in C alone
	later    role = "later"    // asks for some messages a second time; in C alone
)

// guest names a module.
type guest struct {
	language language
	role     role
}

// buildGuests builds all modules from source, with clang and the go command, into the folder dir.
func buildGuests(ctx context.Context, dir string) (map[guest][]byte, error) {
	here, err := sourceFolder(ctx)
	if err != nil {
		return nil, err
	}
	built := map[guest][]byte{}
	for _, r := range []role{consumer, batch, plugin} {
		if built[guest{inC, r}], err = buildC(ctx, here, string(r), dir); err != nil {
			return nil, err
		}
		built[guest{inGo, r}], err = build(ctx, filepath.Join(here, "go"), filepath.Join(dir, string(r)+".go.wasm"),
			"go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "./"+string(r))
		if err != nil {
			return nil, err
		}
	}
	for _, r := range []role{burn, later} {
		if built[guest{inC, r}], err = buildC(ctx, here, string(r), dir); err != nil {
			return nil, err
		}
	}
	return built, nil
}

// buildC builds name.c of the sources into dir.
func buildC(ctx context.Context, sources, name, dir string) ([]byte, error) {
	return build(ctx, filepath.Join(sources, "c"), filepath.Join(dir, name+".c.wasm"),
		"clang", "--target=wasm32", "-O2", "-mbulk-memory", "-ffreestanding", "-nostdlib", "-Wl,--no-entry,--strip-all,--stack-first",
		"-I../../../../guests/c", name+".c")
}

// sourceFolder finds the sources of the guests, which need the SDKs beside the benchmark.
func sourceFolder(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "github.com/longshore/longshore/bench/dispatch").Output()
	if err != nil {
		return "", fmt.Errorf("the guests are built from source: run this in the folder bench of the repository: %w", err)
	}
	return filepath.Join(string(out[:len(out)-1]), "testdata"), nil
}

// build runs a compiler in dir, and returns what it wrote to the file.
func build(ctx context.Context, dir, file, compiler string, args ...string) ([]byte, error) {
	at := len(args) - 1 // what is compiled comes last
	args = append(args[:at:at], "-o", file, args[at])
	cmd := exec.CommandContext(ctx, compiler, args...) //nolint:gosec // the arguments are ours
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building guests needs clang, wasm-ld and go: %s: %w\n%s", compiler, err, text)
	}
	return fs.ReadFile(os.DirFS(filepath.Dir(file)), filepath.Base(file))
}
