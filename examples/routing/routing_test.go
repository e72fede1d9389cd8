// Package routing_test builds the consumer of this example from source and runs events through the real runtime.
package routing_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/internal/guestbuild"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

func TestRouting(t *testing.T) {
	consumer := guestbuild.Consumers(t, guestbuild.JavaScript, ".")["routing"]
	for name, c := range map[string]struct {
		event string
		to    []string
	}{
		"ByItsType":             {`{"type":"order.shipped"}`, []string{"events/shipped"}},
		"ToAllThatWantIt":       {`{"type":"order.paid","cents":100000}`, []string{"events/paid", "events/large"}},
		"ElsewhereIfNobodyDoes": {`{"type":"order.placed","cents":99999}`, []string{"events/other"}},
	} {
		t.Run("AnEventIsSent"+name, func(t *testing.T) {
			o, out := consumer.Deliver(t, messaging.Message{Data: []byte(c.event), ContentType: "application/json"})
			require.Equal(t, runtime.OK, o.Class, "%s: %s", o.Reason(), o.GuestText)
			require.Equal(t, messaging.AnswerAck, o.Answers[0].Case)
			var topics []string
			for _, m := range out {
				require.Equal(t, c.event, string(m.Message.Data))
				require.Equal(t, "application/json", m.Message.ContentType)
				topics = append(topics, m.Topic)
			}
			require.Equal(t, c.to, topics)
		})
	}
	t.Run("WhatIsNoEventIsRejected", func(t *testing.T) {
		for text, why := range map[string]string{"": "not JSON", "{": "not JSON", "null": "no type", `{"type":1}`: "no type"} {
			o, out := consumer.Deliver(t, messaging.Message{Data: []byte(text)})
			require.Equal(t, runtime.OK, o.Class, "%s: %s", o.Reason(), o.GuestText)
			require.Equal(t, messaging.AnswerReject, o.Answers[0].Case)
			require.Contains(t, o.Answers[0].Text, why)
			require.Empty(t, out)
		}
	})
}
