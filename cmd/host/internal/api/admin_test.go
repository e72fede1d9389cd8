package api

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate"
)

// text makes messages with these payloads.
func text(payloads ...string) []wire.NewMessage {
	out := make([]wire.NewMessage, len(payloads))
	for i := range payloads {
		out[i] = wire.NewMessage{Data: &payloads[i]}
	}
	return out
}

func TestAdminPublish(t *testing.T) {
	h := newHarness(t)
	a := client.NewAdmin(h.serveAdmin(t))

	t.Run("PublishesAsTheLocalUserWhateverTheTopicAllows", func(t *testing.T) {
		receipts, err := a.Publish(t.Context(), testTenant, "closed/topic", text("one"))
		require.NoError(t, err)
		m := h.only(t, "closed/topic")
		require.Equal(t, receipts[0].ID, m.ID)
		v, err := h.seal.Verify(m.Envelope, dispatcher.Binding(m))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("local:%d", os.Getuid()), v.Subject)
	})
	t.Run("ABadNameIsAProblem", func(t *testing.T) {
		_, err := a.Publish(t.Context(), testTenant, "../x", text("one"))
		var p *wire.Problem
		require.ErrorAs(t, err, &p)
		require.Equal(t, http.StatusBadRequest, p.Status)
		require.Equal(t, wire.CodeInvalid, p.Code)
	})
	t.Run("PeekGoesOnAfterAPosition", func(t *testing.T) {
		_, err := a.Publish(t.Context(), testTenant, "peek", text("a", "b", "c"))
		require.NoError(t, err)
		first, err := a.Peek(t.Context(), testTenant, "peek", 0, 2)
		require.NoError(t, err)
		require.Len(t, first, 2)
		rest, err := a.Peek(t.Context(), testTenant, "peek", first[1].Position, 2)
		require.NoError(t, err)
		require.Len(t, rest, 1)
		require.Equal(t, "c", string(rest[0].Message.DataBase64))
		require.Equal(t, "ready", rest[0].State)
	})
	t.Run("StatsAndPause", func(t *testing.T) {
		require.NoError(t, a.Pause(t.Context(), testTenant, "peek", true))
		s, err := a.Topic(t.Context(), testTenant, "peek")
		require.NoError(t, err)
		require.True(t, s.Paused)
		require.EqualValues(t, 3, s.Ready)
		require.EqualValues(t, 3, s.Published)
		require.NotNil(t, s.OldestUnacked)
		all, err := a.Topics(t.Context(), "")
		require.NoError(t, err)
		require.Len(t, all, 2)
		_, err = a.Topic(t.Context(), testTenant, "unknown")
		var p *wire.Problem
		require.ErrorAs(t, err, &p)
		require.Equal(t, http.StatusNotFound, p.Status)
	})
	t.Run("ConsumersAndHost", func(t *testing.T) {
		cs, err := a.Consumers(t.Context())
		require.NoError(t, err)
		require.Equal(t, []wire.Consumer{{Name: "c", Tenant: testTenant, Topic: "open", State: "running"}}, cs)
		info, err := a.Host(t.Context())
		require.NoError(t, err)
		require.Equal(t, "v1", info.Version)
	})
}

