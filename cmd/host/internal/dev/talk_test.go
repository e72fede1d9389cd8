package dev

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestOutput(t *testing.T) {
	say := func(parts ...string) string {
		var said bytes.Buffer
		o := &output{talk: NewTalk(&said)}
		for _, p := range parts {
			n, err := o.Write([]byte(p))
			require.NoError(t, err)
			require.Len(t, p, n)
		}
		o.end()
		return said.String()
	}
	t.Run("IsWhatTheCompilerSaidLineByLine", func(t *testing.T) {
		require.Equal(t, "a.go:1:2: no\n\n\twhy: “x”\nlast\n", say("a.go:1:", "2: no\n\n\twhy: \xe2", "\x80\x9cx”\nla", "st"))
		require.Equal(t, "windows\n", say("windows\r\n"))
	})
	t.Run("EscapesWhatDrivesATerminal", func(t *testing.T) {
		require.Equal(t, "\\u001b[2J \\u202e \\ufffd\\u000d1\n", say("\x1b[2J \u202e \xff\r1\n"))
	})
	t.Run("ShowsALongLineInParts", func(t *testing.T) {
		long := strings.Repeat("é", limits.BuildLineBytes) // of two bytes each
		said := say("x", long, "\n")
		require.Equal(t, "x"+long, strings.ReplaceAll(said, "\n", ""))
		for line := range strings.Lines(said) {
			require.LessOrEqual(t, len(line), limits.BuildLineBytes+1)
		}
	})
	t.Run("EndsWhereABuildSaysTooMuch", func(t *testing.T) {
		line := strings.Repeat("x", 1023) + "\n"
		said := say(strings.Repeat(line, limits.BuildOutputBytes/1024), "one more\n", "and more\n")
		require.Equal(t, limits.BuildOutputBytes/1024, strings.Count(said, line))
		require.True(t, strings.HasSuffix(said, "\nlongshore: the build has said 1048576 bytes, and what more it says is not shown\n"))
	})
}
