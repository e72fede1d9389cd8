// Package ingest publishes what comes from outside of the host: it gives each message an id, seals the producer's signed
// context to it, and appends the batch to the log. HTTP producers and local commands go through the same Publisher.
package ingest

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

// AnonymousSubject is the subject of a producer that isn't known.
const AnonymousSubject = "anonymous"

// Publisher publishes to a log. It is safe for concurrent use.
type Publisher struct {
	log  *substrate.Log
	seal *signedctx.Context
}

// New returns a Publisher that seals with seal. It owns neither of its arguments.
func New(log *substrate.Log, seal *signedctx.Context) *Publisher {
	return &Publisher{log: log, seal: seal}
}

// InvalidError says which message of a request can't be published as it is.
type InvalidError struct {
	Index   int    // of the message in the request, from 0
	Problem string // safe to show
}

// Error implements error.
func (e *InvalidError) Error() string { return fmt.Sprintf("message %d %s", e.Index, e.Problem) }

// Publish publishes msgs to a topic of who's tenant, all or none, and returns when they are durable. Besides an
// *InvalidError it returns the errors of substrate.Log.Publish. The payloads of msgs belong to the log from here on.
func (p *Publisher) Publish(ctx context.Context, who signedctx.Principal, topic string, msgs []wire.NewMessage) ([]wire.Receipt, error) {
	if err := substrate.ValidTenant(who.Tenant); err != nil {
		return nil, err
	}
	if err := substrate.ValidTopic(topic); err != nil {
		return nil, err
	}
	var err error
	out := make([]substrate.Message, len(msgs))
	for i, m := range msgs {
		if out[i], err = p.message(who, topic, i, m); err != nil {
			return nil, err
		}
	}
	got, err := p.log.Publish(ctx, out...)
	if err != nil {
		return nil, err
	}
	receipts := make([]wire.Receipt, len(got))
	for i, r := range got {
		receipts[i] = wire.Receipt{ID: r.ID, Position: r.Position, Duplicate: r.Duplicate}
	}
	return receipts, nil
}

// message makes the sealed message of m, the one at index i of the request.
func (p *Publisher) message(who signedctx.Principal, topic string, i int, m wire.NewMessage) (substrate.Message, error) {
	payload, err := m.Payload()
	if err != nil {
		return substrate.Message{}, &InvalidError{Index: i, Problem: err.Error()}
	}
	if !utf8.ValidString(m.ContentType) {
		return substrate.Message{}, &InvalidError{Index: i, Problem: "has a content type that is not UTF-8"}
	}
	options, err := optionsOf(who, m)
	if err != nil {
		return substrate.Message{}, &InvalidError{Index: i, Problem: err.Error()}
	}
	out := substrate.Message{
		ID: p.log.MintID(), Tenant: who.Tenant, Topic: topic, ContentType: m.ContentType, Payload: payload, Options: options,
	}
	for _, kv := range m.Metadata {
		if !utf8.ValidString(kv.Key) || !utf8.ValidString(kv.Value) {
			return substrate.Message{}, &InvalidError{Index: i, Problem: "has metadata that is not UTF-8"}
		}
		out.Metadata = append(out.Metadata, substrate.Pair{Key: kv.Key, Value: kv.Value})
	}
	if out.Envelope, err = p.seal.Seal(who, dispatcher.Binding(out)); err != nil {
		return substrate.Message{}, fmt.Errorf("seal message %d: %w", i, err)
	}
	return out, nil
}
