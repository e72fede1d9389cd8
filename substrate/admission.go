package substrate

import (
	"fmt"
	"math"
	"time"

	"github.com/longshore/longshore/limits"
)

// admission decides by policy what may be published. It is not part of the state: buckets are full at start and
// reservations end with the process. Guarded by Log.mu.
type admission struct {
	config   map[TopicName]Policy
	reserved map[TopicName]int64 // messages admitted by Reserve and not yet committed
	buckets  map[TopicName]*bucket

	caps          map[string]TenantCaps // of those that have some
	reservedBy    map[string]kept       // as reserved, by tenant
	tenantBuckets map[string]*bucket
	refused       map[refusal]int64

	unset *PolicyView // of topics without a policy
	views map[TopicName]cachedView
}

// cachedView is the policy in force for a topic while that is what is stored for it, and the host config stays.
type cachedView struct {
	stored Policy
	view   *PolicyView
}

func newAdmission() *admission {
	unset := viewPolicy(Policy{}, Policy{})
	return &admission{
		config: map[TopicName]Policy{}, reserved: map[TopicName]int64{}, buckets: map[TopicName]*bucket{},
		reservedBy: map[string]kept{}, tenantBuckets: map[string]*bucket{}, refused: map[refusal]int64{},
		unset: &unset, views: map[TopicName]cachedView{},
	}
}

func (a *admission) configure(policies map[TopicName]Policy) {
	a.config = policies
	clear(a.views)
}

// demand is what one commit asks of one topic.
type demand struct {
	name         TopicName
	messages     int64
	bytes        int64 // of their payloads
	largestBytes int64
}

// add counts one message.
func (d *demand) add(payloadBytes int64) {
	d.messages++
	d.bytes += payloadBytes
	d.largestBytes = max(d.largestBytes, payloadBytes)
}

// admit draws what demands ask for, or returns the first refusal and draws nothing. inner says that they come from the
// tenant's own handlers: see TenantCaps.
func (a *admission) admit(s *state, demands []demand, now time.Time, inner bool) error {
	for _, d := range demands {
		if err := a.check(s, d); err != nil {
			return err
		}
	}
	asks := a.asks(demands)
	for _, k := range asks {
		if err := a.checkTenant(s, k, inner); err != nil {
			return err
		}
	}
	return a.drawAll(s, demands, asks, now)
}

// drawAll draws tokens for all, or for none.
func (a *admission) drawAll(s *state, demands []demand, asks []ask, now time.Time) error {
	undo := func(demands []demand, asks []ask) {
		for _, d := range demands {
			a.refund(d.name, d.messages)
		}
		for _, k := range asks {
			a.refundTenant(k.tenant, k.messages)
		}
	}
	for i, d := range demands {
		if err := a.draw(s, d, now); err != nil {
			undo(demands[:i], nil)
			return err
		}
	}
	for i, k := range asks {
		if err := a.drawTenant(k, now); err != nil {
			undo(demands, asks[:i])
			return err
		}
	}
	return nil
}

// view returns the policy in force for a topic. It is not to be changed.
func (a *admission) view(s *state, name TopicName) *PolicyView {
	var stored Policy
	if t := s.topics[name]; t != nil {
		stored = t.stored
	}
	config, configured := a.config[name]
	if !configured && stored == (Policy{}) {
		return a.unset
	}
	if cached, is := a.views[name]; is && cached.stored == stored {
		return cached.view
	}
	view := viewPolicy(config, stored)
	a.views[name] = cachedView{stored, &view}
	return &view
}

// checkPriorities refuses messages with a higher priority than their topics allow. Reservations don't know of priorities.
func (a *admission) checkPriorities(s *state, entries []published) error {
	for i := range entries {
		e := &entries[i]
		if e.origin.priority == 0 {
			continue
		}
		if most := a.view(s, e.name).MaxPriority; most.Set && int64(e.origin.priority) > most.Value {
			return &OptionError{"priority", fmt.Sprintf("at most %d on topic %s", most.Value, e.name.Topic)}
		}
	}
	return nil
}

func (a *admission) check(s *state, d demand) error {
	p := a.view(s, d.name)
	if err := limits.Check(limits.NameMessageBytes, d.largestBytes, p.MaxMessageBytes.Value); err != nil {
		return err
	}
	if p.MaxRatePerSec.Set {
		if err := limits.Check(limits.NameBatchMessages, d.messages, p.MaxRatePerSec.Value); err != nil {
			return err
		}
	}
	if !p.MaxDepth.Set {
		return nil
	}
	depth := a.reserved[d.name] + d.messages
	if t := s.topics[d.name]; t != nil {
		depth += t.depth()
	}
	if depth > p.MaxDepth.Value {
		return &DepthError{Topic: d.name.Topic, Limit: p.MaxDepth.Value, Actual: depth}
	}
	return nil
}