func TestAdminDeadLetters(t *testing.T) {
	h := newHarness(t)
	a := client.NewAdmin(h.serveAdmin(t))
	publish := func(t *testing.T, topic string, payloads ...string) []wire.Receipt {
		t.Helper()
		r, err := a.Publish(t.Context(), testTenant, topic, text(payloads...))
		require.NoError(t, err)
		return r
	}
	t.Run("ListAndShow", func(t *testing.T) {
		r := publish(t, "show", "payload")
		h.bury(t, "show", "exit 3")
		list, err := a.DeadLetters(t.Context(), testTenant, "show", wire.Filter{Reason: "exit"})
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, r[0].ID, list[0].ID)
		require.Equal(t, "exit 3", list[0].Reason)
		require.JSONEq(t, `{"fuel":1}`, string(list[0].Receipt))
		d, err := a.DeadLetter(t.Context(), testTenant, "show", r[0].ID, "")
		require.NoError(t, err)
		require.Equal(t, "payload", string(d.Message.DataBase64))
		none, err := a.DeadLetters(t.Context(), testTenant, "show", wire.Filter{Reason: "timeout"})
		require.NoError(t, err)
		require.Empty(t, none)
	})
	t.Run("DryRunChangesNothing", func(t *testing.T) {
		publish(t, "dry", "1", "2", "3")
		h.bury(t, "dry", "timeout")
		for limit, want := range map[int]int{0: 3, 2: 2, 9: 3} {
			m, err := a.Discard(t.Context(), testTenant, "dry", wire.Move{DryRun: true, Filter: wire.Filter{Limit: limit}})
			require.NoError(t, err)
			require.Equal(t, wire.Moved{Count: want, DryRun: true}, m)
		}
		m, err := a.Discard(t.Context(), testTenant, "dry", wire.Move{Filter: wire.Filter{Limit: 2}})
		require.NoError(t, err)
		require.Equal(t, 2, m.Count)
		s, _ := h.log.Stats(testTenant, "dry")
		require.EqualValues(t, 1, s.DeadLetters)
	})
	t.Run("RedriveRefusesAForgedContext", func(t *testing.T) {
		publish(t, "forged", "honest")
		_, err := h.log.Publish(t.Context(), substrate.Message{
			ID: h.log.MintID(), Tenant: testTenant, Topic: "forged", Payload: []byte("x"), Envelope: []byte("no envelope"),
		})
		require.NoError(t, err)
		h.bury(t, "forged", "decode-failed")
		m, err := a.Redrive(t.Context(), testTenant, "forged", wire.Move{})
		require.NoError(t, err)
		require.Equal(t, wire.Moved{Count: 1, Refused: 1}, m)
	})
	t.Run("AnEmptyFilterIsRefusedAndMovesNothing", func(t *testing.T) {
		publish(t, "empty", "1")
		h.bury(t, "empty", "timeout")
		const base = "/admin/v1/tenants/default/topics/empty/dead-letters"
		for _, name := range []string{"id", "lane", "older_than", "reason"} {
			for _, move := range []string{"discard", "redrive"} {
				w := do(t, h.admin, http.MethodPost, base+"/"+move, strings.NewReader(`{"filter":{"`+name+`":""}}`), "Content-Type", "application/json")
				require.Equal(t, http.StatusUnprocessableEntity, w.Code, w.Body)
				require.Contains(t, w.Body.String(), "body.filter."+name)
			}
			w := do(t, h.admin, http.MethodGet, base+"?"+name+"=", nil)
			require.Equal(t, http.StatusUnprocessableEntity, w.Code, w.Body)
			require.Contains(t, w.Body.String(), "query."+name)
		}
		w := do(t, h.admin, http.MethodPost, base+"/discard", strings.NewReader(`{"filter":{"older_than":"0s"}}`), "Content-Type", "application/json")
		require.Equal(t, http.StatusBadRequest, w.Code, w.Body)
		s, _ := h.log.Stats(testTenant, "empty")
		require.EqualValues(t, 1, s.DeadLetters)
		got, err := a.DeadLetters(t.Context(), testTenant, "empty", wire.Filter{Lane: wire.DefaultLane})
		require.NoError(t, err)
		require.Len(t, got, 1)
	})
	t.Run("AMessageThatDoesNotCheckIsSaidToBeUnreadable", func(t *testing.T) {
		whole := substrate.Message{ID: "position-7", Envelope: []byte("e")}
		names := substrate.Message{ID: "position-7"}
		require.True(t, unreadable(substrate.DeadLetter{Reason: substrate.ReasonCorrupt}, names))
		require.True(t, unreadable(substrate.DeadLetter{Reason: "timeout", PayloadBytes: 1}, names))
		require.False(t, unreadable(substrate.DeadLetter{Reason: "timeout"}, whole))
		require.False(t, unreadable(substrate.DeadLetter{Reason: substrate.ReasonCorrupt}, whole))
	})
	t.Run("BadOlderThanSaysWhatIsRight", func(t *testing.T) {
		_, err := a.DeadLetters(t.Context(), testTenant, "show", wire.Filter{OlderThan: "soon"})
		var p *wire.Problem
		require.ErrorAs(t, err, &p)
		require.Equal(t, http.StatusBadRequest, p.Status)
		require.Contains(t, p.Detail, "write 90s, 15m or 24h")
	})
}

