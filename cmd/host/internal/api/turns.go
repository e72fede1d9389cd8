package api

import (
	"context"
	"net/http"
	"time"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// uploadTurns are what uploads of modules wait for, each with its body unread. It is safe for concurrent use.
type uploadTurns struct {
	tenants *slots        // what bearers have or wait for
	bearers chan struct{} // holds one value for each upload of a bearer: there is always one more for the operator
	all     chan struct{} // holds one value for each upload
}

func newUploadTurns() *uploadTurns {
	return &uploadTurns{newSlots(0, tenantUploads), make(chan struct{}, bearerUploads), make(chan struct{}, uploads)}
}

// take waits for a turn. What it returns gives that back. The error is a problem: the tenant has its share, or all turns were
// taken until ctx ended.
func (t *uploadTurns) take(ctx context.Context) (giveBack func(), err error) {
	end, ok := t.tenants.take(ctx)
	if !ok {
		return nil, later(problem(http.StatusTooManyRequests, wire.CodeBusy,
			"another module of this tenant is being uploaded: upload one after the other"), time.Second)
	}
	queues := []chan struct{}{t.all}
	if credentialOf(ctx) != nil {
		queues = []chan struct{}{t.bearers, t.all}
	}
	for i, q := range queues {
		select {
		case q <- struct{}{}:
		case <-ctx.Done():
			leave(queues[:i])
			end()
			return nil, later(problem(http.StatusServiceUnavailable, wire.CodeBusy, "too many modules are being uploaded at once"), time.Second)
		}
	}
	return func() { leave(queues); end() }, nil
}

// leave makes room for one more in each queue.
func leave(queues []chan struct{}) {
	for _, q := range queues {
		<-q
	}
}
