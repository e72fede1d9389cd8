package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/substrate"
)

var errStop = errors.New("stop")

// publish publishes messages on the log itself.
func (h *harness) publish(t *testing.T, topic string, payloads ...string) {
	t.Helper()
	for _, p := range payloads {
		_, err := h.log.Publish(t.Context(), substrate.Message{ID: h.log.MintID(), Tenant: testTenant, Topic: topic, Payload: []byte(p)})
		require.NoError(t, err)
	}
}

// ask requests a path of the admin interface on a socket.
func ask(t *testing.T, socket, path string) (status int, h http.Header, body io.Reader) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil)
	require.NoError(t, err)
	resp, err := unixClient(socket).Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp.StatusCode, resp.Header, resp.Body
}

// texts is what a stream of events says, as texts: payloads, gaps and drops.
func texts(into *[]string, n int) func(wire.Event) error {
	return func(e wire.Event) error {
		switch {
		case e.Gap != nil:
			*into = append(*into, fmt.Sprintf("gap %d-%d", e.Gap.From, e.Gap.To))
		case e.Message == nil:
			*into = append(*into, fmt.Sprintf("damaged %d", e.Damaged))
		default:
			*into = append(*into, fmt.Sprintf("%d %s", e.Position, e.Message.DataBase64))
		}
		if len(*into) == n {
			return errStop
		}
		return nil
	}
}

// outlasting asks for a path on a server whose connections last only so long, and hands what read does the body and a pause that is
// three times as long. A machine that is busy may take the time before it answers at all: then there is more of it in the next try.
func outlasting(t *testing.T, h *harness, path string, read func(body io.Reader, pause func()) error) {
	t.Helper()
	try := func(patience time.Duration) error {
		socket := filepath.Join(t.TempDir(), "a.sock")
		l, err := ListenSocket(t.Context(), socket)
		require.NoError(t, err)
		s := NewServer(l, h.admin, AdminConnections, zap.NewNop())
		s.http.ReadTimeout, s.http.WriteTimeout = patience, patience
		done := make(chan error, 1)
		go func() { done <- s.Serve() }()
		defer func() {
			require.NoError(t, s.Stop(t.Context()))
			require.NoError(t, <-done)
		}()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil)
		require.NoError(t, err)
		resp, err := unixClient(socket).Do(r)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		require.Equal(t, http.StatusOK, resp.StatusCode)
		return read(resp.Body, func() { time.Sleep(3 * patience) }) // what is tested is time
	}
	var err error
	for patience := 50 * time.Millisecond; patience < 2*time.Second; patience *= 2 {
		if err = try(patience); err == nil {
			return
		}
	}
	require.NoError(t, err)
}

const tailPath = "/admin/v1/tenants/" + testTenant + "/topics/a/tail"

