package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/substrate"
)

func TestBackup(t *testing.T) {
	t.Run("StreamsTheLog", func(t *testing.T) {
		h := newHarness(t)
		require.Equal(t, http.StatusCreated, h.post(t, "/v1/topics/open/messages", "x").Code)
		socket := h.serveAdmin(t)
		body, kind := getBackup(t, unixClient(socket))
		require.Equal(t, wire.BackupContentType, kind)
		info, err := substrate.CheckBackup(body)
		require.NoError(t, err)
		require.EqualValues(t, 1, info.Backlog)

		var b bytes.Buffer
		require.NoError(t, client.NewAdmin(socket).Backup(t.Context(), &b))
		info, err = substrate.Restore(t.Context(), filepath.Join(t.TempDir(), "log"), &b)
		require.NoError(t, err)
		require.EqualValues(t, 1, info.Backlog)
	})

	t.Run("IsInTheDescriptionOfTheInterface", func(t *testing.T) {
		var doc struct {
			Paths map[string]map[string]any `json:"paths"`
		}
		require.NoError(t, json.Unmarshal(do(t, newHarness(t).admin, http.MethodGet, "/admin/v1/openapi.json", nil).Body.Bytes(), &doc))
		require.Contains(t, doc.Paths["/admin/v1/backup"], "get")
	})

	t.Run("MayTakeLongerThanAConnectionLasts", func(t *testing.T) {
		h := newHarness(t)
		h.publishLarge(t)
		outlasting(t, h, "/admin/v1/backup", func(body io.Reader, pause func()) error {
			if _, err := body.Read(make([]byte, 1)); err != nil {
				return err
			}
			pause()
			rest, err := io.ReadAll(body)
			require.True(t, err != nil || len(rest) > 4_000_000, len(rest))
			return err
		})
	})

	t.Run("BreaksOffWhenTheLogIsClosed", func(t *testing.T) {
		h := newHarness(t)
		h.publishLarge(t)
		body, _ := getBackup(t, unixClient(h.serveAdmin(t)))
		require.NoError(t, h.log.Close())
		got, err := io.ReadAll(body)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		_, err = substrate.CheckBackup(bytes.NewReader(got))
		require.ErrorIs(t, err, substrate.ErrBackup)
		require.ErrorContains(t, err, "cut short")

		answer := do(t, h.admin, http.MethodGet, "/admin/v1/backup", nil)
		require.Equal(t, http.StatusServiceUnavailable, answer.Code)
		require.Equal(t, wire.ProblemContentType, answer.Header().Get("Content-Type"))
	})

	t.Run("EndsWhenItsReaderIsGone", func(t *testing.T) {
		h := newHarness(t)
		h.publishLarge(t)
		socket := h.serveAdmin(t) // which waits at the end for what runs
		ctx, cancel := context.WithCancel(t.Context())
		err := client.NewAdmin(socket).Backup(ctx, writerFunc(func(b []byte) (int, error) { cancel(); return len(b), nil }))
		require.ErrorIs(t, err, context.Canceled)
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// getBackup returns the body of an answer, which is being sent, and its type.
func getBackup(t *testing.T, c *http.Client) (body io.Reader, kind string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/admin/v1/backup", nil)
	require.NoError(t, err)
	resp, err := c.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(t, http.StatusOK, resp.StatusCode)
	return resp.Body, resp.Header.Get("Content-Type")
}

// publishLarge publishes more than the buffers of a connection hold.
func (h *harness) publishLarge(t *testing.T) {
	t.Helper()
	for range 16 {
		m := substrate.Message{ID: h.log.MintID(), Tenant: testTenant, Topic: "large", Payload: []byte(strings.Repeat("x", 1<<20))}
		_, err := h.log.Publish(t.Context(), m)
		require.NoError(t, err)
	}
}