func TestAdminPolicy(t *testing.T) {
	h := newHarness(t)
	a := client.NewAdmin(h.serveAdmin(t))
	depth := int64(7)
	v, err := a.SetPolicy(t.Context(), testTenant, "p", "", wire.PolicyChange{MaxDepth: &depth})
	require.NoError(t, err)
	require.Equal(t, wire.PolicyValue{Value: &depth, Source: "stored"}, v.MaxDepth)
	require.Nil(t, v.MaxRatePerSec.Value)
	got, err := a.Policy(t.Context(), testTenant, "p")
	require.NoError(t, err)
	require.Equal(t, v, got)
	got, err = a.UnsetPolicy(t.Context(), testTenant, "p", "")
	require.NoError(t, err)
	require.Equal(t, "default", got.MaxDepth.Source)
	_, err = a.SetPolicy(t.Context(), testTenant, "p", "", wire.PolicyChange{})
	require.ErrorContains(t, err, "nothing to set")
	none := int64(0)
	v, err = a.SetPolicy(t.Context(), testTenant, "p", "", wire.PolicyChange{MaxUnflushed: &none})
	require.NoError(t, err)
	require.Equal(t, wire.PolicyValue{Value: &none, Source: "stored"}, v.MaxUnflushed)
}

// TestAdminPolicyBounds holds what the schema takes against what the log takes.
func TestAdminPolicyBounds(t *testing.T) {
	h := newHarness(t)
	a := client.NewAdmin(h.serveAdmin(t))
	for name, c := range map[string]struct {
		least, most int64
		change      func(n *int64) wire.PolicyChange
	}{
		"max_depth":         {1, limits.PolicyMaxDepthCount, func(n *int64) wire.PolicyChange { return wire.PolicyChange{MaxDepth: n} }},
		"max_rate_per_sec":  {1, limits.PolicyMaxRatePerSec, func(n *int64) wire.PolicyChange { return wire.PolicyChange{MaxRatePerSec: n} }},
		"max_message_bytes": {1, limits.MessageCeilingBytes, func(n *int64) wire.PolicyChange { return wire.PolicyChange{MaxMessageBytes: n} }},
		"max_unflushed":     {0, limits.PolicyMaxUnflushed, func(n *int64) wire.PolicyChange { return wire.PolicyChange{MaxUnflushed: n} }},
		"max_priority":      {0, limits.PriorityCeiling, func(n *int64) wire.PolicyChange { return wire.PolicyChange{MaxPriority: n} }},
		"retention_bytes":   {1, limits.RetentionBytesCeiling, func(n *int64) wire.PolicyChange { return wire.PolicyChange{RetentionBytes: n} }},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int64{c.least, c.most} {
				_, err := a.SetPolicy(t.Context(), testTenant, "p", "", c.change(&n))
				require.NoError(t, err)
			}
			for _, n := range []int64{c.least - 1, c.most + 1} {
				_, err := a.SetPolicy(t.Context(), testTenant, "p", "", c.change(&n))
				var p *wire.Problem
				require.ErrorAs(t, err, &p)
				require.Equal(t, http.StatusUnprocessableEntity, p.Status)
				require.Contains(t, p.Error(), "body."+name)
			}
		})
	}
	p := problemOf(zap.NewNop(), fmt.Errorf("set: %w", &substrate.PolicyError{Name: "max_depth", Value: 0, Min: 1, Max: 9}))
	require.Equal(t, http.StatusBadRequest, p.Status)
	require.Equal(t, wire.CodeInvalid, p.Code)
	require.Contains(t, p.Detail, "max_depth: 0 is not allowed: want 1 to 9")
}

