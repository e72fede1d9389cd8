package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"github.com/longshore/longshore/cmd/host/internal/ingest"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/substrate"
)

func TestDataPublish(t *testing.T) {
	h := newHarness(t)

	t.Run("RawBodyKeepsItsBytesTypeAndMetadata", func(t *testing.T) {
		body := "\x00\xff raw \r\n"
		w := h.post(t, "/v1/topics/open/messages", body, "Content-Type", "text/plain; charset=utf-8",
			wire.MetadataHeader, "b=2%20%C3%A4", wire.MetadataHeader, "a=1", wire.MetadataHeader, "b=")
		require.Equal(t, http.StatusCreated, w.Code, w.Body)
		var got wire.Published
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
		require.Len(t, got.Receipts, 1)
		m := h.only(t, "open")
		require.Equal(t, got.Receipts[0].ID, m.ID)
		require.Equal(t, body, string(m.Payload))
		require.Equal(t, "text/plain; charset=utf-8", m.ContentType)
		require.Equal(t, []substrate.Pair{{Key: "b", Value: "2 ä"}, {Key: "a", Value: "1"}, {Key: "b", Value: ""}}, m.Metadata)
	})
	t.Run("TheContextIsAnonymousAndVerifies", func(t *testing.T) {
		require.Equal(t, http.StatusCreated, h.post(t, "/v1/topics/open-ctx/messages", "x").Code)
		m := h.only(t, "open-ctx")
		v, err := h.seal.Verify(m.Envelope, dispatcher.Binding(m))
		require.NoError(t, err)
		require.Equal(t, ingest.AnonymousSubject, v.Subject)
		require.Equal(t, testTenant, v.Tenant)
	})
	t.Run("TopicMayHoldSlashesEncodedOrNot", func(t *testing.T) {
		require.Equal(t, http.StatusCreated, h.post(t, "/v1/topics/open/a/b/messages", "1").Code)
		require.Equal(t, http.StatusCreated, h.post(t, "/v1/topics/open%2Fa%2Fb/messages", "2").Code)
		s, ok := h.log.Stats(testTenant, "open/a/b")
		require.True(t, ok)
		require.EqualValues(t, 2, s.Ready)
	})
	t.Run("APageOfTheOwnHostMayPublish", func(t *testing.T) {
		w := h.post(t, "/v1/topics/open-own/messages", "x", "Origin", "http://localhost", "Sec-Fetch-Site", "same-origin")
		require.Equal(t, http.StatusCreated, w.Code, w.Body)
	})
	t.Run("EmptyBodyIsAMessage", func(t *testing.T) {
		require.Equal(t, http.StatusCreated, h.post(t, "/v1/topics/open-empty/messages", "").Code)
		require.Empty(t, h.only(t, "open-empty").Payload)
	})
}

func TestDataBatch(t *testing.T) {
	h := newHarness(t)
	batch := func(t *testing.T, topic, body string) *wire.Published {
		t.Helper()
		w := h.post(t, "/v1/topics/"+topic+"/messages", body, "Content-Type", wire.BatchContentType)
		require.Equal(t, http.StatusCreated, w.Code, w.Body)
		var got wire.Published
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
		return &got
	}
	t.Run("ReceiptsAreInTheOrderOfTheMessages", func(t *testing.T) {
		got := batch(t, "open", `{"messages":[{"data":"ä","content_type":"text/plain","metadata":[{"key":"k","value":"v"}]},{"data_base64":"AP8="}]}`)
		require.Len(t, got.Receipts, 2)
		stored, err := h.log.Peek(t.Context(), testTenant, "open", "", 0, 10)
		require.NoError(t, err)
		require.Equal(t, "ä", string(stored[0].Message.Payload))
		require.Equal(t, []substrate.Pair{{Key: "k", Value: "v"}}, stored[0].Message.Metadata)
		require.Equal(t, []byte{0, 0xff}, stored[1].Message.Payload)
		require.Equal(t, got.Receipts[1].Position, stored[1].Position)
	})
	t.Run("OneBadMessagePublishesNone", func(t *testing.T) {
		w := h.post(t, "/v1/topics/open-atomic/messages", `{"messages":[{"data":"a"},{}]}`, "Content-Type", wire.BatchContentType)
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.Contains(t, w.Body.String(), "message 1 has no payload")
		_, ok := h.log.Stats(testTenant, "open-atomic")
		require.False(t, ok)
	})
	for name, body := range map[string]string{
		"NoMessages": `{"messages":[]}`, "NoJSON": `hello`, "UnknownField": `{"messages":[{"data":"a","prio":5}]}`,
		"Rest": `{"messages":[{"data":"a"}]} x`, "BothPayloads": `{"messages":[{"data":"a","data_base64":"AA=="}]}`,
		"NotUTF8": "{\"messages\":[{\"data\":\"\xff\"}]}", "BadBase64": `{"messages":[{"data_base64":"!"}]}`,
	} {
		t.Run("IsRefusedWith400/"+name, func(t *testing.T) {
			w := h.post(t, "/v1/topics/open-bad/messages", body, "Content-Type", wire.BatchContentType)
			require.Equal(t, http.StatusBadRequest, w.Code, w.Body)
		})
	}
}

