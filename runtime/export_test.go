package runtime

import (
	"context"
	"io"
	"time"

	"github.com/longshore/longshore/runtime/internal/cow"
)

// NewWith is New with the one method by which instances are cleaned.
func NewWith(ctx context.Context, o Options, method cow.Method) (*Engine, error) {
	return newEngine(ctx, o, method)
}

// BoundRoom bounds the address space of the memories of all instances.
func (e *Engine) BoundRoom(bytes int64) { e.memories.Bound(bytes) }

// Idle returns how many instances of a module no call has.
func (m *Module) Idle() int {
	m.pool.mu.Lock()
	defer m.pool.mu.Unlock()
	return len(m.pool.idle)
}

// SweepAt looks after the idle instances as if it were that time.
func (m *Module) SweepAt(now time.Time) { m.sweep(context.Background(), now) }

// Bounds of a compiler that tests can reach.
const (
	smallCompilerBytes = 48 << 20
	smallCompilerCPU   = time.Second
	smallCompilerWall  = 300 * time.Millisecond
)

// ServeSmallCompiler is ServeCompiler with little address space.
func ServeSmallCompiler(ctx context.Context, dir string, in io.Reader, out io.Writer) int {
	b := defaultCompilerBounds()
	b.bytes = smallCompilerBytes
	return serveCompiler(ctx, dir, in, out, b)
}

// ServeSlowCompiler is a compiler that has little processor time and, however fast the machine is, needs more.
func ServeSlowCompiler() (status int) {
	b := defaultCompilerBounds()
	b.cpu = smallCompilerCPU
	if b.limitSelf() != nil {
		return 1
	}
	for {
		status++
	}
}

// CompileSmall compiles a metered module with such a compiler; impatient, it also has little time.
func CompileSmall(ctx context.Context, dir string, metered []byte, command []string, impatient bool) error {
	b := compilerBounds{bytes: smallCompilerBytes, cpu: smallCompilerCPU, wall: defaultCompilerBounds().wall}
	if impatient {
		b.wall = smallCompilerWall
	}
	return compileElsewhere(command, b)(ctx, dir, metered, 0)
}

// CompileFast compiles a metered module with a compiler that may take so much time of a processor.
func CompileFast(ctx context.Context, dir string, metered []byte, command []string, cpu time.Duration) error {
	return compileElsewhere(command, defaultCompilerBounds())(ctx, dir, metered, cpu)
}

// Runtimes returns how many memory limits the open modules have.
func (e *Engine) Runtimes() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.runtimes)
}