func TestTail(t *testing.T) {
	t.Run("StreamsWhatIsPublished", func(t *testing.T) {
		h := newHarness(t)
		status, header, body := ask(t, h.serveAdmin(t), tailPath)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, wire.EventsContentType, header.Get("Content-Type"))
		h.publish(t, "a", "x")
		var e wire.Event
		require.NoError(t, json.NewDecoder(body).Decode(&e))
		require.Equal(t, "x", string(e.Message.DataBase64))
		require.EqualValues(t, 1, e.Position)
	})

	t.Run("GoesOnAfterAPosition", func(t *testing.T) {
		h := newHarness(t)
		h.publish(t, "a", "x", "y")
		h.publish(t, "b", "z")
		h.publish(t, "a", "z")
		admin := client.NewAdmin(h.serveAdmin(t))
		for after, want := range map[uint64][]string{1: {"2 y", "4 z"}, 2: {"4 z"}, 3: {"gap 3-4", "4 z"}} {
			var got []string
			require.ErrorIs(t, admin.Tail(t.Context(), testTenant, "a", after, texts(&got, len(want))), errStop)
			require.Equal(t, want, got)
		}
	})

	t.Run("IsRefused", func(t *testing.T) {
		h := newHarness(t)
		for path, code := range map[string]int{
			tailPath + "?after=7":                http.StatusBadRequest,
			tailPath + "?after=-1":               http.StatusUnprocessableEntity,
			"/admin/v1/tenants/No/topics/a/tail": http.StatusBadRequest,
		} {
			require.Equal(t, code, do(t, h.admin, http.MethodGet, path, nil).Code, path)
		}
	})

	t.Run("MayTakeLongerThanAConnectionLasts", func(t *testing.T) {
		h := newHarness(t)
		outlasting(t, h, tailPath, func(body io.Reader, pause func()) error {
			dec := json.NewDecoder(body)
			for range 2 {
				pause()
				h.publish(t, "a", "x")
				var e wire.Event
				if err := dec.Decode(&e); err != nil {
					return err
				}
			}
			return nil
		})
	})

	t.Run("EndsWhenTheServerStops", func(t *testing.T) {
		h := newHarness(t)
		socket := filepath.Join(t.TempDir(), "a.sock")
		l, err := ListenSocket(t.Context(), socket)
		require.NoError(t, err)
		s := NewServer(l, h.admin, AdminConnections, zap.NewNop())
		done := make(chan error, 1)
		go func() { done <- s.Serve() }()
		ended := make(chan error, 1)
		begun := make(chan struct{})
		h.publish(t, "a", "x", "y")
		go func() {
			ended <- client.NewAdmin(socket).Tail(t.Context(), testTenant, "a", 1, func(wire.Event) error { close(begun); return nil })
		}()
		<-begun
		require.NoError(t, s.Stop(t.Context()))
		var gone *client.UnreachableError
		require.ErrorAs(t, <-ended, &gone)
		require.NoError(t, <-done)
	})

	t.Run("BreaksOffWhenTheLogIsClosed", func(t *testing.T) {
		h := newHarness(t)
		_, _, body := ask(t, h.serveAdmin(t), tailPath)
		require.NoError(t, h.log.Close())
		require.Error(t, json.NewDecoder(body).Decode(new(wire.Event)))
		require.Equal(t, http.StatusServiceUnavailable, do(t, h.admin, http.MethodGet, tailPath, nil).Code)
	})

	t.Run("EndsWhenItsReaderIsGone", func(t *testing.T) {
		h := newHarness(t)
		h.publish(t, "a", "x", "y")
		socket := h.serveAdmin(t)
		for range 2 * AdminStreams { // more than there may be at once
			require.Eventually(t, func() bool {
				var got []string
				return errors.Is(client.NewAdmin(socket).Tail(t.Context(), testTenant, "a", 1, texts(&got, 1)), errStop)
			}, 10*time.Second, time.Millisecond)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := client.NewAdmin(socket).Tail(ctx, testTenant, "a", 1, func(wire.Event) error { cancel(); return nil })
		require.ErrorIs(t, err, context.Canceled)
	})

	t.Run("LeavesConnectionsForCommands", func(t *testing.T) {
		h := newHarness(t)
		socket := h.serveAdmin(t)
		for range AdminStreams {
			status, _, _ := ask(t, socket, tailPath)
			require.Equal(t, http.StatusOK, status)
		}
		status, header, _ := ask(t, socket, tailPath)
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Equal(t, "1", header.Get("Retry-After"))
		_, err := client.NewAdmin(socket).Host(t.Context())
		require.NoError(t, err)
	})
}

func TestReplay(t *testing.T) {
	h := newHarness(t)
	admin := client.NewAdmin(h.serveAdmin(t))
	before := time.Now().Add(-time.Minute)
	h.publish(t, "b", "z")
	h.publish(t, "a", "x", "y")
	replay := func(t *testing.T, from uint64, since time.Time) (got []string) {
		t.Helper()
		require.NoError(t, admin.Replay(t.Context(), testTenant, "a", from, since, texts(&got, 0)))
		return got
	}
	t.Run("StreamsWhatIsStoredAndEnds", func(t *testing.T) {
		require.Equal(t, []string{"2 x", "3 y"}, replay(t, 0, time.Time{}))
		require.Equal(t, []string{"3 y"}, replay(t, 3, time.Time{}))
		require.Equal(t, []string{"gap 1-2", "2 x", "3 y"}, replay(t, 1, time.Time{}))
		require.Equal(t, []string{"2 x", "3 y"}, replay(t, 0, before))
		require.Empty(t, replay(t, 0, time.Now().Add(time.Minute)))
	})
	t.Run("IsRefused", func(t *testing.T) {
		const path = "/admin/v1/tenants/" + testTenant + "/topics/"
		for query, code := range map[string]int{
			"a/replay?from=5":                            http.StatusBadRequest,
			"a/replay?since=noon":                        http.StatusBadRequest,
			"a/replay?from=1&since=2030-01-31T12:00:00Z": http.StatusBadRequest,
			"nothing/replay":                             http.StatusNotFound,
		} {
			require.Equal(t, code, do(t, h.admin, http.MethodGet, path+query, nil).Code, query)
		}
	})
	t.Run("IsInTheDescriptionOfTheInterface", func(t *testing.T) {
		var doc struct {
			Paths map[string]map[string]any `json:"paths"`
		}
		require.NoError(t, json.Unmarshal(do(t, h.admin, http.MethodGet, "/admin/v1/openapi.json", nil).Body.Bytes(), &doc))
		require.Contains(t, doc.Paths[topicRoute+"/tail"], "get")
		require.Contains(t, doc.Paths[topicRoute+"/replay"], "get")
	})
}
