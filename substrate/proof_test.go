package substrate

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// proofTime returns how long a proof may take: PROOF_SECONDS, or some seconds.
func proofTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("PROOF_SECONDS")
	if text == "" {
		return 3 * time.Second
	}
	seconds, err := strconv.Atoi(text)
	require.NoError(t, err, "PROOF_SECONDS")
	return time.Duration(seconds) * time.Second
}

// proofSeed returns the seed of a proof: PROOF_SEED, or a new one.
func proofSeed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("PROOF_SEED")
	if text == "" {
		return rand.Uint64()
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, "PROOF_SEED")
	return seed
}

// figure prints what a proof counted, for whoever reads the output of go test -v.
func figure(name string, n int) { fmt.Printf("figure %s %d\n", name, n) }
