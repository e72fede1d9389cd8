package dispatcher

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// outcomes has every class that a guest call can end with, and what the table says about it before and at the last
// attempt.
func outcomes() []struct {
	outcome      runtime.Outcome
	early, last  substrate.Verdict
	reason       string
	then         consequence
	uncharged    bool
	retriesDelay bool
} {
	type row = struct {
		outcome      runtime.Outcome
		early, last  substrate.Verdict
		reason       string
		then         consequence
		uncharged    bool
		retriesDelay bool
	}
	charged := func(o runtime.Outcome, reason string) row {
		return row{outcome: o, early: substrate.Retry, last: substrate.Bury, reason: reason, retriesDelay: true}
	}
	free := func(o runtime.Outcome, reason string, then consequence) row {
		return row{outcome: o, early: substrate.Release, last: substrate.Release, reason: reason, then: then, uncharged: true}
	}
	return []row{
		{outcome: runtime.Outcome{Class: runtime.OK}, early: substrate.Ack, last: substrate.Ack},
		charged(runtime.Outcome{Class: runtime.GuestError, Detail: "timeout"}, "guest-error: timeout"),
		charged(runtime.Outcome{Class: runtime.GuestError, Detail: "connection"}, "guest-error: connection"),
		charged(runtime.Outcome{Class: runtime.GuestError, Detail: "permission-denied"}, "guest-error: permission-denied"),
		charged(runtime.Outcome{Class: runtime.GuestError, Detail: "other"}, "guest-error: other"),
		charged(runtime.Outcome{Class: runtime.Trap, Detail: "unreachable"}, "guest-trap: unreachable"),
		charged(runtime.Outcome{Class: runtime.OutOfFuel}, "out-of-fuel"),
		charged(runtime.Outcome{Class: runtime.Timeout}, "timeout"),
		charged(runtime.Outcome{Class: runtime.OutOfMemory}, "out-of-memory"),
		charged(runtime.Outcome{Class: runtime.StackOverflow}, "stack-overflow"),
		charged(runtime.Outcome{Class: runtime.Exit, Detail: "3"}, "exit 3"),
		charged(runtime.Outcome{Class: runtime.BadABI}, "bad-abi"),
		charged(runtime.Outcome{Class: runtime.HostCallLimit}, "host-call-limit"),
		charged(runtime.Outcome{Class: runtime.HandleLimit}, "handle-limit"),
		charged(runtime.Outcome{Class: runtime.OutputLimit}, "output-limit"),
		charged(runtime.Outcome{Class: runtime.HostPanic}, "host-panic"),
		free(runtime.Outcome{Class: runtime.Interrupted}, "interrupted", goOn),
		free(runtime.Outcome{Class: runtime.ModuleFault}, "module-fault", pause),
	}
}

func testPolicy() policy {
	return policy{maxAttempts: 3, retry: Retry{Base: 200 * time.Millisecond, Cap: 5 * time.Minute}}
}

