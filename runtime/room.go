package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/longshore/longshore/runtime/internal/cow"
)

// withRoom makes a memory for m. If there is no address space for it, the idle instances of all modules give theirs, and
// it is tried once more. m must be in use, so that it isn't closed meanwhile.
func withRoom[M any](ctx context.Context, m *Module, memory func() (M, error)) (M, error) {
	made, err := memory()
	if !errors.Is(err, cow.ErrNoRoom) {
		return made, err
	}
	for _, other := range m.engine.open() {
		other.leave(ctx, m)
	}
	return memory()
}

// leave closes the idle instances of m, for the sake of another module or of itself. One that is being closed is left alone.
func (m *Module) leave(ctx context.Context, whose *Module) {
	if m != whose {
		if !m.inUse.TryRLock() {
			return
		}
		defer m.inUse.RUnlock()
	}
	m.closeIdle(ctx, time.Now())
}
