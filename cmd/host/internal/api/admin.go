package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

// AdminOptions are what the admin interface needs. All fields are required.
type AdminOptions struct {
	Log       *substrate.Log
	Context   *signedctx.Context
	Publish   publish
	Consumers func() []dispatcher.ConsumerStatus
	Keys      KeyManager
	Resume    func(which func(dispatcher.ConsumerStatus) bool) int // as Dispatcher.Resume
	// DeleteTenant deletes all of a tenant, or returns rollout.ErrRuns.
	DeleteTenant func(ctx context.Context, tenant string) error
	Deploy       Deployments
	Info         wire.HostInfo
	Metrics      http.Handler
	Ready        func() error
	Logger       *zap.Logger
}

// Admin is the admin interface.
type Admin struct{ mux http.Handler }

// Local returns the handler for a socket. It trusts whoever can connect, and hides what TenantOnly says is not theirs from those
// that have gone through it.
func (a Admin) Local() http.Handler { return guardAdmin(a.mux) }

// NewAdmin returns the admin interface of a host. Whatever changes a policy has to go through one and the same.
func NewAdmin(o AdminOptions) Admin { return Admin{newAdmin(o).mux} }

func newAdmin(o AdminOptions) *admin {
	mux := http.NewServeMux()
	addHealth(mux, o.Ready)
	mux.Handle("GET /metrics", operatorsOnly(o.Metrics))
	mux.Handle("GET "+KeySetPath, keySetHandler(o.Keys))
	cfg := huma.DefaultConfig("Longshore admin", o.Info.Version)
	cfg.OpenAPIPath = "/admin/v1/openapi"
	cfg.DocsPath, cfg.SchemasPath = "", "" // their pages load scripts from elsewhere
	cfg.CreateHooks = nil                  // no $schema in what is answered
	cfg.Formats, cfg.Transformers = strictFormats(), []huma.Transformer{fewErrors}
	a := &admin{
		AdminOptions: o, api: humago.New(mux, cfg), mux: mux, policies: make(chan struct{}, 1), room: semaphore.NewWeighted(adminBodyBytes),
		deployments: newSlots(0, tenantDeployments),
	}
	a.api.UseMiddleware(a.guardTenant, a.makeRoom)
	a.addHost()
	a.addTenants()
	a.addTopics()
	a.addGroups()
	a.addDeadLetters()
	a.addFences()
	a.addQuarantine()
	a.addPolicy()
	a.addBackup()
	a.addEvents()
	a.addKeys()
	a.addDeployments()
	a.addRehearsals()
	allowEmptyPayload(a.api)
	return a
}

// allowEmptyPayload drops huma's own check of base64, which refuses the empty string. Decoding checks it all the same.
func allowEmptyPayload(api huma.API) {
	if s := api.OpenAPI().Components.Schemas.Map()["NewMessage"]; s != nil {
		s.Properties["data_base64"].ContentEncoding = ""
	}
}

type admin struct {
	AdminOptions
	api         huma.API
	mux         http.Handler
	policies    chan struct{}       // full while a policy is looked at to be changed
	room        *semaphore.Weighted // bytes of bodies that are decoded
	deployments *slots              // that are under way or wait
}

// makeRoom waits until the body of a request may be decoded. Modules are none of it: they are read as they come.
func (a *admin) makeRoom(ctx huma.Context, next func(huma.Context)) {
	if ctx.Operation().RequestBody == nil || ctx.Operation().OperationID == uploadModule {
		next(ctx)
		return
	}
	r, _ := humago.Unwrap(ctx)
	length := r.ContentLength
	if length < 0 || length > batchBodyBytes {
		length = batchBodyBytes
	}
	bytes := decodedBytes(length, adminBodyBytes)
	wait, cancel := context.WithTimeout(ctx.Context(), bodyWait)
	defer cancel()
	if a.room.Acquire(wait, bytes) != nil {
		a.answer(ctx, later(problem(http.StatusServiceUnavailable, wire.CodeBusy, "too many large requests are being read at once"), time.Second))
		return
	}
	defer a.room.Release(bytes)
	next(ctx)
}

// answer answers with a problem instead of an operation.
func (a *admin) answer(ctx huma.Context, p *wire.Problem) {
	if p.RetryAfterSeconds > 0 {
		ctx.SetHeader("Retry-After", strconv.Itoa(p.RetryAfterSeconds))
	}
	ctx.SetStatus(p.Status)
	ctx.SetHeader("Content-Type", wire.ProblemContentType)
	_ = a.api.Marshal(ctx.BodyWriter(), "application/json", p)
}

// TopicPath names a topic in a path; exported because huma fills only exported fields. A slash within the topic is percent-encoded.
type TopicPath struct {
	Tenant string `path:"tenant" doc:"tenant"`
	Topic  string `path:"topic" doc:"topic, with each / written as %2F"`
}

const topicRoute = "/admin/v1/tenants/{tenant}/topics/{topic}"

// valid reports a bad name before the log is asked.
func (t TopicPath) valid() error {
	if err := substrate.ValidTenant(t.Tenant); err != nil {
		return err
	}
	return substrate.ValidTopic(t.Topic)
}

// body is an answer with a JSON body.
type body[T any] struct {
	Status int
	Body   T
}

// none is a request or an answer without content.
type none struct{}

// add registers one operation: id is its name in the OpenAPI document.
func add[I, O any](a *admin, method, path, id, summary string, status int, h func(context.Context, *I) (O, error)) {
	op := huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, DefaultStatus: status}
	register(a, op, func(O) int { return status }, h)
}

// register registers an operation whose answer says with which status it is given.
func register[I, O any](a *admin, op huma.Operation, status func(O) int, h func(context.Context, *I) (O, error)) {
	registerFor(a, op, requestTimeout, status, h)
}

// registerFor is register of work that may take up to d.
func registerFor[I, O any](a *admin, op huma.Operation, d time.Duration, status func(O) int, h func(context.Context, *I) (O, error)) {
	op.MaxBodyBytes = batchBodyBytes
	huma.Register(a.api, op, func(ctx context.Context, in *I) (*body[O], error) {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		out, err := h(ctx, in)
		if err != nil {
			return nil, a.refusal(err)
		}
		return &body[O]{status(out), out}, nil
	})
}

// refusal returns an error as huma answers with it.
func (a *admin) refusal(err error) error {
	p := problemOf(a.Logger, err)
	if header := headerOf(p); len(header) > 0 {
		return huma.ErrorWithHeaders(p, header)
	}
	return p
}

// addHost registers what is about the host as a whole.
func (a *admin) addHost() {
	add(a, http.MethodGet, "/admin/v1/host", "get-host", "Which host answers", http.StatusOK,
		func(context.Context, *none) (wire.HostInfo, error) { return a.Info, nil })
	add(a, http.MethodGet, "/admin/v1/consumers", "list-consumers", "The consumers and their states", http.StatusOK,
		func(ctx context.Context, _ *none) (wire.ConsumerList, error) {
			list := wire.ConsumerList{Consumers: []wire.Consumer{}}
			for _, c := range a.Consumers() {
				if !sees(ctx, c.Tenant, c.Topic) {
					continue
				}
				list.Consumers = append(list.Consumers, consumerOf(c))
			}
			return list, nil
		})
}
