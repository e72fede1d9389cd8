package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzFiles reads anything as both files: no panic, in bounded time, and every fault is one line with a place in the file.
func FuzzFiles(f *testing.F) {
	seeds, err := filepath.Glob(filepath.Join("testdata", "*", "*.yaml"))
	require.NoError(f, err)
	for _, path := range seeds {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte(plain))
	f.Add([]byte("topics: [{topic: a, anonymous: true}]"))
	manifests, err := compile(ManifestSchema())
	require.NoError(f, err)
	hosts, err := compile(HostSchema())
	require.NoError(f, err)
	unseen := func(*Consumer) (problem, fix string) { return "", "" }
	f.Fuzz(func(t *testing.T, data []byte) {
		start := time.Now()
		_, manifestErr := manifests.parseManifest("f.yaml", data, DefaultHost(), unseen)
		_, hostErr := hosts.parseHost("f.yaml", data, Overrides{})
		require.Less(t, time.Since(start), 20*time.Second)
		lines := strings.Count(string(data), "\n") + strings.Count(string(data), "\r") +
			strings.Count(string(data), "\u2028") + strings.Count(string(data), "\u2029") + strings.Count(string(data), "\u0085") + 1
		for _, err := range []error{manifestErr, hostErr} {
			if err != nil {
				checkFaults(t, err, lines)
			}
		}
	})
}

func checkFaults(t *testing.T, err error, lines int) {
	t.Helper()
	var faults Faults
	if !errors.As(err, &faults) {
		t.Fatalf("not faults: %v", err)
	}
	for _, fault := range faults {
		text := fault.String()
		require.NotContains(t, text, "\n")
		require.Equal(t, strings.ToValidUTF8(text, "?"), text)
		require.LessOrEqual(t, fault.Line, lines, text)
		require.NotEmpty(t, fault.Problem)
		require.Less(t, len(text), 4096)
	}
}

// TestLargeFilesTakeBoundedTime reads the largest files of the kinds that parsers choke on. What took quadratic time would
// take a quarter of an hour; the bound is loose for the sake of busy machines.
func TestLargeFilesTakeBoundedTime(t *testing.T) {
	for _, unit := range []string{
		"[", "{", "- ", "? ", "# c\n", "a: 1\n", "- a: b\n  # c\n", "[a,\n# c\n", "{a: ", "\t\n", "--- a\n", "!a ", "&a ", "*a ", "'", "9",
	} {
		start := time.Now()
		_, err := ParseManifest("f.yaml", []byte(strings.Repeat(unit, maxFileBytes/len(unit))), DefaultHost())
		require.Error(t, err)
		require.Less(t, time.Since(start), time.Minute, "%q", unit)
	}
	key := `"` + strings.Repeat("k", maxFileBytes/2) + `"` // paths repeat keys: this must not multiply
	_, err := ParseManifest("f.yaml", []byte("? "+key+"\n: ["+strings.Repeat("1,", maxFileBytes/4-16)+"]"), DefaultHost())
	require.ErrorContains(t, err, "unknown key")
}
