package crashtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

const (
	soakAtOnce    = 4                    // producers
	soakPause     = 3 * time.Millisecond // of a producer after each message, at most
	soakMarkEvery = 6                    // one message in so many is marked
)

// soakProducers publish to all tenants, and keep what came of it.
type soakProducers struct {
	tenants []string

	mu         sync.Mutex
	round      int
	acked      map[string]struct{} // payloads that a host has taken
	unanswered map[string]struct{} // payloads that may be in the log or not
}

func newSoakProducers(tenants []string) *soakProducers {
	return &soakProducers{tenants: tenants, acked: map[string]struct{}{}, unanswered: map[string]struct{}{}}
}

// storm publishes until ctx is done or the host was killed. The function that it returns waits for that.
func (p *soakProducers) storm(ctx context.Context, t *testing.T, address string, killed *atomic.Bool, random *rand.Rand) (wait func()) {
	t.Helper()
	p.round++
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: soakAtOnce}}
	var all sync.WaitGroup
	for producer := range soakAtOnce {
		random, round := rand.New(rand.NewPCG(random.Uint64(), 0)), p.round
		all.Go(func() {
			for n := 1; ctx.Err() == nil; n++ {
				tenant := p.tenants[random.IntN(len(p.tenants))]
				payload := fmt.Sprintf("%s/%d/%d/%d", tenant, round, producer, n)
				if n%soakMarkEvery == 0 {
					payload = string(poisonMark) + payload
				}
				if err := p.publish(t.Context(), c, address, tenant, payload); err != nil {
					if !killed.Load() {
						t.Errorf("a publish failed while the host was alive: %v", err)
					}
					return
				}
				time.Sleep(between(random, 0, soakPause))
			}
		})
	}
	return func() {
		all.Wait()
		c.CloseIdleConnections()
	}
}

func (p *soakProducers) publish(ctx context.Context, c *http.Client, address, tenant, payload string) error {
	_, err := post(ctx, c, address, tenant, soakIn, payload)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.unanswered[payload] = struct{}{}
		return err
	}
	p.acked[payload] = struct{}{}
	return nil
}

// compare counts what is wrong with the effects, by payload: messages that were taken and had none, effects beyond the first, and
// effects of what nobody sent.
func (p *soakProducers) compare(effects map[string]int) (lost, duplicated, foreign int) {
	for payload := range p.acked {
		if effects[payload] == 0 {
			lost++
		}
	}
	for payload, n := range effects {
		duplicated += n - 1
		_, acked := p.acked[payload]
		_, unanswered := p.unanswered[payload]
		if !acked && !unanswered {
			foreign++
		}
	}
	return lost, duplicated, foreign
}

// The comparison must notice what a soak never sees as long as all is well.
func TestSoakCompares(t *testing.T) {
	p := newSoakProducers(nil)
	p.acked, p.unanswered = map[string]struct{}{"a": {}, "b": {}}, map[string]struct{}{"c": {}, "d": {}}
	for name, c := range map[string]struct {
		effects map[string]int
		want    [3]int
	}{
		"AllIsWell":                   {map[string]int{"a": 1, "b": 1, "c": 1}, [3]int{}},
		"OneIsLost":                   {map[string]int{"a": 1}, [3]int{1, 0, 0}},
		"OneHadThreeEffects":          {map[string]int{"a": 3, "b": 1}, [3]int{0, 2, 0}},
		"AnUnansweredOneHadTwo":       {map[string]int{"a": 1, "b": 1, "d": 2}, [3]int{0, 1, 0}},
		"OneIsFromNobody":             {map[string]int{"a": 1, "b": 1, "x": 1}, [3]int{0, 0, 1}},
		"NothingCameOut":              {nil, [3]int{2, 0, 0}},
		"OneForAnotherIsLostAndMade":  {map[string]int{"a": 1, "x": 1}, [3]int{1, 0, 1}},
		"OneIsLostAndAnotherIsDouble": {map[string]int{"a": 2}, [3]int{1, 1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			lost, duplicated, foreign := p.compare(c.effects)
			require.Equal(t, c.want, [3]int{lost, duplicated, foreign})
		})
	}
}

// unlessNotFound returns err unless it says that there is no such topic.
func unlessNotFound(err error) error {
	var p *wire.Problem
	if errors.As(err, &p) && p.Status == http.StatusNotFound {
		return nil
	}
	return err
}
