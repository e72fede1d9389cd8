package substrate

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestStream(t *testing.T) {
	inALog(t, "LeavesOutTheFirstThatIsNotInMemoryWhenItExpires", func(in scene) {
		t, l := in.t, in.l
		makeGroups(t, l, "g")
		var want []string
		for i := range limits.WindowMessages + 10 {
			name, o := fmt.Sprintf("m%06d", i), MessageOptions{}
			if i == limits.WindowMessages {
				o.TTL = time.Second
			} else {
				want = append(want, name)
			}
			publishWith(t, l, name, o)
		}
		time.Sleep(2 * time.Second)
		require.Equal(t, int64(len(want)), groupNamed(t, l, "g").Lag)
		require.Equal(t, want, emptyLane(t, l, "g"))
	})

	inALog(t, "IsNotFilledWithWhatWasReadBeforeItWasMovedElsewhere", func(in scene) {
		t, l := in.t, in.l
		makeGroups(t, l, "g")
		publishN(t, l, testTopic, limits.WindowMessages+100)
		storeUpToDate(t, l)
		require.NoError(t, l.ResetGroup(t.Context(), testTenant, testTopic, "g", Start{Kind: StartPosition, Position: 50}))
		st := l.find(TopicName{testTenant, testTopic}).groups["g"].base()
		l.mu.Lock()
		view := l.lookAhead(st, st.unread, 10)
		l.mu.Unlock()
		entries, all, err := l.read(st, view, 10)
		require.NoError(t, err)
		require.Len(t, entries, 10)
		require.NoError(t, l.ResetGroup(t.Context(), testTenant, testTopic, "g", Start{}))
		l.mu.Lock()
		st.install(entries, all, view)
		l.mu.Unlock()
		require.Equal(t, []string{"m000000"}, payloads(claimFrom(t, l, "g", 1)))
	})
}
