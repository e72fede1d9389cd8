package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// Data publishes as a producer does.
type Data struct{ caller }

// NewData returns a client of the data interface at address, "host:port". Nothing is connected yet.
func NewData(address string) *Data {
	return &Data{newCaller("http://"+address, "http://"+address, "tcp", address)}
}

// PublishBatch publishes msgs, all or none.
func (d *Data) PublishBatch(ctx context.Context, topic string, msgs []wire.NewMessage) ([]wire.Receipt, error) {
	body, err := json.Marshal(wire.Batch{Messages: msgs})
	if err != nil {
		return nil, fmt.Errorf("encode the batch: %w", err)
	}
	var out wire.Published
	_, err = d.send(ctx, http.MethodPost, "/v1/topics/"+url.PathEscape(topic)+"/messages", http.Header{"Content-Type": {wire.BatchContentType}}, body, &out)
	return out.Receipts, err
}
