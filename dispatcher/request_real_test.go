package dispatcher

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"

	"github.com/longshore/longshore/internal/guestbuild"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate"
)

// goGuest builds a guest in Go, and returns its bytes.
func goGuest(t *testing.T, dir string) []byte {
	t.Helper()
	env := guestbuild.Require(t, guestbuild.Go)
	file := filepath.Join(t.TempDir(), "guest.wasm")
	require.NoError(t, guestbuild.Run(t.Context(), dir, env,
		"env", "GOOS=wasip1", "GOARCH=wasm", "go", "build", "-buildvcs=false", "-buildmode=c-shared", "-o", file, "."))
	return guestbuild.Read(t, file)
}

// claimed takes n messages from a topic.
func (h *house) claimed(topicName string, n int) (texts []string, all []substrate.Message) {
	h.t.Helper()
	for len(all) < n {
		require.NoError(h.t, h.log.WaitReady(h.t.Context(), tenant, topicName, ""))
		got, err := h.log.Claim(h.t.Context(), substrate.ClaimRequest{
			Tenant: tenant, Topic: topicName, MaxMessages: n, MaxBytes: limits.MiB, Lease: time.Minute, MaxAttempts: 1,
		})
		require.NoError(h.t, err)
		for _, d := range got.Deliveries {
			texts, all = append(texts, string(d.Message.Payload)), append(all, d.Message)
		}
	}
	return texts, all
}

// In a real log, real guests: the conformance guest requests of "reply" what it gets from "request/reply", and replies to that.
func TestRequestOfRealGuests(t *testing.T) {
	h := newHouse(t)
	patient := limits.DefaultGuest()
	patient.CallDuration, patient.Fuel = 20*time.Second, 10_000_000_000
	module := h.module("conformance", goGuest(t, filepath.Join("..", "guests", "go", "conformance", "handler")), patient)
	consumer := func(name, topicName string) Consumer {
		c := realConsumer(name, topicName, module)
		c.Limits = patient
		return c
	}
	const requests = 12
	for range requests { // without a payload, for that means without options
		m := substrate.Message{ID: h.log.MintID(), Tenant: tenant, Topic: "request/reply", ContentType: "text/plain"}
		_, err := h.log.Publish(t.Context(), sealed(t, h.context, m))
		require.NoError(t, err)
	}
	d, err := New(Options{
		Queue: h.log, Context: h.context, Observer: h, Logger: zaptest.NewLogger(t), Workers: 1,
		Consumers: []Consumer{consumer("shop", "request/reply"), consumer("clerk", "reply")},
	})
	require.NoError(t, err)
	stop := h.runs(d)
	reports, _ := h.claimed("report", requests)
	_, out := h.claimed("out", requests)
	stop()
	for i, r := range reports {
		require.Contains(t, r, " of consumer:clerk")
		require.Equal(t, "text/plain", out[i].ContentType)
	}
	require.EqualValues(t, requests, h.stats("reply").Acked)
	require.EqualValues(t, requests, h.stats("request/reply").Acked)
	require.Zero(t, h.stats("request/reply").DeadLetters+h.stats("reply").DeadLetters)
	require.Equal(t, RequestStats{Answered: requests, Dropped: requests}, d.Requests(), "it replies twice to each")
}
