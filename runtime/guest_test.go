package runtime_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

// goGuestWasm builds the stock Go consumer of testdata/guest, once.
var goGuestWasm = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "guest")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	out := filepath.Join(dir, "guest.wasm")
	cmd := exec.CommandContext(context.Background(), "go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w -buildid=", "-o", out, ".")
	cmd.Dir = filepath.Join("testdata", "guest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off", "GOFLAGS=")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
})

// newEngine makes an engine that is closed with the test.
func newEngine(tb testing.TB) *runtime.Engine {
	tb.Helper()
	e, err := runtime.New(tb.Context(), runtime.Options{})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, e.Close(context.WithoutCancel(tb.Context()))) })
	return e
}

// testLimits are the defaults with time and call depth for slow machines and a Go guest.
func testLimits() limits.Guest {
	g := limits.DefaultGuest()
	g.CallDuration = time.Minute
	return g
}

// goGuest returns the stock Go consumer, compiled once: it takes the compiler a second.
func goGuest(tb testing.TB) *runtime.Module {
	tb.Helper()
	m, err := goGuestModule()
	require.NoError(tb, err)
	return m
}

var goGuestModule = sync.OnceValues(func() (*runtime.Module, error) {
	wasm, err := goGuestWasm()
	if err != nil {
		return nil, err
	}
	e, err := runtime.New(context.Background(), runtime.Options{})
	if err != nil {
		return nil, err
	}
	return e.Compile(context.Background(), "guest", wasm, testLimits())
})

// newCall prepares a call with a message of these data that may publish anything.
func newCall(data string, change func(o *messaging.CallOptions)) *messaging.Call {
	o := messaging.CallOptions{
		Message: messaging.Message{Topic: "in", Data: []byte(data)},
		Limits:  testLimits(),
		Admit: func(string, messaging.Message) (messaging.Admission, *messaging.PublishError) {
			return messaging.Admission{ID: "id"}, nil
		},
	}
	if change != nil {
		change(&o)
	}
	return messaging.NewCall(o)
}
