package docs_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	demoOrders  = "300"
	demoTimeout = 5 * time.Minute
)

// TestWithTheProgram builds the binary and holds the README against it.
func TestWithTheProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program and guests, and runs the demo")
	}
	binary := filepath.Join(t.TempDir(), "longshore")
	run(t, root, nil, "go", "build", "-o", binary, "./cmd/host")

	t.Run("CommandsAndFlagsAreInTheHelp", func(t *testing.T) { checkCommands(t, binary) })
	t.Run("TheQuickStartIsValid", func(t *testing.T) { checkQuickStart(t, binary) })
	t.Run("TheTranscriptIsThatOfARealRun", func(t *testing.T) { checkTranscript(t, binary) })
}

// run runs a command in dir and returns what it printed.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), demoTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %s\n%s", name, strings.Join(args, " "), out)
	return string(out)
}

// checkCommands looks up each command of the README, with its flags, in the program's own help.
func checkCommands(t *testing.T, binary string) {
	t.Helper()
	command := regexp.MustCompile(`(?:longshore|go run \./cmd/host)((?: [a-z]+)+)([^|)"` + "`" + `\n]*)`)
	checked := 0
	for _, m := range command.FindAllStringSubmatch(commandText(read(t, "README.md")), -1) {
		words, flags := strings.Fields(m[1]), regexp.MustCompile(`(^| )--?[a-z-]+`).FindAllString(m[2], -1)
		if words[0] == "help" {
			continue
		}
		help := run(t, root, nil, binary, words[0], "--help")
		require.Contains(t, help, "longshore "+words[0], m[0])
		if strings.Contains(help, "Available Commands:") {
			require.Greater(t, len(words), 1, m[0])
			require.Contains(t, help, "\n  "+words[1]+" ", m[0])
			help = run(t, root, nil, binary, words[0], words[1], "--help")
		}
		for _, f := range flags {
			require.Contains(t, help, strings.TrimSpace(f), m[0])
		}
		checked++
	}
	require.Greater(t, checked, 10)
}

// commandText returns the parts of a document that hold commands: shell blocks, indented lines and code in lines.
func commandText(text string) string {
	parts := fenced(text, "sh")
	for _, pattern := range []string{`(?m)^    (go run .*)$`, "`((?:longshore|go run)[^`]*)`"} {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			parts = append(parts, m[1])
		}
	}
	return strings.Join(parts, "\n")
}

// checkQuickStart builds the consumer that the README shows, with the command that it shows, validates its files, and runs
// it as the page of limits does.
func checkQuickStart(t *testing.T, binary string) {
	t.Helper()
	text := read(t, "README.md")
	dir := t.TempDir()
	sources, files := fenced(text, "go"), fenced(text, "yaml")
	require.Len(t, sources, 1)
	require.Len(t, files, 2)
	for name, content := range map[string]string{"main.go": sources[0], "consumers.yaml": files[0], "longshore.yaml": files[1]} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	sdk, err := filepath.Abs(filepath.Join(root, "guests", "go"))
	require.NoError(t, err)
	const module = "github.com/longshore/longshore/guests/go"
	run(t, dir, nil, "go", "mod", "init", "greeter")
	run(t, dir, nil, "go", "mod", "edit", "-require="+module+"@v0.0.0", "-replace="+module+"="+sdk)
	build := regexp.MustCompile(`(?m)^GOOS=wasip1 .*$`).FindString(text)
	require.NotEmpty(t, build)
	run(t, dir, []string{"GOFLAGS=", "GOWORK=off"}, "sh", "-c", build)
	require.Contains(t, run(t, dir, nil, binary, "validate"), "valid: 1 consumer")
	checkInvoke(t, binary, filepath.Join(dir, "greeter.wasm"))
}

// checkTranscript compares the README's transcript with a run of fewer orders. Numbers differ, and so do the lines that
// only show progress; all others are the same.
func checkTranscript(t *testing.T, binary string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), demoTimeout)
	defer cancel()
	var story, rest bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, "demo", "--messages", demoOrders)
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, &story, &rest
	require.NoError(t, cmd.Run(), "%s%s", &story, &rest)

	blocks := fenced(between(t, read(t, "README.md"), "demo transcript"), "text")
	require.Len(t, blocks, 1)
	shown, showsProgress := shape(blocks[0])
	told, hasProgress := shape(story.String())
	require.Equal(t, told, shown)
	require.Equal(t, hasProgress, showsProgress)
}

// shape returns the lines of a transcript with numbers replaced, and the kinds of lines that show progress. How many dead
// letters have which reason is told in any order.
func shape(transcript string) (lines, progress []string) {
	number := regexp.MustCompile(`[0-9][0-9,]*`)
	isProgress := regexp.MustCompile(`^ +N of N `)
	isReason := regexp.MustCompile(`^ +N × `)
	reasons := 0
	for line := range strings.Lines(transcript) {
		line = number.ReplaceAllString(strings.TrimRight(line, " \n"), "N")
		if isProgress.MatchString(line) {
			progress = append(progress, line)
			continue
		}
		lines = append(lines, line)
		if !isReason.MatchString(line) {
			reasons = 0
			continue
		}
		reasons++
		slices.Sort(lines[len(lines)-reasons:])
	}
	slices.Sort(progress)
	return lines, slices.Compact(progress)
}
