package runtime

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/wasi/messaging"
)

func TestClassify(t *testing.T) {
	trap := fmt.Errorf("handle: %w", fmt.Errorf("wasm error: %w\nwasm stack trace", errors.New("unreachable")))
	limit := func(n limits.Name) error { return fmt.Errorf("handle: %w", &limits.Error{Name: n}) }
	cases := []struct {
		err           error
		memoryRefused bool
		reason        string
	}{
		{trap, false, "guest-trap: unreachable"},
		{trap, true, "out-of-memory"},
		{&messaging.ExitError{Code: 4294967295}, false, "exit 4294967295"},
		{&messaging.ExitError{Code: 2}, true, "out-of-memory"},
		{&messaging.ABIError{Problem: "x"}, false, "bad-abi"},
		{&messaging.ABIError{Problem: "x"}, true, "bad-abi"},
		{messaging.ErrTimeout, true, "timeout"},
		{limit(limits.NameFuel), true, "out-of-fuel"},
		{limit(limits.NameCallDepth), false, "stack-overflow"},
		{errors.New("stack overflow"), false, "stack-overflow"},
		{limit(limits.NameHostCalls), false, "host-call-limit"},
		{limit(limits.NameHandles), false, "handle-limit"},
		{limit(limits.NameLogBytes), false, "output-limit"},
		{limit(limits.NameResultBytes), false, "output-limit"},
		{limit(limits.NameHeldBytes), false, "out-of-memory"},
		{limit(limits.NameMetadataPairs), false, "out-of-memory"},
		{errors.New("boom"), true, "host-panic"},
		{fmt.Errorf("%w: %w", messaging.ErrInterrupted, errors.New("unreachable")), true, "interrupted"},
		{&faultError{fmt.Errorf("start: %w", messaging.ErrInterrupted)}, false, "interrupted"},
		{&faultError{trap}, true, "module-fault"},
		{&faultError{limit(limits.NameFuel)}, false, "module-fault"},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			class, detail := classify(c.err, c.memoryRefused)
			require.Equal(t, c.reason, Outcome{Class: class, Detail: detail}.Reason(), c.err)
		})
	}
}

func TestGuestError_IsSafeToPrint(t *testing.T) {
	err := &guestError{fmt.Errorf("trap in f\x1b[31m\n\u202e\xff%s", strings.Repeat("é", 5000))}
	want := "trap in f [31m  �"
	require.Equal(t, want+strings.Repeat("é", maxErrorRunes-utf8.RuneCountInString(want))+"…", err.Error())
}

func TestReason(t *testing.T) {
	require.Empty(t, Outcome{}.Reason())
	require.Equal(t, "guest-error: permission-denied", Outcome{Class: GuestError, Detail: "permission-denied"}.Reason())
	seen := map[string]bool{}
	for c := OK; c <= ModuleFault; c++ {
		require.False(t, seen[c.String()], c)
		seen[c.String()] = true
	}
}
