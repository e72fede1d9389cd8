package api

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/substrate"
)

func TestPreconditionTags(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, "*": nil, " * ": nil, `"a"`: {"a"}, `"a","b"`: {"a", "b"}, ` "a" ,, "b" `: {"a", "b"}, `W/"a"`: {"W/a"}, `""`: {""}, `"a,b"`: {"a,b"},
	} {
		got, err := Precondition{text}.tags()
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"a", `"a`, `a"`, `"a" "b"`, `"a"b`, `"a", *`, `"a b"`, "W/a", `w/"a"`} {
		_, err := Precondition{text}.tags()
		require.ErrorContains(t, err, "want * or what the header ETag gave", text)
	}
}

const (
	policyRoute = "/admin/v1/tenants/default/topics/open/policy"
	manyRuns    = "/admin/v1/deployments"
	runs        = "/admin/v1/tenants/default/deployments"
)

func TestIfMatch(t *testing.T) {
	send := func(t *testing.T, to *http.Client, method, path, body, tag string) (code int, etag string, p wire.Problem) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		if tag != "" {
			r.Header.Set("If-Match", tag)
		}
		got, err := to.Do(r)
		require.NoError(t, err)
		defer func() { require.NoError(t, got.Body.Close()) }()
		text, err := io.ReadAll(got.Body)
		require.NoError(t, err)
		if got.StatusCode >= 400 {
			require.Equal(t, wire.ProblemContentType, got.Header.Get("Content-Type"))
			require.NoError(t, json.Unmarshal(text, &p))
		} else {
			require.NotContains(t, string(text), `"tag"`)
		}
		return got.StatusCode, got.Header.Get("ETag"), p
	}
	for _, of := range []struct{ name, read, write, method, body string }{
		{"SetPolicy", policyRoute, policyRoute, http.MethodPatch, `{"max_depth": 5}`},
		{"UnsetPolicy", policyRoute, policyRoute, http.MethodDelete, ""},
		{"Apply", manyRuns, manyRuns, http.MethodPost, `{"manifest": "consumers: []", "modules": {}}`},
		{"ApplyOfATenant", runs, runs, http.MethodPost, `{"manifest": "consumers: []", "modules": {}}`},
	} {
		t.Run(of.name+"WantsATagOfWhatIsThere", func(t *testing.T) {
			h := newHarness(t)
			require.NoError(t, h.log.SetPolicy(t.Context(), testTenant, "open", substrate.Policy{MaxDepth: ptr(int64(1))}))
			to := unixClient(h.serveAdmin(t))
			code, tag, _ := send(t, to, http.MethodGet, of.read, "", "")
			require.Equal(t, http.StatusOK, code)
			require.Regexp(t, `^"[0-9a-f]{16}"$`, tag)
			for _, other := range []string{`"0000"`, "W/" + tag} {
				code, now, p := send(t, to, of.method, of.write, of.body, other)
				require.Equal(t, http.StatusPreconditionFailed, code)
				require.Equal(t, wire.CodeChanged, p.Code)
				require.Equal(t, tag, now)
				require.Equal(t, tag, quoted(p.CurrentTag))
			}
			code, _, p := send(t, to, of.method, of.write, of.body, "0000")
			require.Equal(t, http.StatusBadRequest, code)
			require.Equal(t, wire.CodeInvalid, p.Code)
			_, now, _ := send(t, to, http.MethodGet, of.read, "", "")
			require.Equal(t, tag, now, "nothing was changed")
			for _, any := range []string{`"0000", ` + tag, "*", ""} {
				code, now, _ = send(t, to, of.method, of.write, of.body, any)
				require.Equal(t, http.StatusOK, code, any)
				_, read, _ := send(t, to, http.MethodGet, of.read, "", "")
				require.Equal(t, now, read, "the answer has the tag of what is there then")
			}
		})
	}
	t.Run("RollbackAndPromoteAreRefusedBeforeTheyLookForAVersion", func(t *testing.T) {
		to := unixClient(newHarness(t).serveAdmin(t))
		for _, path := range []string{runs + "/rollback", runs + "/promote"} {
			code, _, _ := send(t, to, http.MethodPost, path, "{}", `"0000"`)
			require.Equal(t, http.StatusPreconditionFailed, code)
			code, _, _ = send(t, to, http.MethodPost, path, "{}", "*")
			require.Equal(t, http.StatusNotFound, code)
		}
	})
	t.Run("OneOfThoseWhoHaveSeenTheSamePolicyWins", func(t *testing.T) {
		h := newHarness(t)
		a := newAdmin(h.options)
		topic := &TopicPath{testTenant, "open"}
		seen, err := a.getPolicy(t.Context(), topic)
		require.NoError(t, err)
		change := func(ctx context.Context, meanwhile func(), depth int64) error {
			_, err := a.changePolicy(ctx, topic, Precondition{quoted(seen.Tag)}, func() error {
				meanwhile()
				return h.log.SetPolicy(ctx, testTenant, "open", substrate.Policy{MaxDepth: &depth})
			})
			return err
		}
		require.NoError(t, change(t.Context(), func() {
			impatient, cancel := context.WithCancel(t.Context())
			cancel()
			require.ErrorIs(t, change(impatient, func() { t.Error("two at a time") }, 2), context.Canceled)
		}, 1))
		var late *wire.Problem
		require.ErrorAs(t, change(t.Context(), func() { t.Error("the policy is another by now") }, 2), &late)
		require.Equal(t, http.StatusPreconditionFailed, late.Status)
	})
	t.Run("IsInTheDocument", func(t *testing.T) {
		doc := do(t, newHarness(t).admin, http.MethodGet, "/admin/v1/openapi.json", nil).Body.String()
		require.Equal(t, 6, strings.Count(doc, `"name":"If-Match"`))
		require.Equal(t, 6, strings.Count(doc, `"412":`))
		require.Equal(t, 9+6, strings.Count(doc, `"ETag":{`), "three that read, six that write, and what those refuse")
	})
}
