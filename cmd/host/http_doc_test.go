package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheHTTPPageIsComplete looks up each header, media type and problem code of package wire on the page about them.
func TestTheHTTPPageIsComplete(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "http.md"))
	require.NoError(t, err)
	page := string(raw)
	words := wireWords(t)
	require.Greater(t, len(words), 20)
	for name, word := range words {
		require.Contains(t, page, "`"+word+"`", name)
	}
}

// wireWords returns the constants of package wire that others have to write, by name.
func wireWords(t *testing.T) map[string]string {
	t.Helper()
	words := map[string]string{}
	files, err := filepath.Glob(filepath.Join("internal", "wire", "*.go"))
	require.NoError(t, err)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, id := range spec.Names {
				isWord := strings.HasSuffix(id.Name, "Header") || strings.HasSuffix(id.Name, "ContentType") || strings.HasPrefix(id.Name, "Code")
				if literal, ok := spec.Values[i].(*ast.BasicLit); ok && isWord {
					words[id.Name], err = strconv.Unquote(literal.Value)
					require.NoError(t, err)
				}
			}
			return true
		})
	}
	return words
}
