package guestbuild

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Language is a language that there is an SDK for.
type Language string

// The languages.
const (
	Go             Language = "go"
	C              Language = "c"
	Rust           Language = "rust"
	AssemblyScript Language = "assemblyscript"
	JavaScript     Language = "javascript"
)

// Languages lists all of them.
func Languages() []Language { return []Language{Go, C, Rust, AssemblyScript, JavaScript} }

// rustTarget is what guests in Rust are compiled for.
const rustTarget = "wasm32-unknown-unknown"

// ErrMissing is in the error of Environ if a toolchain isn't there.
var ErrMissing = errors.New("toolchain missing")

// Environ returns the environment in which commands find the toolchain of a language, or an error that wraps ErrMissing and
// says what to install.
func Environ(l Language) ([]string, error) {
	env := os.Environ()
	switch l {
	case Go:
		return env, want("go")
	case C:
		return env, want("clang", "wasm-ld")
	case AssemblyScript, JavaScript:
		return env, want("node", "npm")
	case Rust:
		return rustEnviron(env)
	}
	return nil, fmt.Errorf("%w: no SDK for %q", ErrMissing, l)
}

// want says which of these programs isn't in the path.
func want(programs ...string) error {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			return fmt.Errorf("%w: %s is not in the path", ErrMissing, p)
		}
	}
	return nil
}

// rustEnviron looks for a folder of the path whose cargo and rustc have the standard library for WebAssembly: there may be
// several of them, and the first needn't be it.
func rustEnviron(env []string) ([]string, error) {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		cargo, rustc := filepath.Join(dir, "cargo"), filepath.Join(dir, "rustc")
		if !executable(cargo) || !executable(rustc) {
			continue
		}
		libs, err := exec.Command(rustc, "--print", "target-libdir", "--target", rustTarget).Output() //nolint:noctx,gosec // of the path, at once
		if err != nil {
			continue
		}
		if std, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(libs)), "libstd-*.rlib")); err != nil || len(std) == 0 {
			continue
		}
		path := dir + string(os.PathListSeparator) + os.Getenv("PATH")
		return append(env, "PATH="+path, "CARGO="+cargo, "RUSTC="+rustc), nil
	}
	return nil, fmt.Errorf("%w: no cargo and rustc with the target %s in the path", ErrMissing, rustTarget)
}

func executable(file string) bool {
	info, err := os.Stat(file) //nolint:gosec // of the path of whoever runs the tests
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// Require returns the environment for Run, or skips the test if the toolchain of a language is missing; where all are required,
// it fails. Tests of JavaScript, whose modules take long to build and to compile, are skipped under -short and the race detector.
func Require(tb testing.TB, l Language) []string {
	tb.Helper()
	if l == JavaScript && (testing.Short() || raceEnabled) {
		tb.Skip("SKIPPED javascript: its modules take long to build and to compile")
	}
	env, err := Environ(l)
	switch {
	case err == nil:
	case required():
		tb.Fatalf("%s: %v", l, err)
	default:
		tb.Skipf("SKIPPED %s: %v", l, err)
	}
	return env
}

// RequireAgain is Require for what is built beside the conformance guests: in JavaScript, that waits for LONG=1.
func RequireAgain(tb testing.TB, l Language) []string {
	tb.Helper()
	if l == JavaScript && os.Getenv("LONG") == "" {
		tb.Skip("SKIPPED javascript: half a minute for each module; LONG=1 runs it")
	}
	return Require(tb, l)
}

// required says whether a missing toolchain is a failure.
func required() bool {
	return os.Getenv("CI") != "" || os.Getenv("LONGSHORE_REQUIRE_TOOLCHAINS") == "1"
}
