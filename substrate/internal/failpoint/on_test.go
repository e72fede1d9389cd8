//go:build failpoint

package failpoint

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHit(t *testing.T) {
	t.Cleanup(Reset)
	fault := errors.New("a fault")
	require.NoError(t, Hit("a"))
	fired := Arm("a", 2, func() error { return fault })
	require.NoError(t, Hit("b"), "another point")
	require.NoError(t, Hit("a"), "the first hit from now on")
	select {
	case <-fired:
		t.Fatal("it fired before its hit")
	default:
	}
	require.ErrorIs(t, Hit("a"), fault)
	<-fired
	require.NoError(t, Hit("a"), "once")
	require.Equal(t, 4, Hits("a"))
	Arm("a", 1, func() error { return fault })
	require.ErrorIs(t, Hit("a"), fault)
	Reset()
	require.NoError(t, Hit("a"))
	require.Equal(t, 1, Hits("a"))
}
