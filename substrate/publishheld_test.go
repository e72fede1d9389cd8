package substrate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPublishHeld(t *testing.T) {
	t.Run("UnderLeasesThatAreHeldIsAPublish", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "a", "b")
		both := claim(t, l, testTopic, 2)
		got, err := l.PublishHeld(t.Context(), []Lease{both[0].Lease, both[1].Lease}, l.newMessage("out", "1"))
		require.NoError(t, err)
		require.Equal(t, got[0].ID, claimOne(t, l, "out").Message.ID)
	})
	t.Run("UnderALeaseThatIsNotHeldStoresNothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			publish(t, l, testTopic, "a", "b")
			stale := claimOne(t, l, testTopic)
			time.Sleep(time.Minute)
			held := claim(t, l, testTopic, 2)
			settle(t, l, held[1], Ack, "")
			for _, lost := range []Lease{stale.Lease, held[1].Lease} {
				_, err := l.PublishHeld(t.Context(), []Lease{held[0].Lease, lost}, l.newMessage("out", "1"))
				require.ErrorIs(t, err, ErrLeaseLost)
			}
			_, exists := l.Stats(testTenant, "out")
			require.False(t, exists)
		})
	})
}
