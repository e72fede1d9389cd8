package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCompileModuleRecovers(t *testing.T) {
	_, err := compileModule(t.Context(), nil, nil) // without a runtime it panics
	require.ErrorContains(t, err, "panic")
}
