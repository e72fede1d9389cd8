package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// functions returns the methods of a package's files as "type.method", and its functions by name.
func functions(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	require.NoError(t, err)
	var names []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is {
				continue
			}
			prefix := ""
			if f.Recv != nil {
				prefix = receiver(f.Recv.List[0].Type) + "."
			}
			names = append(names, prefix+f.Name.Name)
		}
	}
	require.NotEmpty(t, names)
	return names
}

func receiver(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// TestTheStateMachineNamesFunctions looks up what the page calls its arrows, and whether each kind of frame has one.
func TestTheStateMachineNamesFunctions(t *testing.T) {
	page := read(t, "docs/state-machine.md")
	there := functions(t, "substrate")
	link := regexp.MustCompile(`\]\([^)]*\)`)
	named := regexp.MustCompile(`\b[A-Za-z]+\.[A-Za-z]+\b`).FindAllString(link.ReplaceAllString(page, "]"), -1)
	named = slices.DeleteFunc(named, func(name string) bool { return strings.HasSuffix(name, ".md") })
	require.Greater(t, len(named), 60)
	for _, name := range named {
		require.Contains(t, there, name)
	}
	for _, name := range there {
		if strings.HasSuffix(name, "Frame.apply") {
			require.Contains(t, named, name, "a frame that the page does not tell of")
		}
	}
}
