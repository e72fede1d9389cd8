package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheSecurityPageNamesTestsThatExist looks up each test that the page gives as a proof.
func TestTheSecurityPageNamesTestsThatExist(t *testing.T) {
	var sources strings.Builder
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		sources.Write(text)
		return err
	}))
	all := sources.String()
	named := regexp.MustCompile("`(Test\\w+)(?:/(\\w+))?`").FindAllStringSubmatch(read(t, "docs/security.md"), -1)
	require.Greater(t, len(named), 15)
	for _, m := range named {
		require.Contains(t, all, "func "+m[1]+"(t *testing.T)")
		require.Contains(t, all, `"`+m[2])
	}
}
