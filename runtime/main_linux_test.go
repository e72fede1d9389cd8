package runtime_test

import (
	"context"
	"os"
	"testing"

	corpus "github.com/longshore/longshore/internal/hostile"
	"github.com/longshore/longshore/runtime"
)

// asCompiler is the first argument with which the test binary is a compiler.
const asCompiler = "compile-child"

// These make it be a compiler that has little memory, or little time.
const (
	withLittleMemory = "compile-with-little-memory"
	withLittleTime   = "compile-with-little-time"
)

// compilerCommand is the command of a compiler.
func compilerCommand() []string { return []string{"/proc/self/exe", asCompiler} }

// TestMain makes the test binary be a compiler, or the process of a hostile module.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 3 && os.Args[1] == asCompiler:
		os.Exit(runtime.ServeCompiler(context.Background(), os.Args[2], os.Stdin, os.Stderr))
	case len(os.Args) == 3 && os.Args[1] == withLittleMemory:
		os.Exit(runtime.ServeSmallCompiler(context.Background(), os.Args[2], os.Stdin, os.Stderr))
	case len(os.Args) == 3 && os.Args[1] == withLittleTime:
		os.Exit(runtime.ServeSlowCompiler())
	case corpus.IsChild():
		os.Exit(corpus.ChildMain(compilerCommand()))
	}
	os.Exit(m.Run())
}
