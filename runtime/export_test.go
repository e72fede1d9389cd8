package runtime

import (
	"context"
	"time"

	"github.com/longshore/longshore/runtime/internal/cow"
)

// NewWith is New with the one method by which instances are cleaned.
func NewWith(ctx context.Context, o Options, method cow.Method) (*Engine, error) {
	return newEngine(ctx, o, method)
}

// Idle returns how many instances of a module no call has.
func (m *Module) Idle() int {
	m.pool.mu.Lock()
	defer m.pool.mu.Unlock()
	return len(m.pool.idle)
}

// SweepAt looks after the idle instances as if it were that time.
func (m *Module) SweepAt(now time.Time) { m.sweep(context.Background(), now) }