func TestAdminPolicyTimes(t *testing.T) {
	h := newHarness(t)
	a := client.NewAdmin(h.serveAdmin(t))
	changes := map[string]func(text string) wire.PolicyChange{
		"idempotency_window": func(text string) wire.PolicyChange { return wire.PolicyChange{IdempotencyWindow: &text} },
		"retention":          func(text string) wire.PolicyChange { return wire.PolicyChange{Retention: &text} },
		"keep":               func(text string) wire.PolicyChange { return wire.PolicyChange{Keep: &text} },
	}
	for name, texts := range map[string]struct{ right, wrong []string }{
		"idempotency_window": {[]string{"0s", "168h"}, []string{"168h0m0.001s", "-1ms", "1.5ms", "soon", ""}},
		"retention":          {[]string{"1ms", "8784h"}, []string{"0s", "8784h0m0.001s", "600"}},
		"keep":               {[]string{"0s", "8784h"}, []string{"8784h0m0.001s", "1d"}},
	} {
		for _, text := range texts.right {
			_, err := a.SetPolicy(t.Context(), testTenant, "p", "", changes[name](text))
			require.NoError(t, err)
		}
		for _, text := range texts.wrong {
			_, err := a.SetPolicy(t.Context(), testTenant, "p", "", changes[name](text))
			var p *wire.Problem
			require.ErrorAs(t, err, &p, "%s %q", name, text)
			require.Equal(t, http.StatusBadRequest, p.Status)
			require.True(t, strings.HasPrefix(p.Detail, name), p.Detail)
		}
	}
	v, err := a.Policy(t.Context(), testTenant, "p")
	require.NoError(t, err)
	text := func(s string) *string { return &s }
	require.Equal(t, wire.PolicyTime{Value: text("168h"), Source: "stored"}, v.IdempotencyWindow)
	require.Equal(t, wire.PolicyTime{Value: text("8784h"), Source: "stored"}, v.Keep)
	v, err = a.UnsetPolicy(t.Context(), testTenant, "p", "")
	require.NoError(t, err)
	require.Equal(t, wire.PolicyTime{Value: text("10m"), Source: "default"}, v.IdempotencyWindow)
	require.Equal(t, wire.PolicyTime{Value: text("24h"), Source: "default"}, v.Retention)
	require.Equal(t, wire.PolicyTime{Value: text("0s"), Source: "default"}, v.Keep)
	require.Equal(t, wire.PolicyValue{Source: "default"}, v.RetentionBytes)
}

func TestADiskThatIsNearlyFullRefusesPublishes(t *testing.T) {
	log, err := substrate.Open(t.Context(), substrate.Options{Dir: t.TempDir(), StorageLowBytes: math.MaxUint64})
	require.NoError(t, err)
	defer func() { require.NoError(t, log.Close()) }()
	_, err = log.Publish(t.Context(), substrate.Message{ID: log.MintID(), Tenant: testTenant, Topic: "a", Payload: []byte("x")})
	p := problemOf(zap.NewNop(), err)
	require.Equal(t, http.StatusInsufficientStorage, p.Status)
	require.Equal(t, wire.CodeStorageFull, p.Code)
}

func TestAdminGuard(t *testing.T) {
	h := newHarness(t)
	path := h.serveAdmin(t)
	call := func(t *testing.T, host string, header ...string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+"/admin/v1/host", nil)
		require.NoError(t, err)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := unixClient(path).Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	require.Equal(t, http.StatusOK, call(t, "localhost"))
	require.Equal(t, http.StatusOK, call(t, "127.0.0.1:80"))
	require.Equal(t, http.StatusMisdirectedRequest, call(t, "rebound.example"))
	require.Equal(t, http.StatusForbidden, call(t, "localhost", "Origin", "http://localhost"))
	require.Equal(t, http.StatusForbidden, call(t, "localhost", "Origin", "null"))
}

