package demo

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/examples/misbehaving"
	"github.com/longshore/longshore/internal/config"
)

func TestInput(t *testing.T) {
	for _, n := range []int{MinMessages, 999, 10_000} {
		in := input{orders: n}
		big, entries := 0, 0
		for i := range n {
			if len(in.order(i).Lines) > smallOutbox {
				big++
			}
			entries += in.lines(i)
		}
		require.Equal(t, bigOrders, big)
		require.Len(t, in.entries(), entries)
	}
}

func TestChecks(t *testing.T) {
	in, mods := input{orders: MinMessages}, misbehaving.All()
	const sent = 1000
	good := func() found {
		f := found{published: sent + 1, acked: in.orders, dead: expectedDead(mods), forged: 1, redriven: bigOrders, entries: map[string]int{}}
		for id := range in.entries() {
			f.entries[id] = 1
		}
		return f
	}
	// failed returns what the checks that fail are about.
	failed := func(f found) []string {
		var out []string
		for _, c := range f.checks(in, mods, sent) {
			if !c.ok() {
				out = append(out, fmt.Sprintf("%s %d", c.what, c.got))
			}
		}
		return out
	}
	require.Empty(t, failed(good()))
	require.Len(t, figures(good().checks(in, mods, sent)), 11)

	first := orderID(0) + "/1"
	for want, spoil := range map[string]func(*found){
		"lost 1":                        func(f *found) { delete(f.entries, first) },
		"duplicated 2":                  func(f *found) { f.entries[first] = 3 },
		"entries that nobody ordered 1": func(f *found) { f.entries["forged/1"] = 1 },
		"messages published by guests that then failed 1": func(f *found) { f.leaked = 1 },
		"dead letters: timeout 0":                         func(f *found) { f.dead = maps.Clone(f.dead); f.dead["timeout"] = 0 },
		"dead letters: context-forged 0":                  func(f *found) { f.forged = 0 },
	} {
		f := good()
		spoil(&f)
		require.Contains(t, failed(f), want)
	}
}

func TestFilesAreValid(t *testing.T) {
	mods := misbehaving.All()
	w := workspace{dir: t.TempDir()}
	require.NoError(t, w.emit(mods))
	for _, name := range []string{"intake", "ledger"} {
		require.NoError(t, os.WriteFile(w.file(name+".wasm"), nil, 0o600))
	}
	require.NoError(t, w.write(configFile, hostConfig(mods)))
	require.NoError(t, w.write(manifestFile, manifest(mods, smallOutbox)))
	host, err := config.LoadHost(w.file(configFile), config.Overrides{})
	require.NoError(t, err)
	plan, err := config.LoadManifest(w.file(manifestFile), host)
	require.NoError(t, err)
	require.Len(t, plan.Consumers, len(mods)+2)
	for i, m := range mods {
		require.Equal(t, m.Limits, plan.Consumers[i+2].Guest, m.Name)
	}
}

func TestFindRoot(t *testing.T) {
	root := t.TempDir()
	inner := filepath.Join(root, "a", "b")
	require.NoError(t, os.MkdirAll(inner, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "go.mod"), []byte("module "+modulePath+"\n\ngo 1.26\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "a", "go.mod"), []byte("module example.com/other\n"), 0o600))
	got, err := findRoot(inner)
	require.NoError(t, err)
	require.Equal(t, root, got)
	_, err = findRoot(filepath.Dir(root))
	require.ErrorContains(t, err, "is not in a checkout")
}

func TestScreen(t *testing.T) {
	show := func(live bool) string {
		var b bytes.Buffer
		s := Screen{Out: &b, Live: live}
		s.step("Step", "one")
		for i := range 101 {
			s.progress(i, 100, "done")
		}
		s.endProgress()
		return b.String()
	}
	t.Run("OnATerminalTheBarIsRedrawnInPlace", func(t *testing.T) {
		got := show(true)
		require.Equal(t, 2, strings.Count(got, "\n"))
		require.Equal(t, 101, strings.Count(got, "\r"))
		require.NotContains(t, got, bold)
	})
	t.Run("ElsewhereThereIsALineForEachTenth", func(t *testing.T) {
		got := show(false)
		require.Equal(t, 11, strings.Count(got, "\n"))
		require.NotContains(t, got, "\r")
		require.NotContains(t, got, "\x1b")
	})
	t.Run("NumbersAreGrouped", func(t *testing.T) {
		for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
			require.Equal(t, want, count(n))
		}
	})
}
