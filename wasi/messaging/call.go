package messaging

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/longshore/longshore/limits"
)

// Pair is one entry of a message's metadata.
type Pair struct{ Key, Value string }

// Message is a message as a guest sees it. Its slices are never changed in place, and may be shared.
type Message struct {
	Topic       string // "" = none
	ContentType string // "" = none
	Data        []byte
	Metadata    []Pair // nil = none

	// Info is what is known of a delivered message; nil for one that the guest made, and where messages leave the call.
	Info *Info
	// Options are what the guest asks for when it publishes, in Admit, Outgoing and Request; nil = nothing.
	Options *PublishOptions
}

// Admission is what a host gives for a message that may be published.
type Admission struct {
	ID    string // the id that the message will have
	Token any    // handed back in Outgoing, for the caller's own use
}

// Outgoing is a message in the outbox of a call.
type Outgoing struct {
	ID      string
	Topic   string
	Message Message // its Topic is ""
	Token   any     // of the Admission
}

// Published is what became of an Outgoing that was published at once.
type Published struct {
	ID        string // of the message: that of the Admission, or of the one that it is a duplicate of
	Duplicate bool
}

// CallOptions is what one call gives to the guest.
type CallOptions struct {
	Message Message
	// More are the messages of a batch after Message. Only a module whose handler takes batches may be given any.
	More   []Message
	Limits limits.Guest
	// Deadline ends the call if it comes before Limits.CallDuration has passed. Zero: only the duration counts.
	Deadline time.Time
	// Clients are the names that client.connect takes besides "default".
	Clients []string
	// Admit is asked for every message before it joins the outbox, on the goroutine of the call. A nil func refuses all
	// with Unauthorized.
	Admit func(topic string, m Message) (Admission, *PublishError)
	// Withdraw gives back what Admit gave, before the call ends: the rest of an atomic batch was refused. May be nil.
	Withdraw func(token any)
	// Publish publishes what Admit gave, all or none and in this order, before the guest goes on; it keeps nothing of the slice.
	// After an error the messages are withdrawn. It returns soon after ctx is done. Replies aren't published. With a nil func
	// what is admitted stays in the outbox.
	Publish func(ctx context.Context, out []Outgoing) ([]Published, *PublishError)
	// Request publishes a message at once and returns the replies to it: as many as it asks for, or those that came until
	// its deadline. It returns soon after ctx is done. There a call waits for others, so that whoever bounds how many
	// guests run at once should let another one run meanwhile. A nil func refuses all with Unavailable.
	Request func(ctx context.Context, r Request) ([]Message, *PublishError)
	// Reply is Admit for a reply to one of the call's messages, whose Info.ReplyTo is set. A nil func refuses all with
	// Unavailable.
	Reply func(to, m Message) (Admission, *PublishError)
	// Pause is called at safe points of the guest, on the goroutine of the call, and may block while others run. The time that
	// it returns is not the call's. A nil func never does.
	Pause func(ctx context.Context) time.Duration
	// Draining says whether the host is stopping. A nil func never does.
	Draining func() bool
	// Config is what wasi:config gives the guest.
	Config []Pair
	// Store is the key-value store. Nil denies access to all buckets.
	Store Store
	// Log is given each line (without its end) that the guest writes to "stdout" or "stderr": raw guest bytes, bounded
	// by Limits.LogBytes in all, and valid only while Log runs. May be nil.
	Log func(stream string, line []byte)
}

// Call is the host's side of one guest call: its handles, outbox and counters. It serves one call and is not safe for
// concurrent use; read its results afterwards.
type Call struct {
	o         CallOptions
	deadline  time.Time
	paused    time.Duration
	hostCalls int64
	steps     int64

	binding *Binding // of the module at work
	guest   *guest   // nil until something is called
	current string   // the import or export at work, for errors
	handles handles
	spare   []message // for spareMessage
	spared  int       // messages that were made at once the last time
	held    int64     // bytes of the messages in handles
	maxHeld int64

	outbox      []Outgoing
	outboxBytes int64
	sent        int    // published at once so far: it counts for the outbox
	lastTopic   string // that a message was published to

	storeOps int64
	cursors  []string // that list-keys gave out: the key that each stands behind

	log logCapture
}

