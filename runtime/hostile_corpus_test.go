package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	corpus "github.com/longshore/longshore/internal/hostile"
)

// Every module of the corpus is refused, or ends, exactly as it says.
func TestHostileCorpus(t *testing.T) {
	e := newEngine(t)
	for _, m := range corpus.Corpus() {
		t.Run(m.Name, func(t *testing.T) {
			v, err := corpus.Run(t.Context(), e, m)
			require.NoError(t, err)
			require.NoError(t, m.Check(v))
			t.Logf("%+v", v)
		})
	}
}
