package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

// objects are what a tenant has, by the path parameters that name them.
type objects struct {
	topics, ids []string
}

// secretOf is what only a tenant's own may read.
func secretOf(tenant string) string { return tenant + "-secret" }

// furnish gives a tenant one of each object.
func (h *harness) furnish(t *testing.T, tenant string) objects {
	t.Helper()
	publish := h.options.Publish
	who := signedctx.Principal{Tenant: tenant, Subject: "local:0"}
	text := secretOf(tenant)
	var out objects
	for _, topic := range []string{"orders", tenant + "/own"} {
		got, err := publish(t.Context(), who, topic, []wire.NewMessage{{Data: &text}, {Data: &text}})
		require.NoError(t, err)
		out.topics = append(out.topics, topic)
		for _, r := range got {
			out.ids = append(out.ids, r.ID)
		}
		claimed, err := h.log.Claim(t.Context(), substrate.ClaimRequest{
			Tenant: tenant, Topic: topic, MaxMessages: 1, MaxBytes: 1 << 20, Lease: time.Minute, MaxAttempts: 5,
		})
		require.NoError(t, err)
		require.Len(t, claimed.Deliveries, 1)
		require.NoError(t, h.log.Settle(t.Context(), []substrate.Settlement{
			{Lease: claimed.Deliveries[0].Lease, Verdict: substrate.Bury, Reason: secretOf(tenant)},
		}, nil))
		_, _, err = h.log.CreateGroup(t.Context(), tenant, topic, secretOf(tenant), substrate.GroupOptions{})
		require.NoError(t, err)
		require.NoError(t, h.log.SetPolicy(t.Context(), tenant, topic, substrate.Policy{MaxDepth: ptr(int64(77777))}))
	}
	return out
}

func ptr[T any](v T) *T { return &v }

// operation is one of the admin interface, as it describes itself.
type operation struct{ id, method, path string }

func (h *harness) operations(t *testing.T) []operation {
	t.Helper()
	w := do(t, h.admin, http.MethodGet, "/admin/v1/openapi.json", nil)
	require.Equal(t, http.StatusOK, w.Code)
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
		} `json:"paths"`
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &doc))
	var all []operation
	for path, methods := range doc.Paths {
		for method, o := range methods {
			all = append(all, operation{o.OperationID, strings.ToUpper(method), path})
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].id < all[j].id })
	require.Greater(t, len(all), 25)
	return all
}

// bodies are valid bodies of the operations that take one.
func bodies() map[string]string {
	return map[string]string{
		"publish": `{"messages":[{"data":"x"}]}`, "pause": `{"paused":true}`, "create-group": `{"name":"new"}`, "reset-group": `{"start":"latest"}`,
		"redrive": `{"filter":{}}`, "discard": `{"filter":{}}`, "reset-fences": `{"all":true}`, "discard-quarantined": `{}`,
		"set-policy": `{"max_depth":1}`, "rotate-key": `{"kind":"token"}`,
		"apply": `{"manifest":"consumers: []","modules":{}}`, "apply-tenant": `{"manifest":"consumers: []","modules":{}}`,
		"rehearse": `{"consumer":"c","manifest":"consumers: []","modules":{}}`,
		"rollback": `{"version":1}`, "promote": `{}`, "missing-modules": `{"sha256":[]}`,
	}
}

