package substrate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

const (
	historyClients  = 5
	historyMessages = 4
	historyCalls    = 14 // of a client, between two openings
)

// chronicle is a history of calls on a few messages, as it is made.
type chronicle struct {
	t     *testing.T
	log   *Log
	clock atomic.Int64

	mu     sync.Mutex
	ids    []string
	leases map[string][]Lease // given, of each message
	ops    []porcupine.Operation
}

// TestProofOfHistories lets several clients claim, extend, settle and redrive a few messages at once, under leases that
// run out, through reopenings, and asks whether what they were answered can have happened one after the other.
func TestProofOfHistories(t *testing.T) {
	seed := proofSeed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	histories, ops := 0, 0
	for start := time.Now(); time.Since(start) < proofTime(t); histories++ {
		one := rng.Uint64()
		ok := t.Run(fmt.Sprintf("Seed%d", one), func(t *testing.T) {
			history := makeHistory(t, one)
			ops += len(history)
			requireRight(t, history)
		})
		if !ok {
			return
		}
	}
	figure("histories", histories)
	figure("history_operations", ops)
}

// requireRight fails with the operations of the messages whose history can't be explained.
func requireRight(t *testing.T, history []porcupine.Operation) {
	t.Helper()
	model := register()
	for _, part := range model.Partition(history) {
		if porcupine.CheckOperations(model, part) {
			continue
		}
		slices.SortFunc(part, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		for _, op := range part {
			t.Logf("client %d, %d to %d: %s", op.ClientId, op.Call, op.Return, model.DescribeOperation(op.Input, op.Output))
		}
		t.Fatal("no order explains this history")
	}
}

func makeHistory(t *testing.T, seed uint64) (ops []porcupine.Operation) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		c := &chronicle{t: t, log: openLog(t, dir), leases: map[string][]Lease{}}
		for phase := range 2 {
			var clients sync.WaitGroup
			for i := range historyClients {
				rng := rand.New(rand.NewPCG(seed, uint64(phase*historyClients+i)))
				clients.Go(func() {
					for range historyCalls {
						c.call(i, rng)
					}
				})
			}
			clients.Wait()
			if phase == 0 {
				dir = c.reopen(dir, seed)
			}
		}
		ops = c.ops
	})
	return ops
}

// reopen crashes the log, or closes it, and opens it again: an operation on all messages.
func (c *chronicle) reopen(dir string, seed uint64) string {
	call, from := c.clock.Add(1), time.Now().UnixNano()
	if seed%2 == 0 {
		dir = crash(c.t, dir)
	} else {
		require.NoError(c.t, c.log.Close())
	}
	c.log = openLog(c.t, dir)
	for _, id := range c.ids {
		c.add(0, call, from, regInput{kind: "reopen", id: id}, regOutput{})
	}
	return dir
}

// add notes an operation that was called at call and returns now.
func (c *chronicle) add(client int, call, from int64, in regInput, out regOutput) {
	in.from, in.to = from, time.Now().UnixNano()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ops = append(c.ops, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: c.clock.Add(1)})
}

func (c *chronicle) call(client int, rng *rand.Rand) {
	c.mu.Lock()
	known := slices.Clone(c.ids)
	c.mu.Unlock()
	ms := func(n int) time.Duration { return time.Duration(rng.IntN(n)) * time.Millisecond }
	if len(known) < historyMessages && rng.IntN(3) == 0 || len(known) == 0 {
		c.publish(client)
		return
	}
	id := known[rng.IntN(len(known))]
	switch n := rng.IntN(20); {
	case n < 8:
		c.claim(client, 1+rng.IntN(2), time.Millisecond+ms(5))
	case n < 10:
		time.Sleep(ms(6))
	case n < 11:
		c.redrive(client, id)
	case n < 13:
		c.extend(client, c.lease(rng, id), time.Millisecond+ms(8))
	default:
		c.settle(client, c.lease(rng, id), id, Settlement{
			Verdict: []Verdict{Ack, Retry, Retry, Retry, Release, Release, Bury}[rng.IntN(7)],
			Delay:   ms(4), Reason: []string{"", fmt.Sprint(n)}[rng.IntN(2)],
		})
	}
}

// lease returns the newest lease of a message, or an old one, whoever has it.
func (c *chronicle) lease(rng *rand.Rand, id string) Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	leases := c.leases[id]
	switch {
	case len(leases) == 0:
		return Lease{Tenant: testTenant, Topic: testTopic, Position: 1, Token: 1 << 40}
	case rng.IntN(4) == 0:
		return leases[rng.IntN(len(leases))]
	default:
		return leases[len(leases)-1]
	}
}

func (c *chronicle) publish(client int) {
	m := c.log.newMessage(testTopic, "x")
	call, from := c.clock.Add(1), time.Now().UnixNano()
	c.mu.Lock()
	c.ids = append(c.ids, m.ID)
	c.mu.Unlock()
	_, err := c.log.Publish(c.t.Context(), m)
	require.NoError(c.t, err)
	c.add(client, call, from, regInput{kind: "publish", id: m.ID}, regOutput{result: "done"})
}

func (c *chronicle) claim(client, n int, lease time.Duration) {
	r := claimRequest(testTopic, n)
	r.Lease, r.MaxAttempts = lease, registerAttempts
	c.mu.Lock()
	known := slices.Clone(c.ids)
	c.mu.Unlock()
	call, from := c.clock.Add(1), time.Now().UnixNano()
	got, err := c.log.Claim(c.t.Context(), r)
	require.NoError(c.t, err)
	for _, d := range got.Deliveries {
		id := d.Message.ID
		c.mu.Lock()
		c.leases[id] = append(c.leases[id], d.Lease)
		c.mu.Unlock()
		c.add(client, call, from, regInput{kind: "claim", id: id}, regOutput{
			result: "took", token: d.Lease.Token, attempt: d.Attempt, reason: d.PreviousReason, until: d.Expires.UnixNano(),
		})
		known = slices.DeleteFunc(known, func(s string) bool { return s == id })
	}
	for _, d := range got.Buried {
		c.add(client, call, from, regInput{kind: "claim", id: d.ID}, regOutput{result: "buried"})
		known = slices.DeleteFunc(known, func(s string) bool { return s == d.ID })
	}
	if len(got.Deliveries) == n {
		return
	}
	for _, id := range known {
		c.add(client, call, from, regInput{kind: "claim", id: id}, regOutput{result: "missed"})
	}
}

// answered turns the error of a call that needs a lease into its output.
func (c *chronicle) answered(err error) regOutput {
	if errors.Is(err, ErrLeaseLost) {
		return regOutput{result: "refused"}
	}
	require.NoError(c.t, err)
	return regOutput{result: "done"}
}

func (c *chronicle) extend(client int, lease Lease, d time.Duration) {
	call, from := c.clock.Add(1), time.Now().UnixNano()
	until, err := c.log.Extend(c.t.Context(), lease, d)
	out := c.answered(err)
	out.until = until.UnixNano()
	c.add(client, call, from, regInput{kind: "extend", id: c.owner(lease), token: lease.Token}, out)
}

func (c *chronicle) settle(client int, lease Lease, id string, s Settlement) {
	s.Lease = lease
	call, from := c.clock.Add(1), time.Now().UnixNano()
	out := c.answered(c.log.Settle(c.t.Context(), []Settlement{s}, nil))
	c.add(client, call, from, regInput{
		kind: "settle", id: id, token: lease.Token, verdict: s.Verdict, reason: s.Reason, delay: int64(s.Delay),
	}, out)
}

// owner returns the message of a lease.
func (c *chronicle) owner(lease Lease) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, leases := range c.leases {
		if slices.Contains(leases, lease) {
			return id
		}
	}
	return "none"
}

func (c *chronicle) redrive(client int, id string) {
	call, from := c.clock.Add(1), time.Now().UnixNano()
	r, err := c.log.Redrive(c.t.Context(), testTenant, testTopic, Redrive{Filter: DeadLetterFilter{ID: id}})
	if !errors.Is(err, ErrNotFound) {
		require.NoError(c.t, err)
	}
	out := regOutput{result: "refused"}
	if r.Moved == 1 {
		out.result = "done"
	}
	c.add(client, call, from, regInput{kind: "redrive", id: id}, out)
}

func TestAHistoryIsRefusedInWhich(t *testing.T) {
	ms := int64(time.Millisecond)
	op := func(client int, at int64, in regInput, out regOutput) porcupine.Operation {
		in.id, in.from, in.to = "m", at*ms, at*ms
		return porcupine.Operation{ClientId: client, Input: in, Call: 2 * at, Output: out, Return: 2*at + 1}
	}
	took := func(token uint64, attempt int, until int64) regOutput {
		return regOutput{result: "took", token: token, attempt: attempt, until: until * ms}
	}
	publish, claim := regInput{kind: "publish"}, regInput{kind: "claim"}
	ack := func(token uint64) regInput { return regInput{kind: "settle", token: token, verdict: Ack} }
	done, refused := regOutput{result: "done"}, regOutput{result: "refused"}
	start := []porcupine.Operation{op(0, 1, publish, done), op(0, 2, claim, took(7, 1, 10))}
	for _, c := range []struct {
		name  string
		right bool
		ops   []porcupine.Operation
	}{
		{"ALeaseRunsOut", true, []porcupine.Operation{op(1, 12, claim, took(8, 2, 20)), op(0, 13, ack(7), refused), op(1, 14, ack(8), done)}},
		{"TwoHoldOneMessage", false, []porcupine.Operation{op(1, 3, claim, took(8, 2, 20))}},
		{"TwoSettleUnderOneLease", false, []porcupine.Operation{op(0, 3, ack(7), done), op(1, 4, ack(7), done)}},
		{"AStaleHolderSettles", false, []porcupine.Operation{op(1, 12, claim, took(8, 2, 20)), op(0, 13, ack(7), done)}},
		{"AHolderIsRefused", false, []porcupine.Operation{op(0, 12, ack(7), refused), op(0, 13, ack(7), done)}},
		{"WhatIsDoneIsDeliveredAgain", false, []porcupine.Operation{op(0, 3, ack(7), done), op(1, 15, claim, took(8, 2, 20))}},
		{"AnAttemptIsNotCounted", false, []porcupine.Operation{op(1, 12, claim, took(8, 1, 20))}},
		{"WhatIsFreeIsNotFound", false, []porcupine.Operation{op(1, 12, claim, regOutput{result: "missed"})}},
	} {
		t.Run(c.name, func(t *testing.T) {
			history := append(slices.Clone(start), c.ops...)
			require.Equal(t, c.right, porcupine.CheckOperations(register(), history))
		})
	}
}
