package substrate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAClaimThatIsFasterThanTheSweep plans claims for a time that the sweep has not seen yet.
func TestAClaimThatIsFasterThanTheSweep(t *testing.T) {
	// later plans a claim in an hour, and returns the positions that it takes and those that it buries.
	later := func(t *testing.T, l *Log) (takes, buries []uint64) {
		t.Helper()
		ln := l.find(TopicName{testTenant, testTopic}).work
		require.NoError(t, l.fill(ln, 10))
		l.mu.Lock()
		defer l.mu.Unlock()
		p := planClaim(ln, claimRequest(testTopic, 10), l.now().Add(time.Hour))
		for _, e := range p.taken {
			takes = append(takes, e.position)
		}
		for i, e := range p.buried {
			require.Equal(t, ReasonTTLExpired, e.reason)
			require.Equal(t, e.position, p.letters[i].Position)
			buries = append(buries, e.position)
		}
		return takes, buries
	}
	minute := MessageOptions{OrderingKey: "a", TTL: time.Minute}

	inALog(t, "BuriesWhatIsFreshAndExpired", func(in scene) {
		t, l := in.t, in.l
		publishWith(t, l, "1", minute)
		publishKeyed(t, l, "a2")
		takes, buries := later(t, l)
		require.Equal(t, []uint64{2}, takes)
		require.Equal(t, []uint64{1}, buries)
	})

	inALog(t, "BuriesWhatIsRetriedAndExpired", func(in scene) {
		t, l := in.t, in.l
		publishWith(t, l, "1", minute)
		publishKeyed(t, l, "a2")
		settle(t, l, claimOne(t, l, testTopic), Retry, "")
		takes, buries := later(t, l)
		require.Equal(t, []uint64{2}, takes)
		require.Equal(t, []uint64{1}, buries)
	})

	inAnOrderedLog(t, "BuriesWhatIsParkedAndExpiredAndLeavesTheNextToTheNextClaim", OrderKey, func(in scene) {
		t, l := in.t, in.l
		publishKeyed(t, l, "a1")
		publishWith(t, l, "2", minute)
		publishKeyed(t, l, "a3", "a4")
		first := claimOne(t, l, testTopic)
		require.Empty(t, claim(t, l, testTopic, 10))
		settle(t, l, first, Ack, "")
		publishKeyed(t, l, "a5", "b6")
		takes, buries := later(t, l)
		require.Equal(t, []uint64{6}, takes)
		require.Equal(t, []uint64{2}, buries)
	})

	inAnOrderedLog(t, "BuriesTheFirstOfAKeyAndLeavesTheNextToTheNextClaim", OrderKey, func(in scene) {
		t, l := in.t, in.l
		publishWith(t, l, "1", minute)
		publishKeyed(t, l, "a2", "a3")
		settleAll(t, l, claim(t, l, testTopic, 2), Retry)
		takes, buries := later(t, l)
		require.Empty(t, takes)
		require.Equal(t, []uint64{1}, buries)
	})
}
