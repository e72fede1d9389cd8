package cli

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/api"
	"github.com/longshore/longshore/cmd/host/internal/app"
	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/explain"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/docs"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
)

// constants returns the values of the constants of a package whose names have a prefix.
func constants(t *testing.T, folder, prefix string) (values []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "..", folder, "*.go"))
	require.NoError(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, is := n.(*ast.ValueSpec)
			if !is || !strings.HasPrefix(spec.Names[0].Name, prefix) || len(spec.Values) == 0 {
				return true
			}
			if value, is := spec.Values[0].(*ast.BasicLit); is {
				text, err := strconv.Unquote(value.Value)
				if err != nil {
					text = value.Value // a number
				}
				values = append(values, text)
			}
			return true
		})
	}
	require.NotEmpty(t, values, folder)
	return values
}

// explained runs `longshore explain`.
func explained(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = Execute(t.Context(), Streams{Out: &o, Err: &e}, append([]string{"explain"}, args...))
	return o.String(), e.String(), code
}

func TestExplain(t *testing.T) {
	t.Run("KnowsEveryCodeOfTheProgramAndThePagesHaveNoOther", func(t *testing.T) {
		kinds := map[string][]string{
			"exit code":          constants(t, "cmd/host/internal/cli", "Exit"),
			"error of a command": constants(t, "cmd/host/internal/cli", "code"),
			"problem over HTTP":  constants(t, "cmd/host/internal/wire", "Code"),
			"failure reason":     constants(t, "dispatcher", "Reason"),
		}
		known := map[string][]string{}
		for _, e := range explain.All() {
			known[e.Kind] = append(known[e.Kind], e.Code)
			require.NotEmpty(t, e.Says, e.Code)
			for _, f := range e.Says {
				require.NotEmpty(t, f.Text, "%s: %s", e.Code, f.Label)
			}
		}
		for kind, codes := range kinds {
			require.ElementsMatch(t, codes, known[kind], kind)
			for _, code := range codes {
				out, errs, exit := explained(t, code)
				require.Equal(t, ExitOK, exit, errs)
				require.Contains(t, out, code+": "+kind)
			}
		}
		for _, reason := range constants(t, "substrate", "Reason") {
			require.Contains(t, known["failure reason"], reason, "of the log")
		}
	})
	t.Run("TakesAReasonAsItIsShown", func(t *testing.T) {
		for _, args := range [][]string{{"guest-error: other"}, {"guest-error:", "other"}, {"GUEST-ERROR"}} {
			out, _, _ := explained(t, args...)
			require.Contains(t, out, "guest-error: failure reason. The guest failed on this message\n")
		}
		out, _, _ := explained(t, "exit", "3")
		require.Contains(t, out, "exit: failure reason.")
	})
	t.Run("NamesWhatMayBeMeant", func(t *testing.T) {
		for typed, meant := range map[string]string{"out-of-fule": "out-of-fuel", "quota": "quota-exceeded", "unreachable!": "unreachable"} {
			out, errs, exit := explained(t, typed)
			require.Equal(t, ExitUsage, exit)
			require.Empty(t, out)
			require.Contains(t, errs, "did you mean "+meant+"?")
		}
		_, errs, exit := explained(t, "\x1b[31m"+strings.Repeat("é", 500))
		require.Equal(t, ExitUsage, exit)
		require.Contains(t, errs, `"\x1b[31m`)
		require.Contains(t, errs, "is no code: `longshore explain` lists them")
		require.Less(t, len(errs), 500)
	})
	t.Run("ListsAllWithoutACode", func(t *testing.T) {
		out, _, exit := explained(t)
		require.Equal(t, ExitOK, exit)
		require.Equal(t, len(explain.All())+1, strings.Count(out, "\n"))
	})
	t.Run("PrintsWhatItsPageShows", func(t *testing.T) {
		_, shown, _ := strings.Cut(docs.Errors(), "$ longshore explain unreachable\n")
		shown, _, _ = strings.Cut(shown, "```")
		out, _, _ := explained(t, "unreachable")
		require.Equal(t, shown, out)
	})
}

func TestCodeOf(t *testing.T) {
	for want, err := range map[string]error{
		"usage":       usage(os.ErrNotExist),
		"faults":      config.Faults{{}},
		"unreachable": &client.UnreachableError{}, "module-refused": &runtime.ModuleError{}, "log-damaged": &app.DamageError{},
		"storage-fault": app.ErrStorageFault, "log-in-use": substrate.ErrLocked, "host-runs": api.ErrSocketInUse,
		"port-in-use": &net.OpError{Err: syscall.EADDRINUSE}, "timed-out": context.DeadlineExceeded, "not-empty": substrate.ErrNotEmpty,
		"no-backup": substrate.ErrBackup, "exists": errExists, "storage-full": substrate.ErrStorageFull,
		"quota-exceeded": &wire.Problem{Code: wire.CodeQuota}, "invalid": &wire.Problem{Status: 422}, "failed": &wire.Problem{Status: 502},
	} {
		code, _ := codeOf(fmt.Errorf("wrapped: %w", err))
		require.Equal(t, want, code)
		require.NotEmpty(t, explain.Find(code), code)
	}
	code, exit := codeOf(nil)
	require.Empty(t, code)
	require.Equal(t, ExitOK, exit)
}

func TestAnErrorNamesItsCode(t *testing.T) {
	var errs bytes.Buffer
	code := Execute(t.Context(), Streams{Err: &errs}, []string{"topics", "--socket", filepath.Join(t.TempDir(), "none")})
	require.Equal(t, ExitUnreachable, code)
	require.Contains(t, errs.String(), "\n  `longshore explain unreachable` says more\n")
}
