package substrate

import (
	"testing"
	"time"
)

// proofTime returns how long a proof may take.
func proofTime(t *testing.T) time.Duration {
	t.Helper()
	return time.Until(proofUntil(t))
}
