package crashtest

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The record must notice what the tests with hosts never see as long as all is well.
func TestRecord(t *testing.T) {
	begin := func(attempt int) logLine {
		return logLine{Level: "info", Msg: "guest wrote", Tenant: "a", Topic: workTopic, Message: "m", Attempt: attempt, Line: beginLine}
	}
	end, ack := begin(1), begin(1)
	end.Line, ack.Msg, ack.Line, ack.Verdict = endLine, "delivery", "", "ack"
	paused, goesOn := begin(1), begin(1)
	paused.Msg, paused.Line, goesOn.Msg, goesOn.Line = "guest is paused", "", "guest goes on", ""
	for name, c := range map[string]struct {
		runs     [][]logLine
		settling int
		comeback []string
		attempts []run
	}{
		"ASettleInFlight":               {runs: [][]logLine{{begin(1), end}}, settling: 1},
		"NoneOnceTheVerdictIsThere":     {runs: [][]logLine{{begin(1), end, ack}}},
		"AMessageInterruptedTwice":      {runs: [][]logLine{{begin(1)}, {begin(2)}, {begin(4), end}}, settling: 1},
		"AnAttemptThatIsNotCounted":     {runs: [][]logLine{{begin(1)}, {begin(1)}}, attempts: []run{{"m", 1}}},
		"AnAttemptThatIsTakenBack":      {runs: [][]logLine{{begin(1), end}, {begin(1), end, ack}}},
		"OneThatIsNotAfterItsEnd":       {runs: [][]logLine{{begin(1), end}, {begin(2), ack}}},
		"OneOfAPausedGuest":             {runs: [][]logLine{{begin(1), paused}, {begin(1), end, ack}}},
		"OneOfAGuestThatWasPausedFirst": {runs: [][]logLine{{begin(1), end}, {paused, goesOn, begin(1), end, ack}}},
		"OneOfAGuestThatWentOn":         {runs: [][]logLine{{begin(1), paused, goesOn}, {begin(1)}}, attempts: []run{{"m", 1}}},
		"OneTakenBackTwiceForOneEnd":    {runs: [][]logLine{{begin(1), end}, {begin(1)}, {begin(1)}}, attempts: []run{{"m", 1}}},
		"AnAttemptThatIsForgotten":      {runs: [][]logLine{{begin(3)}, {begin(2)}}, attempts: []run{{"m", 2}}},
		"WhatWasDoneComesBack":          {runs: [][]logLine{{begin(1), end, ack}, {begin(2)}}, comeback: []string{"m"}},
		"WhatWasDoneComesBackAtOnce":    {runs: [][]logLine{{begin(1), end, ack, begin(2)}}, comeback: []string{"m"}},
	} {
		t.Run(name, func(t *testing.T) {
			f, r := folder(t.TempDir()), newRecord()
			for _, lines := range c.runs {
				writeLog(t, f, lines)
				r.read(t, f)
			}
			require.Equal(t, c.settling, r.settling())
			require.Equal(t, c.comeback, r.comeback)
			require.Equal(t, c.attempts, r.attempts)
		})
	}
}

// writeLog writes what a host logged that was killed in the middle of a line.
func writeLog(t *testing.T, f folder, lines []logLine) {
	t.Helper()
	var out []byte
	for _, l := range lines {
		raw, err := json.Marshal(l)
		require.NoError(t, err)
		out = append(append(out, raw...), '\n')
	}
	require.NoError(t, os.WriteFile(f.file(logFile), append(out, `{"level":"in`...), 0o600))
}