// draw takes tokens from the topic's bucket, which it makes or drops as the policy says.
func (a *admission) draw(s *state, d demand, now time.Time) error {
	rate := a.view(s, d.name).MaxRatePerSec
	if !rate.Set {
		delete(a.buckets, d.name)
		return nil
	}
	b := a.buckets[d.name]
	if b == nil || b.perSecond != rate.Value {
		b = newBucket(rate.Value, now)
		a.buckets[d.name] = b
	}
	if wait := b.draw(d.messages, now); wait > 0 {
		return &RateError{Topic: d.name.Topic, PerSecond: rate.Value, RetryAfter: wait}
	}
	return nil
}

func (a *admission) refund(name TopicName, messages int64) {
	if b := a.buckets[name]; b != nil {
		b.refund(messages)
	}
}

// bucket is a token bucket that holds one second's tokens and is full at first. Unlike golang.org/x/time/rate it takes
// tokens back: those of a guest call that failed.
type bucket struct {
	perSecond int64
	tokens    float64
	at        time.Time
}

func newBucket(perSecond int64, now time.Time) *bucket {
	b := &bucket{perSecond: perSecond, at: now}
	b.tokens = b.size()
	return b
}

func (b *bucket) size() float64 { return float64(b.perSecond) * limits.RateBurstDuration.Seconds() }

// draw takes n tokens, or none and returns how long until they are there.
func (b *bucket) draw(n int64, now time.Time) time.Duration {
	if passed := now.Sub(b.at).Seconds(); passed > 0 {
		b.tokens = min(b.size(), b.tokens+passed*float64(b.perSecond))
		b.at = now
	}
	if missing := float64(n) - b.tokens; missing > 0 {
		return time.Duration(math.Ceil(missing / float64(b.perSecond) * float64(time.Second)))
	}
	b.tokens -= float64(n)
	return 0
}

func (b *bucket) refund(n int64) { b.tokens = min(b.size(), b.tokens+float64(n)) }

// Reservation is a place in a topic that Reserve holds for a message until a commit consumes it or Release gives it back.
type Reservation struct {
	log   *Log
	name  TopicName
	bytes int64
	used  bool // consumed or released; guarded by Log.mu
}

// Reserve asks the topic's policy to admit one message of so many payload bytes, ahead of the commit that will publish
// it, so that a guest learns at once what it may not publish. The error is what Publish would return. Put the reservation
// into the message, or Release it.
func (l *Log) Reserve(tenant, topic string, payloadBytes int) (*Reservation, error) {
	name := TopicName{tenant, topic}
	if err := validName(tenant, topic); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reserve(name, int64(payloadBytes))
}

// reserve is Reserve under Log.mu.
func (l *Log) reserve(name TopicName, payloadBytes int64) (*Reservation, error) {
	if l.state.topics[name] == nil {
		if err := l.roomForTopics(name.Tenant, 1); err != nil {
			return nil, err
		}
	}
	d := demand{name: name}
	d.add(payloadBytes)
	if err := l.admission.admit(l.state, []demand{d}, l.now(), true); err != nil {
		return nil, err
	}
	r := &Reservation{log: l, name: name, bytes: payloadBytes}
	l.admission.hold(r)
	return r, nil
}

// Release gives a reservation back, with its rate token. It does nothing for one that a commit consumed, or on nil.
func (r *Reservation) Release() {
	if r == nil {
		return
	}
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.release()
}

// release is Release under Log.mu.
func (r *Reservation) release() {
	if r.used {
		return
	}
	r.log.admission.free(r)
	r.log.admission.refund(r.name, 1)
	r.log.admission.refundTenant(r.name.Tenant, 1)
}

func (a *admission) hold(r *Reservation) {
	a.reserved[r.name]++
	by := a.reservedBy[r.name.Tenant]
	by.add(1, r.bytes)
	a.reservedBy[r.name.Tenant] = by
}

func (a *admission) free(r *Reservation) {
	r.used = true
	if a.reserved[r.name]--; a.reserved[r.name] == 0 {
		delete(a.reserved, r.name)
	}
	by := a.reservedBy[r.name.Tenant]
	if by.add(-1, -r.bytes); by.messages == 0 {
		delete(a.reservedBy, r.name.Tenant)
		return
	}
	a.reservedBy[r.name.Tenant] = by
}
