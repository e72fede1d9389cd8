package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/cli"
)

// mostCommands is how many a newcomer may need to see an edit at work.
const mostCommands = 9

// TestTheDevelopingPageIsATranscript does what the page says, with the Go toolchain and nothing from the network, and compares
// what the program says with what the page shows.
func TestTheDevelopingPageIsATranscript(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a guest with the Go toolchain, three times")
	}
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "developing.md"))
	require.NoError(t, err)
	_, text, found := strings.Cut(string(raw), "<!-- transcript -->\n")
	require.True(t, found)
	text, _, found = strings.Cut(text, "<!-- end -->")
	require.True(t, found)

	r := reader{t: t, dir: t.TempDir()}
	step := regexp.MustCompile("(?ms)^```(sh|text)\n(.*?)^```$|in `([^`]+)` replace `([^`]+)` by `([^`]+)`")
	for _, m := range step.FindAllStringSubmatch(text, -1) {
		switch m[1] {
		case "sh":
			for line := range strings.Lines(m[2]) {
				r.command(strings.Fields(line))
			}
		case "text":
			r.compare(m[2])
		default:
			r.edit(m[3], m[4], m[5])
		}
	}
	require.NotNil(t, r.dev)
	require.LessOrEqual(t, r.commands, mostCommands)
	require.Equal(t, 5, r.compared, "blocks of output")
	require.Equal(t, cli.ExitOK, r.dev.signal(t, syscall.SIGINT), r.dev.stderr.String())
}

// reader is somebody who does what a page says.
type reader struct {
	t        *testing.T
	dir      string   // where the shell is
	dev      *process // in the first shell, once it was started
	seen     int      // of what dev said
	last     []string // command whose output comes next; nil: it is dev's
	commands int
	compared int
}

// offline has the Go toolchain ask nobody.
func offline() []string { return []string{"GOPROXY=off", "GOFLAGS=", "GOWORK=off"} }

// command does a line of a shell block.
func (r *reader) command(words []string) {
	r.t.Helper()
	r.commands++
	if words[0] == "cd" {
		r.dir = filepath.Join(r.dir, words[1])
		return
	}
	require.Equal(r.t, "longshore", words[0])
	switch r.last = words[1:]; words[1] {
	case "dev":
		require.Len(r.t, words, 2)
		r.dev, r.last = startDev(r.t, r.dir, offline()...), nil
	case "peek": // it is run until it prints what the page shows
	default:
		r.run()
	}
}

// run runs the last command and returns what it printed.
func (r *reader) run() string {
	r.t.Helper()
	var said strings.Builder
	cmd := program(r.t, r.dir, r.last...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	require.NoError(r.t, err, "%s: %s", r.last, &said)
	return string(out)
}

// edit replaces a text that is in a file once, as an editor does it that saves by renaming.
func (r *reader) edit(name, old, text string) {
	r.t.Helper()
	file := filepath.Join(r.dir, name)
	raw, err := os.ReadFile(file)
	require.NoError(r.t, err)
	require.Equal(r.t, 1, strings.Count(string(raw), old), old)
	require.NoError(r.t, os.WriteFile(file+"~", []byte(strings.Replace(string(raw), old, text, 1)), 0o600))
	require.NoError(r.t, os.Rename(file+"~", file))
	r.last = nil
}

// compare waits until what was printed is what the page shows.
func (r *reader) compare(shown string) {
	r.t.Helper()
	r.compared++
	var printed string
	defer func() {
		if r.t.Failed() {
			r.t.Logf("dev said:\n%s", &r.dev.stderr)
		}
	}()
	for deadline := time.Now().Add(devTimeout); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if printed = r.printed(); alike(printed) != alike(shown) {
			continue
		}
		if r.last == nil {
			r.seen += len(printed)
		}
		r.last = nil
		return
	}
	require.Equal(r.t, alike(shown), alike(printed))
}

// printed returns what the last command prints now, or what dev said since it was compared last.
func (r *reader) printed() string {
	r.t.Helper()
	if r.last == nil {
		return r.said()[r.seen:]
	}
	return r.run()
}

// said returns what dev said so far, without the lines of the host's log.
func (r *reader) said() string {
	return regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d\.\d{3}\t.*\n`).ReplaceAllString(r.dev.stderr.String(), "")
}

// alike returns a text without what differs each time: numbers, digests and folders.
func alike(text string) string {
	for _, p := range [][2]string{{`module [0-9a-f]{12}`, "module D"}, {` in /\S+;`, " in F;"}, {`[0-9]+`, "N"}} {
		text = regexp.MustCompile(p[0]).ReplaceAllString(text, p[1])
	}
	return text
}
