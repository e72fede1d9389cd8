package docs_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/limits"
)

const guestLimitsPage = "docs/guest-limits.md"

// TestTheTableOfLimitsOfACall compares it with one made of the constants.
func TestTheTableOfLimitsOfACall(t *testing.T) {
	var b strings.Builder
	b.WriteString("| limit | key | default | ceiling |\n|---|---|---|---|\n")
	for _, r := range callRows() {
		key := r.key
		if key != "" {
			key = " `" + key + "`"
		}
		ceiling := r.ceiling
		if ceiling != "" {
			ceiling = " " + ceiling
		}
		fmt.Fprintf(&b, "| [%s](#%s) |%s | %s |%s |\n", r.name, r.anchor, key, r.otherwise, ceiling)
	}
	require.Equal(t, b.String(), between(t, read(t, guestLimitsPage), "limits of a call"))
}

// callRow is a limit of the page.
type callRow struct{ name, anchor, key, otherwise, ceiling string }

func callRows() []callRow {
	d, c := config.DefaultDelivery().Guest, config.DefaultCeilings().Guest
	const module = "the-module-and-its-initialisation"
	return []callRow{
		{"fuel", "fuel", "fuel", count(d.Fuel), count(c.Fuel)},
		{"time", "time", "call_time", span(d.CallDuration), span(c.CallDuration)},
		{"memory", "memory", "memory", size(d.MemoryBytes), size(c.MemoryBytes)},
		{"table elements", "table-elements", "table_elements", count(d.TableElements), count(c.TableElements)},
		{"call depth", "call-depth", "call_depth", count(d.CallDepth), count(c.CallDepth)},
		{"outbox, messages", "outbox", "outbox_messages", count(d.OutboxMessages), count(c.OutboxMessages)},
		{"outbox, bytes", "outbox", "outbox_bytes", size(d.OutboxBytes), size(c.OutboxBytes)},
		{"host calls", "host-calls", "host_calls", count(d.HostCalls), count(c.HostCalls)},
		{"log", "log", "log_bytes", size(d.LogBytes), size(c.LogBytes)},
		{"result", "result", "result_bytes", size(d.ResultBytes), size(c.ResultBytes)},
		{"handles", "handles", "", count(limits.HandlesPerCall), ""},
		{"what the host holds", "handles", "", size(limits.HeldBytes), ""},
		{"the module", module, "", size(limits.GuestModuleBytes), ""},
		{"fuel of its initialisation", module, "", count(limits.InitFuel), ""},
		{"time of its initialisation", module, "", span(limits.InitDuration), ""},
	}
}

func TestThePageOfLimitsHasEveryKeyOfAManifest(t *testing.T) {
	rows := callRows()
	for _, k := range config.LimitKeys() {
		require.True(t, slices.ContainsFunc(rows, func(r callRow) bool { return r.key == k.Key }), k.Key)
	}
}

// TestThePageOfLimitsHasNoOtherNumbers looks at all that isn't an example: but for the table, which is checked, a number
// would be one that nothing keeps true. The size of a page is WebAssembly's own.
func TestThePageOfLimitsHasNoOtherNumbers(t *testing.T) {
	text := read(t, guestLimitsPage)
	text = strings.Replace(text, between(t, text, "limits of a call"), "", 1)
	text = regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(text, "")
	text = regexp.MustCompile("`[^`]*`").ReplaceAllString(text, "")
	text = strings.Replace(text, "pages of 64 KiB", "pages", 1)
	require.Empty(t, regexp.MustCompile(`[^−]\b[0-9]+`).FindAllString(text, -1))
}

// TestThePageOfLimitsNamesReasonsThatExist looks up the reasons of its table, and that each has its row in the page of reasons.
func TestThePageOfLimitsNamesReasonsThatExist(t *testing.T) {
	_, table, found := strings.Cut(read(t, guestLimitsPage), "| limit | at the limit | reason | retried |\n|---|---|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	named := map[string]bool{}
	for line := range strings.Lines(table) {
		for _, m := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(strings.Split(line, "|")[3], -1) {
			require.Contains(t, read(t, "docs/failure-reasons.md"), "| `"+m[1]+"` |", line)
			named[m[1]] = true
		}
	}
	for _, r := range []string{
		dispatcher.ReasonOutOfFuel, dispatcher.ReasonTimeout, dispatcher.ReasonOutOfMemory, dispatcher.ReasonStackOverflow,
		dispatcher.ReasonHostCallLimit, dispatcher.ReasonHandleLimit, dispatcher.ReasonOutputLimit,
	} {
		require.True(t, named[r], "%s is missing", r)
	}
}

// checkInvoke compares what the page shows of invoke with a run on the README's consumer, but for numbers.
func checkInvoke(t *testing.T, binary, module string) {
	t.Helper()
	page := read(t, guestLimitsPage)
	blocks := fenced(between(t, page, "invoke"), "text")
	require.Len(t, blocks, 1)
	command := regexp.MustCompile(`(?m)^longshore (invoke .*)$`).FindStringSubmatch(page)
	require.NotNil(t, command)
	out := run(t, filepath.Dir(module), nil, "sh", "-c", "'"+binary+"' "+command[1])
	shape := func(text string) string {
		text = regexp.MustCompile(`[0-9][0-9,._]*(ms|µs|s)\b`).ReplaceAllString(text, "T")
		return regexp.MustCompile(`[0-9][0-9,._]*`).ReplaceAllString(text, "N")
	}
	require.Equal(t, shape(blocks[0]), shape(out))
}
