package app

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/substrate"
)

// lanes makes the lanes of a manifest whose consumers are given as flow mappings, and returns what was logged.
func lanes(t *testing.T, log *substrate.Log, consumers ...string) ([]observer.LoggedEntry, error) {
	t.Helper()
	text := "consumers:\n"
	for _, c := range consumers {
		text += "  - {module: a.wasm, topic: a, " + c + "}\n"
	}
	plan, err := config.ParseManifest("m.yaml", []byte(text), config.DefaultHost())
	require.NoError(t, err)
	core, seen := observer.New(zapcore.InfoLevel)
	err = makeLanes(t.Context(), zap.New(core), log, plan.Consumers)
	return seen.All(), err
}

func publishTo(t *testing.T, log *substrate.Log, topic string) {
	t.Helper()
	_, err := log.Publish(t.Context(), substrate.Message{ID: log.MintID(), Tenant: "default", Topic: topic, Payload: []byte("x")})
	require.NoError(t, err)
}

func TestMakeLanes(t *testing.T) {
	groups := func(t *testing.T, log *substrate.Log) []substrate.Group {
		t.Helper()
		got, err := log.Groups("default", "a")
		require.NoError(t, err)
		return got
	}
	t.Run("AGroupIsMadeOnceAndAnotherStartHasNoEffect", func(t *testing.T) {
		log := openTestLog(t)
		publishTo(t, log, "a")
		logged, err := lanes(t, log, "name: c, group: g, start: latest")
		require.NoError(t, err)
		require.Len(t, logged, 1)
		require.Equal(t, "latest", logged[0].ContextMap()["start"])
		publishTo(t, log, "a")
		require.EqualValues(t, 1, groups(t, log)[0].Lag)
		for start, reports := range map[string]int{
			"start: latest": 0, "max_attempts: 2": 0, "start: earliest": 1, "start: {position: 1}": 1, "start: {time: 2020-01-01T00:00:00Z}": 1,
		} {
			logged, err = lanes(t, log, "name: c, group: g, "+start)
			require.NoError(t, err)
			require.Len(t, logged, reports, start)
			if reports == 1 {
				require.Equal(t, zapcore.WarnLevel, logged[0].Level)
				require.Equal(t, "latest", logged[0].ContextMap()["made_with"])
			}
		}
		require.EqualValues(t, 1, groups(t, log)[0].Lag)
	})
	t.Run("ATimeToTheNanosecondIsTheSameLater", func(t *testing.T) {
		log := openTestLog(t)
		for range 2 {
			logged, err := lanes(t, log, "name: c, group: g, start: {time: 2020-01-01T00:00:00.123456789Z}")
			require.NoError(t, err)
			for _, line := range logged {
				require.Equal(t, zapcore.InfoLevel, line.Level)
			}
		}
	})
	t.Run("AConsumerBesideTheFirstGroupMissesNothing", func(t *testing.T) {
		log := openTestLog(t)
		_, err := lanes(t, log, "name: c, group: g", "name: d")
		require.NoError(t, err)
		publishTo(t, log, "a")
		s, _ := log.Stats("default", "a")
		require.EqualValues(t, 1, s.Ready)
		require.EqualValues(t, 1, groups(t, log)[0].Lag)
	})
	t.Run("GroupsAloneLeaveNothingToTheDefaultLane", func(t *testing.T) {
		log := openTestLog(t)
		_, err := lanes(t, log, "name: c, group: g")
		require.NoError(t, err)
		publishTo(t, log, "a")
		s, _ := log.Stats("default", "a")
		require.Zero(t, s.Ready)
	})
	t.Run("OrderingIsThatOfTheManifest", func(t *testing.T) {
		log := openTestLog(t)
		for _, o := range []substrate.Ordering{substrate.OrderKey, substrate.OrderTopic, substrate.OrderNone} {
			_, err := lanes(t, log, "name: c, group: g, ordering: "+o.String(), "name: d, ordering: "+o.String())
			require.NoError(t, err)
			s, _ := log.Stats("default", "a")
			require.Equal(t, o, s.Ordering)
			require.Equal(t, o, groups(t, log)[0].Ordering)
		}
	})
	t.Run("ADefaultLaneThatIsOffIsSaidToBe", func(t *testing.T) {
		log := openTestLog(t)
		_, err := log.SetLaneMode(t.Context(), "default", "a", substrate.LaneOff)
		require.NoError(t, err)
		_, err = lanes(t, log, "name: c")
		require.ErrorContains(t, err, "consumer c: the topic's default lane is off")
		require.ErrorContains(t, err, "give the consumer a group")
	})
}