// NewCall prepares a call.
func NewCall(o CallOptions) *Call {
	c := &Call{o: o, maxHeld: limits.HeldBytes + heldBytes(o.Message)}
	for _, m := range o.More {
		c.maxHeld += heldBytes(m)
	}
	return c
}

// Outbox returns what the guest published, in order. It means nothing unless the handler returned ok; whoever runs the
// call decides. Every message in it was admitted, so that after a failure its tokens are to be given back.
func (c *Call) Outbox() []Outgoing { return c.outbox }

// Messages returns what the call was made with, for a guest that is not a module. They must not be changed.
func (c *Call) Messages() []Message { return append([]Message{c.o.Message}, c.o.More...) }

// Store returns the store that the call was given, for a guest that is not a module; nil if there is none.
func (c *Call) Store() Store { return c.o.Store }

// Publish publishes to a topic, for a guest that is not a module.
func (c *Call) Publish(ctx context.Context, topic string, m Message) (Published, *PublishError) {
	return c.post(ctx, &client{}, []byte(topic), &m)
}

// Request makes a request, for a guest that is not a module. A timeout of 0 is the call's deadline.
func (c *Call) Request(ctx context.Context, topic string, m Message, timeout time.Duration, replies int) ([]Message, *PublishError) {
	return c.request(ctx, &client{}, topic, m, requestOptions{
		timeoutMillis: uint32(timeout.Milliseconds()), timeoutSet: timeout > 0, replies: uint32(replies),
	})
}

// Reply replies to one of the call's messages, for a guest that is not a module.
func (c *Call) Reply(to, m Message) *PublishError { return c.reply(to, m) }

// HostCalls returns how often the guest called the host.
func (c *Call) HostCalls() int64 { return c.hostCalls }

// Limits returns the bounds of the call.
func (c *Call) Limits() limits.Guest { return c.o.Limits }

// Deadline returns when the call's time is over. It is known once Start was called.
func (c *Call) Deadline() time.Time { return c.deadline }

// Pause lets others run, and returns how long that took: the deadline is so much later.
func (c *Call) Pause(ctx context.Context) time.Duration {
	if c.o.Pause == nil {
		return 0
	}
	d := c.o.Pause(ctx)
	c.paused += d
	c.deadline = c.deadline.Add(d)
	return d
}

// Paused returns how long all pauses took.
func (c *Call) Paused() time.Duration { return c.paused }

// callKey is the context key of a *Call.
type callKey struct{}

// callContext is a context by which host functions find their call, mostly without a search.
type callContext struct {
	context.Context
	call *Call
}

// Value implements context.Context.
func (x *callContext) Value(key any) any {
	if key == (callKey{}) {
		return x.call
	}
	return x.Context.Value(key)
}

// Start begins the call's time on a module that b is of, and returns a context by which host functions find the call.
func (c *Call) Start(ctx context.Context, b *Binding) context.Context {
	c.binding = b
	c.deadline = time.Now().Add(c.o.Limits.CallDuration)
	if d := c.o.Deadline; !d.IsZero() && d.Before(c.deadline) {
		c.deadline = d
	}
	return &callContext{ctx, c}
}

// FromContext returns the call that Start put into ctx. It panics if there is none, because host functions run only
// under a call.
func FromContext(ctx context.Context) *Call {
	if x, ok := ctx.(*callContext); ok {
		return x.call
	}
	c, ok := ctx.Value(callKey{}).(*Call)
	if !ok {
		panic(errors.New("messaging: a host function was called outside of a call"))
	}
	return c
}

