package dispatcher

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

const (
	tenant = "acme"
	topic  = "orders"
)

// guestFunc is a Guest of Go code.
type guestFunc func(ctx context.Context, call *messaging.Call) runtime.Outcome

func (f guestFunc) Invoke(ctx context.Context, call *messaging.Call) runtime.Outcome {
	return f(ctx, call)
}

func (f guestFunc) Batches() bool { return true }

func (f guestFunc) Digest() string { return "d1ge57" }

// ends is a guest whose every call ends the same way.
func ends(o runtime.Outcome) guestFunc {
	return func(context.Context, *messaging.Call) runtime.Outcome { return o }
}

// works is a guest that takes some time, and heeds its context.
func works(d time.Duration) guestFunc {
	return func(ctx context.Context, _ *messaging.Call) runtime.Outcome {
		if !sleep(ctx, d) {
			return runtime.Outcome{Class: runtime.Interrupted, Err: context.Cause(ctx)}
		}
		return runtime.Outcome{Class: runtime.OK}
	}
}

// receipts is an Observer that keeps everything.
type receipts struct {
	mu     sync.Mutex
	all    []Receipt
	events []EventOutcome
}

func (r *receipts) OnEvent(e EventOutcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *receipts) OnDelivery(one Receipt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, one)
}

func (r *receipts) list() []Receipt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// rig is a dispatcher on a memQueue.
type rig struct {
	t       *testing.T
	queue   *memQueue
	context *signedctx.Context
	seen    *receipts
	logs    *observer.ObservedLogs
	options Options
	d       *Dispatcher

	stop  context.CancelFunc
	ended chan error
}

func newRig(t *testing.T, consumers ...Consumer) *rig {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	r := &rig{t: t, queue: newMemQueue(), seen: &receipts{}, logs: logs, context: newContext(t), ended: make(chan error, 1)}
	r.options = Options{
		Queue: r.queue, Context: r.context, Consumers: consumers, Logger: zap.New(core), Observer: r.seen,
		Workers: 1, Grace: 10 * time.Second,
	}
	return r
}

func newContext(t *testing.T) *signedctx.Context {
	t.Helper()
	c, err := signedctx.New(newKeys(t), "test-host", time.Now)
	require.NoError(t, err)
	return c
}

func newKeys(t *testing.T) *signedctx.Keyring {
	t.Helper()
	token, err := signedctx.GenerateKey(signedctx.EdDSA)
	require.NoError(t, err)
	seal, err := signedctx.GenerateKey(signedctx.HS256)
	require.NoError(t, err)
	k, err := signedctx.NewKeyring([]signedctx.Key{token}, []signedctx.Key{seal})
	require.NoError(t, err)
	return k
}

// consumerOf is a consumer with short, round numbers.
func consumerOf(name string, g Guest) Consumer {
	return Consumer{
		Name: name, Tenant: tenant, Topic: topic, Guest: g, Limits: limits.DefaultGuest(), Publish: []string{"*"},
		MaxAttempts: 3, Lease: 30 * time.Second, Version: "v1",
	}
}

// message makes a message as a producer publishes it.
func (r *rig) message(topicName, payload string) substrate.Message {
	r.t.Helper()
	m := substrate.Message{
		ID: r.queue.MintID(), Tenant: tenant, Topic: topicName, ContentType: "text/plain",
		Metadata: []substrate.Pair{{Key: "k", Value: "v"}}, Payload: []byte(payload),
	}
	return sealed(r.t, r.context, m)
}

func sealed(tb testing.TB, c *signedctx.Context, m substrate.Message) substrate.Message {
	tb.Helper()
	envelope, err := c.Seal(signedctx.Principal{Tenant: m.Tenant, Subject: "local:1000"}, Binding(m))
	require.NoError(tb, err)
	m.Envelope = envelope
	return m
}

// publish puts n messages on the topic and returns their ids.
func (r *rig) publish(n int) []string {
	r.t.Helper()
	var ids []string
	for range n {
		m := r.message(topic, "payload")
		ids = append(ids, m.ID)
		r.queue.publish(m)
	}
	return ids
}

// run starts the dispatcher; halt stops it and waits.
func (r *rig) run() {
	r.t.Helper()
	var err error
	r.d, err = New(r.options)
	require.NoError(r.t, err)
	ctx, cancel := context.WithCancel(r.t.Context())
	r.stop = cancel
	go func() { r.ended <- r.d.Run(ctx) }()
}

func (r *rig) halt() {
	r.t.Helper()
	r.stop()
	require.NoError(r.t, <-r.ended)
}

// runFor runs the dispatcher for a while of fake time, and stops it.
func (r *rig) runFor(d time.Duration) {
	r.t.Helper()
	r.run()
	time.Sleep(d)
	synctest.Wait()
	r.halt()
}

// state returns the status of the only consumer.
func (r *rig) state() ConsumerStatus {
	return r.d.Consumers()[0]
}
