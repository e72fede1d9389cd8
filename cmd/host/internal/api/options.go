package api

import (
	"net/http"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// optionHeader is an option of a single message: its header, and its field in a batch.
type optionHeader struct {
	header, field string
	of            func(m *wire.NewMessage) **string
}

func optionHeaders() []optionHeader {
	return []optionHeader{
		{wire.DelayHeader, "delay", func(m *wire.NewMessage) **string { return &m.Delay }},
		{wire.TTLHeader, "ttl", func(m *wire.NewMessage) **string { return &m.TTL }},
		{wire.DeadlineHeader, "deadline", func(m *wire.NewMessage) **string { return &m.Deadline }},
		{wire.IdempotencyKeyHeader, "idempotency_key", func(m *wire.NewMessage) **string { return &m.IdempotencyKey }},
	}
}

// setOptions takes the options of a single message from its headers, unread.
func setOptions(m *wire.NewMessage, h http.Header) error {
	for _, o := range optionHeaders() {
		switch values := h.Values(o.header); len(values) {
		case 0:
		case 1:
			*o.of(m) = &values[0]
		default:
			return problem(http.StatusBadRequest, wire.CodeInvalid, o.header+" is given more than once")
		}
	}
	return nil
}
