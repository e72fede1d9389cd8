// Package docs_test keeps what the documents say true: links, limits, commands, the quick start, the demo's transcript.
package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/limits"
)

const root = ".."

func read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(raw)
}

// documents returns the Markdown files of the top folder and of docs, as paths from the root.
func documents(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, f := range found {
			name, err := filepath.Rel(root, f)
			require.NoError(t, err)
			names = append(names, name)
		}
	}
	require.Contains(t, names, "README.md")
	return names
}

// between returns what stands between a marker and the next end marker.
func between(t *testing.T, text, marker string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, "<!-- "+marker+" -->\n")
	require.True(t, found, "no marker %q", marker)
	inside, _, found := strings.Cut(rest, "<!-- end -->")
	require.True(t, found, "no end of %q", marker)
	return inside
}

// fenced returns the blocks of a language.
func fenced(text, language string) []string {
	var blocks []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```").FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	checked := 0
	for _, name := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, name), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := name
			if file != "" {
				target = filepath.Join(filepath.Dir(name), file)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
				continue
			}
			if anchor != "" && !slices.Contains(anchors(read(t, target)), anchor) {
				t.Errorf("%s links to %s: %s has no such heading", name, m[1], target)
			}
			checked++
		}
	}
	require.Greater(t, checked, 20)
}

// anchors returns the ids that a document's headings get.
func anchors(text string) []string {
	var ids []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		id := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		ids = append(ids, strings.ReplaceAll(id, " ", "-"))
	}
	return ids
}

// TestLimitsTable compares the README's table with one made of the constants.
func TestLimitsTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("| what | default |\n|---|---|\n")
	for _, row := range limitRows() {
		fmt.Fprintf(&b, "| %s | %s |\n", row[0], row[1])
	}
	require.Equal(t, b.String(), between(t, read(t, "README.md"), "limits"))
}

func limitRows() [][2]string {
	d := config.DefaultDelivery()
	return [][2]string{
		{"fuel of a call, in instructions", count(d.Guest.Fuel)},
		{"time of a call", span(d.Guest.CallDuration)},
		{"memory; table elements; nested calls", list(size(d.Guest.MemoryBytes), count(d.Guest.TableElements), count(d.Guest.CallDepth))},
		{"outbox of a call", list(count(d.Guest.OutboxMessages)+" messages", size(d.Guest.OutboxBytes))},
		{"host calls; live handles of a call", list(count(d.Guest.HostCalls), count(limits.HandlesPerCall))},
		{"log of a call; result of the handler", list(size(d.Guest.LogBytes), size(d.Guest.ResultBytes))},
		{"log lines of a tenant, a second; bytes of a line", list(count(limits.GuestLogLinesPerSec), size(limits.GuestLogLineBytes))},
		{"module; fuel and time of its initialisation", list(size(limits.GuestModuleBytes), count(limits.InitFuel), span(limits.InitDuration))},
		{"messages in flight of a consumer (`concurrency`)", count(d.Concurrency)},
		{"payload bytes in flight of a consumer", size(limits.InFlightBytes)},
		{"in flight of the host", list(count(limits.HostInFlightMsgs)+" messages", size(limits.HostInFlightBytes))},
		{"lease; attempts", list(span(d.Lease), count(d.MaxAttempts))},
		{"delay of a retry", fmt.Sprintf("%s, doubled up to %s, less up to %d %%", span(d.Retry.Base), span(d.Retry.Cap), limits.RetryJitterPercent)},
		{"grace period at stop", span(limits.GraceDuration)},
		{"payload of a message; what a topic can allow at most", list(size(limits.MessageBytes), size(limits.MessageCeilingBytes))},
		{"metadata of a message", list(count(limits.MetadataPairs)+" pairs", size(limits.MetadataBytes))},
		{"content type; a metadata key that a guest sets", size(limits.KeyBytes)},
		{"name of a tenant; of a topic", list(size(limits.TenantBytes), size(limits.TopicBytes))},
		{"delay or time to live of a message", fmt.Sprintf("%d days", limits.OptionDuration/(24*time.Hour))},
		{
			"idempotency key; how long, and how many of a topic, are remembered",
			list(size(limits.KeyBytes), span(limits.IdempotencyWindow), count(limits.IdempotencyKeys)),
		},
		{"topics of a tenant", count(limits.TopicsPerTenant)},
		{"messages of one publish", count(limits.BatchMessages)},
		{"hops of a message from consumer to consumer", count(limits.Hops)},
		{
			"guests that wait for replies, of a tenant, of the host; replies to one request",
			list(count(limits.TenantWaiting), count(limits.WaitingRequests), count(limits.RequestReplies)+" messages of "+size(limits.ReplyBytes)),
		},
		{"burst of a topic's rate", span(limits.RateBurstDuration) + " of it"},
		{"journal", fmt.Sprintf("%d files of %s", limits.JournalSegments, size(limits.JournalSegmentBytes))},
		{"failure reason; receipt of a dead letter", list(size(limits.ReasonBytes), size(limits.ReceiptBytes))},
		{"token of a context; its window", list(size(limits.TokenBytes), span(limits.TokenWindow))},
	}
}

func list(parts ...string) string { return strings.Join(parts, "; ") }

// count writes a number as 12,345.
func count[N int | int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// size writes bytes in the largest unit that divides them.
func size(n int64) string {
	for _, u := range []struct {
		bytes int64
		name  string
	}{{limits.GiB, "GiB"}, {limits.MiB, "MiB"}, {limits.KiB, "KiB"}} {
		if n >= u.bytes && n%u.bytes == 0 {
			return fmt.Sprintf("%d %s", n/u.bytes, u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

func TestMakeTargetsExist(t *testing.T) {
	makefile := read(t, "Makefile")
	named := regexp.MustCompile("`make ([a-z-]+)`").FindAllStringSubmatch(read(t, "CONTRIBUTING.md"), -1)
	require.NotEmpty(t, named)
	for _, m := range named {
		require.Regexp(t, `(?m)^`+m[1]+`:`, makefile)
	}
}
