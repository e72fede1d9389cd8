package runtime

import (
	"context"
	"errors"
	goruntime "runtime"
	"slices"
	"sync"
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/wasi/messaging"
)

// Instances says how the instances of a module are kept. The zero value gives every message a clean one.
type Instances struct {
	// Reuse lets an instance keep what one message left in it for the next one. It begins anew after so many messages, at
	// that age, when the host needs its memory, and after every failure.
	Reuse       bool
	MaxMessages int64         // of one instance; 0 = limits.ReuseMessages
	MaxAge      time.Duration // of an instance that is given another message; 0 = limits.ReuseAge

	// WarmUp names an exported function, () -> (), that is run once after initialisation, so that what it leaves is there
	// in every message. "" = the one that an SDK exports as longshore:guest/warm-up@0.1.0, if there is one.
	WarmUp string

	// Draft is the draft of wasi:messaging that the module was made for. "" = what the module tells.
	Draft messaging.Draft
}

func (o Instances) withDefaults() Instances {
	if o.MaxMessages == 0 {
		o.MaxMessages = limits.ReuseMessages
	}
	if o.MaxAge == 0 {
		o.MaxAge = limits.ReuseAge
	}
	return o
}

// pool holds the instances of a module that no call has. It is safe for concurrent use.
type pool struct {
	mu   sync.Mutex
	idle []*instance // the one that was used last is last
}

// take returns the instance that was used last, or nil.
func (p *pool) take() *instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	in := p.idle[n-1]
	p.idle[n-1] = nil
	p.idle = p.idle[:n-1]
	return in
}

// takeIdle returns the instances that are idle since a time or longer.
func (p *pool) takeIdle(since time.Time) []*instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.idle) && !p.idle[n].idleSince.After(since) {
		n++
	}
	taken := slices.Clone(p.idle[:n])
	p.idle = slices.Delete(p.idle, 0, n)
	return taken
}

// put takes an instance back, unless there are most already. Those that are idle for longer stay before it.
func (p *pool) put(in *instance, most int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) >= most {
		return false
	}
	i, _ := slices.BinarySearchFunc(p.idle, in, func(a, b *instance) int { return a.idleSince.Compare(b.idleSince) })
	p.idle = slices.Insert(p.idle, i, in)
	return true
}

// takeInstance returns an instance that is ready for a message: an idle one, or a new one.
func (m *Module) takeInstance(ctx context.Context) (*instance, error) {
	in := m.pool.take()
	if in == nil {
		return m.newInstance(ctx)
	}
	if m.instances.Reuse && in.module != nil && !m.mayReuse(in) {
		if err := in.reset(ctx, m); err != nil {
			return nil, errors.Join(err, m.throwAway(ctx, in))
		}
		in.messages, in.made = 0, time.Now()
	}
	if in.module == nil {
		if err := m.instantiate(ctx, in); err != nil {
			return nil, errors.Join(err, m.throwAway(ctx, in))
		}
	}
	return in, nil
}

// mayReuse reports whether an instance may keep what it has.
func (m *Module) mayReuse(in *instance) bool {
	return in.messages < m.instances.MaxMessages && time.Since(in.made) < m.instances.MaxAge
}

// giveBack takes the instance of a call that has ended. One that isn't healthy is thrown away, and so is one that there
// is no room for.
func (m *Module) giveBack(ctx context.Context, in *instance, healthy bool) {
	if healthy && m.clean(ctx, in) == nil && m.park(in) {
		return
	}
	// The call has its outcome, which this can't change.
	_ = m.throwAway(ctx, in)
}

// clean makes an instance ready for its next message.
func (m *Module) clean(ctx context.Context, in *instance) error {
	if m.instances.Reuse {
		in.restoreControls(m)
		return nil
	}
	return in.reset(ctx, m)
}

// park puts an instance into the pool, if the module, its budget and the engine have room for it: no module needs more than there are
// processors.
func (m *Module) park(in *instance) bool {
	in.idleSince, in.trimmed = time.Now(), false
	return m.engine.instances.Load() <= limits.IdleInstances && m.budget.room() && m.pool.put(in, goruntime.GOMAXPROCS(0))
}

// throwAway closes an instance that is not in the pool, and in which nothing runs.
func (m *Module) throwAway(ctx context.Context, in *instance) error {
	m.engine.instances.Add(-1)
	m.budget.instances.Add(-1)
	return in.close(ctx)
}

// sweep gives back what instances hold that have been idle for a while, and those that have been for long.
func (m *Module) sweep(ctx context.Context, now time.Time) {
	m.inUse.RLock()
	defer m.inUse.RUnlock()
	if m.closed {
		return
	}
	m.closeIdle(ctx, now.Add(-limits.InstanceIdle))
	if m.instances.Reuse {
		return // what they hold is theirs
	}
	for _, in := range m.pool.takeIdle(now.Add(-limits.InstanceTrim)) {
		if !in.trimmed {
			in.trimmed = true
			if err := in.memory.Trim(); err != nil {
				_ = m.throwAway(ctx, in) // nobody waits for it
				continue
			}
		}
		if !m.pool.put(in, goruntime.GOMAXPROCS(0)) {
			_ = m.throwAway(ctx, in) // others came in the meantime
		}
	}
}

// closeIdle throws the instances away that are idle since a time or longer. Whoever took an instance out of the pool has it
// alone, and nothing runs in it.
func (m *Module) closeIdle(ctx context.Context, since time.Time) {
	for _, in := range m.pool.takeIdle(since) {
		_ = m.throwAway(ctx, in) // nobody waits for it
	}
}
