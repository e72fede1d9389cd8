package substrate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/limits"
)

// TenantCaps bound what one tenant may keep in the log, and how fast it may publish, over all of its topics. A field of 0 is
// no bound.
type TenantCaps struct {
	// Messages and Bytes (of payloads) are of all that is stored: to be delivered, dead letters, quarantine, and what is kept
	// for replay. What a tenant's own handlers publish may go beyond by limits.TenantHeadroomPercent, and by one outbox at
	// least: else those at the bound could never acknowledge a message of which they make another.
	Messages, Bytes int64
	RatePerSec      int64 // messages published a second, with a burst of one second's worth
	Topics          int64 // at most limits.TopicsPerTenant
	ValueBytes      int64 // of stored values: keys, and records
}

// Names of the caps of a tenant, as TenantError carries them; that of Topics is limits.NameTopics.
const (
	capMessages = limits.NameTenantMessages
	capBytes    = limits.NameTenantBytes
	capRate     = limits.NameTenantRate
	capValues   = limits.NameTenantValues
)

// TenantError says that a tenant is at one of its caps. Nothing was changed. A rate passes with RetryAfter; the others when
// something is acknowledged, discarded or deleted.
type TenantError struct {
	Tenant        string
	Name          limits.Name
	Limit, Actual int64
	RetryAfter    time.Duration // of the rate; else 0
}

// Error implements error.
func (e *TenantError) Error() string {
	if e.Name == capRate {
		return fmt.Sprintf("tenant %s: %s: the limit is %d, try again in %s", e.Tenant, e.Name, e.Limit, e.RetryAfter)
	}
	return fmt.Sprintf("tenant %s: %s: %d is over the limit of %d", e.Tenant, e.Name, e.Actual, e.Limit)
}

// Tenant describes what a tenant keeps in the log.
type Tenant struct {
	Name            string
	Topics, Buckets int
	Messages, Bytes int64 // stored, for whatever reason; Bytes are of payloads
	ValueBytes      int64
	Deleting        bool                  // see DeleteTenant
	Refused         map[limits.Name]int64 // how often each cap refused something since Open; the caller's
}

