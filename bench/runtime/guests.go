package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed testdata/c testdata/goguest
var sources embed.FS

// buildGuests builds all modules from source, in the folder dir, with clang and the go command.
func buildGuests(ctx context.Context, dir string) (map[string][]byte, error) {
	if err := os.CopyFS(dir, sources); err != nil {
		return nil, err
	}
	guests := map[string][]byte{}
	for _, name := range []string{guestC, guestEndless} {
		wasm, err := buildC(ctx, filepath.Join(dir, "testdata", "c"), name)
		if err != nil {
			return nil, err
		}
		guests[name] = wasm
	}
	wasm, err := buildGo(ctx, filepath.Join(dir, "testdata", "goguest"))
	guests[guestGo] = wasm
	return guests, err
}

// buildC builds name.c in dir.
func buildC(ctx context.Context, dir, name string) ([]byte, error) {
	return build(ctx, dir, "clang", "--target=wasm32-unknown-unknown", "-O2", "-mbulk-memory", "-ffreestanding", "-nostdlib",
		"-Wl,--no-entry", "-Wl,--strip-all", "-o", "guest.wasm", name+".c")
}

// buildGo builds the program in dir as a module of its own.
func buildGo(ctx context.Context, dir string) ([]byte, error) {
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module goguest\n\ngo 1.26\n"), 0o600); err != nil {
		return nil, err
	}
	return build(ctx, dir, "go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w -buildid=", "-o", "guest.wasm", ".")
}

// build runs a compiler in dir, and returns what it wrote.
func build(ctx context.Context, dir, compiler string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, compiler, args...) //nolint:gosec // the arguments are ours
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building guests needs clang, wasm-ld and go: %s: %w\n%s", compiler, err, text)
	}
	return fs.ReadFile(os.DirFS(dir), "guest.wasm")
}