func TestDataRefusals(t *testing.T) {
	h := newHarness(t)
	one := int64(1)
	require.NoError(t, h.log.SetPolicy(t.Context(), testTenant, "open-slow", substrate.Policy{MaxRatePerSec: &one}))
	require.NoError(t, h.log.SetPolicy(t.Context(), testTenant, "open-full", substrate.Policy{MaxDepth: &one}))
	ok := func(path string) { require.Equal(t, http.StatusCreated, h.post(t, path, "x").Code) }
	ok("/v1/topics/open-slow/messages")
	ok("/v1/topics/open-full/messages")

	for name, c := range map[string]struct {
		path, body string
		header     []string
		status     int
		code       wire.Code
		retry      bool
	}{
		"BadTopic":            {path: "/v1/topics/open%2F%2E%2E/messages", status: 400, code: wire.CodeInvalid},
		"BadTenant":           {path: "/v1/topics/open/messages", header: []string{wire.TenantHeader, "A b"}, status: 400, code: wire.CodeInvalid},
		"TwoTenants":          {path: "/v1/topics/open/messages", header: []string{wire.TenantHeader, "a", wire.TenantHeader, "b"}, status: 400, code: wire.CodeInvalid},
		"BadMetadata":         {path: "/v1/topics/open/messages", header: []string{wire.MetadataHeader, "novalue"}, status: 400, code: wire.CodeInvalid},
		"ClosedTopic":         {path: "/v1/topics/closed/messages", status: 401, code: wire.CodeUnauthorized},
		"OtherTenant":         {path: "/v1/topics/open/messages", header: []string{wire.TenantHeader, "other"}, status: 401, code: wire.CodeUnauthorized},
		"BearerOfNobody":      {path: "/v1/topics/open/messages", header: []string{"Authorization", "Bearer x"}, status: 401, code: wire.CodeUnauthorized},
		"SandboxedPage":       {path: "/v1/topics/open/messages", header: []string{"Origin", "null"}, status: 403, code: wire.CodeForeign},
		"OtherPortOfThisHost": {path: "/v1/topics/open/messages", header: []string{"Origin", "http://localhost:1"}, status: 403, code: wire.CodeForeign},
		"OtherSiteSaysSame":   {path: "/v1/topics/open/messages", header: []string{"Origin", "http://evil.example", "Sec-Fetch-Site", "same-origin"}, status: 403, code: wire.CodeForeign},
		"OtherSiteNoOrigin":   {path: "/v1/topics/open/messages", header: []string{"Sec-Fetch-Site", "cross-site"}, status: 403, code: wire.CodeForeign},
		"OtherSite":           {path: "/v1/topics/open/messages", header: []string{"Origin", "http://evil.example"}, status: 403, code: wire.CodeForeign},
		"OtherPath":           {path: "/v1/topics/open", status: 404, code: wire.CodeNotFound},
		"TooLarge":            {path: "/v1/topics/open/messages", body: strings.Repeat("x", 1001), status: 413, code: wire.CodeTooLarge},
		"TooManyMetadata":     {path: "/v1/topics/open/messages", header: manyMetadata(65), status: 413, code: wire.CodeTooLarge},
		"LongContentType":     {path: "/v1/topics/open/messages", header: []string{"Content-Type", "text/" + strings.Repeat("x", 300)}, status: 400, code: wire.CodeInvalid},
		"MuchMetadata":        {path: "/v1/topics/open/messages", header: []string{wire.MetadataHeader, "k=" + strings.Repeat("v", 17<<10)}, status: 413, code: wire.CodeTooLarge},
		"LongTopic":           {path: "/v1/topics/open" + strings.Repeat("x", 300) + "/messages", status: 400, code: wire.CodeInvalid},
		"Compressed":          {path: "/v1/topics/open/messages", header: []string{"Content-Encoding", "gzip"}, status: 415, code: wire.CodeUnsupportedMedia},
		"NoMediaType":         {path: "/v1/topics/open/messages", header: []string{"Content-Type", "///"}, status: 415, code: wire.CodeUnsupportedMedia},
		"Rate":                {path: "/v1/topics/open-slow/messages", status: 429, code: wire.CodeRate, retry: true},
		"Depth":               {path: "/v1/topics/open-full/messages", status: 503, code: wire.CodeDepth, retry: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := h.post(t, c.path, c.body, c.header...)
			require.Equal(t, c.status, w.Code, w.Body)
			require.Equal(t, wire.ProblemContentType, w.Header().Get("Content-Type"))
			var p wire.Problem
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
			require.Equal(t, c.status, p.Status)
			require.Equal(t, c.code, p.Code)
			require.NotEmpty(t, p.Title)
			require.NotEmpty(t, p.Detail)
			require.Equal(t, c.retry, w.Header().Get("Retry-After") != "")
			require.Equal(t, c.status == 401, w.Header().Get("WWW-Authenticate") != "")
		})
	}
	t.Run("OtherMethodNamesTheRightOne", func(t *testing.T) {
		w := do(t, h.data, http.MethodPut, "/v1/topics/open/messages", nil)
		require.Equal(t, http.StatusMethodNotAllowed, w.Code)
		require.Equal(t, http.MethodPost, w.Header().Get("Allow"))
	})
}

