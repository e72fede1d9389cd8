package docs_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// TestTheOperationsPageHasTheBoundsOfTheLog looks up what it says of sizes and times.
func TestTheOperationsPageHasTheBoundsOfTheLog(t *testing.T) {
	page := read(t, "docs/operations.md")
	for _, said := range []string{
		fmt.Sprintf("up to %d files of %s", limits.JournalSegments, size(limits.JournalSegmentBytes)),
		fmt.Sprintf("the journal: %s at most", size(limits.JournalSegments*limits.JournalSegmentBytes)),
		fmt.Sprintf("Messages of up to %s lie", size(limits.InlinePayloadBytes)),
		fmt.Sprintf("below `storage.low` (%s)", size(limits.StorageLowBytes)),
		fmt.Sprintf("below `storage.reserve` (%s)", size(limits.StorageReserveBytes)),
		fmt.Sprintf("when %s were deleted", size(limits.ReclaimBytes)),
		fmt.Sprintf("up to %s of changes", size(limits.WriteBehindLagBytes)),
		fmt.Sprintf("the next %s messages or %s of them", count(limits.WindowMessages), size(limits.WindowBytes)),
		fmt.Sprintf("up to %s for %s", count(limits.IdempotencyKeys), span(limits.IdempotencyWindow)),
		fmt.Sprintf("within %s, or once there are `max_unflushed`", span(limits.FlushDelay)),
		fmt.Sprintf("the disk has less than %s free", size(limits.StorageLowBytes)),
		fmt.Sprintf("After %.0f seconds of waiting", limits.LockWait.Seconds()),
	} {
		require.Contains(t, page, said)
	}
}
