//go:build !linux

package substrate

import (
	"errors"
	"testing"
)

func traceFileSyncs() error { return errors.New("only Linux lets a parent see system calls") }

func skipFileSyncs() error { return errors.ErrUnsupported }

func proofFull(t *testing.T, _ *proofPlan, _ *proofReport) {
	t.Helper()
	t.Fatal("only Linux has mount namespaces")
}
