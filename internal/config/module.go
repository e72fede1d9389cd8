package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/longshore/longshore/limits"
)

// Module names a consumer's WebAssembly module, a file inside the manifest's folder.
type Module struct {
	Dir    string // the manifest's folder, absolute
	Path   string // inside Dir, with slashes, as the manifest has it
	SHA256 string // what its bytes must hash to, in lower-case hex; "" for any
}

// File returns the module's absolute path, for people to read. To read the module use Consumer.ReadModule, which doesn't
// follow it out of the folder.
func (m Module) File() string { return filepath.Join(m.Dir, filepath.FromSlash(m.Path)) }

// checkPath refuses a path that leaves the folder by its text alone.
func (m Module) checkPath() (problem, fix string) {
	const right = "want a path relative to the manifest, inside its folder"
	switch local := filepath.FromSlash(m.Path); {
	case path.IsAbs(m.Path) || filepath.IsAbs(local):
		return quoted(m.Path) + " is absolute", right
	case !filepath.IsLocal(local):
		return quoted(m.Path) + " leaves the manifest's folder", right
	}
	return "", ""
}

// checkModule reports a module that is there but can't be one. One that isn't there yet is none of its faults.
func (c *Consumer) checkModule() (problem, fix string) {
	root, err := os.OpenRoot(c.Module.Dir)
	if err != nil {
		return "the folder can't be opened: " + systemText(err), ""
	}
	defer func() { _ = root.Close() }() // opened to look only
	info, err := root.Stat(filepath.FromSlash(c.Module.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return "", ""
	}
	return c.judge(info, err)
}

// judge says what is wrong with what the module's path leads to, as far as its metadata tells.
func (c *Consumer) judge(info fs.FileInfo, err error) (problem, fix string) {
	name := quoted(c.Module.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && c.Build != nil:
		return name + " is not there", "build it: " + quoted(strings.Join(c.Build, " "))
	case errors.Is(err, fs.ErrNotExist):
		return name + " is not there", "want a file"
	case err != nil:
		return name + " can't be opened: " + systemText(err), "want a file inside the manifest's folder"
	case !info.Mode().IsRegular():
		return name + " is no regular file", "want a file"
	case info.Size() > limits.GuestModuleBytes:
		return fmt.Sprintf("%s has %d bytes", name, info.Size()), "want at most " + FormatSize(limits.GuestModuleBytes)
	}
	return "", ""
}

// ReadModule returns the module's bytes. Its error is a Fault, at the module's place in the manifest, if the module isn't
// there, leads out of the manifest's folder, is too large, or doesn't have the hash that the manifest gives.
func (c *Consumer) ReadModule() ([]byte, error) {
	root, err := os.OpenRoot(c.Module.Dir)
	if err != nil {
		return nil, c.ModuleFault("the folder can't be opened: "+systemText(err), "")
	}
	defer func() { _ = root.Close() }() // opened to read only
	name := filepath.FromSlash(c.Module.Path)
	info, err := root.Stat(name)
	if problem, fix := c.judge(info, err); problem != "" {
		return nil, c.ModuleFault(problem, fix) // before opening it: to open a pipe would block
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, c.ModuleFault(c.judge(nil, err))
	}
	defer func() { _ = file.Close() }() // opened to read only
	var wasm bytes.Buffer
	wasm.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := wasm.ReadFrom(io.LimitReader(file, limits.GuestModuleBytes+1)); err != nil {
		return nil, c.ModuleFault("reading it failed: "+systemText(err), "")
	}
	if wasm.Len() > limits.GuestModuleBytes {
		return nil, c.ModuleFault("it grew while it was read", "want at most "+FormatSize(limits.GuestModuleBytes))
	}
	if err := c.checkDigest(wasm.Bytes()); err != nil {
		return nil, err
	}
	return wasm.Bytes(), nil
}

func (c *Consumer) checkDigest(wasm []byte) error {
	sum := sha256.Sum256(wasm)
	if got := hex.EncodeToString(sum[:]); c.Module.SHA256 != "" && got != c.Module.SHA256 {
		return c.ModuleFault("its SHA-256 is "+got, "want "+c.Module.SHA256+", the entry's sha256")
	}
	return nil
}

// ModuleFault returns a fault at the module's place in the manifest, such as one that only compiling it shows.
func (c *Consumer) ModuleFault(problem, fix string) Fault {
	fault := c.module
	fault.Problem, fault.Fix = problem, fix
	return fault
}

// systemText returns what the system said, without the operation and path that the caller names better.
func systemText(err error) string {
	if inner := new(fs.PathError); errors.As(err, &inner) {
		err = inner.Err
	}
	return err.Error()
}
