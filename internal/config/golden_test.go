package config

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestFaults compares what users read about each faulty file with its golden file.
func TestFaults(t *testing.T) {
	for folder, parse := range map[string]func(file string, data []byte) error{
		"manifest": func(file string, data []byte) error {
			_, err := ParseManifest(file, data, DefaultHost())
			return err
		},
		"host": func(file string, data []byte) error {
			_, err := ParseHost(file, data, Overrides{})
			return err
		},
	} {
		files, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, path := range files {
			t.Run(folder+"/"+strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
				data, err := os.ReadFile(path)
				require.NoError(t, err)
				err = parse(filepath.Base(path), data)
				require.ErrorAs(t, err, new(Faults))
				compareGolden(t, strings.TrimSuffix(path, ".yaml")+".golden", err.Error()+"\n")
			})
		}
	}
}

func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestFiveFaultsAreFiveLines(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "manifest", "five-faults.yaml"))
	require.NoError(t, err)
	_, err = ParseManifest("five-faults.yaml", data, DefaultHost())
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 5)
	for _, line := range lines {
		require.Regexp(t, `^five-faults\.yaml:\d+:\d+: consumers\[0\]\.[a-z_.]+: .+ \(.+\)$`, line)
	}
}

func TestFaultsOverTheListAreCounted(t *testing.T) {
	text := "consumers:\n" + strings.Repeat("  - x\n", maxListedFaults+7)
	_, err := ParseManifest("m.yaml", []byte(text), DefaultHost())
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, maxListedFaults+1)
	require.Equal(t, "m.yaml: 7 more faults are not listed", lines[maxListedFaults])
	var faults Faults
	require.ErrorAs(t, err, &faults)
	require.Len(t, faults, maxListedFaults+7)
}