func TestDecide(t *testing.T) {
	t.Run("EveryOutcomeAtEveryAttempt", func(t *testing.T) {
		classes := map[runtime.Class]bool{}
		for _, row := range outcomes() {
			classes[row.outcome.Class] = true
			for attempt := 1; attempt <= 4; attempt++ {
				got := decide(finding{end: atGuest, outcome: row.outcome, badABI: 1}, attempt, testPolicy(), 0)
				want := decision{verdict: row.early, reason: row.reason, then: row.then}
				if attempt >= 3 {
					want.verdict = row.last
				}
				if want.verdict == substrate.Retry {
					want.delay = 200 * time.Millisecond << (attempt - 1)
				}
				require.Equal(t, want, got, "%v at attempt %d", row.outcome, attempt)
			}
		}
		for c := runtime.OK; c <= runtime.ModuleFault; c++ {
			require.True(t, classes[c], "class %v is not in the table", c)
		}
	})
	t.Run("OneAttemptIsTheLast", func(t *testing.T) {
		p := testPolicy()
		p.maxAttempts = 1
		got := decide(finding{end: atGuest, outcome: runtime.Outcome{Class: runtime.Trap, Detail: "unreachable"}}, 1, p, 0)
		require.Equal(t, decision{verdict: substrate.Bury, reason: "guest-trap: unreachable"}, got)
	})
	t.Run("NonRetryableErrorsBuryAtOnceAndOnlyThose", func(t *testing.T) {
		p := testPolicy()
		p.nonRetryable = []string{"permission-denied"}
		for detail, want := range map[string]substrate.Verdict{"permission-denied": substrate.Bury, "other": substrate.Retry} {
			o := runtime.Outcome{Class: runtime.GuestError, Detail: detail}
			require.Equal(t, want, decide(finding{end: atGuest, outcome: o}, 1, p, 0).verdict, detail)
		}
	})
	t.Run("TheThirdMessageWithBadABIIsTheModulesFault", func(t *testing.T) {
		o := runtime.Outcome{Class: runtime.BadABI}
		require.Equal(t, substrate.Retry, decide(finding{end: atGuest, outcome: o, badABI: 2}, 1, testPolicy(), 0).verdict)
		got := decide(finding{end: atGuest, outcome: o, badABI: 3}, 3, testPolicy(), 0)
		require.Equal(t, decision{verdict: substrate.Release, reason: "bad-abi", then: pause}, got)
	})
	t.Run("EveryRefusalOfAContext", func(t *testing.T) {
		for class, reason := range map[signedctx.Class]string{
			signedctx.ClassMissing:   "context-missing",
			signedctx.ClassMalformed: "decode-failed",
			signedctx.ClassSignature: "context-forged",
			signedctx.ClassExpired:   "context-expired",
			signedctx.ClassMismatch:  "context-mismatch",
		} {
			got := decide(finding{end: atContext, refusal: class}, 1, testPolicy(), 0)
			require.Equal(t, decision{verdict: substrate.Bury, reason: reason, unrun: true}, got)
		}
		got := decide(finding{end: atContext, refusal: signedctx.ClassUnknownKey}, 3, testPolicy(), 0)
		require.Equal(t, decision{verdict: substrate.Release, reason: "context-unknown-key", then: pause}, got)
	})
	t.Run("WhatIsNotTheMessagesFaultIsNeverCharged", func(t *testing.T) {
		for end, then := range map[endpoint]consequence{notStarted: goOn, atSeal: pause} {
			got := decide(finding{end: end}, 99, testPolicy(), 0)
			require.Equal(t, substrate.Release, got.verdict)
			require.Equal(t, then, got.then)
		}
	})
	t.Run("WhatAGuestWasRefusedAndMayBeTakenLaterIsNotCharged", func(t *testing.T) {
		refused := &refusedOutbox{why: messaging.DepthExceeded, before: 1}
		want := decision{verdict: substrate.Release, delay: 100 * time.Millisecond, reason: "outbox-refused: depth-exceeded", then: hold}
		for class, free := range map[runtime.Class]bool{
			runtime.GuestError: true, runtime.Trap: true, runtime.Exit: true, runtime.OutOfFuel: false, runtime.Timeout: false, runtime.BadABI: false,
		} {
			got := decide(finding{end: atGuest, outcome: runtime.Outcome{Class: class}, refused: refused}, 3, testPolicy(), 0)
			require.Equal(t, free, got == want, "%v: %v", class, got)
		}
		got := decide(finding{end: atGuest, outcome: runtime.Outcome{Class: runtime.OK}, refused: refused}, 3, testPolicy(), 0)
		require.Equal(t, decision{verdict: substrate.Ack}, got, "a guest that can do without")
	})
	t.Run("AQueueThatFailsBeforeTheGuestRunsIsNotTheMessagesFault", func(t *testing.T) {
		want := decision{verdict: substrate.Release, delay: 200 * time.Millisecond, reason: "storage-error", then: hold}
		require.Equal(t, want, decide(finding{end: atStorage, before: 2}, 99, testPolicy(), 0))
	})
	t.Run("AStaleFenceIsAcknowledgedWithItsReason", func(t *testing.T) {
		require.Equal(t, decision{verdict: substrate.Ack, reason: "stale-fence"}, decide(finding{end: atFence}, 99, testPolicy(), 0))
	})
	t.Run("ARefusedOutboxWaitsAsLongAsTheQueueSays", func(t *testing.T) {
		f := finding{end: atCommit, refused: &refusedOutbox{why: messaging.RateExceeded, after: 7 * time.Second}}
		got := decide(f, 3, testPolicy(), 0)
		want := decision{verdict: substrate.Release, delay: 7 * time.Second, reason: "outbox-refused: rate-exceeded", then: hold}
		require.Equal(t, want, got)
	})
	t.Run("ARefusedOutboxBacksOffIfTheQueueDoesNotSay", func(t *testing.T) {
		for before, delay := range []time.Duration{50, 100, 200, 400, 800, 1000, 1000} {
			f := finding{end: atCommit, refused: &refusedOutbox{why: messaging.StorageFull, before: before}}
			require.Equal(t, delay*time.Millisecond, decide(f, 1, testPolicy(), 0).delay)
		}
	})
	t.Run("AnOutboxThatNeverFitsIsCharged", func(t *testing.T) {
		f := finding{end: atCommit, refused: &refusedOutbox{why: messaging.QuotaExceeded, forever: true}}
		require.Equal(t, substrate.Retry, decide(f, 1, testPolicy(), 0).verdict)
		require.Equal(t, decision{verdict: substrate.Bury, reason: "outbox-refused: quota-exceeded"}, decide(f, 3, testPolicy(), 0))
	})
}

func TestRetryDelay(t *testing.T) {
	t.Run("DoublesUpToTheCap", func(t *testing.T) {
		r := Retry{Base: 200 * time.Millisecond, Cap: 5 * time.Minute}
		require.Equal(t, 200*time.Millisecond, retryDelay(r, 1, 0))
		require.Equal(t, 400*time.Millisecond, retryDelay(r, 2, 0))
		require.Equal(t, 204800*time.Millisecond, retryDelay(r, 11, 0))
		require.Equal(t, 5*time.Minute, retryDelay(r, 12, 0))
		require.Equal(t, 5*time.Minute, retryDelay(r, 1_000_000, 0))
	})
	t.Run("DoublesAtMostSixteenTimes", func(t *testing.T) {
		r := Retry{Base: time.Millisecond, Cap: 365 * 24 * time.Hour}
		require.Equal(t, time.Millisecond<<limits.RetryDoublings, retryDelay(r, 17, 0))
		require.Equal(t, time.Millisecond<<limits.RetryDoublings, retryDelay(r, 18, 0))
	})
	t.Run("JitterTakesUpToAFifthAway", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			base := rapid.Int64Range(1, int64(time.Hour)).Draw(t, "base")
			r := Retry{Base: time.Duration(base), Cap: time.Duration(rapid.Int64Range(base, int64(24*time.Hour)).Draw(t, "cap"))}
			attempt := rapid.IntRange(1, 100).Draw(t, "attempt")
			chance := rapid.Float64Range(0, 0.999999).Draw(t, "chance")
			full, got := retryDelay(r, attempt, 0), retryDelay(r, attempt, chance)
			if got > full || got < full-full/5-1 || full > r.Cap || full < r.Base {
				t.Fatalf("base %s cap %s: %s of %s", r.Base, r.Cap, got, full)
			}
		})
	})
}
