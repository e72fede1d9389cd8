package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDemo runs the demo as its users do, with fewer orders.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("builds guests and runs hosts for many seconds")
	}
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "longshore") // not the test binary: with the race detector it compiles guests slowly
	built, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, string(built))
	var out, story bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, "demo", "--json", "--messages", "100")
	cmd.Stdout, cmd.Stderr = &out, &story
	require.NoError(t, cmd.Run(), "%s%s", &story, &out)

	var names []string
	values := map[string]int{}
	for line := range strings.Lines(out.String()) {
		fields := strings.Fields(line)
		require.Len(t, fields, 3, line)
		require.Equal(t, "figure", fields[0])
		n, err := strconv.Atoi(fields[2])
		require.NoError(t, err)
		names, values[fields[1]] = append(names, fields[1]), n
	}
	require.Equal(t, []string{
		"published", "acked", "chained", "dead_letters_out_of_fuel", "dead_letters_timeout", "dead_letters_out_of_memory",
		"dead_letters_guest_trap", "dead_letters_context_forged", "redriven", "lost", "duplicated",
	}, names)
	require.Equal(t, 100, values["acked"])
	require.Equal(t, 1, values["dead_letters_context_forged"])
	require.Zero(t, values["lost"]+values["duplicated"])
	for _, said := range []string{"Kill -9", "Redrive", "Where to look next"} {
		require.Contains(t, story.String(), said)
	}
}

func TestDemoOutsideOfACheckoutSaysWhatToDo(t *testing.T) {
	out, err := program(t, t.TempDir(), "demo").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "clone the repository and run `go run ./cmd/host demo` in it")
}
