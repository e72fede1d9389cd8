package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

func TestADeadLetterThatDoesNotCheck(t *testing.T) {
	letter := wire.DeadLetter{ID: "position-7", Position: 7, Reason: "corrupt-record", Published: time.Unix(0, 0), Died: time.Unix(0, 0)}
	var b bytes.Buffer
	detail := detailResult(wire.DeadLetterDetail{DeadLetter: letter, Message: wire.Message{ID: letter.ID}, Unreadable: true})
	require.NoError(t, detail.print(&b, formatTable))
	require.Contains(t, b.String(), "its record does not check")
	require.NotRegexp(t, "(?m)^payload", b.String())
	require.NotContains(t, b.String(), "1970")

	b.Reset()
	require.NoError(t, deadResult([]wire.DeadLetter{letter}).print(&b, formatTable))
	require.Regexp(t, "(?m)^position-7 +default +7 +- +", b.String())
}

func TestRedriveSaysWhatStaysDead(t *testing.T) {
	var out, errs bytes.Buffer
	c := &command{Streams: Streams{Out: &out, Err: &errs}, format: formatName}
	require.NoError(t, c.move(moved{name: "redrive", noun: "dead letter", done: "redriven", topic: "orders", yes: true}, func(dry bool) (wire.Moved, error) {
		if dry {
			return wire.Moved{Count: 1, DryRun: true}, nil
		}
		return wire.Moved{Refused: 1}, nil
	}))
	require.Equal(t, "1 dead letter of orders would be redriven\n"+
		"1 stay dead: their signed context or their record does not verify\n", errs.String())
}
