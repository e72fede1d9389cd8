package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/longshore/longshore/examples/misbehaving"
)

const modulePath = "github.com/longshore/longshore"

// workspace is the temporary folder that the demo works in.
type workspace struct {
	root string // of the checkout
	dir  string
}

// file returns a path in the workspace.
func (w workspace) file(name string) string { return filepath.Join(w.dir, name) }

// newWorkspace finds the checkout and makes the folder.
func newWorkspace(from string) (workspace, error) {
	root, err := findRoot(from)
	if err != nil {
		return workspace{}, err
	}
	if _, err := exec.LookPath("go"); err != nil {
		return workspace{}, fmt.Errorf("the demo builds its consumers with the Go toolchain: install Go, or put it into the PATH (%w)", err)
	}
	dir, err := os.MkdirTemp("", "longshore-demo-")
	if err != nil {
		return workspace{}, fmt.Errorf("make a folder to work in: %w", err)
	}
	return workspace{root: root, dir: dir}, nil
}

// findRoot walks up from a folder to the go.mod of this module.
func findRoot(from string) (string, error) {
	for dir := from; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(mod, []byte("module "+modulePath+"\n")) {
			return dir, nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("look for the checkout: %w", err)
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not in a checkout of %s, and the demo builds its consumers from there: "+
				"clone the repository and run `go run ./cmd/host demo` in it", from, modulePath)
		}
	}
}

// build compiles one consumer of examples/orders.
func (w workspace) build(ctx context.Context, name string) error {
	//nolint:gosec // the arguments are the demo's own
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=",
		"-buildmode=c-shared", "-o", w.file(name+".wasm"), "./"+name)
	cmd.Dir = filepath.Join(w.root, "examples", "orders", "guests")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the consumer %s: %w\n%s", name, err, out)
	}
	return nil
}

// emit writes the modules that misbehave.
func (w workspace) emit(mods []misbehaving.Module) error {
	for _, m := range mods {
		if err := os.WriteFile(w.file(m.Name+".wasm"), m.Wasm, 0o600); err != nil {
			return fmt.Errorf("write the module %s: %w", m.Name, err)
		}
	}
	return nil
}

// write writes a YAML file.
func (w workspace) write(name string, v any) error {
	raw, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	if err := os.WriteFile(w.file(name), raw, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
