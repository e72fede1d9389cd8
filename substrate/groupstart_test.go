package substrate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGroupStart(t *testing.T) {
	inALog(t, "IsTheEarliestTheLatestAPositionOrATime", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroups(t, l, "first")
		publish(t, l, "other", "takes a position")
		publish(t, l, testTopic, "a", "b") // 2 and 3
		time.Sleep(time.Minute)
		noon := time.Now()
		publishWith(t, l, "delayed", MessageOptions{Delay: 2 * time.Second}) // 5
		publish(t, l, testTopic, "c")                                        // 4
		time.Sleep(3 * time.Second)
		ends := time.Now()
		publish(t, l, testTopic, "d") // 6
		for l := range eachly(t, dir, l) {
			for name, c := range map[string]struct {
				start Start
				want  string
			}{
				"earliest":   {Start{}, "a b c delayed d"},
				"latest":     {Start{Kind: StartLatest}, ""},
				"position-0": {Start{Kind: StartPosition}, "a b c delayed d"},
				"position-3": {Start{Kind: StartPosition, Position: 3}, "b c delayed d"},
				"position-7": {Start{Kind: StartPosition, Position: 7}, ""},
				"noon":       {Start{Kind: StartTime, Time: noon}, "c delayed d"},
				"visible":    {Start{Kind: StartTime, Time: noon.Add(time.Second)}, "delayed d"},
				"ends":       {Start{Kind: StartTime, Time: ends}, "d"},
				"later":      {Start{Kind: StartTime, Time: ends.Add(time.Millisecond)}, ""},
				"1970":       {Start{Kind: StartTime, Time: time.Unix(0, 0)}, "a b c delayed d"},
			} {
				makeGroup(t, l, name, GroupOptions{Start: c.start})
				require.Equal(t, int64(len(strings.Fields(c.want))), groupNamed(t, l, name).Lag, name)
				require.Equal(t, c.want, strings.Join(payloads(claimFrom(t, l, name, 100)), " "), name)
			}
			publish(t, l, testTopic, "e")
			require.Equal(t, []string{"e"}, payloads(claimFrom(t, l, "latest", 100)))
			require.Equal(t, []string{"e"}, payloads(claimFrom(t, l, "position-7", 100)))
		}
	})

	inALog(t, "CountsAtCreationOnlyAndADifferentLaterOneIsReported", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		publish(t, l, testTopic, "a")
		makeGroup(t, l, "g", GroupOptions{Start: Start{Kind: StartLatest}})
		for l := range eachly(t, dir, l) {
			g, made, err := l.CreateGroup(t.Context(), testTenant, testTopic, "g", GroupOptions{Ordering: OrderKey})
			require.NoError(t, err)
			require.False(t, made)
			require.Equal(t, Start{Kind: StartLatest}, g.Start)
			require.Equal(t, OrderNone, g.Ordering)
			require.Empty(t, claimFrom(t, l, "g", 1))
		}
	})

	inALog(t, "IsKnownAfterARestartOfEachKind", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		publish(t, l, testTopic, "a")
		starts := map[string]Start{
			"earliest": {}, "latest": {Kind: StartLatest}, "position 1": {Kind: StartPosition, Position: 1},
			"2000-01-01T00:00:00Z": {Kind: StartTime, Time: time.UnixMilli(946684800000)},
		}
		for text, s := range starts {
			require.Equal(t, text, s.String())
			makeGroup(t, l, fmt.Sprint("kind-", s.Kind), GroupOptions{Start: s, Ordering: OrderKey})
		}
		for l := range eachly(t, dir, l) {
			for _, s := range starts {
				g := groupNamed(t, l, fmt.Sprint("kind-", s.Kind))
				require.Equal(t, s, g.Start)
				require.Equal(t, OrderKey, g.Ordering)
			}
		}
	})

	inALog(t, "OfManyAtOnceIsMadeByOne", func(in scene) {
		t, l := in.t, in.l
		made := make(chan bool, 8)
		for range cap(made) {
			go func() {
				_, is, err := l.CreateGroup(t.Context(), testTenant, testTopic, "g", GroupOptions{})
				if err != nil {
					t.Error(err)
				}
				made <- is
			}()
		}
		n := 0
		for range cap(made) {
			if <-made {
				n++
			}
		}
		require.Equal(t, 1, n)
	})

	inALog(t, "ThatCannotBeIsRefused", func(in scene) {
		t, l := in.t, in.l
		publish(t, l, testTopic, "a")
		for _, c := range []struct {
			o    GroupOptions
			want string
		}{
			{GroupOptions{Start: Start{Kind: StartTime + 1}}, "want earliest, latest, a position or a time"},
			{GroupOptions{Start: Start{Kind: StartPosition, Position: 3}}, "position 3 is not given yet: the next is 2"},
			{GroupOptions{Ordering: OrderTopic + 1}, "want none, by key or by topic"},
		} {
			_, _, err := l.CreateGroup(t.Context(), testTenant, testTopic, "g", c.o)
			require.ErrorContains(t, err, c.want)
		}
		makeGroups(t, l, "h")
		require.ErrorContains(t, l.ResetGroup(t.Context(), testTenant, testTopic, "h", Start{Kind: StartPosition, Position: 3}), "not given yet")
		require.ErrorContains(t, l.ResetGroup(t.Context(), testTenant, testTopic, "h", Start{Kind: StartTime + 1}), "want earliest")
		require.Equal(t, int64(1), groupNamed(t, l, "h").Lag)
	})
}
