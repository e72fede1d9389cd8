package cli

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"syscall"

	"github.com/longshore/longshore/cmd/host/internal/api"
	"github.com/longshore/longshore/cmd/host/internal/app"
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

// Codes of errors, for people to look up. Those of problems are the host's.
const (
	codeFailed      = "failed"
	codeUsage       = "usage"
	codeFaults      = "faults"
	codeNoBackup    = "no-backup"
	codeNotEmpty    = "not-empty"
	codeExists      = "exists"
	codeModule      = "module-refused"
	codeUnreachable = "unreachable"
	codeTimedOut    = "timed-out"
	codeHostRuns    = "host-runs"
	codeLogInUse    = "log-in-use"
	codePortInUse   = "port-in-use"
	codeLogDamaged  = "log-damaged"
	codeStorage     = "storage-fault"
)

// ExitCode says with which code a command that returned err ends.
func ExitCode(err error) int {
	_, exit := codeOf(err)
	return exit
}

// codeOf returns the code of an error, "" of none, and the exit code that it makes.
func codeOf(err error) (code string, exit int) {
	var (
		use         usageError
		faults      config.Faults
		fault       config.Fault
		unreachable *client.UnreachableError
		problem     *wire.Problem
		refused     *runtime.ModuleError
		damaged     *app.DamageError
	)
	switch {
	case err == nil:
		return "", ExitOK
	case errors.As(err, &use):
		return codeUsage, ExitUsage
	case errors.As(err, &faults), errors.As(err, &fault):
		return codeFaults, ExitUsage
	case errors.Is(err, substrate.ErrBackup):
		return codeNoBackup, ExitUsage
	case errors.Is(err, substrate.ErrNotEmpty):
		return codeNotEmpty, ExitRefused
	case errors.Is(err, errExists):
		return codeExists, ExitRefused
	case errors.Is(err, substrate.ErrStorageFull):
		return string(wire.CodeStorageFull), ExitRefused
	case errors.As(err, &refused):
		return codeModule, ExitRefused
	case errors.As(err, &unreachable):
		return codeUnreachable, ExitUnreachable
	case errors.As(err, &problem):
		exit = problemCode(problem)
		return cmp.Or(string(problem.Code), map[int]string{ExitUsage: string(wire.CodeInvalid)}[exit], codeFailed), exit
	case errors.Is(err, context.DeadlineExceeded):
		return codeTimedOut, ExitConflict
	case errors.Is(err, api.ErrSocketInUse):
		return codeHostRuns, ExitConflict
	case errors.Is(err, substrate.ErrLocked):
		return codeLogInUse, ExitConflict
	case errors.Is(err, syscall.EADDRINUSE):
		return codePortInUse, ExitConflict
	case errors.As(err, &damaged):
		return codeLogDamaged, ExitFailed
	case errors.Is(err, app.ErrStorageFault):
		return codeStorage, ExitFailed
	default:
		return codeFailed, ExitFailed
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
