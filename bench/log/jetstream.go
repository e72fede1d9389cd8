package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	streamSubjects = "bench."
	cycleSubject   = "cycle"
	streamTimeout  = 30 * time.Second
)

// jetStream is a NATS server in this process with file storage: no network, as the log has none.
type jetStream struct {
	server   *server.Server
	conn     *nats.Conn
	js       jetstream.JetStream
	consumer jetstream.Consumer // of the cycle
	payload  []byte
	batches  atomic.Int64
}

// openJetStream starts a server in dir. syncAlways makes it as durable as the log is; without, it syncs every two minutes.
func openJetStream(ctx context.Context, dir string, syncAlways bool, payload []byte) (*jetStream, error) {
	s, err := server.NewServer(&server.Options{
		ServerName: "bench", JetStream: true, StoreDir: dir, SyncAlways: syncAlways, DontListen: true, NoSigs: true, NoLog: true,
		JetStreamMaxMemory: 1 << 30, JetStreamMaxStore: 64 << 30,
	})
	if err != nil {
		return nil, err
	}
	j := &jetStream{server: s, payload: payload}
	s.Start()
	if err := j.connect(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("jetstream: %w", err), j.Close())
	}
	return j, nil
}

func (j *jetStream) connect(ctx context.Context) (err error) {
	if !j.server.ReadyForConnections(streamTimeout) {
		return errors.New("the server did not start")
	}
	if j.conn, err = nats.Connect("", nats.InProcessServer(j.server)); err != nil {
		return err
	}
	if j.js, err = jetstream.New(j.conn, jetstream.WithDefaultTimeout(streamTimeout)); err != nil {
		return err
	}
	_, err = j.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: "PUBLISH", Subjects: []string{streamSubjects + ">"}, Storage: jetstream.FileStorage, AllowAtomicPublish: true,
	})
	if err != nil {
		return err
	}
	cycle, err := j.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: "CYCLE", Subjects: []string{cycleSubject}, Storage: jetstream.FileStorage, Retention: jetstream.WorkQueuePolicy,
	})
	if err != nil {
		return err
	}
	j.consumer, err = cycle.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, AckWait: leaseDuration, MaxAckPending: 10_000,
	})
	return err
}

// publish implements target.
func (j *jetStream) publish(ctx context.Context, topic string, n int) error {
	if n > 1 {
		return j.publishBatch(ctx, streamSubjects+topic, n)
	}
	_, err := j.js.Publish(ctx, streamSubjects+topic, j.payload)
	return err
}

// publishBatch publishes atomically: the server answers the last message for all.
func (j *jetStream) publishBatch(ctx context.Context, subject string, n int) error {
	id := strconv.FormatInt(j.batches.Add(1), 10)
	for i := range n {
		m := nats.NewMsg(subject)
		m.Data = j.payload
		m.Header.Set("Nats-Batch-Id", id)
		m.Header.Set("Nats-Batch-Sequence", strconv.Itoa(i+1))
		if i < n-1 {
			if err := j.conn.PublishMsg(m); err != nil {
				return err
			}
			continue
		}
		m.Header.Set("Nats-Batch-Commit", "1")
		if _, err := j.js.PublishMsg(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// offer implements queue.
func (j *jetStream) offer(ctx context.Context) error {
	_, err := j.js.Publish(ctx, cycleSubject, j.payload)
	return err
}

// work implements queue. Acknowledgements are sent and not waited for, which is JetStream's default.
func (j *jetStream) work(_ context.Context) (n int, err error) {
	fetched, err := j.consumer.Fetch(claimBatch, jetstream.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		return 0, err
	}
	for m := range fetched.Messages() {
		if err := m.Ack(); err != nil {
			return n, err
		}
		n++
	}
	if err := fetched.Error(); err != nil && !errors.Is(err, nats.ErrTimeout) {
		return n, err
	}
	return n, nil
}

// Close stops the server.
func (j *jetStream) Close() error {
	if j.conn != nil {
		j.conn.Close()
	}
	j.server.Shutdown()
	j.server.WaitForShutdown()
	return nil
}
