package substrate

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuryUnrun(t *testing.T) {
	t.Run("TakesTheAttemptBackAlsoAfterACrash", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		publish(t, l, testTopic, "never run")
		publish(t, l, testTopic, "run once")
		publish(t, l, testTopic, "run twice")
		all := claim(t, l, testTopic, 3)
		settle(t, l, all[1], Retry, "")
		settle(t, l, all[2], Retry, "")
		again := claim(t, l, testTopic, 2)
		require.NoError(t, l.Settle(t.Context(), []Settlement{
			{Lease: all[0].Lease, Verdict: Bury, Unrun: true}, {Lease: again[0].Lease, Verdict: Bury, Unrun: true},
			{Lease: again[1].Lease, Verdict: Bury},
		}, nil))
		for _, l := range []*Log{l, reopenCrashed(t, dir)} {
			var attempts []int
			for _, d := range deadLetters(t, l, DeadLetterFilter{}) {
				attempts = append(attempts, d.Attempts)
			}
			require.Equal(t, []int{0, 1, 2}, attempts)
		}
	})
}
