package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// printRehearsed prints what would become of messages, and the figures if they are asked for. The error says that something
// would be worse, or with --fail-on-difference different.
func (c *command) printRehearsed(out *wire.Rehearsed, f *rehearseFlags) error {
	to := c.Out
	if f.figures {
		to = c.Err
		for _, figure := range rehearsedFigures(out.Summary) {
			if _, err := fmt.Fprintf(c.Out, "figure %s %s\n", figure[0], figure[1]); err != nil {
				return fmt.Errorf("write the figures: %w", err)
			}
		}
	}
	if err := rehearsedResult(out).print(to, c.format); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	c.sayRehearsed(out)
	s := out.Summary
	switch {
	case s.Worse > 0:
		return fmt.Errorf("%s would end worse", counted(s.Worse, "message"))
	case f.failDiff && s.VerdictChanged+s.OutputsChanged > 0:
		return errors.New("messages would end otherwise, though none worse")
	}
	return nil
}

func rehearsedFigures(s wire.RehearsalSummary) [][2]string {
	all := [][2]string{
		{"messages", strconv.Itoa(s.Messages)},
		{"same", strconv.Itoa(s.Same)},
		{"verdict_changed", strconv.Itoa(s.VerdictChanged)},
		{"outputs_changed", strconv.Itoa(s.OutputsChanged)},
		{"better", strconv.Itoa(s.Better)},
		{"worse", strconv.Itoa(s.Worse)},
		{"handled_before", strconv.Itoa(s.HandledBefore)},
		{"handled_after", strconv.Itoa(s.HandledAfter)},
	}
	if s.FuelRatio != nil && s.FuelWorst != nil {
		all = append(all, [2]string{"fuel_ratio", ratio(*s.FuelRatio)}, [2]string{"fuel_ratio_worst", ratio(*s.FuelWorst)})
	}
	return all
}

func ratio(r float64) string { return strconv.FormatFloat(r, 'f', 3, 64) }

// sayRehearsed sums up.
func (c *command) sayRehearsed(out *wire.Rehearsed) {
	s := out.Summary
	if out.Before == nil {
		c.say("nothing runs as %s on topic %s: there is nothing to compare with", visible(out.Consumer), visible(out.Topic))
		c.say("%s rehearsed, %d handled", counted(s.Messages, "message"), s.HandledAfter)
	} else {
		c.say("%s rehearsed: %d the same, %d with another verdict (%d better, %d worse), %d with other outputs",
			counted(s.Messages, "message"), s.Same, s.VerdictChanged, s.Better, s.Worse, s.OutputsChanged)
	}
	if s.FuelRatio != nil && s.FuelWorst != nil {
		c.say("fuel: %s times that of now, in the mean of %s that both handle; %s at worst",
			ratio(*s.FuelRatio), counted(s.FuelMessages, "message"), ratio(*s.FuelWorst))
	}
	if s.Unreadable > 0 {
		c.say("%s left out, because their records do not check", were(s.Unreadable))
	}
	if n := refusedRequests(out); n > 0 {
		c.say("%s refused: a rehearsal sends none, so what waits for replies may end otherwise", counted(n, "request"))
	}
	if why := map[string]string{
		wire.EndedMax: "as many as were asked for", wire.EndedBytes: "their payloads are as many bytes as a rehearsal takes",
		wire.EndedTime: "its time is over", wire.EndedReport: "the report is as large as it may be",
	}[s.Ended]; why != "" {
		c.say("there are more messages: it ended with these because %s", why)
	}
}

func refusedRequests(out *wire.Rehearsed) (n int) {
	for _, m := range out.Messages {
		if n += m.After.Refused; m.Before != nil {
			n += m.Before.Refused
		}
	}
	return n
}

func rehearsedResult(out *wire.Rehearsed) result {
	r := result{value: out, head: []string{"POSITION", "ID"}}
	dead := slices.ContainsFunc(out.Messages, func(m wire.RehearsedMessage) bool { return m.DeadReason != "" })
	if dead {
		r.head = append(r.head, "DIED OF")
	}
	if out.Before != nil {
		r.head = append(r.head, "NOW")
	}
	if r.head = append(r.head, "REHEARSED"); out.Before != nil {
		r.head = append(r.head, "CHANGE")
	}
	r.head = append(r.head, "OUTPUTS", "FUEL", "TIME")
	for i := range out.Messages {
		m := &out.Messages[i]
		row := []string{strconv.FormatUint(m.Position, 10), m.ID}
		if dead {
			row = append(row, m.DeadReason)
		}
		if m.Before != nil {
			row = append(row, endOf(m.Before))
		}
		row = append(row, endOf(&m.After))
		if m.Before != nil {
			row = append(row, changeOf(m))
		}
		r.rows = append(r.rows, append(row, fromTo(m, outputsOf), fromTo(m, fuelOf), fromTo(m, timeOf)))
		r.names = append(r.names, m.ID)
	}
	return r
}

// endOf words what becomes of a message.
func endOf(s *wire.RehearsedSide) string {
	end := s.Verdict
	if s.Reason != "" {
		end += " " + s.Reason
	}
	if s.Pauses {
		end += ", and pauses"
	}
	return end
}

// changeOf words how the end of a message differs.
func changeOf(m *wire.RehearsedMessage) string {
	switch {
	case m.Worse:
		return "worse"
	case m.Better:
		return "better"
	case m.Change == wire.OtherVerdict:
		return "other reason"
	case m.Change == wire.OtherOutputs:
		return "other " + strings.Join(m.Differs, ", ")
	}
	return m.Change
}

func outputsOf(s *wire.RehearsedSide) string { return strconv.Itoa(len(s.Outputs) + len(s.Replies)) }

func fuelOf(s *wire.RehearsedSide) string { return grouped(s.Fuel, ",") }

func timeOf(s *wire.RehearsedSide) string { return roundTime(s.WallNS) }

// fromTo words a value of both versions, once if it is the same.
func fromTo(m *wire.RehearsedMessage, of func(*wire.RehearsedSide) string) string {
	after := of(&m.After)
	if m.Before == nil {
		return after
	}
	if before := of(m.Before); before != after {
		return before + " → " + after
	}
	return after
}