// Check returns ErrInterrupted (with its cause) or ErrTimeout if the call must end now, else nil.
func (c *Call) Check(ctx context.Context) error { return c.CheckAt(ctx, time.Now()) }

// CheckAt is Check for who knows what time it is.
func (c *Call) CheckAt(ctx context.Context, now time.Time) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrInterrupted, context.Cause(ctx))
	}
	if !now.Before(c.deadline) {
		return ErrTimeout
	}
	return nil
}

// stepsPerCheck is how many host calls, or pieces of work in one that a guest can multiply, go by between two looks at the
// clock, which cost more than each of them does. What takes long in one piece looks by itself.
const stepsPerCheck = 32

// Enter begins a host function: it counts the call and panics with a typed error if the guest call must end, of which a
// guest that calls often is told within stepsPerCheck calls.
func (c *Call) Enter(ctx context.Context) {
	c.hostCalls++
	if c.hostCalls > c.o.Limits.HostCalls || c.hostCalls%stepsPerCheck == 1 {
		c.look(ctx)
	}
}

// look is the seldom part of Enter, apart from it so that the rest is inlined.
func (c *Call) look(ctx context.Context) {
	if err := limits.Check(limits.NameHostCalls, c.hostCalls, c.o.Limits.HostCalls); err != nil {
		panic(err)
	}
	c.mustGoOn(ctx)
	if c.Pause(ctx) > 0 {
		c.mustGoOn(ctx) // it may have been given up meanwhile
	}
}

// step is mustGoOn for one piece of work that a guest can multiply: it looks at the clock before every stepsPerCheck of them.
func (c *Call) step(ctx context.Context) {
	if c.steps++; c.steps%stepsPerCheck == 0 {
		c.mustGoOn(ctx)
	}
}

// mustGoOn panics with the error of Check.
func (c *Call) mustGoOn(ctx context.Context) {
	if err := c.Check(ctx); err != nil {
		panic(err)
	}
}

// bind makes m the instance that the call talks to.
func (c *Call) bind(m api.Module) {
	if c.guest == nil || c.guest.module != m {
		c.guest = &c.binding.NewInstance(m).guest
	}
}

// hold counts n more bytes (or fewer, if negative) of m, before they are copied.
func (c *Call) hold(m *message, n int64) {
	m.held += n
	c.held += n
	if err := limits.Check(limits.NameHeldBytes, c.held, c.maxHeld); err != nil {
		panic(err)
	}
}

// newMessage gives the guest a message whose bytes were counted.
func (c *Call) newMessage(m *message) uint32 { return c.handles.add(m) }

// takeMessage removes a message from the guest's table, as an own parameter does.
func (c *Call) takeMessage(h uint32) Message {
	m := lookup[*message](&c.handles, h)
	c.handles.remove(h)
	c.held -= m.held
	taken := m.Message
	*m = message{} // what is beside it in memory may be in use, and would keep what it held
	return taken
}

// messagesAtOnce is how many messages are allocated together, which costs little more than one.
const messagesAtOnce = 16

// spareMessage returns an empty message.
func (c *Call) spareMessage() *message {
	if len(c.spare) == 0 {
		c.spared = min(max(2*c.spared, 2), messagesAtOnce) // few calls have more than one that comes and one that goes
		c.spare = make([]message, c.spared)
	}
	m := &c.spare[0]
	c.spare = c.spare[1:]
	return m
}

// pairOverheadBytes is what a metadata pair costs the host beside its text.
const pairOverheadBytes = 32

func heldBytes(m Message) int64 {
	return int64(len(m.Topic)) + int64(len(m.ContentType)) + int64(len(m.Data)) + pairsBytes(m.Metadata) +
		pairOverheadBytes*int64(len(m.Metadata))
}

func pairsBytes(pairs []Pair) int64 {
	var n int64
	for _, p := range pairs {
		n += int64(len(p.Key)) + int64(len(p.Value))
	}
	return n
}
