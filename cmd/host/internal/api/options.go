package api

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/limits"
)

// optionHeader is an option of a single message: its header, and its field in a batch.
type optionHeader struct {
	header, field string
	set           func(m *wire.NewMessage, values []string) error
	many          bool // it may be repeated
}

func optionHeaders() []optionHeader {
	return []optionHeader{
		textOption(wire.DelayHeader, "delay", func(m *wire.NewMessage) **string { return &m.Delay }),
		textOption(wire.TTLHeader, "ttl", func(m *wire.NewMessage) **string { return &m.TTL }),
		textOption(wire.DeadlineHeader, "deadline", func(m *wire.NewMessage) **string { return &m.Deadline }),
		textOption(wire.IdempotencyKeyHeader, "idempotency_key", func(m *wire.NewMessage) **string { return &m.IdempotencyKey }),
		textOption(wire.OrderingKeyHeader, "ordering_key", func(m *wire.NewMessage) **string { return &m.OrderingKey }),
		textOption(wire.TargetHeader, "target", func(m *wire.NewMessage) **string { return &m.Target }),
		{header: wire.PriorityHeader, field: "priority", set: setPriority},
		{header: wire.FenceHeader, field: "fence", set: setFence},
		{header: wire.FeatureHeader, field: "required_features", many: true, set: func(m *wire.NewMessage, values []string) error {
			m.RequiredFeatures = values
			return nil
		}},
	}
}

// textOption is one whose text is taken unread.
func textOption(header, field string, of func(m *wire.NewMessage) **string) optionHeader {
	return optionHeader{header: header, field: field, set: func(m *wire.NewMessage, values []string) error {
		*of(m) = &values[0]
		return nil
	}}
}

func setPriority(m *wire.NewMessage, values []string) error {
	n, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil {
		return fmt.Errorf("priority %.40q: want a whole number from 0 to %d", values[0], limits.PriorityCeiling)
	}
	m.Priority = &n
	return nil
}

func setFence(m *wire.NewMessage, values []string) error {
	f, err := wire.ParseFence(values[0])
	m.Fence = &f
	return err
}

// setOptions takes the options of a single message from its headers.
func setOptions(m *wire.NewMessage, h http.Header) error {
	for _, o := range optionHeaders() {
		values := h.Values(o.header)
		if len(values) == 0 {
			continue
		}
		if len(values) > 1 && !o.many {
			return problem(http.StatusBadRequest, wire.CodeInvalid, o.header+" is given more than once")
		}
		if err := o.set(m, values); err != nil {
			return problem(http.StatusBadRequest, wire.CodeInvalid, o.header+": "+err.Error())
		}
	}
	return nil
}
