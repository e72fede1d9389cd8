package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/ingest"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate"
)

func published(t *testing.T, body io.Reader) wire.Published {
	t.Helper()
	var got wire.Published
	require.NoError(t, json.NewDecoder(body).Decode(&got))
	return got
}

func TestDataOptions(t *testing.T) {
	h := newHarness(t)
	want := substrate.MessageOptions{
		TTL: time.Hour, Deadline: time.UnixMilli(2_000_000_000_000), IdempotencyKey: "k 1", Principal: ingest.AnonymousSubject,
		Priority: 7, OrderingKey: "o 1", RequiredFeatures: []string{"f1", "f2"}, Target: "billing",
	}
	t.Run("OfHeadersAreStoredAndSealed", func(t *testing.T) {
		w := h.post(t, "/v1/topics/open/messages", "x", wire.TTLHeader, "60m", wire.DeadlineHeader, "2033-05-18T05:33:20+02:00",
			wire.IdempotencyKeyHeader, "k 1", wire.PriorityHeader, "7", wire.OrderingKeyHeader, "o 1", wire.FeatureHeader, "f1",
			wire.FeatureHeader, "f2", wire.TargetHeader, "billing")
		require.Equal(t, http.StatusCreated, w.Code, w.Body)
		m := h.only(t, "open")
		require.Equal(t, want, m.Options)
		_, err := h.seal.Verify(m.Envelope, dispatcher.Binding(m))
		require.NoError(t, err)
		for _, change := range []func(o *substrate.MessageOptions){
			func(o *substrate.MessageOptions) { o.Priority++ },
			func(o *substrate.MessageOptions) { o.OrderingKey += "x" },
			func(o *substrate.MessageOptions) { o.Fence = substrate.Fence{Key: "leader", Token: 1} },
			func(o *substrate.MessageOptions) { o.RequiredFeatures = nil },
			func(o *substrate.MessageOptions) { o.Target = "" },
		} {
			changed := m
			change(&changed.Options)
			_, err := h.seal.Verify(m.Envelope, dispatcher.Binding(changed))
			require.Error(t, err, "%+v", changed.Options)
		}
	})
	t.Run("OfABatchAreEachMessagesOwn", func(t *testing.T) {
		w := h.post(t, "/v1/topics/open-batch/messages", `{"messages":[
			{"data":"a","ttl":"1h","deadline":"2033-05-18T03:33:20Z","idempotency_key":"k 1","priority":7,"ordering_key":"o 1",
			 "required_features":["f1","f2"],"target":"billing"}, {"data":"b"}, {"data":"c","delay":"2h"}]}`,
			"Content-Type", wire.BatchContentType)
		require.Equal(t, http.StatusCreated, w.Code, w.Body)
		stored, err := h.log.Peek(t.Context(), testTenant, "open-batch", "", 0, 10)
		require.NoError(t, err)
		require.Len(t, stored, 3)
		require.Equal(t, "delayed", stored[2].State)
		require.Equal(t, 2*time.Hour, stored[2].Message.Options.Delay)
		require.Equal(t, want, stored[0].Message.Options)
		require.Zero(t, stored[1].Message.Options)
		receipts := published(t, w.Body).Receipts
		require.Equal(t, stored[1].Position, receipts[1].Position)
		require.Zero(t, receipts[2].Position)
		s, _ := h.log.Stats(testTenant, "open-batch")
		require.EqualValues(t, 1, s.Delayed)
	})
	t.Run("OfAHeaderDelaysToo", func(t *testing.T) {
		w := h.post(t, "/v1/topics/open-delay/messages", "x", wire.DelayHeader, "1h30m")
		require.Equal(t, http.StatusCreated, w.Code, w.Body)
		s, _ := h.log.Stats(testTenant, "open-delay")
		require.EqualValues(t, 1, s.Delayed)
		require.Zero(t, s.Ready)
	})
}

