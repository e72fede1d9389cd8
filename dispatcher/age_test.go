package dispatcher

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

// redrivenQueue is a queue whose every message was redriven.
type redrivenQueue struct {
	*memQueue
	operator func(m substrate.Message) string // its record
}

// Claim implements Queue.
func (q redrivenQueue) Claim(ctx context.Context, r substrate.ClaimRequest) (substrate.ClaimResult, error) {
	got, err := q.memQueue.Claim(ctx, r)
	for i := range got.Deliveries {
		got.Deliveries[i].Operator = q.operator(got.Deliveries[i].Message)
	}
	return got, err
}

func TestMaxAge(t *testing.T) {
	hour := func(_, name string) time.Duration {
		if name != topic {
			return time.Nanosecond
		}
		return time.Hour
	}
	for name, tt := range map[string]struct {
		age    time.Duration
		most   func(tenant, topic string) time.Duration
		redrew time.Duration // so long before the delivery; 0 is never
		madeUp bool          // by somebody who has no key
		buried bool
	}{
		"AMessageOfTheLastMomentIsHandled":            {age: time.Hour, most: hour},
		"AnOlderOneIsBuried":                          {age: time.Hour + time.Millisecond, most: hour, buried: true},
		"WithoutAPolicyAWeekendExpiresNothing":        {age: 72 * time.Hour},
		"ARedriveStartsTheAgeAnew":                    {age: 72 * time.Hour, most: hour, redrew: time.Hour},
		"TheAgeSinceARedriveCounts":                   {age: 72 * time.Hour, most: hour, redrew: time.Hour + time.Millisecond, buried: true},
		"ARecordThatIsMadeUpChangesNone":              {age: 72 * time.Hour, most: hour, redrew: time.Minute, madeUp: true, buried: true},
		"ARedriveBeforeThePublicationOfItChangesNone": {age: time.Minute, most: hour, redrew: 72 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, consumerOf("c", ends(ok())))
				r.options.MaxAge = tt.most
				r.publish(1)
				time.Sleep(tt.age)
				if tt.redrew > 0 {
					by, at := r.context, time.Now().Add(-tt.redrew)
					if tt.madeUp {
						by = newContext(t)
					}
					r.options.Queue = redrivenQueue{r.queue, func(m substrate.Message) string {
						text, err := by.SealOperator(signedctx.Operator{Act: "local:0", At: at}, m.Envelope, Binding(m))
						require.NoError(t, err)
						return text
					}}
				}
				r.runFor(time.Second)
				if !tt.buried {
					require.Len(t, r.queue.acked, 1)
					return
				}
				require.Empty(t, r.queue.acked)
				require.Len(t, r.queue.buried, 1)
				require.Equal(t, ReasonContextExpired, r.queue.buried[0].Reason)
			})
		})
	}
}
