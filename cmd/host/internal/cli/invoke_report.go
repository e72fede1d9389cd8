package cli

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
)

// errorPreviewBytes are shown of what happened: a stack of calls may follow.
const errorPreviewBytes = 240

// trialOK is the outcome of a call whose message a host would acknowledge.
const trialOK = "ok"

// trialRuns gathers the runs of one invoke.
type trialRuns struct {
	digest     string
	fuel, wall []int64 // of each run: instructions, nanoseconds
	peak       int64   // bytes of linear memory, of the run that had most
	failed     int     // runs
	hostCalls  int64   // of the run that made most
	shown      dispatcher.TrialResult
	log        []trialLine // of the run that is shown
}

// trialLine is a line that the guest wrote.
type trialLine struct {
	Stream string `json:"stream"`
	Line   string `json:"line"`
}

// add takes a run in. Of several, the first that failed is shown in full, or else the first.
func (s *trialRuns) add(r dispatcher.TrialResult, log []trialLine) {
	failed := r.Outcome.Class != runtime.OK
	if len(s.fuel) == 0 || failed && s.failed == 0 {
		s.shown, s.log = r, log
	}
	if failed {
		s.failed++
	}
	s.fuel, s.wall = append(s.fuel, r.Outcome.FuelUsed), append(s.wall, int64(r.Outcome.Wall))
	s.peak, s.hostCalls = max(s.peak, r.Outcome.PeakMemoryBytes), max(s.hostCalls, r.Outcome.HostCalls)
}

// spread is the least, the median and the most of what several runs took.
type spread struct {
	Min    int64 `json:"min"`
	Median int64 `json:"median"`
	Max    int64 `json:"max"`
}

// spreadOf returns the spread of one value or more. Of an even number, the median is the lower of the two in the middle.
func spreadOf(values []int64) spread {
	sorted := slices.Sorted(slices.Values(values))
	return spread{sorted[0], sorted[(len(sorted)-1)/2], sorted[len(sorted)-1]}
}

// format writes a spread; if there was one run, as one value.
func (s spread) format(runs int, value func(int64) string) string {
	if runs == 1 {
		return value(s.Median)
	}
	return fmt.Sprintf("min %s, median %s, max %s", value(s.Min), value(s.Median), value(s.Max))
}

// invokeReport is what invoke answers. Keys that a receipt has as well mean the same.
type invokeReport struct {
	Module          string          `json:"module"`
	SHA256          string          `json:"sha256"`
	Runs            int             `json:"runs"`
	Failed          int             `json:"failed"`                // of the runs
	Outcome         string          `json:"outcome"`               // ok, or the reason
	Error           string          `json:"error,omitempty"`       // what happened, in the host's words
	GuestError      string          `json:"guest_error,omitempty"` // the text of the handler's own error
	Published       []trialOutgoing `json:"published"`
	Dropped         int             `json:"dropped"` // messages that were published and are not kept, because the message isn't acknowledged
	Fuel            spread          `json:"fuel"`
	WallNS          spread          `json:"wall_ns"`
	PeakMemoryBytes int64           `json:"peak_memory_bytes"`
	HostCalls       int64           `json:"host_calls"`
	Log             []trialLine     `json:"log"`
	Suggested       string          `json:"suggested,omitempty"` // for the consumer's entry in the manifest

	limits limits.Guest
}

// trialOutgoing is a message that the guest published.
type trialOutgoing struct {
	Tenant      string      `json:"tenant"`
	Topic       string      `json:"topic"`
	ContentType string      `json:"content_type,omitempty"`
	Metadata    []wire.Pair `json:"metadata,omitempty"`
	DataBase64  []byte      `json:"data_base64"`
}

// report says what the runs came to.
func (s *trialRuns) report(module string, t *config.Trial, f config.TrialFlags, ceilings limits.Guest) invokeReport {
	o := s.shown.Outcome
	r := invokeReport{
		Module: module, SHA256: s.digest, Runs: len(s.fuel), Failed: s.failed, Outcome: cmp.Or(s.shown.Reason, trialOK),
		GuestError: o.GuestText, Published: []trialOutgoing{}, Dropped: s.shown.Dropped,
		Fuel: spreadOf(s.fuel), WallNS: spreadOf(s.wall), PeakMemoryBytes: s.peak, HostCalls: s.hostCalls,
		Log: append([]trialLine{}, s.log...), limits: t.Guest,
	}
	if o.Err != nil {
		r.Error = o.Err.Error()
	}
	for _, m := range s.shown.Published {
		out := trialOutgoing{Tenant: m.Tenant, Topic: m.Topic, ContentType: m.ContentType, DataBase64: m.Payload}
		for _, p := range m.Metadata {
			out.Metadata = append(out.Metadata, wire.Pair(p))
		}
		r.Published = append(r.Published, out)
	}
	if s.failed == 0 {
		r.Suggested = suggest(r, f, ceilings)
	}
	return r
}

// suggest returns limits for the manifest: fuel and memory with room above what was used, and what else was given, without
// which the guest may not have been done.
func suggest(r invokeReport, f config.TrialFlags, ceilings limits.Guest) string {
	fuel := min(readable(2*r.Fuel.Max), ceilings.Fuel)
	memory := min(powerOfTwoMiB(r.PeakMemoryBytes), ceilings.MemoryBytes)
	parts := []string{"fuel: " + grouped(fuel, "_"), "memory: " + config.FormatSize(memory)}
	for _, k := range config.LimitKeys() {
		if flag, given := f.Limits[k.Key]; given && k.Key != "fuel" && k.Key != "memory" {
			parts = append(parts, k.Key+": "+flag.Text)
		}
	}
	return "limits: {" + strings.Join(parts, ", ") + "}"
}

