package rollout

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/longshore/longshore/limits"
)

func TestAModuleThatTheDiskHasNoRoomForStaysInMemoryAsLongAsItRuns(t *testing.T) {
	s := openStore(t, t.TempDir())
	d := New(Options{Store: s, Logger: zap.NewNop()})
	tooLarge := make([]byte, limits.GuestModuleBytes+1) // which the folder refuses as it would on a full disk
	runs, ran := d.take("acme", tooLarge), d.take("acme", append(tooLarge, 1))
	got, err := d.read(runs)
	require.NoError(t, err)
	require.Len(t, got, len(tooLarge))
	d.current["acme"] = &Version{Tenant: "acme", Number: 1, Entries: []Entry{{Name: "a", Module: digestOf("x"), Base: &Entry{Module: runs}}}}
	d.dropUnkept()
	require.Equal(t, []string{runs}, slices.Collect(maps.Keys(d.unkept)))
	require.NotContains(t, d.unkept, ran)
}
