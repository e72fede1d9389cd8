package crashtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// Topics of the tenants.
const (
	workTopic   = "work"
	poisonTopic = "poison"
	poisonEvery = 8 // one message in so many
)

// atOnce is how many producers publish at once.
const atOnce = 12

// producers publish to all tenants, and keep what came of it.
type producers struct {
	tenants []string
	random  *rand.Rand

	mu         sync.Mutex
	round      int
	acked      map[string]string   // ids of the messages that were acknowledged, by payload
	ackedIDs   map[string]struct{} // the same ids
	unanswered map[string]struct{} // payloads that were sent without an answer: they may be in the log or not
}

func newProducers(tenants []string, random *rand.Rand) *producers {
	return &producers{
		tenants: tenants, random: random,
		acked: map[string]string{}, ackedIDs: map[string]struct{}{}, unanswered: map[string]struct{}{},
	}
}

// storm is one round of publishing to a host that will be killed.
type storm struct {
	*producers
	t        *testing.T
	client   *http.Client
	address  string
	round    int
	acks     atomic.Int64
	killed   atomic.Bool // set before the host is killed
	inFlight atomic.Int64
	wait     sync.WaitGroup
}

// storm starts to publish, with several producers that each send one message after the other, to tenants that they choose
// at random, until the host doesn't answer.
func (p *producers) storm(t *testing.T, address string) *storm {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.round++
	s := &storm{producers: p, t: t, address: address, round: p.round}
	s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}}
	for producer := range atOnce {
		random := rand.New(rand.NewPCG(p.random.Uint64(), 0))
		s.wait.Go(func() {
			n := 1
			for s.publish(p.tenants[random.IntN(len(p.tenants))], producer, n) {
				n++
			}
		})
	}
	return s
}

// end waits until all producers have noticed the host's death, and returns how many of their publishes were in flight then.
func (s *storm) end() int {
	s.wait.Wait()
	s.client.CloseIdleConnections()
	return int(s.inFlight.Load())
}

// publish publishes a producer's nth message of this round to a tenant and reports whether the host took it.
func (s *storm) publish(tenant string, producer, n int) bool {
	payload, topic := fmt.Sprintf("%s/%d/%d/%d", tenant, s.round, producer, n), workTopic
	if n%poisonEvery == 0 {
		payload, topic = string(poisonMark)+payload, poisonTopic
	}
	var sentAlive atomic.Bool // the request was sent while the host lived
	ctx := httptrace.WithClientTrace(s.t.Context(), &httptrace.ClientTrace{
		WroteRequest: func(info httptrace.WroteRequestInfo) { sentAlive.Store(info.Err == nil && !s.killed.Load()) },
	})
	id, err := post(ctx, s.client, s.address, tenant, topic, payload)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.acks.Add(1)
		s.acked[payload], s.ackedIDs[id] = id, struct{}{}
		return true
	}
	s.unanswered[payload] = struct{}{}
	if !s.killed.Load() {
		s.t.Errorf("a publish failed while the host was alive: %v", err)
	} else if sentAlive.Load() {
		s.inFlight.Add(1)
	}
	return false
}

// post publishes one message and returns its id.
func post(ctx context.Context, c *http.Client, address, tenant, topic, payload string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/topics/"+topic+"/messages", strings.NewReader(payload))
	if err != nil {
		return "", err
	}
	r.Header.Set(wire.TenantHeader, tenant)
	resp, err := c.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("%s: %s", resp.Status, body)
	}
	var got wire.Published
	if err := json.Unmarshal(body, &got); err != nil {
		return "", err
	}
	return got.Receipts[0].ID, nil
}
