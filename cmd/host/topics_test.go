package main

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/cli"
	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// ok runs a command that succeeds, and returns what it printed.
func ok(t *testing.T, dir string, args ...string) string {
	t.Helper()
	a := run(t, dir, "", args...)
	require.Equal(t, cli.ExitOK, a.code, a.err)
	return a.out
}

func TestPublishOptions(t *testing.T) {
	dir := t.TempDir()
	p := startHost(t, dir)
	t.Run("ATopicThatNobodyTakesIsNoted", func(t *testing.T) {
		a := run(t, dir, "", "publish", "lonely", "--data", "x", "-o", "name")
		require.Equal(t, cli.ExitOK, a.code, a.err)
		require.Equal(t, "note: no consumer takes lonely of tenant default; what is published there waits\n", a.err)
	})
	t.Run("ADelayedMessageWaits", func(t *testing.T) {
		out := ok(t, dir, "publish", "later", "--data", "x", "--delay", "1h")
		require.Regexp(t, `(?m)^\d{13}-[0-9a-f]{16} +-$`, out, "no position yet")
		s, err := p.admin.Topic(t.Context(), "default", "later")
		require.NoError(t, err)
		require.EqualValues(t, 1, s.Delayed)
	})
	t.Run("WhatExpiresIsADeadLetterLoggedAndCounted", func(t *testing.T) {
		id := strings.TrimSpace(ok(t, dir, "publish", "old", "--data", "x", "--ttl", "1ms", "-o", "name"))
		ok(t, dir, "publish", "old", "--data", "y", "--deadline", "2020-01-01T00:00:00Z")
		reasons := func() string { return ok(t, dir, "dlq", "list", "old") }
		require.Eventually(t, func() bool {
			return strings.Contains(reasons(), "ttl-expired") && strings.Contains(reasons(), "deadline-exceeded")
		}, 10*time.Second, 10*time.Millisecond)
		require.Eventually(t, func() bool {
			log := p.stderr.String()
			return strings.Count(log, "message expired") == 2 && strings.Contains(log, id)
		}, 10*time.Second, 10*time.Millisecond)
	})
	t.Run("AnIdempotencyKeyAgainGivesTheFirstReceipt", func(t *testing.T) {
		first := run(t, dir, "", "publish", "once", "--data", "x", "--idempotency-key", "k")
		require.Equal(t, cli.ExitOK, first.code)
		require.NotContains(t, first.err, "duplicate")
		again := run(t, dir, "", "publish", "once", "--data", "x", "--idempotency-key", "k")
		require.Equal(t, cli.ExitOK, again.code)
		require.Equal(t, first.out, again.out)
		require.Contains(t, again.err, "a duplicate")
		require.Contains(t, ok(t, dir, "publish", "once", "--data", "x", "--idempotency-key", "k", "-o", "json"), `"duplicate": true`)
		require.Equal(t, 1, strings.Count(ok(t, dir, "peek", "once", "-o", "name"), "\n"))
	})
	t.Run("PriorityGoesFirst", func(t *testing.T) {
		ok(t, dir, "publish", "first", "--data", "low", "--priority", "1")
		ok(t, dir, "publish", "first", "--data", "high", "--priority", "255")
		require.Regexp(t, `(?s)high.*low`, ok(t, dir, "peek", "first"))
	})
	t.Run("AreStoredAndShown", func(t *testing.T) {
		ok(t, dir, "publish", "routed", "--data", "x", "--ordering-key", "order-A-1", "--fence", "role:leader:7", "--feature", "f1",
			"--feature", "f2", "--target", "billing", "--priority", "9", "--ttl", "24h")
		got, err := p.admin.Peek(t.Context(), "default", "routed", 0, 1)
		require.NoError(t, err)
		require.Equal(t, &wire.MessageOptions{
			OrderingKey: "order-A-1", Fence: &wire.MessageFence{Key: "role:leader", Token: 7}, RequiredFeatures: []string{"f1", "f2"},
			Target: "billing", Priority: 9, TTL: "24h",
		}, got[0].Message.Options)
		id := strings.TrimSpace(ok(t, dir, "publish", "shown", "--data", "x", "--ttl", "1ms", "--fence", "k:7", "--feature", "f", "--priority", "9",
			"--ordering-key", "o", "--target", "t", "-o", "name"))
		require.Eventually(t, func() bool { return ok(t, dir, "dlq", "list", "shown", "-o", "name") == id+"\n" }, 10*time.Second, 10*time.Millisecond)
		require.Regexp(t, `(?m)^ttl +1ms\npriority +9\nordering key +o\nfence +k:7\nfeatures +f\ntarget +t$`, ok(t, dir, "dlq", "show", "shown", id))
	})
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"KeyOfMoreThanOne":   {[]string{"--data", "x", "-n", "2", "--idempotency-key", "k"}, "a key of its own"},
		"KeyOfMoreFiles":     {[]string{"--file", "a", "--file", "b", "--idempotency-key", "k"}, "a key of its own"},
		"PriorityTooHigh":    {[]string{"--data", "x", "--priority", "256"}, "body.messages[0].priority"},
		"PriorityIsNoNumber": {[]string{"--data", "x", "--priority", "high"}, "--priority"},
		"FenceWithoutToken":  {[]string{"--data", "x", "--fence", "leader"}, `--fence: fence "leader": want KEY:TOKEN, as leader:7`},
		"EmptyFence":         {[]string{"--data", "x", "--fence", ""}, "--fence"},
		"EmptyOrderingKey":   {[]string{"--data", "x", "--ordering-key", ""}, "has ordering_key with a name that is empty"},
		"EmptyTarget":        {[]string{"--data", "x", "--target", ""}, "has target with a name that is empty"},
		"EmptyFeature":       {[]string{"--data", "x", "--feature", ""}, "has required_features with a name that is empty"},
		"EmptyKey":           {[]string{"--data", "x", "--idempotency-key", ""}, "idempotency_key that is empty"},
		"DelayIsNoDuration":  {[]string{"--data", "x", "--delay", "soon"}, "--delay"},
		"NegativeTTL":        {[]string{"--data", "x", "--ttl", "-1s"}, `has ttl "-1s"`},
		"DeadlineIsNoTime":   {[]string{"--data", "x", "--deadline", "noon"}, `has deadline "noon"`},
		"DelayOverTheBounds": {[]string{"--data", "x", "--delay", "10000h"}, "option delay: want 0 to"},
	} {
		t.Run("IsRefused/"+name, func(t *testing.T) {
			a := run(t, dir, "", append([]string{"publish", "refused"}, c.args...)...)
			require.Equal(t, cli.ExitUsage, a.code, a.err)
			require.Contains(t, a.err, c.says)
			require.Empty(t, a.out)
		})
	}
}

