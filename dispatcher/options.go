package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"maps"
	goruntime "runtime"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/longshore/longshore/internal/filter"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// Guest runs a consumer's module. *runtime.Module is one.
type Guest interface {
	// Invoke handles one message on a clean instance and returns when the guest has stopped. It is called from many
	// goroutines at once. When ctx is done it stops the guest soon and says runtime.Interrupted. It keeps nothing of the
	// call after it returned. A panic fails the delivery, not the host.
	Invoke(ctx context.Context, call *messaging.Call) runtime.Outcome
	// Batches reports whether a call may have more messages than one.
	Batches() bool
	// Digest names the module by its content; receipts carry it.
	Digest() string
}

// ClosingGuest is a Guest that holds something. One that a Swap leaves without a consumer is closed when its last call has
// ended; those that are there when Run ends are their maker's to close.
type ClosingGuest interface {
	Guest
	Close(ctx context.Context) error
}

// Observer is told of every outcome, for metrics. Its methods are called from many goroutines and must not block.
type Observer interface {
	// OnDelivery is called once for each delivery that ended, settled or not, and for each message that a claim buried
	// because its attempts were used up.
	OnDelivery(r Receipt)
	// OnEvent is called once for each event that was published, or was to be and couldn't.
	OnEvent(e EventOutcome)
}

// Retry says how long a message waits for its next attempt: Base × 2ⁿ after attempt n+1, at most Cap, less a random part
// of up to limits.RetryJitterPercent.
type Retry struct {
	Base time.Duration // 0 is limits.RetryBaseDuration
	Cap  time.Duration // 0 is limits.RetryCapDuration
}

// Consumer is one entry of a manifest: which messages are handed to which guest, and how. The zero value of a field
// that has a default means that default.
type Consumer struct {
	Name   string // unique in its tenant; printable, at most 200 bytes
	Tenant string
	Topic  string
	Lane   string // the consumer group, which has to exist; "" is the topic's default lane

	Guest   Guest
	Version string       // of the deployment, for receipts; printable, at most 200 bytes
	Limits  limits.Guest // of each call

	// Concurrency bounds the messages that are claimed and not yet settled. With 1, a message is claimed only after the
	// one before it was settled. 0 is limits.Concurrency; at most limits.InFlightMessages.
	Concurrency int
	Batch       Batch
	Breaker     Breaker
	MaxAttempts int           // 0 is limits.MaxAttempts
	Lease       time.Duration // 0 is limits.LeaseDuration; longer than Limits.CallDuration
	Retry       Retry

	// Canary gets a share of the messages; nil is none.
	Canary *Canary

	// ContextOptional admits messages without a signed context. Forged and mismatched ones are buried all the same.
	ContextOptional bool
	// Publish grants topics of the consumer's own tenant, each by exact name, by a prefix that ends in "/*", or all by "*".
	Publish []string
	// Immediate publishes what the guest publishes at once, not with the acknowledgement: whatever becomes of the message,
	// and once more for each time that it is handled again. Replies wait for the acknowledgement all the same.
	Immediate bool
	// Clients are the names that the guest may connect to besides "default".
	Clients []string
	// Buckets are those of the tenant whose values the guest may read and write. They need a Queue that is a ValueStore.
	Buckets []string
	Events  Events
	// Filter is an expression over a message: see package internal/filter. What it doesn't take is acknowledged unrun. "" takes
	// all. It belongs to a consumer that shares its lane with none.
	Filter string
	// Features are those that messages may require.
	Features []string
	// Config is what the guest reads through wasi:config.
	Config []messaging.Pair
	// NonRetryable are guest errors that bury at once: "timeout", "connection", "permission-denied", "other".
	NonRetryable []string
}

// Options is what a Dispatcher is made of. Queue and Context are required.
type Options struct {
	Queue     Queue
	Context   *signedctx.Context
	Consumers []Consumer
	Logger    *zap.Logger      // nil logs nothing
	Hooks     []Hook           // asked and told in this order
	Observer  Observer         // nil observes nothing
	Shares    map[string]Share // of the workers, by tenant; the others have the zero Share
	Caps      map[string]Caps  // by tenant; the others have none
	Workers   int              // guests that run at once; 0 is GOMAXPROCS − 1, at least 1
	Grace     time.Duration    // that running deliveries get when Run is stopped; 0 cuts at once
	// MaxAge returns how old a message of a topic may be when it is delivered; 0 is any age, and so is nil. It is asked for each
	// message that has a signed context.
	MaxAge func(tenant, topic string) time.Duration
	// Expired brings what the queue buried because it expired, for events; may be nil. It is read while Run runs.
	Expired <-chan []substrate.DeadLetter
}

// withDefaults returns o with its unset values filled in. The caller's slices are not touched.
func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Observer == nil {
		o.Observer = silent{}
	}
	if o.MaxAge == nil {
		o.MaxAge = anyAge
	}
	if o.Workers == 0 {
		o.Workers = max(1, goruntime.GOMAXPROCS(0)-1)
	}
	o.Consumers = slices.Clone(o.Consumers)
	for i := range o.Consumers {
		o.Consumers[i] = o.Consumers[i].withDefaults()
	}
	return o
}

func (c Consumer) withDefaults() Consumer {
	if c.Concurrency == 0 {
		c.Concurrency = limits.Concurrency
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = limits.MaxAttempts
	}
	if c.Lease == 0 {
		c.Lease = limits.LeaseDuration
	}
	c.Breaker = c.Breaker.withDefaults()
	if c.Retry.Base == 0 {
		c.Retry.Base = limits.RetryBaseDuration
	}
	if c.Retry.Cap == 0 {
		c.Retry.Cap = limits.RetryCapDuration
	}
	if c.Canary != nil {
		c.Canary = &Canary{Percent: c.Canary.Percent, Consumer: c.Canary.Consumer.withDefaults()}
	}
	return c
}