// readable rounds a number up to two digits and zeros.
func readable(n int64) int64 {
	unit := int64(1)
	for n/unit >= 100 {
		unit *= 10
	}
	if over := n % unit; over > 0 {
		n += unit - over
	}
	return n
}

// powerOfTwoMiB rounds bytes up to 1, 2, 4, 8, … MiB.
func powerOfTwoMiB(bytes int64) int64 {
	n := int64(limits.MiB)
	for n < bytes {
		n *= 2
	}
	return n
}

// grouped writes a number with its thousands set apart.
func grouped(n int64, by string) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + by + digits[i:]
	}
	return digits
}

// printInvoked prints the report, and the figures if they are asked for. The error is how the guest failed.
func (c *command) printInvoked(r invokeReport, figures bool) error {
	out := c.Out
	if figures {
		out = c.Err
		for _, f := range r.figures() {
			if _, err := fmt.Fprintf(c.Out, "figure %s %s\n", f[0], f[1]); err != nil {
				return fmt.Errorf("write the figures: %w", err)
			}
		}
	}
	if err := r.result().print(out, c.format); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	switch {
	case r.Failed == 0:
		return nil
	case r.Runs == 1:
		return fmt.Errorf("the guest failed: %s", r.Outcome)
	}
	return fmt.Errorf("the guest failed in %d of %d runs, at first: %s", r.Failed, r.Runs, r.Outcome)
}

// figures are names and values.
func (r invokeReport) figures() [][2]string {
	return [][2]string{
		{"fuel", strconv.FormatInt(r.Fuel.Median, 10)},
		{"ms", strconv.FormatFloat(float64(r.WallNS.Median)/float64(time.Millisecond), 'f', 3, 64)},
		{"peak_memory_bytes", strconv.FormatInt(r.PeakMemoryBytes, 10)},
		{"host_calls", strconv.FormatInt(r.HostCalls, 10)},
		{"published", strconv.Itoa(len(r.Published))},
	}
}

func (r invokeReport) result() result {
	rows := [][]string{{"outcome", r.Outcome}}
	if r.Runs > 1 {
		rows = append(rows, []string{"runs", fmt.Sprintf("%d, of which %d failed", r.Runs, r.Failed)})
	}
	if r.Error != "" {
		rows = append(rows, []string{"what happened", preview([]byte(r.Error), errorPreviewBytes)})
	}
	if r.GuestError != "" {
		rows = append(rows, []string{"the guest says", preview([]byte(r.GuestError), showPreviewBytes)})
	}
	count := func(n int64) string { return grouped(n, ",") }
	rows = append(rows,
		[]string{"fuel", r.Fuel.format(r.Runs, count) + " of " + count(r.limits.Fuel)},
		[]string{"time", r.WallNS.format(r.Runs, roundTime) + " of " + config.FormatDuration(r.limits.CallDuration)},
		[]string{"peak memory", roundSize(r.PeakMemoryBytes) + " of " + config.FormatSize(r.limits.MemoryBytes)},
		[]string{"host calls", count(r.HostCalls) + " of " + count(r.limits.HostCalls)},
	)
	rows = append(append(rows, r.publishedRows()...), r.logRows()...)
	if r.Suggested != "" {
		rows = append(rows, []string{"suggested", r.Suggested})
	}
	return result{value: r, rows: rows, names: []string{r.Outcome}}
}

func (r invokeReport) publishedRows() [][]string {
	head := counted(len(r.Published), "message")
	switch {
	case r.Dropped > 0:
		head = fmt.Sprintf("nothing; %s dropped, because the message is not acknowledged", counted(r.Dropped, "message"))
	case len(r.Published) > 0 && r.Outcome != trialOK:
		head += ", again at each attempt, though the message is not acknowledged"
	}
	rows := [][]string{{"published", head}}
	for _, m := range r.Published {
		rows = append(rows, []string{"  topic", m.Topic})
		if m.ContentType != "" {
			rows = append(rows, []string{"  content type", m.ContentType})
		}
		for _, kv := range m.Metadata {
			rows = append(rows, []string{"  metadata", kv.Key + "=" + kv.Value})
		}
		rows = append(rows, []string{"  payload", preview(m.DataBase64, showPreviewBytes)})
	}
	return rows
}

func (r invokeReport) logRows() [][]string {
	rows := [][]string{{"log", counted(len(r.Log), "line")}}
	for _, l := range r.Log {
		rows = append(rows, []string{"  " + l.Stream, preview([]byte(l.Line), limits.GuestLogLineBytes)})
	}
	return rows
}

// roundTime writes nanoseconds with about three digits.
func roundTime(ns int64) string {
	d := time.Duration(ns)
	for unit := time.Second; unit >= time.Microsecond; unit /= 1000 {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// roundSize writes bytes in the largest unit that they fill, with two decimals at most.
func roundSize(n int64) string {
	if n < limits.MiB {
		return config.FormatSize(n)
	}
	mib := math.Round(float64(n)/limits.MiB*100) / 100
	return strconv.FormatFloat(mib, 'f', -1, 64) + "MiB"
}