// requests returns the requests of an operation for every object of a tenant.
func (o operation) requests(tenant string, of objects) []string {
	var paths []string
	for _, topic := range of.topics {
		for _, id := range append(slices.Clone(of.ids), secretOf(tenant), "position-1") {
			path := strings.NewReplacer(
				"{tenant}", tenant, "{topic}", strings.ReplaceAll(topic, "/", "%2F"), "{id}", id, "{group}", secretOf(tenant), "{kind}", "token",
				"{sha256}", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", // of nothing
			).Replace(o.path)
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// send sends one request of an operation. Streams end at once.
func (h *harness) send(t *testing.T, handler http.Handler, o operation, path string, header []string) *httptest.ResponseRecorder {
	t.Helper()
	var body io.Reader
	if text := bodies()[o.id]; text != "" {
		body = strings.NewReader(text)
		header = append(slices.Clone(header), "Content-Type", "application/json")
	}
	return do(t, handler, o.method, path, body, header...)
}

// TestTenantsDontCross sends, with the best credential of one tenant, every request that there is about every object of another,
// to both interfaces, and compares each answer with that about a tenant that doesn't exist.
func TestTenantsDontCross(t *testing.T) {
	h := newHarness(t)
	h.furnish(t, "acme")
	theirs := h.furnish(t, "other")
	handler := NewAdmin(h.options).Remote(h.bearers, zap.NewNop())
	mine := h.idp.header(t, "acme", "admin")
	before := h.stateOf(t, "other")
	tried, crossed := 0, 0
	cross := func(request string, w *httptest.ResponseRecorder) {
		crossed++
		t.Errorf("%s: %d %s", request, w.Code, w.Body)
	}
	for _, o := range h.operations(t) {
		for _, path := range o.requests("other", theirs) {
			for _, query := range []string{"", "?tenant=other", "?lane=" + secretOf("other")} {
				tried++
				w := h.send(t, handler, o, path+query, mine)
				listing := o.id == "list-topics" || o.id == "list-consumers" || o.id == "list-tenants"
				ghost := h.send(t, handler, o, strings.ReplaceAll(path, "/tenants/other", "/tenants/nobody")+query, mine)
				switch {
				case strings.Contains(w.Body.String(), secretOf("other")) || strings.Contains(w.Body.String(), `"other`):
					cross(o.method+" "+path+query, w)
				case !listing && (w.Code != http.StatusNotFound || w.Body.String() != ghost.Body.String()):
					cross(o.method+" "+path+query, w)
				}
			}
		}
	}
	for _, topic := range theirs.topics {
		for _, path := range []string{"/v1/topics/" + topic + "/messages", "/v1/topics/" + strings.ReplaceAll(topic, "/", "%2F") + "/messages"} {
			tried++
			w := do(t, h.data, http.MethodPost, path, strings.NewReader("x"), append(slices.Clone(mine), wire.TenantHeader, "other")...)
			if w.Code != http.StatusNotFound {
				cross("POST "+path, w)
			}
		}
	}
	for _, path := range []string{"/metrics", "/admin/v1/keys", "/admin/v1/backup", "/admin/v1/host"} {
		tried++
		if w := do(t, handler, http.MethodGet, path, nil, mine...); w.Code != http.StatusNotFound {
			cross("GET "+path, w)
		}
	}
	require.Equal(t, before, h.stateOf(t, "other"), "nothing of theirs was changed")
	require.Greater(t, tried, 200)
	t.Logf("%d requests about another tenant's objects", tried)
	fmt.Printf("figure tenants_crossed %d\n", crossed)
	require.Zero(t, crossed)
}

// TestTheirOwnDoesntVanish sends the same requests with the credential of the tenant itself: they are about what is there.
func TestTheirOwnDoesntVanish(t *testing.T) {
	for _, o := range func() []operation { return newHarness(t).operations(t) }() {
		// Streams need a connection, nothing is quarantined, no canary runs, and there is no module to rehearse.
		if !strings.Contains(o.path, "{tenant}") || o.id == "tail" || o.id == "replay" || o.id == "promote" || o.id == "rehearse" || strings.Contains(o.id, "quarantine") ||
			o.id == "delete-tenant" { // the operator's
			continue
		}
		t.Run(o.id, func(t *testing.T) {
			h := newHarness(t)
			theirs := h.furnish(t, "other")
			for _, path := range o.requests("other", theirs)[:1] {
				w := h.send(t, NewAdmin(h.options).Remote(h.bearers, zap.NewNop()), o, path, h.idp.header(t, "other", "admin"))
				if o.id == "get-dead-letter" {
					require.Contains(t, []int{http.StatusOK, http.StatusNotFound}, w.Code)
					continue
				}
				require.Less(t, w.Code, 300, "%s %s: %s", o.method, path, w.Body)
			}
		})
	}
}

// stateOf is all that the log says of a tenant.
func (h *harness) stateOf(t *testing.T, tenant string) string {
	t.Helper()
	var all []any
	for _, s := range h.log.Topics() {
		if s.Tenant != tenant {
			continue
		}
		groups, err := h.log.Groups(tenant, s.Topic)
		require.NoError(t, err)
		dead, err := h.log.DeadLetters(t.Context(), tenant, s.Topic, substrate.DeadLetterFilter{})
		require.NoError(t, err)
		policy, err := h.log.Policy(tenant, s.Topic)
		require.NoError(t, err)
		s.Oldest = time.Time{}
		for i := range groups {
			groups[i].Oldest = time.Time{}
		}
		all = append(all, s, groups, dead, policy)
	}
	return fmt.Sprintf("%+v", all)
}

func TestCredentials(t *testing.T) {
	h := newHarness(t)
	h.furnish(t, "acme")
	admin := NewAdmin(h.options).Remote(h.bearers, zap.NewNop())
	const orders = "/admin/v1/tenants/acme/topics/orders"
	fence := `{"messages":[{"data":"x","fence":{"key":"a","token":1}}]}`
	status := func(handler http.Handler, method, path, body, subject string) int {
		header := append(h.idp.header(t, "acme", subject), "Content-Type", "application/json")
		return do(t, handler, method, path, strings.NewReader(body), header...).Code
	}
	t.Run("WithoutATokenNothingIsAnsweredOverTCP", func(t *testing.T) {
		for _, path := range []string{"/admin/v1/topics", orders, "/metrics", "/admin/v1/openapi.json", "/admin/v1/nothing"} {
			w := do(t, admin, http.MethodGet, path, nil)
			require.Equal(t, http.StatusUnauthorized, w.Code, path)
			require.NotEmpty(t, w.Header().Get("WWW-Authenticate"))
		}
		require.Equal(t, http.StatusOK, do(t, admin, http.MethodGet, "/livez", nil).Code)
	})
	t.Run("EachRightIsOfItsOwn", func(t *testing.T) {
		for _, tt := range []struct {
			subject, method, path, body string
			want                        int
		}{
			{"producer", http.MethodPost, orders + "/messages", `{"messages":[{"data":"x"}]}`, 201},
			{"producer", http.MethodGet, orders + "/messages", ``, 403},
			{"producer", http.MethodPut, orders + "/paused", `{"paused":true}`, 403},
			{"producer", http.MethodPost, orders + "/messages", fence, 403},
			{"producer", http.MethodPost, "/admin/v1/tenants/acme/topics/acme%2Fown/messages", `{"messages":[{"data":"x"}]}`, 403},
			{"reader", http.MethodGet, orders + "/messages", ``, 200},
			{"reader", http.MethodGet, orders, ``, 200},
			{"reader", http.MethodGet, "/admin/v1/tenants/acme/topics/acme%2Fown", ``, 403},
			{"reader", http.MethodPost, orders + "/messages", `{"messages":[{"data":"x"}]}`, 403},
			{"reader", http.MethodPost, orders + "/dead-letters/discard", `{"filter":{}}`, 403},
			{"nobody", http.MethodGet, orders, ``, 403},
			{"admin", http.MethodPost, orders + "/messages", fence, 201},
		} {
			require.Equal(t, tt.want, status(admin, tt.method, tt.path, tt.body, tt.subject), "%s %s %s", tt.subject, tt.method, tt.path)
		}
	})
	t.Run("WhoPublishedIsTheBearer", func(t *testing.T) {
		w := do(t, h.data, http.MethodPost, "/v1/topics/orders/messages", strings.NewReader("by bearer"), h.idp.header(t, "acme", "producer")...)
		require.Equal(t, http.StatusCreated, w.Code, w.Body)
		got, err := h.log.Peek(t.Context(), "acme", "orders", "", 0, 100)
		require.NoError(t, err)
		m := got[len(got)-1].Message
		require.Equal(t, "by bearer", string(m.Payload))
		v, err := h.seal.Verify(m.Envelope, dispatcher.Binding(m))
		require.NoError(t, err)
		require.Equal(t, "idp:producer", v.Subject)
		require.Equal(t, "acme", v.Tenant)
	})
	t.Run("OverTheDataInterfaceGrantsHoldToo", func(t *testing.T) {
		post := func(topic, subject string, header ...string) int {
			return do(t, h.data, http.MethodPost, "/v1/topics/"+topic+"/messages", strings.NewReader("x"), append(h.idp.header(t, "acme", subject), header...)...).Code
		}
		require.Equal(t, http.StatusForbidden, post("orders", "reader"))
		require.Equal(t, http.StatusForbidden, post("open", "reader"), "a token that grants nothing is not anonymous")
		require.Equal(t, http.StatusForbidden, post("orders", "producer", wire.FenceHeader, "a:1"))
		require.Equal(t, http.StatusCreated, post("orders", "admin", wire.FenceHeader, "a:1"))
		require.Equal(t, http.StatusCreated, post("orders", "producer", wire.TenantHeader, "acme"))
		w := do(t, h.data, http.MethodPost, "/v1/topics/orders/messages", nil, append(h.idp.header(t, "acme", "admin"), h.idp.header(t, "acme", "admin")...)...)
		require.Equal(t, http.StatusUnauthorized, w.Code, "two tokens")
	})
	t.Run("ListsHoldWhatMayBeSeen", func(t *testing.T) {
		var list wire.TopicList
		w := do(t, admin, http.MethodGet, "/admin/v1/topics", nil, h.idp.header(t, "acme", "reader")...)
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &list))
		require.Len(t, list.Topics, 1)
		require.Equal(t, "orders", list.Topics[0].Topic)
	})
	t.Run("ARedriveKeepsWhoWhenAndWhy", func(t *testing.T) {
		r := `{"filter":{},"why":"the fix is out"}`
		require.Equal(t, http.StatusOK, status(admin, http.MethodPost, orders+"/dead-letters/redrive", r, "admin"))
		got, err := h.log.Claim(t.Context(), substrate.ClaimRequest{
			Tenant: "acme", Topic: "orders", MaxMessages: 64, MaxBytes: 1 << 20, Lease: time.Minute, MaxAttempts: 5,
		})
		require.NoError(t, err)
		d := got.Deliveries[0]
		by, err := h.seal.VerifyOperator(d.Operator, d.Message.Envelope, dispatcher.Binding(d.Message))
		require.NoError(t, err)
		require.Equal(t, "idp:admin", by.Act)
		require.Equal(t, "the fix is out", by.Why)
		require.WithinDuration(t, time.Now(), by.At, time.Minute)
		_, err = h.seal.Verify(got.Deliveries[0].Message.Envelope, dispatcher.Binding(got.Deliveries[0].Message))
		require.NoError(t, err, "the envelope is as it was")
		require.NoError(t, h.log.Settle(t.Context(), []substrate.Settlement{{Lease: d.Lease, Verdict: substrate.Bury, Reason: "again"}}, nil))
		w := do(t, admin, http.MethodGet, orders+"/dead-letters/"+d.Message.ID, nil, h.idp.header(t, "acme", "admin")...)
		require.Contains(t, w.Body.String(), `"verified":true`)
	})
}