func TestTopicCommands(t *testing.T) {
	dir := t.TempDir()
	startHost(t, dir)
	ok(t, dir, "publish", "a", "--data", "one\x1b[31m", "--content-type", "text/plain")
	ok(t, dir, "publish", "a", "--data", strings.Repeat("ä", 300))
	ok(t, dir, "publish", "b", "--tenant", "other", "--data", "x")
	ok(t, dir, "publish", "b", "--tenant", "other", "--data", "x", "--delay", "1h")

	t.Run("TopicsCountsWhatWaits", func(t *testing.T) {
		out := ok(t, dir, "topics")
		require.Regexp(t, `^TENANT +TOPIC +READY +PARKED +DELAYED +LEASED +DEAD +OLDEST +GROUPS +PAUSED\n`, out)
		require.Regexp(t, `(?m)^default +a +2 +0 +0 +0 +0 +\d+s +0 +no$`, out)
		require.Regexp(t, `(?m)^other +b +1 +0 +1 +0 +0 +\d+s +0 +no$`, out)
		require.Equal(t, "a\nb\n", ok(t, dir, "topics", "-o", "name"))
		require.Equal(t, "b\n", ok(t, dir, "topics", "--tenant", "other", "-o", "name"))
		require.JSONEq(t, `{"topics":[]}`, ok(t, dir, "topics", "--tenant", "nobody", "-o", "json"))
		require.Contains(t, ok(t, dir, "topics", "-o", "yaml"), "dead_letters: 0\n")
		require.Equal(t, cli.ExitUsage, run(t, dir, "", "topics", "--tenant", "No Tenant").code)
	})
	t.Run("PeekShowsPayloadsMadeVisible", func(t *testing.T) {
		lines := strings.Split(ok(t, dir, "peek", "a"), "\n")
		require.Len(t, lines, 4)
		require.Regexp(t, `^POSITION +STATE +UNTIL +ATTEMPTS +ID +CONTENT TYPE +PAYLOAD$`, lines[0])
		require.Regexp(t, `^\d+ +ready +- +0 +\d{13}-[0-9a-f]{16} +text/plain +one\\u001b\[31m$`, lines[1])
		require.Regexp(t, ` ä{40}… \(600 bytes; -o json shows all\)$`, lines[2])
	})
	t.Run("PeekAsJSONHasTheWholePayload", func(t *testing.T) {
		var got wire.PeekedList
		require.NoError(t, json.Unmarshal([]byte(ok(t, dir, "peek", "a", "--limit", "1", "-o", "json")), &got))
		require.Len(t, got.Messages, 1)
		require.Equal(t, "one\x1b[31m", string(got.Messages[0].Message.DataBase64))
		require.Contains(t, ok(t, dir, "peek", "a", "-o", "yaml"), "data_base64: "+base64.StdEncoding.EncodeToString([]byte("one\x1b[31m")))

		after := strconv.FormatUint(got.Messages[0].Position, 10)
		rest := ok(t, dir, "peek", "a", "--after", after, "-o", "name")
		require.Equal(t, 1, strings.Count(rest, "\n"))
		require.NotContains(t, rest, got.Messages[0].Message.ID)
	})
	t.Run("PeekShowsWhenADelayedMessageIsDue", func(t *testing.T) {
		require.Regexp(t, `(?m)^- +delayed +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +0 +\d{13}-`, ok(t, dir, "peek", "b", "--tenant", "other"))
		var got wire.PeekedList
		require.NoError(t, json.Unmarshal([]byte(ok(t, dir, "peek", "b", "--tenant", "other", "-o", "json")), &got))
		require.Len(t, got.Messages, 2)
		require.Nil(t, got.Messages[0].At)
		require.Zero(t, got.Messages[1].Position)
		require.WithinDuration(t, time.Now().Add(time.Hour), *got.Messages[1].At, time.Minute)
		a := run(t, dir, "", "peek", "b", "--tenant", "other", "--lane", "nobody")
		require.Equal(t, cli.ExitFailed, a.code)
		require.Contains(t, a.err, "no such consumer group")
	})
	t.Run("PauseAndResume", func(t *testing.T) {
		require.JSONEq(t, `{"tenant":"default","topic":"a","paused":true}`, ok(t, dir, "pause", "a", "-o", "json"))
		require.Regexp(t, `(?m)^default +a .* yes$`, ok(t, dir, "topics"))
		require.Equal(t, "a\n", ok(t, dir, "pause", "a", "-o", "name"))
		require.Regexp(t, `default +a +all +no\n$`, ok(t, dir, "resume", "a"))
		require.Regexp(t, `(?m)^default +a .* no$`, ok(t, dir, "topics"))
	})
	t.Run("ExitCodes", func(t *testing.T) {
		for _, c := range []struct {
			code int
			args []string
		}{
			{cli.ExitFailed, []string{"peek", "unknown"}},
			{cli.ExitUsage, []string{"peek", "a", "--limit", "0"}},
			{cli.ExitUsage, []string{"peek", "a", "--limit", "1001"}},
			{cli.ExitUsage, []string{"peek", "a", "--after", "-1"}},
			{cli.ExitUsage, []string{"peek"}},
			{cli.ExitUsage, []string{"pause", "../a"}},
			{cli.ExitUsage, []string{"resume"}},
			{cli.ExitUsage, []string{"drain"}},
			{cli.ExitUsage, []string{"drain", "a", "--timeout", "0s"}},
			{cli.ExitUsage, []string{"topics", "a"}},
		} {
			a := run(t, dir, "", c.args...)
			require.Equal(t, c.code, a.code, "%v: %s", c.args, a.err)
			require.Empty(t, a.out)
		}
		elsewhere := t.TempDir()
		for _, args := range [][]string{{"topics"}, {"peek", "a"}, {"pause", "a"}, {"resume", "a"}, {"drain", "a"}} {
			require.Equal(t, cli.ExitUnreachable, run(t, elsewhere, "", args...).code, "%v", args)
		}
	})
}

