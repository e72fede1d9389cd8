package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/extism/go-sdk"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore/longshore/limits"
)

const (
	peerBatch   = 64 // messages a fetch
	peerTimeout = 30 * time.Second
	peerAckWait = 30 * time.Second
	peerPending = 4_096 // publishes that aren't answered yet, as many as JetStream's client lets
)

// peer does the same with what there is: a NATS server in this process, with streams in files as durable as it is by default,
// a pull consumer, and plugins of Extism. A fetch of messages is handled one by one; their answers are published without
// waiting, and the messages acknowledged, without waiting either, once the answers are stored, so that a crash loses none.
type peer struct {
	server   *server.Server
	conn     *nats.Conn
	js       jetstream.JetStream
	consumer jetstream.Consumer
	orders   [][]byte
	plugins  map[plugins]*extism.CompiledPlugin
}

// plugins are a compiled plugin: of what language, and with the limits that Extism has, or without any.
type plugins struct {
	language language
	limited  bool
}

func openPeer(ctx context.Context, dir string, guests map[guest][]byte, orders [][]byte) (*peer, error) {
	s, err := server.NewServer(&server.Options{
		ServerName: "bench", JetStream: true, StoreDir: dir, DontListen: true, NoSigs: true, NoLog: true,
		JetStreamMaxMemory: 1 << 30, JetStreamMaxStore: 64 << 30,
	})
	if err != nil {
		return nil, err
	}
	p := &peer{server: s, orders: orders, plugins: map[plugins]*extism.CompiledPlugin{}}
	s.Start()
	if err := errors.Join(p.connect(ctx), p.compile(ctx, guests)); err != nil {
		return nil, errors.Join(err, p.close(ctx))
	}
	return p, nil
}

func (p *peer) connect(ctx context.Context) (err error) {
	if !p.server.ReadyForConnections(peerTimeout) {
		return errors.New("the NATS server did not start")
	}
	if p.conn, err = nats.Connect("", nats.InProcessServer(p.server)); err != nil {
		return err
	}
	p.js, err = jetstream.New(p.conn, jetstream.WithDefaultTimeout(peerTimeout), jetstream.WithPublishAsyncMaxPending(peerPending))
	if err != nil {
		return err
	}
	_, err = p.js.CreateStream(ctx, jetstream.StreamConfig{Name: "PRICED", Subjects: []string{pricedTopic}, Storage: jetstream.FileStorage})
	if err != nil {
		return err
	}
	stream, err := p.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: "ORDERS", Subjects: []string{ordersTopic}, Storage: jetstream.FileStorage, Retention: jetstream.WorkQueuePolicy,
	})
	if err != nil {
		return err
	}
	p.consumer, err = stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "pricer", AckPolicy: jetstream.AckExplicitPolicy, AckWait: peerAckWait, MaxAckPending: 10_000,
	})
	return err
}

// compile compiles each plugin once, for all of its instances: with the bounds on time and memory that ours has, and without.
func (p *peer) compile(ctx context.Context, guests map[guest][]byte) error {
	for _, l := range languages() {
		for _, limited := range []bool{true, false} {
			m := extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: guests[guest{l, plugin}]}}}
			if limited {
				m.Timeout = uint64(limits.CallDuration.Milliseconds())
				m.Memory = &extism.ManifestMemory{MaxPages: limits.GuestMemoryBytes / (64 << 10), MaxHttpResponseBytes: -1, MaxVarBytes: -1}
			}
			compiled, err := extism.NewCompiledPlugin(ctx, m, extism.PluginConfig{EnableWasi: true}, nil)
			if err != nil {
				return fmt.Errorf("plugin in %s: %w", l, err)
			}
			p.plugins[plugins{l, limited}] = compiled
		}
	}
	return nil
}

func (p *peer) close(ctx context.Context) (err error) {
	for _, c := range p.plugins {
		err = errors.Join(err, c.Close(ctx))
	}
	if p.conn != nil {
		p.conn.Close()
	}
	p.server.Shutdown()
	p.server.WaitForShutdown()
	return err
}

// publish publishes the first n orders.
func (p *peer) publish(ctx context.Context, n int) error {
	for _, order := range p.orders[:n] {
		if _, err := p.js.PublishAsync(ordersTopic, order); err != nil {
			return err
		}
	}
	select {
	case <-p.js.PublishAsyncComplete():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// instances says how a worker comes by an instance for each message, and how it leaves it.
type instances struct {
	plugins plugins
	fresh   bool // a new one for each message, as Extism isolates them; else one for all of a worker
	workers int
}

// String names the way.
func (i instances) String() string {
	s := "jetstream, extism: one instance each"
	switch {
	case i.fresh:
		s = "jetstream, extism: new instances"
	case !i.plugins.limited:
		s += ", no limits"
	}
	return fmt.Sprintf("%s; %d workers", s, i.workers)
}

// messages returns how many are measured where others are measured with n: fewer where each takes long.
func (i instances) messages(n int) int {
	switch {
	case i.fresh && i.plugins.language == inGo:
		return max(n/40, peerBatch)
	case i.fresh:
		return n / 4
	}
	return n
}

// drain handles n orders.
func (p *peer) drain(ctx context.Context, i instances, n int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	left := atomic.Int64{}
	left.Store(int64(n))
	var workers sync.WaitGroup
	for range i.workers {
		workers.Go(func() {
			if err := p.work(ctx, i, &left); err != nil {
				cancel(err)
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

// work handles messages until none of left is left.
func (p *peer) work(ctx context.Context, i instances, left *atomic.Int64) (err error) {
	kept, err := p.instance(ctx, i)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kept.Close(ctx)) }()
	for ctx.Err() == nil {
		have := left.Add(-peerBatch) + peerBatch
		if have <= 0 {
			return nil
		}
		fetched, err := p.consumer.Fetch(int(min(have, peerBatch)), jetstream.FetchMaxWait(peerTimeout))
		if err != nil {
			return err
		}
		if err := p.handle(ctx, i, kept, fetched); err != nil {
			return err
		}
	}
	return nil
}

// handle handles a fetch of messages.
func (p *peer) handle(ctx context.Context, i instances, kept *extism.Plugin, fetched jetstream.MessageBatch) error {
	var messages []jetstream.Msg
	var answers []jetstream.PubAckFuture
	for m := range fetched.Messages() {
		out, err := p.call(ctx, i, kept, m.Data())
		if err != nil {
			return err
		}
		answer, err := p.js.PublishAsync(pricedTopic, out)
		if err != nil {
			return err
		}
		messages, answers = append(messages, m), append(answers, answer)
	}
	for at, answer := range answers {
		select {
		case <-answer.Ok():
		case err := <-answer.Err():
			return err
		}
		if err := messages[at].Ack(); err != nil {
			return err
		}
	}
	return fetched.Error()
}

// call has an instance handle an order, and returns the answer.
func (p *peer) call(ctx context.Context, i instances, kept *extism.Plugin, order []byte) (out []byte, err error) {
	use := kept
	if i.fresh {
		if use, err = p.instance(ctx, i); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, use.Close(ctx)) }()
	}
	code, out, err := use.CallWithContext(ctx, "price", order)
	if err == nil && (code != 0 || len(out) == 0) {
		err = fmt.Errorf("the plugin says %d", code)
	}
	return out, err
}

func (p *peer) instance(ctx context.Context, i instances) (*extism.Plugin, error) {
	return p.plugins[i.plugins].Instance(ctx, extism.PluginInstanceConfig{})
}