// validate returns every fault of o, joined, or nil. Defaults are filled in.
func (o Options) validate() error {
	var faults []error
	if o.Queue == nil {
		faults = append(faults, errors.New("dispatcher: no queue"))
	}
	if o.Context == nil {
		faults = append(faults, errors.New("dispatcher: no signed context: who publishes can't be verified"))
	}
	if o.Workers < 1 {
		faults = append(faults, fmt.Errorf("dispatcher: %d workers: want at least 1", o.Workers))
	}
	if o.Grace < 0 {
		faults = append(faults, fmt.Errorf("dispatcher: grace of %s: want 0 or more", o.Grace))
	}
	faults = append(faults, shareFaults(o.Shares)...)
	faults = append(faults, capFaults(o.Caps)...)
	names := make(map[consumerName]bool, len(o.Consumers))
	for _, c := range o.Consumers {
		if names[c.name()] {
			faults = append(faults, fmt.Errorf("dispatcher: two consumers are named %q: want distinct names", c.Name))
		}
		names[c.name()] = true
		for _, fault := range c.faults() {
			faults = append(faults, fmt.Errorf("dispatcher: consumer %q: %w", c.Name, fault))
		}
		if _, keeps := o.Queue.(ValueStore); len(c.Buckets) > 0 && !keeps {
			faults = append(faults, fmt.Errorf("dispatcher: consumer %q: it is granted buckets, and the queue keeps no values", c.Name))
		}
	}
	return errors.Join(faults...)
}

// shareFaults lists what is wrong with shares, in the order of the tenants.
func shareFaults(shares map[string]Share) (faults []error) {
	floors := 0
	for _, tenant := range slices.Sorted(maps.Keys(shares)) {
		s := shares[tenant]
		floors += s.FloorPercent
		if s.Weight < 0 || s.Weight > limits.FairWeight {
			faults = append(faults, fmt.Errorf("dispatcher: share of tenant %q: weight %d: want 1 to %d", tenant, s.Weight, limits.FairWeight))
		}
		if s.FloorPercent < 0 || s.FloorPercent > 100 {
			faults = append(faults, fmt.Errorf("dispatcher: share of tenant %q: floor of %d%%: want 0 to 100", tenant, s.FloorPercent))
		}
	}
	if floors > 100 {
		faults = append(faults, fmt.Errorf("dispatcher: the floors of all tenants make %d%%: want at most 100", floors))
	}
	return faults
}

// faults lists what is wrong with c.
func (c Consumer) faults() []error {
	var out []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			out = append(out, fmt.Errorf(format, args...))
		}
	}
	check(c.Name != "" && isLabel(c.Name), "name: want 1 to %d bytes that print", labelBytes)
	check(isLabel(c.Version), "version: want at most %d bytes that print", labelBytes)
	if err := substrate.ValidTenant(c.Tenant); err != nil {
		out = append(out, err)
	}
	if err := substrate.ValidTopic(c.Topic); err != nil {
		out = append(out, err)
	}
	if c.Lane != "" {
		if err := substrate.ValidGroup(c.Lane); err != nil {
			out = append(out, err)
		}
	}
	check(c.Guest != nil, "no guest")
	check(c.Concurrency >= 1 && c.Concurrency <= limits.InFlightMessages,
		"concurrency %d: want 1 to %d", c.Concurrency, limits.InFlightMessages)
	out = append(out, c.Batch.faults(c)...)
	out = append(out, c.Breaker.faults()...)
	out = append(out, c.Canary.faults(c)...)
	check(c.MaxAttempts >= 1, "max attempts %d: want at least 1", c.MaxAttempts)
	check(c.Limits.CallDuration > 0, "call duration %s: want more than 0", c.Limits.CallDuration)
	check(c.Lease > c.Limits.CallDuration, "lease %s: want more than the call duration of %s", c.Lease, c.Limits.CallDuration)
	check(c.Retry.Base > 0 && c.Retry.Cap >= c.Retry.Base,
		"retry from %s to %s: want a base over 0 and a cap not below it", c.Retry.Base, c.Retry.Cap)
	if _, err := c.filter(); err != nil {
		out = append(out, fmt.Errorf("filter: %w", err))
	}
	out = append(out, c.Events.faults(c)...)
	for _, b := range c.Buckets {
		if err := substrate.ValidBucket(b); err != nil {
			out = append(out, err)
		}
	}
	for _, e := range c.NonRetryable {
		check(slices.Contains(guestErrors(), e), "non-retryable %.80q: want one of %v", e, guestErrors())
	}
	return out
}

// consumerName tells the consumers of a dispatcher apart.
type consumerName struct{ tenant, name string }

func (c *Consumer) name() consumerName { return consumerName{c.Tenant, c.Name} }

// filter returns the compiled filter, nil if there is none.
func (c Consumer) filter() (*filter.Filter, error) {
	if c.Filter == "" {
		return nil, nil
	}
	return filter.Compile(c.Filter)
}

// labelBytes bounds a label so that "consumer:" and a name make a subject, and a receipt with labels stays within
// limits.ReceiptBytes.
const labelBytes = 200

// isLabel reports whether s may stand in a receipt, a log line or a subject as it is.
func isLabel(s string) bool {
	if len(s) > labelBytes || !utf8.ValidString(s) {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// guestErrors are the cases of the error that a handler may return.
func guestErrors() []string {
	return []string{"timeout", "connection", "permission-denied", "other"}
}

// silent is the Observer of nobody.
type silent struct{}

func (silent) OnDelivery(Receipt) {}

func (silent) OnEvent(EventOutcome) {}
