package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

func TestInstancesOf(t *testing.T) {
	t.Run("AreWhatTheManifestSays", func(t *testing.T) {
		plan, err := config.ParseManifest("m.yaml", []byte(`consumers:
  - {name: a, topic: a, module: a.wasm, instance: reuse, reuse: {messages: 2, age: 3s}, warm_up: heat, wit: draft-b}
`), config.DefaultHost())
		require.NoError(t, err)
		require.Equal(t, runtime.Instances{
			Reuse: true, MaxMessages: 2, MaxAge: 3 * time.Second, WarmUp: "heat", Draft: messaging.DraftB,
		}, instancesOf(&plan.Consumers[0]))
	})
}
