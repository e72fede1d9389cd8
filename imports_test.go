package longshore_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const modulePath = "github.com/longshore/longshore"

// layers says what each package may import of this module: the packages listed, and what lies below its own folder. The
// first entry whose prefix matches a package counts. Tests may import upwards; they are not read.
var layers = []struct {
	prefix string
	may    []string
}{
	{"limits", nil},
	{"signedctx", []string{"limits"}},
	{"substrate/internal/failpoint", nil},
	{"substrate/internal/store", []string{"limits", "substrate/internal/failpoint", "substrate/internal/payload"}},
	{"substrate/internal", []string{"limits", "substrate/internal/failpoint"}},
	{"substrate", []string{"limits", "substrate/internal"}},
	{"wasi/messaging", []string{"limits"}},
	{"runtime/internal/wasmbin", []string{"limits"}},
	{"runtime/internal/meter", []string{"limits", "runtime/internal/wasmbin"}},
	{"runtime/internal/cow", []string{"limits"}},
	{"runtime", []string{"limits", "runtime/internal", "wasi/messaging"}},
	{"internal/filter", []string{"limits"}},
	{"dispatcher", []string{"limits", "signedctx", "substrate", "wasi/messaging", "runtime", "internal/filter"}},
	{"internal/config", []string{"limits", "internal/filter"}},
	{"internal/hostile", []string{"limits", "wasi/messaging", "runtime"}},
	{"internal/guestbuild", []string{"limits", "internal/config", "runtime", "wasi/messaging"}},
	{"internal/proof", nil},
	{"docs", nil},
	{"guests", nil},
	{"examples", []string{"limits"}},
	{"cmd/host", []string{"limits", "signedctx", "substrate", "wasi/messaging", "runtime", "dispatcher", "internal", "docs", "examples", "guests"}},
}

// foreign says which packages alone may import a dependency whose types must not spread.
var foreign = map[string][]string{
	"github.com/dgraph-io/badger":   {"substrate/internal/store"},
	"github.com/tetratelabs/wazero": {"runtime", "wasi/messaging"},
	"github.com/golang-jwt/jwt":     {"signedctx"},
	"github.com/expr-lang/expr":     {"internal/filter"},
	"github.com/spf13/cobra":        {"cmd/host"},
	"github.com/danielgtaylor/huma": {"cmd/host"},
	"github.com/prometheus/":        {"cmd/host"},
	"go.yaml.in/yaml":               {"internal/config", "cmd/host"},
	"go.uber.org/zap":               {"dispatcher", "cmd/host"},
}

func TestImportsGoDownOnly(t *testing.T) {
	files := 0
	for _, f := range goFiles(t) {
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.ImportsOnly)
		require.NoError(t, err)
		files++
		from := filepath.ToSlash(filepath.Dir(f))
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			if own, ok := strings.CutPrefix(imported, modulePath+"/"); ok && !mayImport(from, own) {
				t.Errorf("%s imports %s: %s may import only %v", f, own, from, allowed(from))
			}
			for dependency, owners := range foreign {
				if strings.HasPrefix(imported, dependency) && !slices.ContainsFunc(owners, func(o string) bool { return within(from, o) }) {
					t.Errorf("%s imports %s: only %v may", f, imported, owners)
				}
			}
		}
	}
	require.Greater(t, files, 100, "the files of the module were read")
}

func TestImportRuleCatchesAnUpwardImport(t *testing.T) {
	for from, to := range map[string]string{
		"limits":                   "substrate",
		"substrate":                "signedctx",
		"signedctx":                "substrate",
		"wasi/messaging":           "dispatcher",
		"substrate/internal/store": "substrate",
		"runtime":                  "substrate",
		"dispatcher":               "cmd/host/internal/api",
		"internal/config":          "dispatcher",
		"unknown":                  "limits",
	} {
		require.False(t, mayImport(from, to), "%s -> %s", from, to)
	}
	require.True(t, mayImport("substrate", "substrate/internal/journal"))
	require.True(t, mayImport("cmd/host/internal/cli", "cmd/host/internal/client"))
}

// goFiles returns the module's files that are not tests, without nested modules.
func goFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	require.NoError(t, filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			nested, err := filepath.Glob(filepath.Join(name, "go.mod"))
			if err != nil {
				return err
			}
			if name != "." && (len(nested) > 0 || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") {
			files = append(files, name)
		}
		return nil
	}))
	return files
}

func mayImport(from, to string) bool {
	if within(to, from) {
		return true
	}
	for _, l := range layers {
		if within(from, l.prefix) {
			return within(to, l.prefix) && l.prefix == "cmd/host" ||
				slices.ContainsFunc(l.may, func(m string) bool { return within(to, m) && !hidden(from, to) })
		}
	}
	return false
}

// hidden reports whether to is internal to a folder that from is not in, which the compiler would refuse as well.
func hidden(from, to string) bool {
	owner, _, internal := strings.Cut(to, "/internal/")
	return internal && !within(from, owner)
}

func allowed(from string) []string {
	for _, l := range layers {
		if within(from, l.prefix) {
			return l.may
		}
	}
	return nil
}

func within(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }
