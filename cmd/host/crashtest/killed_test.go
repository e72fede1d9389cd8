package crashtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/substrate"
)

const (
	kills    = 24
	tenants  = 16
	maxAcked = 240 // publishes before a kill
	maxStorm = 3 * time.Second

	drainTimeout = 2 * time.Minute
	poisonReason = "guest-trap: unreachable"
)

// Manifests, which differ in the concurrency. What a consumer was doing is known of one that takes a message at a time;
// many at a time are drained faster.
const (
	oneByOne = "one-by-one.yaml"
	many     = "many.yaml"
)

// seedVariable is the environment variable that repeats a run's random choices.
const seedVariable = "LONGSHORE_CRASHTEST_SEED"

// newRandom returns a source of random choices. The seed is printed.
func newRandom(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv(seedVariable); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err, seedVariable)
	}
	t.Logf("%s=%d repeats the choices of this run", seedVariable, seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// between returns a random duration.
func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)))
}

func TestKilledAtAnyMoment(t *testing.T) {
	c := newCampaign(t)
	allInFlight := 0
	for range kills {
		if c.killOnce(t) {
			allInFlight++
		}
	}
	c.drain(t)
	lost := c.checkWork(t)
	lost += c.checkPoison(t)
	t.Logf("figure kills %d", kills)
	t.Logf("figure kills_all_in_flight %d", allInFlight)
	t.Logf("figure acked_lost %d", lost)
	t.Logf("figure acked_redelivered %d", len(c.record.comeback))
	require.Zero(t, lost)
	require.Empty(t, c.record.comeback, "messages that were done came back")
	require.Empty(t, c.record.attempts, "attempts that were counted too low or twice")
	require.GreaterOrEqual(t, 2*allInFlight, kills, "too few kills came with a publish, a claim and a settle in flight")
	c.checkStaysDone(t)
}

// campaign is a folder whose hosts are killed, and what is known of it.
type campaign struct {
	folder    folder
	random    *rand.Rand
	producers *producers
	record    *record
	topics    []substrate.TopicName // that have a consumer
	claims    map[string]int        // that the log had recorded at the last kill, by message
	host      *host                 // the last one, once it may live
}

func newCampaign(t *testing.T) *campaign {
	t.Helper()
	c := &campaign{record: newRecord()}
	var names, topics []string
	for i := range tenants {
		tenant := fmt.Sprintf("t%d", i)
		names = append(names, tenant)
		for _, topic := range []string{workTopic, poisonTopic} {
			topics = append(topics, fmt.Sprintf("  - {tenant: %s, topic: %s, anonymous: true}", tenant, topic))
			c.topics = append(c.topics, substrate.TopicName{Tenant: tenant, Topic: topic})
		}
	}
	c.folder = newFolder(t, append(topics, "log: {level: debug}")...) // of which pauses are
	c.random = newRandom(t)
	c.producers = newProducers(names, c.random)
	c.folder.write(t, "guest.wasm", worker().assemble())
	c.folder.write(t, oneByOne, manifest(c.topics, 1))
	c.folder.write(t, many, manifest(c.topics, 64))
	return c
}

// manifest returns a manifest with a consumer for each topic. Work may be interrupted by many kills before it is done;
// poison is to be given up soon.
func manifest(topics []substrate.TopicName, concurrency int) []byte {
	lines := []string{"consumers:"}
	for _, n := range topics {
		attempts := 100
		if n.Topic == poisonTopic {
			attempts = 4
		}
		lines = append(lines, fmt.Sprintf("  - {name: %s-%s, tenant: %s, topic: %s, module: guest.wasm, publish: [%s], concurrency: %d, "+
			"max_attempts: %d, retry: {base: 1ms, cap: 1ms}, limits: {call_time: 20s}}",
			n.Tenant, n.Topic, n.Tenant, n.Topic, sinkTopic, concurrency, attempts))
	}
	return []byte(strings.Join(lines, "\n"))
}

// killOnce runs a host, publishes to it, kills it, and checks what it has left. It reports whether a publish, a claim and
// a settle were in flight.
func (c *campaign) killOnce(t *testing.T) bool {
	t.Helper()
	h := c.folder.startReady(t, oneByOne)
	storm := c.producers.storm(t, h.address)
	c.waitSomeTime(storm)
	storm.killed.Store(true)
	h.kill(t)
	publishes := storm.end()
	c.record.read(t, c.folder)
	logs := readLog(t, c.folder, c.topics)
	claims, settles := c.record.claiming(logs, c.claims, c.producers.ackedIDs), c.record.settling()
	c.checkClaims(t, logs)
	t.Logf("in flight at the kill: %d publishes, %d claims, %d settles; handled: %d", publishes, claims, settles, c.record.handled())
	return publishes > 0 && claims > 0 && settles > 0
}

// waitSomeTime waits for a random number of acknowledgements, so that hosts get as far on a slow machine as on a fast one,
// and then a little, so that a kill doesn't always follow an acknowledgement.
func (c *campaign) waitSomeTime(s *storm) {
	began, enough := time.Now(), 1+c.random.Int64N(maxAcked)
	for s.acks.Load() < enough && time.Since(began) < maxStorm {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(between(c.random, 0, 1+time.Since(began)/4))
}

// checkClaims checks what the log of a killed host has recorded: no fewer attempts than handlings began, and nothing to do
// for messages whose acknowledgement was reported.
func (c *campaign) checkClaims(t *testing.T, logs map[substrate.TopicName]topicInLog) {
	t.Helper()
	c.claims = map[string]int{}
	for _, l := range logs {
		c.requireNotDone(t, l.next)
		for _, claim := range l.claims {
			c.claims[claim.message] = claim.attempt
			require.GreaterOrEqual(t, claim.attempt, c.record.charged(claim.message), "message %s", claim.message)
			c.requireNotDone(t, claim.message)
		}
	}
}

// requireNotDone requires that no acknowledgement of a message was reported.
func (c *campaign) requireNotDone(t *testing.T, message string) {
	t.Helper()
	_, done := c.record.acked[message]
	require.False(t, done, "message %s was acknowledged and is not settled", message)
}

// drain runs a host until nothing is left to do. The host stays.
func (c *campaign) drain(t *testing.T) {
	t.Helper()
	c.host = c.folder.startReady(t, many)
	require.Eventually(t, func() bool { return c.backlog(t) == 0 }, drainTimeout, 20*time.Millisecond, "the backlog is not drained")
}

// backlog returns how many messages are not settled.
func (c *campaign) backlog(t *testing.T) int64 {
	t.Helper()
	left := int64(0)
	for _, s := range c.stats(t) {
		if s.Topic != sinkTopic {
			left += s.Ready + s.Delayed + s.Leased
		}
	}
	return left
}

func (c *campaign) stats(t *testing.T) []wire.TopicStats {
	t.Helper()
	stats, err := c.host.admin.Topics(t.Context(), "")
	require.NoError(t, err)
	return stats
}

// checkWork compares what the producers know with what is in the sinks, both ways, and returns how many acknowledged
// messages are missing.
func (c *campaign) checkWork(t *testing.T) (lost int) {
	t.Helper()
	handled := map[string]string{} // ids of the messages whose handling published a payload
	for _, tenant := range c.producers.tenants {
		for _, m := range stored(t, c.host.admin, tenant, sinkTopic) {
			payload := string(m.DataBase64)
			_, twice := handled[payload]
			require.False(t, twice, "%s is in the sink twice", payload)
			handled[payload] = m.Parent
			require.True(t, strings.HasPrefix(payload, tenant+"/"), "%s is in the sink of %s", payload, tenant)
		}
		dead, err := c.host.admin.DeadLetters(t.Context(), tenant, workTopic, wire.Filter{})
		require.NoError(t, err)
		require.Empty(t, dead)
	}
	for payload, id := range c.producers.acked {
		if payload[0] == poisonMark {
			continue
		}
		if parent, ok := handled[payload]; !ok {
			lost++
		} else {
			require.Equal(t, id, parent, payload)
		}
	}
	for payload := range handled {
		c.requireSent(t, payload)
	}
	t.Logf("%d messages acknowledged, %d sent without an answer, %d in the sinks",
		len(c.producers.acked), len(c.producers.unanswered), len(handled))
	return lost
}

// checkPoison checks that every message whose handling traps is a dead letter, once, for that reason. That it has
// published nothing checkWork has seen. It returns how many acknowledged ones are missing.
func (c *campaign) checkPoison(t *testing.T) (lost int) {
	t.Helper()
	died := map[string]struct{}{}
	for _, tenant := range c.producers.tenants {
		dead, err := c.host.admin.DeadLetters(t.Context(), tenant, poisonTopic, wire.Filter{})
		require.NoError(t, err)
		for _, d := range dead {
			require.Equal(t, poisonReason, d.Reason)
			require.GreaterOrEqual(t, d.Attempts, c.record.begun[d.ID])
			full, err := c.host.admin.DeadLetter(t.Context(), tenant, poisonTopic, d.ID, "")
			require.NoError(t, err)
			payload := string(full.Message.DataBase64)
			_, twice := died[payload]
			require.False(t, twice, "%s is dead twice", payload)
			died[payload] = struct{}{}
			require.EqualValues(t, poisonMark, payload[0])
			c.requireSent(t, payload)
		}
	}
	for payload := range c.producers.acked {
		if _, ok := died[payload]; !ok && payload[0] == poisonMark {
			lost++
		}
	}
	require.NotEmpty(t, died)
	t.Logf("%d dead letters", len(died))
	return lost
}

// requireSent requires that a producer has sent the payload.
func (c *campaign) requireSent(t *testing.T, payload string) {
	t.Helper()
	_, acked := c.producers.acked[payload]
	_, unanswered := c.producers.unanswered[payload]
	require.True(t, acked || unanswered, "nobody has sent %s", payload)
}

// checkStaysDone kills the host that has nothing left to do, and checks that the next one finds it so.
func (c *campaign) checkStaysDone(t *testing.T) {
	t.Helper()
	before := c.stats(t)
	c.host.kill(t)
	c.record.read(t, c.folder)
	c.host = c.folder.startReady(t, many)
	require.Equal(t, before, c.stats(t))
	require.Zero(t, c.backlog(t))
	c.host.kill(t)
	c.record.read(t, c.folder)
	require.Zero(t, c.record.handled())
	require.Empty(t, c.record.comeback)
	require.Empty(t, c.record.attempts)
}

// stored returns all messages that are stored in a topic and not settled.
func stored(t *testing.T, admin *client.Admin, tenant, topic string) []wire.Message {
	t.Helper()
	var all []wire.Message
	after := uint64(0)
	for {
		page, err := admin.Peek(t.Context(), tenant, topic, after, 1000)
		require.NoError(t, err)
		if len(page) == 0 {
			return all
		}
		for _, p := range page {
			require.Greater(t, p.Position, after, "not in order")
			after = p.Position
			all = append(all, p.Message)
		}
	}
}