func TestAdminOverAConnectionWithoutUserRefusesToPublish(t *testing.T) {
	h := newHarness(t)
	w := do(t, h.admin, http.MethodPost, "/admin/v1/tenants/default/topics/x/messages", strings.NewReader(`{"messages":[{"data":"a"}]}`),
		"Content-Type", "application/json")
	require.Equal(t, http.StatusInternalServerError, w.Code, w.Body)
	_, ok := h.log.Stats(testTenant, "x")
	require.False(t, ok)
}

func TestAdminDescribesItself(t *testing.T) {
	h := newHarness(t)
	w := do(t, h.admin, http.MethodGet, "/admin/v1/openapi.json", nil)
	require.Equal(t, http.StatusOK, w.Code)
	var doc struct {
		OpenAPI string         `json:"openapi"`
		Paths   map[string]any `json:"paths"`
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &doc))
	require.Equal(t, "3.1.0", doc.OpenAPI)
	require.Contains(t, doc.Paths, topicRoute+"/dead-letters/redrive")
}

func TestHealth(t *testing.T) {
	h := newHarness(t)
	for name, handler := range map[string]http.Handler{"Data": h.data, "Admin": h.admin} {
		t.Run(name, func(t *testing.T) {
			h.ready = nil
			require.Equal(t, http.StatusOK, do(t, handler, http.MethodGet, "/readyz", nil).Code)
			h.ready = fmt.Errorf("the host is stopping")
			require.Equal(t, http.StatusServiceUnavailable, do(t, handler, http.MethodGet, "/readyz", nil).Code)
			require.Equal(t, http.StatusOK, do(t, handler, http.MethodGet, "/livez", nil).Code)
		})
	}
}

func TestAdminPublishTakesAnEmptyPayload(t *testing.T) {
	h := newHarness(t)
	a := client.NewAdmin(h.serveAdmin(t))
	_, err := a.Publish(t.Context(), testTenant, "empty", []wire.NewMessage{{DataBase64: []byte{}}})
	require.NoError(t, err)
	require.Empty(t, h.only(t, "empty").Payload)
	w := do(t, h.admin, http.MethodPost, "/admin/v1/tenants/default/topics/x/messages",
		strings.NewReader(`{"messages":[{"data_base64":"?"}]}`), "Content-Type", "application/json")
	require.GreaterOrEqual(t, w.Code, 400)
	require.Less(t, w.Code, 500)
}

func TestDeadLettersOfSeveralLanesComePageByPage(t *testing.T) {
	h := newHarness(t)
	for _, group := range []string{"g1", "g2"} {
		_, _, err := h.log.CreateGroup(t.Context(), testTenant, "open", group, substrate.GroupOptions{})
		require.NoError(t, err)
	}
	for range 2 {
		require.Equal(t, http.StatusCreated, h.post(t, "/v1/topics/open/messages", "x").Code)
	}
	for _, group := range []string{"g1", "g2"} {
		got, err := h.log.Claim(t.Context(), substrate.ClaimRequest{
			Tenant: testTenant, Topic: "open", Lane: group, MaxMessages: 64, MaxBytes: 1 << 20, Lease: time.Minute, MaxAttempts: 5,
		})
		require.NoError(t, err)
		for _, d := range got.Deliveries {
			require.NoError(t, h.log.Settle(t.Context(), []substrate.Settlement{{Lease: d.Lease, Verdict: substrate.Bury, Reason: "bad"}}, nil))
		}
	}
	const route = "/admin/v1/tenants/default/topics/open/dead-letters?limit=1"
	var seen []string
	for query := ""; ; {
		var page wire.DeadLetterList
		require.NoError(t, json.Unmarshal(do(t, h.admin, http.MethodGet, route+query, nil).Body.Bytes(), &page))
		for _, d := range page.DeadLetters {
			seen = append(seen, fmt.Sprint(d.Position, " ", d.Lane))
		}
		if page.Next == 0 {
			break
		}
		require.Less(t, len(seen), 5)
		query = fmt.Sprintf("&after=%d&after_lane=%s", page.Next, page.NextLane)
	}
	require.Equal(t, []string{"1 g1", "1 g2", "2 g1", "2 g2"}, seen)
}
