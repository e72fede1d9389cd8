package runtime_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	corpus "github.com/longshore/longshore/internal/hostile"
	"github.com/longshore/longshore/limits"
)

// Whoever looks for the module within the caps that takes longest to compile, by changing a little what took long before,
// finds none that does more than compile, or be refused within the bounds of a compiler. What the worst took is printed, in
// milliseconds of processor time.
func TestClimbingTheCostOfCompiling(t *testing.T) {
	if testing.Short() || raceEnabled || os.Getenv("LONG") == "" {
		t.Skip("compiles for 90 seconds; LONG=1 runs it")
	}
	steps, restart, end := 300, 30, time.Now().Add(90*time.Second)
	const seed = 1
	r := rand.New(rand.NewPCG(seed, seed))
	var worst, top time.Duration
	var best corpus.Code
	for step := 0; step < steps && time.Now().Before(end); step++ {
		code := best.Mutated
		if step%restart == 0 {
			code, top = func(r *rand.Rand) corpus.Code { return corpus.Random(r) }, 0
		}
		c, took := climb(t, code(r))
		if took > top {
			best, top = c, took
		}
		if top > worst {
			worst = top
			t.Logf("step %d: %v for %v", step, worst.Round(time.Millisecond), c)
		}
	}
	fmt.Println("figure compile_climb_ms", worst.Milliseconds())
}

// climb makes c small enough for the caps, and returns the processor time that compiling took.
func climb(t *testing.T, c corpus.Code) (corpus.Code, time.Duration) {
	t.Helper()
	for {
		before := childTime(t)
		e := cachingEngine(t, t.TempDir(), compilerCommand())
		_, err := e.Compile(t.Context(), "climber", c.Wasm(), testLimits())
		require.NoError(t, e.Close(t.Context()))
		if err == nil {
			return c, childTime(t) - before
		}
		var limit *limits.Error
		require.ErrorAs(t, err, &limit, "%v", c)
		if limit.Name == limits.NameCompileTime || limit.Name == limits.NameCompileMemory {
			t.Logf("%v: %v", err, c)
			return c, childTime(t) - before
		}
		c = c.Smaller()
	}
}

// childTime returns the processor time that children of the process took.
func childTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