func manyMetadata(n int) []string {
	var out []string
	for range n {
		out = append(out, wire.MetadataHeader, "k=v")
	}
	return out
}

func TestDataAfterTheLogIsClosedAnswers503(t *testing.T) {
	h := newHarness(t)
	require.NoError(t, h.log.Close())
	w := h.post(t, "/v1/topics/open/messages", "x")
	require.Equal(t, http.StatusServiceUnavailable, w.Code, w.Body)
	require.Contains(t, w.Body.String(), wire.CodeUnavailable)
}

func TestDataBodiesShareABoundedRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &data{room: semaphore.NewWeighted(10)}
		first, err := d.makeRoom(t.Context(), 8)
		require.NoError(t, err)
		_, err = d.makeRoom(t.Context(), 3)
		var p *wire.Problem
		require.ErrorAs(t, err, &p)
		require.Equal(t, http.StatusServiceUnavailable, p.Status)
		require.Equal(t, 1, p.RetryAfterSeconds)
		first()
		second, err := d.makeRoom(t.Context(), 10)
		require.NoError(t, err)
		second()
	})
}

func TestProblemOf(t *testing.T) {
	t.Run("RetryAfterIsRoundedUpToSeconds", func(t *testing.T) {
		require.Equal(t, 2, later(&wire.Problem{}, 1100*time.Millisecond).RetryAfterSeconds)
		require.Equal(t, 1, later(&wire.Problem{}, time.Millisecond).RetryAfterSeconds)
	})
}

func TestDataAtTheCapsOfATenant(t *testing.T) {
	h := newHarness(t)
	for name, c := range map[string]struct {
		caps   substrate.TenantCaps
		status int
		code   wire.Code
		detail string
	}{
		"Messages": {substrate.TenantCaps{Messages: 1}, 507, wire.CodeQuota, "tenant default: stored messages: 2 is over the limit of 1"},
		"Bytes":    {substrate.TenantCaps{Bytes: 1}, 507, wire.CodeQuota, "tenant default: stored message bytes: 2 is over the limit of 1"},
		"Rate":     {substrate.TenantCaps{RatePerSec: 1}, 429, wire.CodeRate, "tenant default: messages published a second: the limit is 1, try again in "},
		"Topics":   {substrate.TenantCaps{Topics: 1}, 507, wire.CodeQuota, "topics of a tenant: 2 is over the limit of 1"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, h.log.SetTenantCaps(map[string]substrate.TenantCaps{testTenant: c.caps}))
			require.Equal(t, http.StatusCreated, h.post(t, "/v1/topics/open/messages", "x").Code)
			w := h.post(t, "/v1/topics/open-"+name+"/messages", "x")
			require.Equal(t, c.status, w.Code, w.Body)
			var p wire.Problem
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
			require.Equal(t, c.code, p.Code)
			require.Contains(t, p.Detail, c.detail)
			require.Equal(t, c.status == 429, w.Header().Get("Retry-After") != "")
			require.NoError(t, h.log.SetTenantCaps(nil))
			d, err := h.log.Claim(t.Context(), substrate.ClaimRequest{Tenant: testTenant, Topic: "open", MaxMessages: 9, MaxBytes: 99, Lease: time.Minute, MaxAttempts: 9})
			require.NoError(t, err)
			for _, x := range d.Deliveries {
				require.NoError(t, h.log.Settle(t.Context(), []substrate.Settlement{{Lease: x.Lease, Verdict: substrate.Ack}}, nil))
			}
		})
	}
}
