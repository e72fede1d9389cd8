package runtime

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// Budget bounds the instances of several modules together, those that wait for a message among them. Before one more is made
// than it allows, idle ones of these modules are thrown away. Calls that run are never refused: whoever starts them sees to it
// that there are no more than Most. It is safe for concurrent use.
type Budget struct {
	most      int64
	instances atomic.Int64

	mu      sync.Mutex
	modules []*Module
}

// NewBudget makes a budget for so many instances; 0 is no bound.
func NewBudget(most int) *Budget {
	if most == 0 {
		return &Budget{most: math.MaxInt64}
	}
	return &Budget{most: int64(most)}
}

// Instances returns how many there are.
func (b *Budget) Instances() int { return int(b.instances.Load()) }

// add makes a module one of the budget's.
func (b *Budget) add(m *Module) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.modules = append(b.modules, m)
}

func (b *Budget) remove(m *Module) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.modules = slices.DeleteFunc(b.modules, func(other *Module) bool { return other == m })
}

// make counts an instance that is about to be made, and throws idle ones away if it is one too many.
func (b *Budget) make(ctx context.Context, m *Module) {
	if b.instances.Add(1) <= b.most {
		return
	}
	b.mu.Lock()
	modules := slices.Clone(b.modules)
	b.mu.Unlock()
	for _, other := range modules {
		if b.instances.Load() <= b.most {
			return
		}
		other.leave(ctx, m)
	}
}

// room reports whether an instance that has ended its call may stay.
func (b *Budget) room() bool { return b.instances.Load() <= b.most }
