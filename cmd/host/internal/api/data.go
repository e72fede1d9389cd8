package api

import (
	"context"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/longshore/longshore/cmd/host/internal/ingest"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

// publish publishes for a principal; see ingest.Publisher.
type publish func(ctx context.Context, who signedctx.Principal, topic string, msgs []wire.NewMessage) ([]wire.Receipt, error)

// DataOptions are what a Data needs. All fields are required.
type DataOptions struct {
	Publish publish
	// Anonymous returns the tenant for which a producer that isn't known publishes to topic, and whether it may. The named
	// tenant is the one that the request asks for, "" if it doesn't say.
	Anonymous func(named, topic string) (tenant string, ok bool)
	Bearers   Bearers
	Keys      KeyManager
	MaxBytes  func(tenant, topic string) int64 // largest payload of a message
	Ready     func() error                     // nil while messages are taken
	Log       *zap.Logger
}

// NewData returns the handler of the data interface. Requests that a browser makes for another site are refused: a page
// could publish to what is open to anonymous producers otherwise.
func NewData(o DataOptions) http.Handler {
	d := &data{DataOptions: o, room: semaphore.NewWeighted(bodyBytes)}
	mux := http.NewServeMux()
	addHealth(mux, o.Ready)
	mux.Handle("GET "+KeySetPath, keySetHandler(o.Keys))
	mux.HandleFunc("/", d.serve)
	return guardData(mux)
}

type data struct {
	DataOptions
	room *semaphore.Weighted // bytes of bodies that are held
}

// serve answers everything but health. The topic may hold slashes, so the path is taken apart here.
func (d *data) serve(w http.ResponseWriter, r *http.Request) {
	topic, ok := topicOfPath(r.URL)
	if !ok {
		writeProblem(w, problem(http.StatusNotFound, wire.CodeNotFound,
			"there is nothing at this path; messages go to /v1/topics/{topic}/messages"))
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		writeProblem(w, problem(http.StatusMethodNotAllowed, wire.CodeMethod, "publish with POST"))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	receipts, err := d.publish(ctx, w, r, topic)
	if err != nil {
		p := problemOf(d.Log, err)
		if p.Status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="longshore"`)
		}
		writeProblem(w, p)
		return
	}
	published := wire.Published{Receipts: receipts}
	writeJSON(w, publishStatus(published), "application/json", published)
}

// publishStatus tells a publish that stored something from one that only repeated others.
func publishStatus(p wire.Published) int {
	if p.AllDuplicates() {
		return http.StatusOK
	}
	return http.StatusCreated
}

// publish is the way of a request: who, what, store.
func (d *data) publish(ctx context.Context, w http.ResponseWriter, r *http.Request, topic string) ([]wire.Receipt, error) {
	who, ctx, err := d.principal(ctx, r, topic)
	if err != nil {
		return nil, err
	}
	batch, most, err := d.form(r, who.Tenant, topic)
	if err != nil {
		return nil, err
	}
	held := most
	if batch {
		held = decodedBytes(most, bodyBytes)
	}
	release, err := d.makeRoom(ctx, held)
	if err != nil {
		return nil, err
	}
	defer release()
	msgs, err := readMessages(http.MaxBytesReader(w, r.Body, most), r.Header, batch)
	if err != nil {
		return nil, err
	}
	if err := mayFence(ctx, msgs); err != nil {
		return nil, err
	}
	return d.Publish(ctx, who, topic, msgs)
}

// makeRoom waits until a body of so many bytes may be held.
func (d *data) makeRoom(ctx context.Context, bytes int64) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, bodyWait)
	defer cancel()
	if d.room.Acquire(ctx, bytes) != nil {
		return nil, later(problem(http.StatusServiceUnavailable, wire.CodeBusy, "too many messages are being published at once"), time.Second)
	}
	return func() { d.room.Release(bytes) }, nil
}

// topicOfPath returns what is between /v1/topics/ and /messages, percent-decoded: both a/b and a%2Fb.
func topicOfPath(u *url.URL) (string, bool) {
	rest, ok := strings.CutPrefix(u.EscapedPath(), "/v1/topics/")
	if !ok {
		return "", false
	}
	escaped, ok := strings.CutSuffix(rest, "/messages")
	if !ok {
		return "", false
	}
	topic, err := url.PathUnescape(escaped)
	return topic, err == nil
}

// principal says who publishes: the bearer of the token that is shown, or else an anonymous producer. The context that it
// returns has the bearer's credential.
func (d *data) principal(ctx context.Context, r *http.Request, topic string) (signedctx.Principal, context.Context, error) {
	var none signedctx.Principal
	named := r.Header.Get(wire.TenantHeader)
	if len(r.Header.Values(wire.TenantHeader)) > 1 {
		return none, ctx, problem(http.StatusBadRequest, wire.CodeInvalid, wire.TenantHeader+" is given more than once")
	}
	if named != "" {
		if err := substrate.ValidTenant(named); err != nil {
			return none, ctx, err
		}
	}
	if err := substrate.ValidTopic(topic); err != nil {
		return none, ctx, err
	}
	if r.Header.Values("Authorization") != nil {
		return d.bearer(ctx, r, named, topic)
	}
	tenant, ok := d.Anonymous(named, topic)
	if !ok {
		return none, ctx, problem(http.StatusUnauthorized, wire.CodeUnauthorized,
			"this topic takes no message from a producer that isn't known; show a bearer token, or the host config would say anonymous: true")
	}
	return signedctx.Principal{Tenant: tenant, Subject: ingest.AnonymousSubject}, ctx, nil
}

// bearer says who shows the token of a request. The tenant is the token's; one that is named beside it has to be the same.
func (d *data) bearer(ctx context.Context, r *http.Request, named, topic string) (signedctx.Principal, context.Context, error) {
	var none signedctx.Principal
	c, err := identify(r, d.Bearers, d.Log)
	if err != nil {
		return none, ctx, err
	}
	if named == "" {
		named = c.Tenant
	}
	if p := c.refuses("publish", named, topic); p != nil {
		return none, ctx, p
	}
	return signedctx.Principal{Tenant: c.Tenant, Subject: c.Subject}, context.WithValue(ctx, credentialKey{}, c), nil
}

// form looks at the headers: whether the body is a batch, and how many bytes of it are taken.
func (d *data) form(r *http.Request, tenant, topic string) (batch bool, most int64, err error) {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return false, 0, problem(http.StatusUnsupportedMediaType, wire.CodeUnsupportedMedia, "send the body without a content encoding")
	}
	most = d.MaxBytes(tenant, topic)
	if contentType := r.Header.Get("Content-Type"); contentType != "" {
		media, _, err := mime.ParseMediaType(contentType)
		if err != nil {
			return false, 0, problem(http.StatusUnsupportedMediaType, wire.CodeUnsupportedMedia,
				"the content type is not a media type; send one such as application/json")
		}
		if batch = media == wire.BatchContentType; batch {
			most = batchBodyBytes
		}
	}
	if r.ContentLength > most {
		return false, 0, &http.MaxBytesError{Limit: most}
	}
	if r.ContentLength >= 0 {
		most = r.ContentLength
	}
	return batch, most, nil
}

// readMessages reads the body: one message, or a batch.
func readMessages(body io.Reader, h http.Header, batch bool) ([]wire.NewMessage, error) {
	if batch {
		return readBatch(body, h)
	}
	m := wire.NewMessage{ContentType: h.Get("Content-Type")}
	var err error
	if m.Metadata, err = metadataOf(h); err != nil {
		return nil, err
	}
	if err := setOptions(&m, h); err != nil {
		return nil, err
	}
	if m.DataBase64, err = readAll(body); err != nil {
		return nil, err
	}
	return []wire.NewMessage{m}, nil
}

// readAll tells a body that is too large from one that broke off.
func readAll(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(r)
	if err == nil {
		return body, nil
	}
	if tooLarge(err) {
		return nil, err
	}
	return nil, problem(http.StatusBadRequest, wire.CodeInvalid, "the body broke off before its end")
}
