package cli

import (
	"context"
	"errors"
	"net/http"
	"syscall"

	"github.com/longshore/longshore/cmd/host/internal/api"
	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
)

// Exit codes.
const (
	ExitOK          = 0
	ExitFailed      = 1 // what was asked for could not be done
	ExitUsage       = 2 // the command line, a file or a request is not valid
	ExitUnreachable = 3 // no host answers
	ExitRefused     = 4 // refused: not allowed, a policy, no room, a module that can't be run
	ExitConflict    = 5 // timed out, or another host or program is in the way
)

// usageError is a fault of the command line.
type usageError struct{ error }

// Unwrap returns the cause.
func (e usageError) Unwrap() error { return e.error }

// usage marks err as a fault of the command line.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// ExitCode says with which code a command that returned err ends.
func ExitCode(err error) int {
	var (
		use         usageError
		faults      config.Faults
		fault       config.Fault
		unreachable *client.UnreachableError
		problem     *wire.Problem
		refused     *runtime.ModuleError
	)
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &use), errors.As(err, &faults), errors.As(err, &fault), errors.Is(err, substrate.ErrBackup):
		return ExitUsage
	case errors.Is(err, substrate.ErrNotEmpty), errors.Is(err, errExists), errors.Is(err, substrate.ErrStorageFull),
		errors.As(err, &refused):
		return ExitRefused
	case errors.As(err, &unreachable):
		return ExitUnreachable
	case errors.As(err, &problem):
		return problemCode(problem)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, api.ErrSocketInUse), errors.Is(err, substrate.ErrLocked),
		errors.Is(err, syscall.EADDRINUSE):
		return ExitConflict
	default:
		return ExitFailed
	}
}

// problemCode maps the status of a problem.
func problemCode(p *wire.Problem) int {
	switch p.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return ExitUsage
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusInsufficientStorage:
		return ExitRefused
	case http.StatusServiceUnavailable:
		if p.Code == wire.CodeDepth || p.Code == wire.CodeBusy {
			return ExitRefused
		}
		return ExitUnreachable
	case http.StatusConflict, http.StatusPreconditionFailed, http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return ExitConflict
	default:
		return ExitFailed
	}
}
