package dev

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/internal/config"
)

func TestNamedFolders(t *testing.T) {
	outer := t.TempDir()
	root := filepath.Join(outer, "manifest")
	for _, folder := range []string{"intake", "guests/ledger", "build", "target/x", "../beside", "../manifest.old"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, folder), 0o750))
	}
	for _, file := range []string{"build.sh", "intake/Cargo.toml", "intake/m.wasm", "build/tool.sh"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, file), nil, 0o600))
	}
	for what, c := range map[string]struct {
		command []string
		want    []string
	}{
		"an argument":                   {[]string{"go", "build", "./intake"}, []string{"intake"}},
		"all below":                     {[]string{"go", "build", "./intake/..."}, []string{"intake"}},
		"the folder of a file":          {[]string{"cargo", "build", "--manifest-path=intake/Cargo.toml"}, []string{"intake"}},
		"in a script":                   {[]string{"sh", "-c", "cd intake;make&&cat 'guests/ledger'/*"}, []string{"intake", "guests/ledger"}},
		"in a folder that it names":     {[]string{"go", "-C", "guests", "build", "./ledger"}, []string{"guests/ledger"}},
		"beside the manifest's":         {[]string{"go", "-C", "../beside", "build"}, []string{"../beside"}},
		"a name that begins like it":    {[]string{"make", "-C", "../manifest.old"}, []string{"../manifest.old"}},
		"none: the whole folder":        {[]string{"go", "build", ".", "./..."}, nil},
		"none: a file in it":            {[]string{"sh", "build.sh"}, nil},
		"none: the folder around it":    {[]string{"make", "-C", ".."}, nil},
		"none: what isn't there":        {[]string{"make", "elsewhere/x"}, nil},
		"none: the system's":            {[]string{"/bin/sh", "-c", "/usr/bin/true"}, nil},
		"none: folders of outputs":      {[]string{"build/tool.sh", "-o", "target/x"}, nil},
		"none: the module":              {[]string{"cc", "-o", "intake/m.wasm"}, nil},
		"the sources beside the module": {[]string{"cc", "-o", "intake/m.wasm", "intake"}, []string{"intake"}},
	} {
		t.Run(what, func(t *testing.T) {
			var want []string
			for _, folder := range c.want {
				want = append(want, filepath.Join(root, folder))
			}
			require.Equal(t, want, namedFolders(config.Consumer{Module: config.Module{Dir: root, Path: "intake/m.wasm"}, Build: c.command}))
		})
	}
}

// TestBelongs has a consumer that names a folder, one that names another and that of the first, and one that names none.
func TestBelongs(t *testing.T) {
	s := sources{root: "/m", folders: [][]string{{"/m/a"}, {"/m/b", "/beside", "/m/a/shared"}, nil}, consumers: make([]config.Consumer, 3)}
	for file, want := range map[string][]bool{
		"/m/a/main.go":     {true, false, true},
		"/m/a/shared/x.go": {true, true, true},
		"/m/b/main.go":     {false, true, true},
		"/m/go.mod":        {true, true, true},
		"/m/ab/main.go":    {true, true, true},
		"/beside/x.go":     {false, true, false},
	} {
		var got []bool
		for i := range s.consumers {
			got = append(got, s.belongs(file, i))
		}
		require.Equal(t, want, got, file)
	}
	require.Equal(t, []string{"/m", "/beside"}, s.trees())
}