func TestDataOptionsThatAreRefusedNameTheFieldAndWhatIsRight(t *testing.T) {
	h := newHarness(t)
	for name, c := range map[string]struct {
		header []string
		says   string
	}{
		"DelayIsNoDuration":     {[]string{wire.DelayHeader, "soon"}, `has delay "soon", which is no duration; write 5s, 15m or 24h`},
		"DelayWithoutUnit":      {[]string{wire.DelayHeader, "5"}, `has delay "5"`},
		"NegativeDelay":         {[]string{wire.DelayHeader, "-5s"}, `has delay "-5s"`},
		"EmptyDelay":            {[]string{wire.DelayHeader, ""}, `has delay ""`},
		"LongDelay":             {[]string{wire.DelayHeader, "100000h"}, "option delay: want 0 to 8784h0m0s"},
		"DelayTwice":            {[]string{wire.DelayHeader, "1s", wire.DelayHeader, "1s"}, wire.DelayHeader + " is given more than once"},
		"TTLIsNoDuration":       {[]string{wire.TTLHeader, "1d"}, `has ttl "1d", which is no duration; write 5s, 15m or 24h`},
		"LongTTL":               {[]string{wire.TTLHeader, "100000h"}, "option ttl: want 0 to 8784h0m0s"},
		"TTLTwice":              {[]string{wire.TTLHeader, "1s", wire.TTLHeader, "2s"}, wire.TTLHeader + " is given more than once"},
		"DeadlineIsNoTime":      {[]string{wire.DeadlineHeader, "tomorrow"}, `has deadline "tomorrow", which is no time; write it as 2030-01-31T12:00:00Z`},
		"DeadlineWithoutZone":   {[]string{wire.DeadlineHeader, "2030-01-31T12:00:00"}, `has deadline "2030-01-31T12:00:00"`},
		"DeadlineOfTheYear1":    {[]string{wire.DeadlineHeader, "0001-01-01T00:00:00Z"}, "which is no time"},
		"DeadlineFarAway":       {[]string{wire.DeadlineHeader, "2999-01-01T00:00:00Z"}, "option deadline: want a time between 1970 and 2286"},
		"DeadlineTwice":         {[]string{wire.DeadlineHeader, "2030-01-31T12:00:00Z", wire.DeadlineHeader, "x"}, "is given more than once"},
		"EmptyIdempotencyKey":   {[]string{wire.IdempotencyKeyHeader, ""}, "has an idempotency_key that is empty"},
		"KeyIsNotUTF8":          {[]string{wire.IdempotencyKeyHeader, "\xff"}, "idempotency_key that is empty or not UTF-8"},
		"LongIdempotencyKey":    {[]string{wire.IdempotencyKeyHeader, strings.Repeat("k", limits.KeyBytes+1)}, "option idempotency key: want valid UTF-8 of at most 256 bytes"},
		"IdempotencyKeyTwice":   {[]string{wire.IdempotencyKeyHeader, "a", wire.IdempotencyKeyHeader, "a"}, "Idempotency-Key is given more than once"},
		"PriorityIsNoNumber":    {[]string{wire.PriorityHeader, "high"}, `X-Longshore-Priority: priority "high": want a whole number from 0 to 255`},
		"PriorityTooHigh":       {[]string{wire.PriorityHeader, "256"}, "has priority 256; want 0 to 255"},
		"PriorityTooLow":        {[]string{wire.PriorityHeader, "-1"}, "has priority -1; want 0 to 255"},
		"PriorityTwice":         {[]string{wire.PriorityHeader, "1", wire.PriorityHeader, "1"}, wire.PriorityHeader + " is given more than once"},
		"EmptyOrderingKey":      {[]string{wire.OrderingKeyHeader, ""}, "has ordering_key with a name that is empty"},
		"LongOrderingKey":       {[]string{wire.OrderingKeyHeader, strings.Repeat("k", limits.KeyBytes+1)}, "option ordering key: want valid UTF-8 of at most 256 bytes"},
		"OrderingKeyIsNotUTF8":  {[]string{wire.OrderingKeyHeader, "\xff"}, "has ordering_key with a name that is empty or not UTF-8"},
		"EmptyTarget":           {[]string{wire.TargetHeader, ""}, "has target with a name that is empty"},
		"EmptyFeature":          {[]string{wire.FeatureHeader, "a", wire.FeatureHeader, ""}, "has required_features with a name that is empty"},
		"LongFeature":           {[]string{wire.FeatureHeader, strings.Repeat("f", limits.FeatureBytes+1)}, "option required features: want at most 16 names"},
		"FenceWithoutToken":     {[]string{wire.FenceHeader, "leader"}, `X-Longshore-Fence: fence "leader": want KEY:TOKEN, as leader:7`},
		"FenceWithoutKey":       {[]string{wire.FenceHeader, ":7"}, `fence ":7": want KEY:TOKEN`},
		"FenceTokenIsNegative":  {[]string{wire.FenceHeader, "leader:-7"}, "want KEY:TOKEN"},
		"FenceOfAnUnknown":      {[]string{wire.FenceHeader, "leader:7"}, "has a fence, which only a producer that the host knows may set"},
		"HeaderOfABatchFence":   {[]string{"Content-Type", wire.BatchContentType, wire.FenceHeader, "k:1"}, "options from each message (fence), not from X-Longshore-Fence"},
		"HeaderOfADelayedBatch": {[]string{"Content-Type", wire.BatchContentType, wire.DelayHeader, "1s"}, "options from each message (delay), not from X-Longshore-Delay"},
		"HeaderOfABatchWithKey": {[]string{"Content-Type", wire.BatchContentType, wire.IdempotencyKeyHeader, "k"}, "(idempotency_key), not from Idempotency-Key"},
	} {
		t.Run(name, func(t *testing.T) {
			w := h.post(t, "/v1/topics/open/messages", `{"messages":[{"data":"a"}]}`, c.header...)
			require.Equal(t, http.StatusBadRequest, w.Code, w.Body)
			var p wire.Problem
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
			require.Equal(t, wire.CodeInvalid, p.Code)
			require.Contains(t, p.Detail, c.says)
		})
	}
	t.Run("OneOfABatchPublishesNone", func(t *testing.T) {
		w := h.post(t, "/v1/topics/open/messages", `{"messages":[{"data":"a"},{"data":"b","ttl":"x"}]}`, "Content-Type", wire.BatchContentType)
		require.Equal(t, http.StatusBadRequest, w.Code, w.Body)
		require.Contains(t, w.Body.String(), `message 1 has ttl \"x\"`)
	})
	for says, fields := range map[string]string{
		"has priority 256; want 0 to 255":              `"priority":256`,
		"messages.priority":                            `"priority":"high"`,
		"has a fence, which only a producer":           `"fence":{"key":"k","token":1}`,
		"unknown field":                                `"fence":{"key":"k","tokn":1}`,
		"has target with a name that is empty":         `"target":""`,
		"option required features: want at most 16":    `"required_features":[` + strings.Repeat(`"f",`, limits.RequiredFeatures) + `"f"]`,
		"has required_features with a name that is em": `"required_features":[""]`,
	} {
		w := h.post(t, "/v1/topics/open/messages", `{"messages":[{"data":"b",`+fields+`}]}`, "Content-Type", wire.BatchContentType)
		require.Equal(t, http.StatusBadRequest, w.Code, w.Body)
		require.Contains(t, w.Body.String(), says)
	}
	_, ok := h.log.Stats(testTenant, "open")
	require.False(t, ok, "nothing was published")
}

