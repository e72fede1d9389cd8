package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

func TestUploadTurns(t *testing.T) {
	refused := func(t *testing.T, err error, status int) {
		t.Helper()
		var p *wire.Problem
		require.ErrorAs(t, err, &p)
		require.Equal(t, status, p.Status)
		require.Equal(t, wire.CodeBusy, p.Code)
		require.Equal(t, 1, p.RetryAfterSeconds)
	}
	take := func(t *testing.T, turns *uploadTurns, ctx context.Context) func() {
		t.Helper()
		giveBack, err := turns.take(ctx)
		require.NoError(t, err)
		return giveBack
	}
	t.Run("ATenantHasOneAndBearersLeaveOneToTheOperator", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			turns := newUploadTurns()
			var held []func()
			for i := range bearerUploads {
				held = append(held, take(t, turns, asBearer(t.Context(), fmt.Sprint("t", i))))
			}
			_, err := turns.take(asBearer(t.Context(), "t0"))
			refused(t, err, http.StatusTooManyRequests)
			take(t, turns, t.Context())()

			// One more tenant waits, and what waits is its share.
			ctx, cancel := context.WithTimeout(asBearer(t.Context(), "late"), time.Second)
			defer cancel()
			var waits sync.WaitGroup
			waits.Go(func() {
				_, err := turns.take(ctx)
				refused(t, err, http.StatusServiceUnavailable)
			})
			synctest.Wait()
			_, err = turns.take(asBearer(t.Context(), "late"))
			refused(t, err, http.StatusTooManyRequests)
			waits.Wait()

			waits.Go(func() { take(t, turns, asBearer(t.Context(), "late"))() })
			synctest.Wait()
			for _, giveBack := range held {
				giveBack()
			}
			waits.Wait()
			require.Zero(t, len(turns.all)+len(turns.bearers)+turns.tenants.all)
		})
	})
	t.Run("TheOperatorMayTakeAll", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			turns := newUploadTurns()
			var held []func()
			for range uploads {
				held = append(held, take(t, turns, t.Context()))
			}
			ctx, cancel := context.WithTimeout(asBearer(t.Context(), "acme"), time.Second)
			defer cancel()
			_, err := turns.take(ctx)
			refused(t, err, http.StatusServiceUnavailable)
			require.Zero(t, len(turns.bearers)+turns.tenants.byTenant["acme"], "it waits for nothing any more")
			held[0]()
			take(t, turns, asBearer(t.Context(), "acme"))()
		})
	})
}

// slowBody is one of which nothing comes until it is cut.
type slowBody struct {
	began, cut chan struct{}
	once       sync.Once
}

func (b *slowBody) Read([]byte) (int, error) {
	b.once.Do(func() { close(b.began) })
	<-b.cut
	return 0, errors.New("the connection was cut")
}

func TestASlowUploadKeepsNobodyElseFromUploading(t *testing.T) {
	h := newHarness(t)
	remote := NewAdmin(h.options)
	bearers, local := remote.Remote(h.bearers, zap.NewNop()), remote.Local()
	const nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	upload := func(handler http.Handler, tenant string, body io.Reader, header ...string) *httptest.ResponseRecorder {
		return do(t, handler, http.MethodPut, "/admin/v1/tenants/"+tenant+"/modules/"+nothing, body, header...)
	}
	slow := &slowBody{began: make(chan struct{}), cut: make(chan struct{})}
	acme := h.idp.header(t, "acme", "admin")
	var first sync.WaitGroup
	first.Go(func() { upload(bearers, "acme", slow, acme...) })
	<-slow.began
	w := upload(bearers, "acme", strings.NewReader(""), acme...)
	require.Equal(t, http.StatusTooManyRequests, w.Code, w.Body)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Equal(t, wire.ProblemContentType, w.Header().Get("Content-Type"))
	require.Contains(t, w.Body.String(), "another module of this tenant is being uploaded")
	w = upload(bearers, "other", strings.NewReader(""), h.idp.header(t, "other", "admin")...)
	require.Equal(t, http.StatusCreated, w.Code, w.Body)
	w = upload(local, "acme", strings.NewReader(""))
	require.Equal(t, http.StatusCreated, w.Code, w.Body)
	close(slow.cut)
	first.Wait()
	w = upload(bearers, "acme", strings.NewReader(""), acme...)
	require.Equal(t, http.StatusCreated, w.Code, w.Body)
}
