package telemetry

import (
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/longshore/longshore/substrate"
)

// expiryBatches bounds the batches that wait to be logged; the log hands over a few hundred messages at most in each.
const expiryBatches = 64

// Expiries tells logger and metrics of messages that the log buried because they expired: no consumer had them, so no
// delivery tells of them. Report never waits for the logger. Where that is too slow, messages are counted and not listed.
type Expiries struct {
	metrics  *Metrics
	logger   *zap.Logger
	batches  chan []substrate.DeadLetter
	unlisted atomic.Int64
	written  chan struct{} // closed when all is written
}

// NewExpiries returns Expiries that must be closed.
func NewExpiries(m *Metrics, logger *zap.Logger) *Expiries {
	e := &Expiries{
		metrics: m, logger: logger, batches: make(chan []substrate.DeadLetter, expiryBatches), written: make(chan struct{}),
	}
	go e.write()
	return e
}

// Report counts dead letters and has them listed. It keeps the slice. It is not called after Close.
func (e *Expiries) Report(letters []substrate.DeadLetter) {
	for i := range letters {
		e.metrics.onExpired(&letters[i])
	}
	select {
	case e.batches <- letters:
	default:
		e.unlisted.Add(int64(len(letters)))
	}
}

// Close returns when everything reported is written.
func (e *Expiries) Close() {
	close(e.batches)
	<-e.written
}

func (e *Expiries) write() {
	defer close(e.written)
	for letters := range e.batches {
		for i := range letters {
			e.list(&letters[i])
		}
		if n := e.unlisted.Swap(0); n > 0 {
			e.logger.Warn("more messages expired than could be listed here; `dlq list` has them", zap.Int64("messages", n))
		}
	}
}

func (e *Expiries) list(d *substrate.DeadLetter) {
	e.logger.Warn("message expired", zap.String("tenant", d.Tenant), zap.String("topic", d.Topic), zap.String("message", d.ID),
		zap.Int("attempt", d.Attempts), zap.String("verdict", substrate.Bury.String()), zap.String("reason", d.Reason))
}
