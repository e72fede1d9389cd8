package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/limits"
)

func TestCheckJSON(t *testing.T) {
	many := func(n int, one string) string { return "[" + strings.Repeat(one+",", n-1) + one + "]" }
	keys := func(extra string) string {
		text := "{"
		for i := range 2 * jsonFewKeys {
			text += `"k` + strconv.Itoa(i) + `":1,`
		}
		return text + extra + "}"
	}
	for name, raw := range map[string]string{
		"AnObject":              `{"a":1,"b":[1,{"a":null}],"c":{"a":"\"}{[],"}}`,
		"Spaces":                " { \"a\" : [ ] ,\n\t\"b\" : { } , \"c\" : -1.5e3 } ",
		"AScalar":               `17`,
		"AsDeepAsAllowed":       strings.Repeat("[", jsonDepth) + strings.Repeat("]", jsonDepth),
		"AsManyItems":           many(jsonItems, `0`),
		"AsManyValues":          many(7, many(jsonItems, `0`)),
		"ManyKeys":              keys(`"last":1`),
		"PathsThatDifferInCase": `{"modules":{"A.wasm":"x","a.wasm":"y"}}`,
	} {
		t.Run("Takes"+name, func(t *testing.T) { require.NoError(t, checkJSON([]byte(raw))) })
	}
	for name, tt := range map[string]struct{ raw, want string }{
		"TheSameKeyTwice":            {`{"a":1,"b":2,"a":3}`, `the key "a" is there twice, at byte 13`},
		"AKeyInAnotherCase":          {`{"id":"x","ID":""}`, `the key "ID" is there twice`},
		"AKeyInUnicodesCase":         {`{"task":1,"taſk":2}`, "is there twice"},
		"AKeyThatIsEscaped":          {`{"id":"x","\u0069d":""}`, `the key "id" is there twice`},
		"AKeyTwiceWithin":            {`{"filter":{"id":"x","Id":""}}`, `the key "Id" is there twice`},
		"OneOfManyKeysTwice":         {keys(`"K3":1`), `the key "K3" is there twice`},
		"APathTwice":                 {`{"modules":{"a":"x","a":"y"}}`, `the key "a" is there twice`},
		"AKeyTwiceAsDeepAsModules":   {`{"x":{"modules":{"a":1,"A":2}}}`, `the key "A" is there twice`},
		"TooManyItems":               {many(jsonItems+1, `{}`), "more than 65536 items"},
		"TooManyValues":              {many(9, many(jsonItems-1, `0`)), "more than 524288 values"},
		"TooDeep":                    {strings.Repeat("[", jsonDepth+1) + strings.Repeat("]", jsonDepth+1), "more than 16 deep"},
		"WhatComesAfterTheEnd":       {`{} {}`, "after top-level value"},
		"WhatIsNoJSON":               {`{"a":}`, "invalid character"},
		"Nothing":                    {``, "unexpected end"},
		"TextThatIsNotUTF8":          {"{\"a\":\"\xff\"}", "not UTF-8"},
		"NestingThatNobodyWouldRead": {strings.Repeat("[", 100_000), "max depth"},
	} {
		t.Run("Refuses"+name, func(t *testing.T) { require.ErrorContains(t, checkJSON([]byte(tt.raw)), tt.want) })
	}
}