func TestIdempotencyKeys(t *testing.T) {
	h := newHarness(t)
	t.Run("APublishAgainAnswers200WithTheFirstReceipt", func(t *testing.T) {
		first := h.post(t, "/v1/topics/open/messages", "x", wire.IdempotencyKeyHeader, "k")
		require.Equal(t, http.StatusCreated, first.Code, first.Body)
		require.NotContains(t, first.Body.String(), "duplicate")
		again := h.post(t, "/v1/topics/open/messages", "x", wire.IdempotencyKeyHeader, "k")
		require.Equal(t, http.StatusOK, again.Code, again.Body)
		want := published(t, first.Body)
		want.Receipts[0].Duplicate = true
		require.Equal(t, want, published(t, again.Body))
		h.only(t, "open")
	})
	t.Run("ABatchWithSomethingNewAnswers201", func(t *testing.T) {
		w := h.post(t, "/v1/topics/open/messages", `{"messages":[{"data":"x","idempotency_key":"k"},{"data":"y","idempotency_key":"l"}]}`,
			"Content-Type", wire.BatchContentType)
		require.Equal(t, http.StatusCreated, w.Code, w.Body)
		got := published(t, w.Body)
		require.True(t, got.Receipts[0].Duplicate)
		require.False(t, got.Receipts[1].Duplicate)
	})
	t.Run("AreEachProducersOwn", func(t *testing.T) {
		socket := h.serveAdmin(t)
		a := client.NewAdmin(socket)
		data, key := "x", "k"
		msgs := []wire.NewMessage{{Data: &data, IdempotencyKey: &key}}
		first, err := a.Publish(t.Context(), testTenant, "open", msgs)
		require.NoError(t, err)
		require.False(t, first[0].Duplicate, "the local user's key is not the anonymous producer's")
		stored, err := h.log.Peek(t.Context(), testTenant, "open", "", first[0].Position-1, 1)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("local:%d", os.Getuid()), stored[0].Message.Options.Principal)

		again, err := a.Publish(t.Context(), testTenant, "open", msgs)
		require.NoError(t, err)
		require.Equal(t, wire.Receipt{ID: first[0].ID, Position: first[0].Position, Duplicate: true}, again[0])
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			"http://localhost/admin/v1/tenants/default/topics/open/messages", strings.NewReader(`{"messages":[{"data":"x","idempotency_key":"k"}]}`))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		resp, err := unixClient(socket).Do(r)
		require.NoError(t, err)
		defer func() { require.NoError(t, resp.Body.Close()) }()
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Equal(t, again, published(t, resp.Body).Receipts)
	})
}

