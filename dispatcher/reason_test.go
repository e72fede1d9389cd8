package dispatcher

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
)

// allReasons returns the class of every reason that a message, a receipt or a paused consumer can have: the constants.
func allReasons(t *testing.T) (all []string) {
	t.Helper()
	code, err := os.ReadFile("reason.go")
	require.NoError(t, err)
	for _, named := range regexp.MustCompile(`(?m)^\tReason\w+ += "([a-z-]+)"`).FindAllStringSubmatch(string(code), -1) {
		all = append(all, named[1])
	}
	require.NotEmpty(t, all)
	return all
}

func TestReasons(t *testing.T) {
	t.Run("EachIsExplainedOnThePageAndThePageExplainsNoOther", func(t *testing.T) {
		page, err := os.ReadFile("../docs/failure-reasons.md")
		require.NoError(t, err)
		var explained []string
		for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| .+ \\| .+ \\| .+ \\|$").FindAllStringSubmatch(string(page), -1) {
			explained = append(explained, row[1])
		}
		require.ElementsMatch(t, allReasons(t), explained)
	})
	t.Run("EveryOutcomeOfAGuestHasOne", func(t *testing.T) {
		for c := runtime.GuestError; c <= runtime.ModuleFault; c++ {
			class := strings.FieldsFunc(runtime.Outcome{Class: c, Detail: "7"}.Reason(), func(r rune) bool { return r == ':' || r == ' ' })[0]
			require.Contains(t, allReasons(t), class, "class %d", c)
		}
	})
}

func TestSanitize(t *testing.T) {
	for in, want := range map[string]string{
		"out-of-fuel":                       "out-of-fuel",
		"  trimmed \n":                      "trimmed",
		"a\x1b[31mb\tc\r\nd":                "a [31mb c  d",
		"bidi \u202egpj.exe":                "bidi  gpj.exe",
		"zero\u200bwidth":                   "zero width",
		"bad \xff\xfe byte":                 "bad    byte",
		"näher":                             "näher",
		strings.Repeat("é", 200):            strings.Repeat("é", 128),
		"x" + strings.Repeat("é", 200):      "x" + strings.Repeat("é", 127),
		strings.Repeat("a", 256) + "b":      strings.Repeat("a", 256),
		strings.Repeat("a", 250) + "      ": strings.Repeat("a", 250),
	} {
		require.Equal(t, want, sanitize(in), "%q", in)
	}
	t.Run("WhateverComesInWhatGoesOutPrintsAndFits", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			in := string(rapid.SliceOfN(rapid.Byte(), 0, 400).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
			out := sanitize(in)
			bad := func(r rune) bool { return !unicode.IsPrint(r) }
			if len(out) > limits.ReasonBytes || !utf8.ValidString(out) || slices.ContainsFunc([]rune(out), bad) {
				t.Fatalf("%q became %q", in, out)
			}
			if sanitize(out) != out {
				t.Fatalf("%q is not stable", out)
			}
		})
	})
}

func TestReasonsOfTheLogAreItsOwnWords(t *testing.T) {
	require.Equal(t, substrate.ReasonMaxAttempts, ReasonMaxAttempts)
	require.Equal(t, substrate.ReasonCorrupt, ReasonCorrupt)
	require.Equal(t, substrate.ReasonMissing, ReasonMissing)
	require.Equal(t, substrate.ReasonTTLExpired, ReasonTTLExpired)
	require.Equal(t, substrate.ReasonDeadline, ReasonDeadline)
}