// Tenants returns what is known of each tenant that has something in the log, or has been refused something, by name.
func (l *Log) Tenants() []Tenant {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]*Tenant{}
	of := func(name string) *Tenant {
		if all[name] == nil {
			all[name] = &Tenant{Name: name}
		}
		return all[name]
	}
	for name, u := range l.state.tenants {
		t := of(name)
		t.Topics, t.Buckets, t.Messages, t.Bytes, t.ValueBytes = u.topics, u.buckets, u.kept.messages, u.kept.bytes, u.valueBytes
	}
	for name := range l.state.erasing {
		of(name).Deleting = true
	}
	for r, n := range l.admission.refused {
		t := of(r.tenant)
		if t.Refused == nil {
			t.Refused = map[limits.Name]int64{}
		}
		t.Refused[r.name] = n
	}
	list := make([]Tenant, 0, len(all))
	for _, t := range all {
		list = append(list, *t)
	}
	slices.SortFunc(list, func(a, b Tenant) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// SetTenantCaps replaces the caps of all tenants. They are not stored. What is above a new one stays.
func (l *Log) SetTenantCaps(caps map[string]TenantCaps) error {
	config := make(map[string]TenantCaps, len(caps))
	for name, c := range caps {
		if err := ValidTenant(name); err != nil {
			return err
		}
		if least := min(c.Messages, c.Bytes, c.RatePerSec, c.Topics, c.ValueBytes); least < 0 {
			return fmt.Errorf("caps of tenant %s: %d: want 0 or more", name, least)
		}
		config[name] = c
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.admission.caps = config
	clear(l.admission.tenantBuckets)
	return nil
}

// refusal names a cap that refused something to a tenant.
type refusal struct {
	tenant string
	name   limits.Name
}

// refuse counts a refusal, and returns it.
func (a *admission) refuse(e *TenantError) error {
	a.countRefusal(e.Tenant, e.Name)
	return e
}

func (a *admission) countRefusal(tenant string, name limits.Name) { a.refused[refusal{tenant, name}]++ }

// ask is what one commit asks of one tenant.
type ask struct {
	tenant string
	kept
}

// asks sums up what demands ask of tenants that have caps.
func (a *admission) asks(demands []demand) []ask {
	if len(a.caps) == 0 {
		return nil
	}
	var asks []ask
	for i := range demands {
		d := &demands[i]
		if _, capped := a.caps[d.name.Tenant]; !capped {
			continue
		}
		at := slices.IndexFunc(asks, func(k ask) bool { return k.tenant == d.name.Tenant })
		if at < 0 {
			at = len(asks)
			asks = append(asks, ask{tenant: d.name.Tenant})
		}
		asks[at].add(d.messages, d.bytes)
	}
	return asks
}

// checkTenant refuses what a tenant may not keep. inner says that it comes from the tenant's own handlers.
func (a *admission) checkTenant(s *state, k ask, inner bool) error {
	caps := a.caps[k.tenant]
	uses, reserved := s.uses(k.tenant).kept, a.reservedBy[k.tenant]
	for _, c := range []struct {
		name                limits.Name
		limit, ask, is, out int64
	}{
		{capMessages, caps.Messages, k.messages, uses.messages + reserved.messages, limits.OutboxMessages},
		{capBytes, caps.Bytes, k.bytes, uses.bytes + reserved.bytes, limits.OutboxBytes},
	} {
		limit := c.limit
		if inner {
			limit += max(c.limit/100*limits.TenantHeadroomPercent, c.out)
		}
		if c.limit > 0 && c.ask > 0 && c.is+c.ask > limit {
			return a.refuse(&TenantError{Tenant: k.tenant, Name: c.name, Limit: limit, Actual: c.is + c.ask})
		}
	}
	if caps.RatePerSec > 0 {
		return limits.Check(limits.NameBatchMessages, k.messages, caps.RatePerSec)
	}
	return nil
}

// drawTenant takes tokens from the tenant's bucket.
func (a *admission) drawTenant(k ask, now time.Time) error {
	rate := a.caps[k.tenant].RatePerSec
	if rate == 0 {
		return nil
	}
	b := a.tenantBuckets[k.tenant]
	if b == nil {
		b = newBucket(rate, now)
		a.tenantBuckets[k.tenant] = b
	}
	if wait := b.draw(k.messages, now); wait > 0 {
		return a.refuse(&TenantError{Tenant: k.tenant, Name: capRate, Limit: rate, Actual: rate + 1, RetryAfter: wait})
	}
	return nil
}

// refundTenant gives tokens back.
func (a *admission) refundTenant(tenant string, messages int64) {
	if b := a.tenantBuckets[tenant]; b != nil {
		b.refund(messages)
	}
}

// roomForTopics refuses a tenant more topics than it may have, and one that is being deleted any. Log.mu is held.
func (l *Log) roomForTopics(tenant string, more int) error {
	if err := l.refuseErasing(tenant); err != nil {
		return err
	}
	limit := int64(limits.TopicsPerTenant)
	if c := l.admission.caps[tenant].Topics; c > 0 {
		limit = min(limit, c)
	}
	err := limits.Check(limits.NameTopics, int64(l.state.uses(tenant).topics+more), limit)
	if err != nil {
		l.admission.countRefusal(tenant, limits.NameTopics)
	}
	return err
}

// roomForValues refuses writes that make what a tenant's values take more than it may be. Log.mu is held.
func (l *Log) roomForValues(tenant string, writes []valueWrite) error {
	limit := l.admission.caps[tenant].ValueBytes
	if limit == 0 {
		return nil
	}
	var more int64
	for i := range writes {
		w := &writes[i]
		if more -= w.before; !w.gone {
			more += mostValueBytes(w.key, len(w.data))
		}
	}
	if is := l.state.uses(tenant).valueBytes; more > 0 && is+more > limit {
		return l.admission.refuse(&TenantError{Tenant: tenant, Name: capValues, Limit: limit, Actual: is + more})
	}
	return nil
}

// sized is what a value takes that is to be replaced, as of a frame.
type sized struct {
	bytes int64
	asOf  uint64
}

// sizeValues looks up what the values take that are to be replaced, so that the committer need not.
func (l *Log) sizeValues(tenant string, writes []ValueWrite) ([]sized, error) {
	list := make([]sized, len(writes))
	for i := range writes {
		w := &writes[i]
		l.mu.Lock()
		asOf := l.state.values.written
		p, pending := l.pendingValue(BucketName{tenant, w.Bucket}, w.Key)
		l.mu.Unlock()
		list[i] = sized{p.stored(w.Key), asOf}
		if pending {
			continue
		}
		bytes, err := l.storedValue(BucketName{tenant, w.Bucket}, w.Key)
		if err != nil {
			return nil, err
		}
		list[i].bytes = bytes
	}
	return list, nil
}

// storedValue returns what the value under a key takes in the store.
func (l *Log) storedValue(b BucketName, key string) (int64, error) {
	n, err := l.store.RecordBytes(b.key().Value(key))
	if n > 0 {
		n += int64(len(key))
	}
	return n, closedOr(err)
}

// replaced returns what the value takes that a write replaces: as it was looked up, unless the key was written since. Log.mu is
// held.
func (l *Log) replaced(b BucketName, key string, looked sized) (int64, error) {
	if p, pending := l.pendingValue(b, key); pending {
		return p.stored(key), nil
	}
	if r := &l.state.values.recent; looked.asOf >= r.floor && r.last(b, key) <= looked.asOf {
		return looked.bytes, nil
	}
	return l.storedValue(b, key)
}
