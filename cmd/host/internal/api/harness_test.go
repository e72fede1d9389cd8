package api

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/longshore/longshore/cmd/host/internal/bearers"
	"github.com/longshore/longshore/cmd/host/internal/ingest"
	hostkeys "github.com/longshore/longshore/cmd/host/internal/keys"
	"github.com/longshore/longshore/cmd/host/internal/rollout"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/signedctx/bearer"
	"github.com/longshore/longshore/substrate"
)

const testTenant = "default"

// harness is both interfaces on a real log.
type harness struct {
	log   *substrate.Log
	seal  *signedctx.Context
	data  http.Handler
	admin http.Handler
	ready error

	options AdminOptions
	bearers *bearers.Bearers
	idp     *idp
	resumed []string // lanes of the topic "open" whose consumers were resumed
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	dir := t.TempDir()
	log, err := substrate.Open(t.Context(), substrate.Options{Dir: filepath.Join(dir, "log")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	keys, err := signedctx.LoadOrCreate(filepath.Join(dir, "keys"))
	require.NoError(t, err)
	seal, err := signedctx.New(keys, "test", time.Now)
	require.NoError(t, err)
	h := &harness{log: log, seal: seal, idp: newIDP(t)}
	h.bearers, err = bearers.New(h.idp.host, bearer.Options{})
	require.NoError(t, err)
	manager := hostkeys.New(signedctx.Folder{Dir: filepath.Join(dir, "keys")}, seal, log, zap.NewNop())
	publisher := ingest.New(log, seal)
	ready := func() error { return h.ready }
	h.data = NewData(DataOptions{
		Publish: publisher.Publish, Ready: ready, Log: zap.NewNop(),
		Anonymous: func(named, topic string) (string, bool) {
			return testTenant, strings.HasPrefix(topic, "open") && (named == "" || named == testTenant)
		},
		Bearers: h.bearers, Keys: manager, MaxBytes: func(string, string) int64 { return 1000 },
	})
	deployer := newDeployer(t, log, seal)
	h.options = AdminOptions{
		Deploy: deployer,
		DeleteTenant: func(ctx context.Context, tenant string) error {
			return deployer.Delete(ctx, tenant, func(versions func() error) error { return log.DeleteTenant(ctx, tenant, versions) })
		},
		Log: log, Context: seal, Keys: manager, Publish: publisher.Publish, Ready: ready, Logger: zap.NewNop(), Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `backlog{tenant="other"} 1`) }),
		Consumers: func() []dispatcher.ConsumerStatus {
			return []dispatcher.ConsumerStatus{{Name: "c", Tenant: testTenant, Topic: "open", State: "running"}}
		},
		Resume: func(which func(dispatcher.ConsumerStatus) bool) int {
			for _, lane := range []string{"", "audit"} {
				if which(dispatcher.ConsumerStatus{Tenant: testTenant, Topic: "open", Lane: lane}) {
					h.resumed = append(h.resumed, lane)
				}
			}
			return len(h.resumed)
		},
		Info: wire.HostInfo{Version: "v1"},
	}
	h.admin = NewAdmin(h.options).Local()
	return h
}

// newDeployer returns a real one, on a dispatcher that doesn't run. The tenant "other" has a version, without consumers.
func newDeployer(t *testing.T, log *substrate.Log, seal *signedctx.Context) *rollout.Deployer {
	t.Helper()
	store, err := rollout.OpenStore(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, store.Add(&rollout.Version{Tenant: "other", Number: 1, Entries: []rollout.Entry{}}))
	d, err := dispatcher.New(dispatcher.Options{Queue: log, Context: seal})
	require.NoError(t, err)
	return rollout.New(rollout.Options{
		Host: config.DefaultHost(), Store: store, Logger: zap.NewNop(), Swap: d.Swap,
		Lanes: func(context.Context, []config.Consumer) error { return nil },
	})
}

// post sends a message to the data interface; header is key, value, key, value.
func (h *harness) post(t *testing.T, path, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	return do(t, h.data, http.MethodPost, path, strings.NewReader(body), header...)
}

func do(t *testing.T, handler http.Handler, method, path string, body io.Reader, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, body)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// serveAdmin serves the admin interface on a socket, as a host does.
func (h *harness) serveAdmin(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.sock")
	l, err := ListenSocket(t.Context(), path)
	require.NoError(t, err)
	s := NewServer(l, h.admin, AdminConnections, zap.NewNop())
	done := make(chan error, 1)
	go func() { done <- s.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		require.NoError(t, s.Stop(ctx))
		require.NoError(t, <-done)
	})
	return path
}

// bury makes dead letters of everything that waits in a topic.
func (h *harness) bury(t *testing.T, topic, reason string) {
	t.Helper()
	got, err := h.log.Claim(t.Context(), substrate.ClaimRequest{
		Tenant: testTenant, Topic: topic, MaxMessages: 64, MaxBytes: 1 << 20, Lease: time.Minute, MaxAttempts: 5,
	})
	require.NoError(t, err)
	for _, d := range got.Deliveries {
		require.NoError(t, h.log.Settle(t.Context(), []substrate.Settlement{
			{Lease: d.Lease, Verdict: substrate.Bury, Reason: reason, Receipt: []byte(`{"fuel":1}`)},
		}, nil))
	}
}

// only returns the one message that waits in a topic.
func (h *harness) only(t *testing.T, topic string) substrate.Message {
	t.Helper()
	got, err := h.log.Peek(t.Context(), testTenant, topic, "", 0, 10)
	require.NoError(t, err)
	require.Len(t, got, 1)
	return got[0].Message
}

// unixClient returns a client for a socket.
func unixClient(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
	}}
}
