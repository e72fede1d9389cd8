package api

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/longshore/longshore/cmd/host/internal/ingest"
	"github.com/longshore/longshore/cmd/host/internal/keys"
	"github.com/longshore/longshore/cmd/host/internal/rollout"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

// problem makes a problem whose title is the phrase of its status.
func problem(status int, code wire.Code, detail string) *wire.Problem {
	return &wire.Problem{Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// problemOf translates an error of the packages below. What it doesn't know is logged, and answered without its text.
func problemOf(log *zap.Logger, err error) *wire.Problem {
	var (
		known   *wire.Problem
		invalid *ingest.InvalidError
		name    *substrate.NameError
		option  *substrate.OptionError
		policy  *substrate.PolicyError
		start   *substrate.StartError
		limit   *limits.Error
		future  *substrate.PositionError
		depth   *substrate.DepthError
		rate    *substrate.RateError
		body    *http.MaxBytesError
		faults  config.Faults
		tenant  *substrate.TenantError
		changed *rollout.ChangedError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &invalid), errors.As(err, &name), errors.As(err, &option), errors.As(err, &policy),
		errors.As(err, &start), errors.As(err, &future):
		return problem(http.StatusBadRequest, wire.CodeInvalid, err.Error())
	case errors.As(err, &faults):
		return faultsProblem(faults)
	case errors.As(err, &changed):
		return changedProblem(changed.Error(), changed.Tag)
	case errors.Is(err, rollout.ErrHeld):
		return problem(http.StatusConflict, wire.CodeConflict, err.Error())
	case errors.Is(err, rollout.ErrRehearsing):
		return later(problem(http.StatusConflict, wire.CodeConflict, err.Error()), time.Second)
	case errors.Is(err, rollout.ErrNoVersion), errors.Is(err, rollout.ErrNoCanary):
		return problem(http.StatusNotFound, wire.CodeNotFound, err.Error())
	case errors.Is(err, rollout.ErrDigest), errors.Is(err, rollout.ErrNoConsumer):
		return problem(http.StatusBadRequest, wire.CodeInvalid, err.Error())
	case errors.As(err, &limit):
		return limitProblem(limit)
	case errors.As(err, &body):
		return problem(http.StatusRequestEntityTooLarge, wire.CodeTooLarge,
			"the body is larger than the "+strconv.FormatInt(body.Limit, 10)+" bytes that are taken here")
	case errors.As(err, &tenant):
		return tenantProblem(tenant)
	case errors.As(err, &rate):
		return later(problem(http.StatusTooManyRequests, wire.CodeRate, err.Error()), rate.RetryAfter)
	case errors.As(err, &depth):
		return later(problem(http.StatusServiceUnavailable, wire.CodeDepth, err.Error()), time.Second)
	case errors.Is(err, substrate.ErrStorageFull):
		return problem(http.StatusInsufficientStorage, wire.CodeStorageFull, "the disk is full, or nearly so; nothing was stored")
	case errors.Is(err, substrate.ErrNotFound), errors.Is(err, substrate.ErrNoGroup), errors.Is(err, substrate.ErrLaneOff):
		return problem(http.StatusNotFound, wire.CodeNotFound, err.Error())
	case errors.Is(err, signedctx.ErrNoKey):
		return problem(http.StatusNotFound, wire.CodeNotFound, signedctx.ErrNoKey.Error())
	case errors.Is(err, signedctx.ErrKeySigns), errors.Is(err, keys.ErrInUse), errors.Is(err, rollout.ErrRuns), errors.Is(err, substrate.ErrDeleting), errors.Is(err, keys.ErrRecent):
		return problem(http.StatusConflict, wire.CodeConflict, err.Error())
	case errors.Is(err, substrate.ErrGroupEnding):
		return later(problem(http.StatusServiceUnavailable, wire.CodeBusy, err.Error()), time.Second)
	case errors.Is(err, dispatcher.ErrStopped):
		return problem(http.StatusServiceUnavailable, wire.CodeUnavailable, "the host is starting or stopping")
	case errors.Is(err, substrate.ErrClosed):
		return problem(http.StatusServiceUnavailable, wire.CodeUnavailable, "the host is stopping")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return problem(http.StatusGatewayTimeout, wire.CodeTimeout, "the work took too long; it may or may not have been done")
	}
	log.Error("request failed", zap.Error(err))
	return problem(http.StatusInternalServerError, wire.CodeInternal, "internal error; the host's log says more")
}

// faultsProblem lists what is wrong with a manifest.
func faultsProblem(faults config.Faults) *wire.Problem {
	p := problem(http.StatusUnprocessableEntity, wire.CodeManifest, "the manifest is not valid; nothing was changed")
	for _, f := range faults {
		at := config.Fault{File: f.File, Line: f.Line, Col: f.Col, Path: f.Path}
		where := strings.TrimSuffix(at.String(), ": ")
		p.Errors = append(p.Errors, wire.ProblemError{Location: where, Message: strings.TrimPrefix(f.String(), where+": ")})
	}
	return p
}

// tenantProblem tells a tenant's rate, which passes, from what it has stored, which goes when somebody is done with it.
func tenantProblem(e *substrate.TenantError) *wire.Problem {
	if e.RetryAfter > 0 {
		return later(problem(http.StatusTooManyRequests, wire.CodeRate, e.Error()), e.RetryAfter)
	}
	return problem(http.StatusInsufficientStorage, wire.CodeQuota, e.Error())
}

// limitProblem tells a message that is too large from a name that is too long and from too many topics or groups.
func limitProblem(e *limits.Error) *wire.Problem {
	switch e.Name {
	case limits.NameTails, limits.NameRehearsals:
		return later(problem(http.StatusServiceUnavailable, wire.CodeBusy, e.Error()), time.Second)
	case limits.NameTopics:
		return problem(http.StatusInsufficientStorage, wire.CodeQuota, e.Error())
	case limits.NameGroups, limits.NameSkippedSpans:
		return problem(http.StatusInsufficientStorage, wire.CodeStorageFull, e.Error())
	case limits.NameKeyBytes, limits.NameTopicBytes, limits.NameTokenBytes, limits.NameTokenClaims:
		return problem(http.StatusBadRequest, wire.CodeInvalid, e.Error())
	default:
		return problem(http.StatusRequestEntityTooLarge, wire.CodeTooLarge, e.Error())
	}
}

// later says when to try again, in whole seconds, rounded up.
func later(p *wire.Problem, after time.Duration) *wire.Problem {
	p.RetryAfterSeconds = max(1, int(math.Ceil(after.Seconds())))
	return p
}

// writeProblem answers with p.
func writeProblem(w http.ResponseWriter, p *wire.Problem) {
	maps.Copy(w.Header(), headerOf(p))
	writeJSON(w, p.Status, wire.ProblemContentType, p)
}

// writeJSON answers with v. An error of the connection is the client's to notice.
func writeJSON(w http.ResponseWriter, status int, contentType string, v any) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
