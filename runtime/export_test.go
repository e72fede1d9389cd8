package runtime

import (
	"context"
	"io"
	"time"
)

// Bounds of a compiler that tests can reach.
const (
	smallCompilerBytes = 48 << 20
	smallCompilerCPU   = time.Second
	smallCompilerWall  = 300 * time.Millisecond
)

// ServeSmallCompiler is ServeCompiler with little address space, or little processor time.
func ServeSmallCompiler(ctx context.Context, dir string, in io.Reader, out io.Writer, memory bool) int {
	b := defaultCompilerBounds()
	if b.cpu = smallCompilerCPU; memory {
		b.bytes, b.cpu = smallCompilerBytes, defaultCompilerBounds().cpu
	}
	return serveCompiler(ctx, dir, in, out, b)
}

// CompileSmall compiles a metered module with such a compiler; impatient, it also has little time.
func CompileSmall(ctx context.Context, dir string, metered []byte, command []string, impatient bool) error {
	b := compilerBounds{bytes: smallCompilerBytes, cpu: smallCompilerCPU, wall: defaultCompilerBounds().wall}
	if impatient {
		b.wall = smallCompilerWall
	}
	return compileElsewhere(command, b)(ctx, dir, metered)
}