func TestAPausedTopicDeliversNothing(t *testing.T) {
	dir := t.TempDir()
	misbehave(t, dir, "max_attempts: 1", "trap")
	p := startHost(t, dir)
	ok(t, dir, "pause", "trap")
	require.Empty(t, run(t, dir, "", "publish", "trap", "--data", "x").err, "it has a consumer")
	dead := func() int64 {
		s, err := p.admin.Topic(t.Context(), "default", "trap")
		require.NoError(t, err)
		return s.DeadLetters
	}
	require.Never(t, func() bool { return dead() > 0 }, 200*time.Millisecond, 20*time.Millisecond)
	ok(t, dir, "resume", "trap")
	require.Eventually(t, func() bool { return dead() == 1 }, 10*time.Second, 10*time.Millisecond)
}

func TestDrain(t *testing.T) {
	dir := t.TempDir()
	misbehave(t, dir, "limits: {fuel: 100000000000, call_time: 2s}, max_attempts: 1", "stall")
	p := startHost(t, dir)
	ok(t, dir, "publish", "stall", "--data", "x")
	topic := func() wire.TopicStats {
		s, err := p.admin.Topic(t.Context(), "default", "stall")
		require.NoError(t, err)
		return s
	}
	require.Eventually(t, func() bool { return topic().Leased == 1 }, 10*time.Second, time.Millisecond)
	a := run(t, dir, "", "drain", "stall", "--timeout", "1ms")
	require.Equal(t, cli.ExitConflict, a.code)
	require.Contains(t, a.err, "1 message is held after 1ms; the topic stays paused")
	require.Regexp(t, `default +stall +all +yes +1\n$`, a.out)

	require.JSONEq(t, `{"tenant":"default","topic":"stall","paused":true,"leased":0}`, ok(t, dir, "drain", "stall", "-o", "json"))
	require.EqualValues(t, 1, topic().DeadLetters, "what ran has ended")
	ok(t, dir, "publish", "stall", "--data", "y")
	for range 10 { // not Never, whose last question may outlive the test
		require.Zero(t, topic().Leased)
		time.Sleep(20 * time.Millisecond)
	}
}
