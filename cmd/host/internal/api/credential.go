package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"go.uber.org/zap"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/signedctx/bearer"
	"github.com/longshore/longshore/substrate"
)

// Bearers says whose a bearer token is and what they may do. It is safe for concurrent use.
type Bearers interface {
	Identify(ctx context.Context, raw string) (bearer.Identity, config.Rights, error)
}

// credential is what a request over TCP has shown: whom it is for, and what they may do in their tenant.
type credential struct {
	bearer.Identity
	config.Rights
}

// credentialKey is under which the context of a request has its *credential. One without is an operator's, over the socket.
type credentialKey struct{}

func credentialOf(ctx context.Context) *credential {
	c, _ := ctx.Value(credentialKey{}).(*credential)
	return c
}

// identify reads the Authorization header of a request. Its error is a problem.
func identify(r *http.Request, bearers Bearers, log *zap.Logger) (*credential, error) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return nil, problem(http.StatusUnauthorized, wire.CodeUnauthorized, "give one Authorization header, with a bearer token of an issuer of your tenant")
	}
	raw, err := bearer.FromHeader(values[0])
	if err != nil {
		return nil, refusedToken(log, err)
	}
	id, rights, err := bearers.Identify(r.Context(), raw)
	if err != nil {
		return nil, refusedToken(log, err)
	}
	return &credential{id, rights}, nil
}

// refusedToken is the answer to a token that isn't accepted. What was wrong is the operator's to know, and of keys that can't
// be had it is the operator's to mend.
func refusedToken(log *zap.Logger, err error) error {
	if errors.Is(err, bearer.ErrUnavailable) {
		log.Warn("bearer token not verified", zap.Error(err))
		return later(problem(http.StatusServiceUnavailable, wire.CodeUnavailable, bearer.ErrUnavailable.Error()), 1)
	}
	log.Debug("bearer token refused", zap.Error(err))
	return problem(http.StatusUnauthorized, wire.CodeUnauthorized, "the bearer token is refused; the host's log says why, at level debug")
}

// TenantOnly wraps the handler of the admin interface for bearers of tokens: each sees its own tenant, and of what is
// another's, or the host's, no more than that there is nothing.
func TenantOnly(next http.Handler, bearers Bearers, log *zap.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Values("Origin") != nil {
			writeProblem(w, problem(http.StatusForbidden, wire.CodeForeign, "requests with an Origin header are refused here"))
			return
		}
		if r.URL.Path == "/livez" || r.URL.Path == "/readyz" || r.URL.Path == KeySetPath {
			next.ServeHTTP(w, r)
			return
		}
		c, err := identify(r, bearers, log)
		if err != nil {
			w.Header().Set("WWW-Authenticate", `Bearer realm="longshore"`)
			writeProblem(w, problemOf(log, err))
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), credentialKey{}, c)))
	})
}

// Remote returns the handler of the admin interface on TCP.
func (a Admin) Remote(bearers Bearers, log *zap.Logger) http.Handler {
	return TenantOnly(a.mux, bearers, log)
}

// operatorsOnly hides a handler from bearers of tokens.
func operatorsOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if credentialOf(r.Context()) != nil {
			writeProblem(w, nothingHere())
			return
		}
		next.ServeHTTP(w, r)
	})
}

// nothingHere is the one answer to a bearer about all that isn't its tenant's, whether it exists or not.
func nothingHere() *wire.Problem {
	return problem(http.StatusNotFound, wire.CodeNotFound, substrate.ErrNotFound.Error())
}

// reading are the operations about one topic that need no more than the right to read it.
func reading() map[string]bool {
	return map[string]bool{"get-topic": true, "peek": true, "tail": true, "replay": true, "list-groups": true, "get-policy": true}
}

// guardTenant refuses what a bearer may not do. Operations that are not about one tenant are the operator's but for those that
// leave out what the bearer doesn't see.
func (a *admin) guardTenant(ctx huma.Context, next func(huma.Context)) {
	c := credentialOf(ctx.Context())
	if c == nil {
		next(ctx)
		return
	}
	if p := c.refuses(ctx.Operation().OperationID, ctx.Param("tenant"), ctx.Param("topic")); p != nil {
		a.answer(ctx, p)
		return
	}
	next(ctx)
}

// refuses returns what is answered instead of an operation, or nil.
func (c *credential) refuses(operation, tenant, topic string) *wire.Problem {
	if tenant == "" && (operation == "list-topics" || operation == "list-consumers" || operation == "list-tenants") {
		return nil
	}
	if tenant != c.Tenant {
		return nothingHere()
	}
	may := c.Manage
	switch {
	case operation == "delete-tenant":
		may = false // not even whoever manages it
	case operation == "publish":
		may = c.MayPublish(topic)
	case reading()[operation]:
		may = c.MayRead(topic)
	}
	what := "topic"
	if topic == "" {
		what = "tenant"
	}
	if !may {
		return problem(http.StatusForbidden, wire.CodeForbidden, "the host config grants you no "+operation+" of this "+what)
	}
	return nil
}

// sees reports whether whoever asks may know of a topic.
func sees(ctx context.Context, tenant, topic string) bool {
	c := credentialOf(ctx)
	return c == nil || c.Tenant == tenant && (c.MayRead(topic) || c.MayPublish(topic))
}

// subjectOf returns the subject of whoever sent an admin request.
func subjectOf(ctx context.Context) (string, error) {
	if c := credentialOf(ctx); c != nil {
		return c.Subject, nil
	}
	return localSubject(ctx)
}

// mayFence refuses fences of bearers without the grant: what a fence says must be true of whoever says it.
func mayFence(ctx context.Context, msgs []wire.NewMessage) error {
	c := credentialOf(ctx)
	if c == nil || c.Fence {
		return nil
	}
	for _, m := range msgs {
		if m.Fence != nil {
			return problem(http.StatusForbidden, wire.CodeForbidden, "the host config grants you no fence")
		}
	}
	return nil
}
