package substrate

import (
	"encoding/binary"

	"github.com/longshore/longshore/substrate/internal/store"
)

// eraseFrame takes all of a tenant out of the state: its topics with all that they have, and its values. From then on the
// store's keys of the tenant mean nothing; they are deleted piece by piece, and a second frame says that none is left.
//
// When it is applied, the store is up to date, so that the effects owe nothing of the tenant.
type eraseFrame struct {
	tenant string
	done   bool
}

func (*eraseFrame) kind() uint8   { return kindErase }
func (*eraseFrame) durable() bool { return true }

func (f *eraseFrame) append(b []byte) []byte {
	return append(appendString(b, f.tenant), bit(f.done, 1))
}

func (d *decoder) erase() *eraseFrame { return &eraseFrame{tenant: d.string(), done: d.byte()&1 != 0} }

func (f *eraseFrame) apply(s *state, number uint64) {
	if f.done {
		delete(s.erasing, f.tenant)
		s.effects.erasures[f.tenant] = 0
		return
	}
	for name, t := range s.topics {
		if name.Tenant == f.tenant {
			s.remove(t)
		}
	}
	for name := range s.values.buckets {
		if name.Tenant == f.tenant {
			delete(s.values.buckets, name)
		}
	}
	delete(s.tenants, f.tenant)
	s.erasing[f.tenant] = struct{}{}
	s.effects.erasures[f.tenant] = number
}

// remove takes a topic out of the state.
func (s *state) remove(t *topic) {
	for _, e := range t.expiring {
		s.expiries.remove(e)
	}
	if t.hidden > 0 {
		var hidden []*delayed
		for _, d := range s.delayed.items {
			if d.topic == t {
				hidden = append(hidden, d)
			}
		}
		for _, d := range hidden {
			s.delayed.remove(d)
		}
	}
	delete(s.watched, t)
	delete(s.topics, t.name)
	s.touched[t] = struct{}{} // whoever waits for it looks again, and finds none
}

// cutErasures adds the records that say which tenants are being erased.
func (e *effects) cutErasures(b *batch) {
	for tenant, frame := range e.erasures {
		op := store.Op{Key: store.ErasureKey(tenant)}
		if frame != 0 {
			op.Body = binary.AppendUvarint([]byte{formatVersion}, frame)
		}
		b.last = append(b.last, op)
	}
}
