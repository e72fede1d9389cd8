package runtime_test

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	corpus "github.com/longshore/longshore/internal/hostile"
	"github.com/longshore/longshore/limits"
)

// mayRise is by how much a module may raise the resident memory of its host: its own limit, and this much more.
const mayRise = limits.GuestMemoryBytes + 32*limits.MiB

// Every module of the corpus is refused, or ends, exactly as it says; a host that may map four gigabytes outlives it; and
// neither deploying nor calling it raises the host's memory by more than its limit and a little.
func TestHostileCorpus(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("a process for each of hundreds of modules; the race detector maps terabytes")
	}
	var survived atomic.Int64
	all := corpus.Corpus()
	if os.Getenv("LONG") == "" { // every fifth, which takes a fifth of some minutes
		for i := range len(all) / 5 {
			all[i] = all[5*i]
		}
		all = all[:len(all)/5]
	}
	t.Run("modules", func(t *testing.T) {
		for _, m := range all {
			t.Run(m.Name, func(t *testing.T) {
				t.Parallel()
				r, err := corpus.InChild(t.Context(), m.Name)
				require.NoError(t, err)
				require.NoError(t, m.Check(r.Verdict))
				require.Less(t, r.DeployBytes, int64(mayRise), "while it was deployed")
				require.Less(t, r.CallBytes, int64(mayRise), "while it was called")
				t.Logf("%+v", r)
				survived.Add(1)
			})
		}
	})
	fmt.Println("figure hostile_modules", len(all))
	fmt.Println("figure hostile_survived", survived.Load())
}

// Modules that mean harm run beside each other in one host, and each still ends as it must.
func TestHostileCorpusInOneHost(t *testing.T) {
	each := 1
	if testing.Short() {
		each = 8
	}
	e := newEngine(t)
	for i, m := range corpus.Corpus() {
		if i%each != 0 || m.Ends == "timeout" || m.Refused != nil && m.Refused.Words == "timeout:" {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			v, err := corpus.Run(t.Context(), e, m)
			require.NoError(t, err)
			require.NoError(t, m.Check(v))
		})
	}
}

// A neighbour of a hostile guest ends its calls, and both are measured.
func TestHostileNeighbour(t *testing.T) {
	e := newEngine(t)
	b, err := corpus.NewNeighbour(t.Context(), e, 1_000_000)
	require.NoError(t, err)
	m, ok := corpus.Find("counting")
	require.True(t, ok)
	alone, beside, err := b.Beside(t.Context(), e, m, 10)
	require.NoError(t, err)
	require.NoError(t, b.Close(t.Context()))
	require.Positive(t, alone)
	require.Positive(t, beside)
	t.Logf("99th percentile alone %v, beside %v", alone, beside)
}
