package dispatcher

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// journalOf is a digest of all that the journal of a log holds.
func journalOf(t *testing.T, dir string) string {
	t.Helper()
	h, files := sha256.New(), 0
	require.NoError(t, filepath.WalkDir(filepath.Join(dir, "journal"), func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		files++
		_, _ = fmt.Fprintf(h, "%s %d\n%s", name, len(content), content)
		return err
	}))
	require.Positive(t, files)
	return fmt.Sprintf("%x", h.Sum(nil))
}

// stateOf is all that the log says of the tenant.
func (h *house) stateOf(t *testing.T) string {
	t.Helper()
	var all []any
	for _, s := range h.log.Topics() {
		groups, err := h.log.Groups(s.Tenant, s.Topic)
		require.NoError(t, err)
		letters, err := h.log.DeadLetters(t.Context(), s.Tenant, s.Topic, substrate.DeadLetterFilter{})
		require.NoError(t, err)
		fences, err := h.log.Fences(s.Tenant, s.Topic, "", "", 0)
		require.NoError(t, err)
		all = append(all, s, groups, letters, fences)
	}
	return fmt.Sprintf("%+v %s %+v", all, h.value("ropes"), h.log.Tenants())
}

// deadLetters are those of a topic, as whoever reads them for a rehearsal makes them.
func (h *house) deadLetters(t *testing.T, topicName string) (all []substrate.Delivery) {
	t.Helper()
	letters, err := h.log.DeadLetters(t.Context(), tenant, topicName, substrate.DeadLetterFilter{})
	require.NoError(t, err)
	for _, l := range letters {
		m, err := h.log.DeadMessage(t.Context(), l)
		require.NoError(t, err)
		all = append(all, substrate.Delivery{Message: m, Attempt: 1, Lease: substrate.Lease{Tenant: tenant, Topic: topicName, Position: l.Position}})
	}
	return all
}

func TestRehearseOnALog(t *testing.T) {
	dir := t.TempDir()
	h := newHouseIn(t, dir)
	h.put("ropes", "7")
	depth := int64(1)
	require.NoError(t, h.log.SetPolicy(t.Context(), tenant, relayTopic, substrate.Policy{MaxDepth: &depth}))
	was := realConsumer("c", topic, ends(trap()))
	was.MaxAttempts = 1
	d, err := New(Options{Queue: h.log, Context: h.context, Consumers: []Consumer{was}, Observer: h})
	require.NoError(t, err)
	stop := h.runs(d)
	defer stop()
	h.publish(topic, 3)
	for range 3 {
		h.next(func(r Receipt) bool { return r.Verdict == "bury" })
	}
	dead := h.deadLetters(t, topic)
	require.Len(t, dead, 3)
	rehearse := func(next Consumer) (now, then []Rehearsed) {
		r, err := d.NewRehearsal(next)
		require.NoError(t, err)
		defer r.Close(t.Context())
		now, then, err = r.Run(t.Context(), dead)
		require.NoError(t, err)
		return now, then
	}
	before, journal := h.stateOf(t), journalOf(t, dir)
	unchanged := func(t *testing.T) {
		t.Helper()
		require.Equal(t, before, h.stateOf(t))
		require.Equal(t, journal, journalOf(t, dir))
		require.Empty(t, h.seen, "nobody was told of a delivery")
	}

	t.Run("WhatIsPublishedIsShownAndNotStored", func(t *testing.T) {
		next := was
		next.Guest = h.module("relay", relay(), limits.DefaultGuest())
		next.Events = Events{Pickup: "picked", Success: "done", Death: "died"}
		now, then := rehearse(next)
		require.Equal(t, []string{"bury guest-trap: unreachable", "bury guest-trap: unreachable", "bury guest-trap: unreachable"}, endings(now))
		require.Equal(t, []string{"ack", "ack", "ack"}, endings(then), "each finds the room that there is")
		for i, one := range then {
			require.Len(t, one.Outputs, 1)
			require.Equal(t, relayTopic, one.Outputs[0].Topic)
			require.Equal(t, dead[i].Message.ID, one.Outputs[0].Parent)
			require.Equal(t, then[0].Outputs[0].ID, one.Outputs[0].ID, "ids don't differ from call to call")
			require.Positive(t, one.Receipt.Fuel)
			_, err := h.context.Verify(one.Outputs[0].Envelope, Binding(one.Outputs[0]))
			require.NoError(t, err)
			require.Empty(t, now[i].Outputs)
		}
		unchanged(t)
	})
	t.Run("WhatIsNotGrantedIsRefused", func(t *testing.T) {
		next := was
		next.Guest, next.Publish = h.module("relay", relay(), limits.DefaultGuest()), nil
		_, then := rehearse(next)
		require.Equal(t, "bury guest-trap: unreachable", endings(then)[0], "the guest is told, and gives up")
		require.Empty(t, then[0].Outputs)
		unchanged(t)
	})
	t.Run("ValuesAreReadAsTheyAreNowAndNotWritten", func(t *testing.T) {
		next := was
		next.Buckets = []string{stock}
		next.Guest = keeps(func(s messaging.Store, _ *messaging.Call) runtime.Outcome {
			write(s, "ropes", read(s, "ropes")+"!")
			return runtime.Outcome{Class: runtime.OK}
		})
		_, then := rehearse(next)
		for _, one := range then {
			require.Equal(t, []substrate.ValueWrite{{Bucket: stock, Key: "ropes", Data: []byte("7!")}}, one.Values, "no message sees what another wrote")
		}
		unchanged(t)
	})
	t.Run("WhatACallPublishedBeforeTakesRoomForTheRestOfTheCall", func(t *testing.T) {
		next := was
		next.Guest = calls(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
			_, first := call.Publish(ctx, relayTopic, messaging.Message{})
			require.Nil(t, first)
			_, second := call.Publish(ctx, relayTopic, messaging.Message{})
			require.Equal(t, messaging.DepthExceeded, second.Case)
			return ok()
		})
		_, then := rehearse(next)
		require.Equal(t, []string{"ack", "ack", "ack"}, endings(then))
		unchanged(t)
	})
	t.Run("ATopicThatIsFullHoldsNobody", func(t *testing.T) {
		h.publish(relayTopic, 1)
		before, journal = h.stateOf(t), journalOf(t, dir)
		next := was
		next.Guest = h.module("relay", relay(), limits.DefaultGuest())
		_, then := rehearse(next)
		require.Equal(t, "release outbox-refused: depth-exceeded", endings(then)[0])
		require.Equal(t, StateRunning, d.Consumers()[0].State)
		unchanged(t)
	})
}