func TestAdminOptionsAndTenants(t *testing.T) {
	h := newHarness(t)
	a := client.NewAdmin(h.serveAdmin(t))
	refused := func(t *testing.T, err error, says string) {
		t.Helper()
		var p *wire.Problem
		require.ErrorAs(t, err, &p)
		require.Equal(t, http.StatusBadRequest, p.Status)
		require.Contains(t, p.Detail, says)
	}
	t.Run("ABadOptionIsRefused", func(t *testing.T) {
		data, delay := "x", "soon"
		_, err := a.Publish(t.Context(), testTenant, "t", []wire.NewMessage{{Data: &data, Delay: &delay}})
		refused(t, err, `has delay "soon"`)
	})
	t.Run("AKnownProducerMaySetAFence", func(t *testing.T) {
		data := "x"
		_, err := a.Publish(t.Context(), testTenant, "fenced", []wire.NewMessage{{Data: &data, Fence: &wire.MessageFence{Key: "a:b", Token: 1 << 63}}})
		require.NoError(t, err)
		m := h.only(t, "fenced")
		require.Equal(t, substrate.MessageOptions{Fence: substrate.Fence{Key: "a:b", Token: 1 << 63}}, m.Options)
		_, err = h.seal.Verify(m.Envelope, dispatcher.Binding(m))
		require.NoError(t, err)
		seen, err := a.Peek(t.Context(), testTenant, "fenced", 0, 1)
		require.NoError(t, err)
		require.Equal(t, &wire.MessageOptions{Fence: &wire.MessageFence{Key: "a:b", Token: 1 << 63}}, seen[0].Message.Options)
	})
	t.Run("APriorityOverThatOfTheTopicIsRefused", func(t *testing.T) {
		data, most, over := "x", int64(5), int64(6)
		_, err := a.SetPolicy(t.Context(), testTenant, "low", "", wire.PolicyChange{MaxPriority: &most})
		require.NoError(t, err)
		_, err = a.Publish(t.Context(), testTenant, "low", []wire.NewMessage{{Data: &data, Priority: &over}})
		refused(t, err, "option priority: want at most 5 on topic low")
		_, err = a.Publish(t.Context(), testTenant, "low", []wire.NewMessage{{Data: &data, Priority: &most}})
		require.NoError(t, err)
	})
	t.Run("TopicsAreOfOneTenantOrOfAll", func(t *testing.T) {
		for _, tenant := range []string{testTenant, "other"} {
			_, err := a.Publish(t.Context(), tenant, "t", text("x"))
			require.NoError(t, err)
		}
		all, err := a.Topics(t.Context(), "")
		require.NoError(t, err)
		require.Len(t, all, 4)
		other, err := a.Topics(t.Context(), "other")
		require.NoError(t, err)
		require.Len(t, other, 1)
		require.Equal(t, "other", other[0].Tenant)
		_, err = a.Topics(t.Context(), "No Tenant")
		refused(t, err, "tenant")
	})
}