// FuzzCheckJSON checks that no body panics, and that what is taken is JSON that decodes.
func FuzzCheckJSON(f *testing.F) {
	f.Add([]byte(`{"a":[1,"\u0041\"",{"b":{}}],"modules":{"A":1}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if checkJSON(raw) == nil {
			var v any
			require.NoError(t, json.Unmarshal(raw, &v))
		}
	})
}

func TestBodiesHaveOneMeaning(t *testing.T) {
	h := newHarness(t)
	h.furnish(t, "acme")
	admin := NewAdmin(h.options).Remote(h.bearers, zap.NewNop())
	const orders = "/admin/v1/tenants/acme/topics/orders"
	header := append(h.idp.header(t, "acme", "admin"), "Content-Type", "application/json")
	before := h.stateOf(t, "acme")
	for _, tt := range []struct{ path, body string }{
		{"/dead-letters/discard", `{"filter":{"id":"x","ID":""}}`}, // the second one would select every dead letter
		{"/dead-letters/discard", `{"filter":{"limit":1,"LIMIT":-5}}`},
		{"/dead-letters/discard", `{"filter":{},"dry_run":true,"dry_run":false}`},
		{"/dead-letters/discard", "{\"filter\":{\"reason\":\"\xff\"}}"},
		{"/messages", `{"messages":[{"data":"x","DATA":"y"}]}`},
		{"/messages", `{"messages":[{"data":"x"}],"messages":[{"data":"y"}]}`},
	} {
		w := do(t, admin, http.MethodPost, orders+tt.path, strings.NewReader(tt.body), header...)
		require.Equal(t, http.StatusBadRequest, w.Code, "%s: %s", tt.body, w.Body)
	}
	require.Equal(t, before, h.stateOf(t, "acme"), "nothing was changed")
	for _, body := range []string{`{"messages":[{"data":"x","DATA":"y"}]}`, `{"messages":[{"data":"x"}],"messages":[{"data":"y"}]}`} {
		w := h.post(t, "/v1/topics/open/messages", body, "Content-Type", wire.BatchContentType)
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.Contains(t, w.Body.String(), "is there twice")
	}
}

func TestBodiesAreBounded(t *testing.T) {
	h := newHarness(t)
	h.furnish(t, "acme")
	admin := NewAdmin(h.options).Remote(h.bearers, zap.NewNop())
	const messages = "/admin/v1/tenants/acme/topics/orders/messages"
	header := append(h.idp.header(t, "acme", "admin"), "Content-Type", "application/json")
	objects := func(n int) string { return `{"messages":[` + strings.Repeat("{},", n-1) + `{}]}` }
	t.Run("ABatchOfTooManyIsNotDecoded", func(t *testing.T) {
		body := objects(limits.BatchMessages + 1)
		w := h.post(t, "/v1/topics/open/messages", body, "Content-Type", wire.BatchContentType)
		require.Equal(t, http.StatusRequestEntityTooLarge, w.Code, w.Body)
		require.Contains(t, w.Body.String(), "65536 items")
		w = do(t, admin, http.MethodPost, messages, strings.NewReader(body), header...)
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.Less(t, w.Body.Len(), 1000)
	})
	t.Run("AnAnswerDoesNotRepeatEveryFault", func(t *testing.T) {
		body := `{"messages":[{"data":"x","metadata":[` + strings.Repeat("{},", 999) + `{}]}]}`
		w := do(t, admin, http.MethodPost, messages, strings.NewReader(body), header...)
		require.Equal(t, http.StatusUnprocessableEntity, w.Code)
		var p wire.Problem
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
		require.Len(t, p.Errors, problemErrors)
		require.NotContains(t, w.Body.String(), `"value"`)
	})
	t.Run("OneWaitsForRoomToBeDecoded", func(t *testing.T) {
		a := newAdmin(h.options)
		require.True(t, a.room.TryAcquire(adminBodyBytes))
		guarded := TenantOnly(a.mux, h.bearers, h.options.Logger)
		done := make(chan int)
		go func() {
			done <- do(t, guarded, http.MethodPost, messages, strings.NewReader(`{"messages":[{"data":"x"}]}`), header...).Code
		}()
		w := do(t, guarded, http.MethodGet, messages, nil, header...)
		require.Equal(t, http.StatusOK, w.Code, "one without a body does not wait")
		a.room.Release(adminBodyBytes)
		require.Equal(t, http.StatusCreated, <-done)
		require.True(t, a.room.TryAcquire(adminBodyBytes), "all of the room is given back")
	})
	require.LessOrEqual(t, decodedBytes(batchBodyBytes, bodyBytes), int64(bodyBytes/2), "two of the largest fit")
	require.Equal(t, int64(80), decodedBytes(10, adminBodyBytes))
}
