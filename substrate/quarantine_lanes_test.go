package substrate

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAQuarantinedRecordSaysWhichLanesLostIt(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	for _, group := range []string{"done", "owed"} {
		_, _, err := l.CreateGroup(t.Context(), testTenant, testTopic, group, GroupOptions{})
		require.NoError(t, err)
	}
	_, err := l.SetLaneMode(t.Context(), testTenant, testTopic, LaneOn)
	require.NoError(t, err)
	publish(t, l, testTopic, "broken", "whole")
	settle(t, l, tryClaim(t, l, "done", 1).Deliveries[0], Ack, "")
	storeUpToDate(t, l)
	dir = crash(t, dir)
	flip(t, dir, "broken")
	l = openLog(t, dir)
	got := tryClaim(t, l, "owed", 10)
	require.Len(t, got.Quarantined, 1)
	require.ElementsMatch(t, []string{"", "owed"}, got.Quarantined[0].Lanes, "one was done with it")
	require.Nil(t, quarantine(t, l)[0].Lanes)
}
