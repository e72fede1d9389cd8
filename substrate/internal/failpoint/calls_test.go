package failpoint

import (
	"bytes"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPointsAreCompiledAwayWithoutTheirTag reads the machine code of a package that hits points.
func TestPointsAreCompiledAwayWithoutTheirTag(t *testing.T) {
	calls := func(tags string) int {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-tags", tags, "-gcflags=-S", "../journal", "../payload", "../store")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return bytes.Count(out, []byte("internal/failpoint.Hit(SB)"))
	}
	require.Zero(t, calls(""))
	require.Positive(t, calls("failpoint"), "else this test sees nothing")
}

func BenchmarkHit(b *testing.B) {
	for b.Loop() {
		if err := Hit("a point"); err != nil {
			b.Fatal(err)
		}
	}
}
