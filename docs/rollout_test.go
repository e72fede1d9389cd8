package docs_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestTheRolloutPageHasTheBounds(t *testing.T) {
	page := read(t, "docs/rollout.md")
	for _, says := range []string{
		fmt.Sprintf("by default %s and at most %s", count(limits.RehearsalFewMessages), count(limits.RehearsalMessages)),
		fmt.Sprintf("%d of a host", limits.Rehearsals),
		fmt.Sprintf("ends after %s, %s of payloads or %s of report", "5 minutes", size(limits.RehearsalBytes), size(limits.RehearsalReportBytes)),
		fmt.Sprintf("the first %d\n  bytes", limits.RehearsalPayloadBytes),
		fmt.Sprintf("the last %d versions", limits.PlanVersions),
	} {
		require.Contains(t, page, says)
	}
	require.InDelta(t, 5, limits.RehearsalDuration.Minutes(), 0)
}
