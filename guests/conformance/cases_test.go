package conformance_test

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/longshore/longshore/wasi/messaging"
)

// testCase is one case that every SDK's guest must pass.
type testCase struct {
	name    string
	kind    kind
	give    []messaging.Message // one, except for batch
	reason  string              // of the outcome; "" if the handler answers
	text    string              // the guest's text, if reason is a guest error
	want    []messaging.Message // published, with the topic; checked if the handler answers
	answers []messaging.Answer  // nil: one acknowledgement
	log     string              // part of what it writes to its log
}

// cases lists all of them.
func cases() []testCase {
	var all []testCase
	for _, some := range [][]testCase{
		echoes(), batches(), refusals(), optionCases(), deliveries(), logs(), failures(), outcomes(), batchesOfDeliveries(), requests(), stored(),
	} {
		all = append(all, some...)
	}
	for i := range all {
		if all[i].kind == "" {
			all[i].kind = handler
		}
	}
	return all
}

// full is a message in which all fields are used.
func full() messaging.Message {
	return messaging.Message{
		ContentType: "text/plain; charset=utf-8", Data: []byte("häl\x00lo"),
		Metadata: []messaging.Pair{{Key: "a", Value: "1"}, {Key: "a", Value: ""}, {Key: "ü", Value: "✓"}},
	}
}

// text is a message that holds a text alone.
func text(topic, s string) messaging.Message { return messaging.Message{Topic: topic, Data: []byte(s)} }

// to returns m with a topic.
func to(topic string, m messaging.Message) messaging.Message {
	m.Topic = topic
	return m
}

func one(m messaging.Message) []messaging.Message { return []messaging.Message{m} }

func echoes() []testCase {
	big := messaging.Message{Data: bytes.Repeat([]byte("longshore "), 50_000)}
	bytesOnly := messaging.Message{Data: []byte{0, 0xff, 0xfe, 0x80, '\n'}}
	return []testCase{
		{name: "Echo", give: one(to("echo", full())), want: one(to("out", full()))},
		{name: "EchoOfNothing", give: one(text("echo", "")), want: one(text("out", ""))},
		{name: "EchoOfMuch", give: one(to("echo", big)), want: one(to("out", big))},
		{name: "EchoOfBytesThatAreNoText", give: one(to("echo", bytesOnly)), want: one(to("out", bytesOnly))},
	}
}

func batches() []testCase {
	lines := full()
	lines.ContentType, lines.Data = "text/plain", []byte("one\ntwo\nthree")
	line := func(s string) messaging.Message {
		m := lines
		m.Topic, m.Data = "out", []byte(s)
		return m
	}
	three := []messaging.Message{line("one\n"), line("two\n"), line("three")}
	atomic := text("atomic", "one\ntwo\n")
	refused := atomic
	refused.ContentType = "forbidden"
	return []testCase{
		{name: "Batch", give: one(to("batch", lines)), want: append(three, text("ids", "id-1\nid-2\nid-3\n"))},
		{name: "EmptyBatch", give: one(text("batch", "")), want: one(text("ids", ""))},
		{name: "OneMessageTwiceInABatch", give: one(to("again", full())), want: []messaging.Message{to("out", full()), to("out", full())}},
		{name: "OneByOne", give: one(to("each", lines)), want: three},
		{name: "AtomicBatch", give: one(atomic), want: []messaging.Message{
			text("out", "one\n"), text("out", "two\n"), text("report", "id-1\nid-2\n"),
		}},
		{name: "AtomicBatchOfWhichOneIsRefused", give: one(refused), want: one(text("report", "unauthorized: not granted"))},
	}
}

func refusals() []testCase {
	report := "ok\nunauthorized: not granted\ndepth-exceeded: 11 is over the limit of 10\nafter 250\npermission-denied: not granted"
	return []testCase{
		{name: "RefusalsAreTyped", give: one(to("refuse", full())), want: []messaging.Message{to("out", full()), text("report", report)}},
	}
}

func optionCases() []testCase {
	published := func(data string, o *messaging.PublishOptions) []messaging.Message {
		m := text("out", data)
		m.Options = o
		return []messaging.Message{m, text("report", "id-1 new")}
	}
	all := &messaging.PublishOptions{
		Delay: time.Second, TTL: 2 * time.Second, Deadline: time.UnixMilli(1_900_000_000_000), Priority: 7,
		IdempotencyKey: "once", OrderingKey: "in order", Fence: &messaging.Fence{Key: "gate", Token: 9},
		RequiredFeatures: []string{"gpu", "eu"}, Target: "me",
	}
	return []testCase{
		{name: "PublishWithAllOptions", give: one(text("publish", "all")), want: published("all", all)},
		{name: "PublishWithEmptyOptions", give: one(text("publish", "none")), want: published("none", nil)},
		{name: "PublishWithoutOptions", give: one(text("publish", "null")), want: published("null", nil)},
		{
			name: "AnOptionThatTheHostRefuses", give: one(text("publish", "extension")), reason: "guest-error: other",
			text: `invalid: publish option "extensions" is not supported by this host`,
		},
	}
}

func deliveries() []testCase {
	everything := text("info", "")
	everything.Info = &messaging.Info{
		ID: "m-1", Attempt: 2, MaxAttempts: 5, PreviousReason: "timeout", Group: "audit", Published: time.UnixMilli(1_700_000_000_001),
		Expires: time.UnixMilli(1_700_000_000_002), Deadline: time.UnixMilli(1_700_000_000_003), Priority: 255, IdempotencyKey: "once",
		OrderingKey: "ü", Fence: &messaging.Fence{Key: "gate", Token: 1<<63 + 1}, Parent: "m-0", Hops: 3,
		Claims: &messaging.Claims{
			Tenant: "t", Subject: "s", Issuer: "i", TokenID: "j", IssuedAt: time.UnixMilli(1_700_000_000_000),
			Extra: []messaging.Pair{{Key: "role", Value: "clerk"}, {Key: "x", Value: ""}},
		},
		Trace: []messaging.Pair{{Key: "traceparent", Value: "00-1-2-01"}},
	}
	report := "id=m-1\ntopic=info\nattempt=2\nmax-attempts=5\nprevious-reason=timeout\ngroup=audit\npublished-at=1700000000001\n" +
		"expires-at=1700000000002\ndeadline=1700000000003\npriority=255\nidempotency-key=once\nordering-key=ü\n" +
		"fence.gate=" + strconv.FormatUint(1<<63+1, 10) + "\nparent=m-0\nhops=3\ntenant=t\nsubject=s\nissuer=i\ntoken-id=j\n" +
		"issued-at=1700000000000\nextra.role=clerk\nextra.x=\ntrace.traceparent=00-1-2-01\ntime-left=some\ndraining=no\nown=none\n"
	little := text("info", "")
	little.Info = &messaging.Info{ID: "m-2", Attempt: 1, MaxAttempts: 1, Published: time.UnixMilli(5)}
	short := "id=m-2\ntopic=info\nattempt=1\nmax-attempts=1\npublished-at=5\npriority=0\nhops=0\ntime-left=some\ndraining=no\nown=none\n"
	return []testCase{
		{name: "AllThatIsKnownOfADelivery", give: one(everything), want: one(text("report", report))},
		{name: "LittleThatIsKnownOfADelivery", give: one(little), want: one(text("report", short))},
	}
}

func logs() []testCase {
	return []testCase{
		{name: "ALogLineHasALevel", give: one(text("log", "häl✓lo")), log: "warn|häl✓lo\n"},
		{name: "ALogLineIsRepaired", give: one(text("log", "wh\xffy")), log: "warn|wh\uFFFDy\n"},
		{name: "AnEmptyLogLine", give: one(text("log", "")), log: "warn|\n"},
	}
}

func failures() []testCase {
	long := strings.Repeat("long ", 20_000)
	list := []testCase{
		{name: "ATrapIsLogged", give: one(text("trap", "on purpose")), reason: "guest-trap: unreachable", log: "on purpose"},
		{name: "ATrapAfterPublishing", give: one(text("forget/3", "")), reason: "guest-trap: unreachable", log: "forget it"},
		{name: "ATextOfManyBytes", give: one(text("error/other", long)), reason: "guest-error: other", text: long},
	}
	for _, name := range []string{"timeout", "connection", "permission-denied", "other"} {
		c := testCase{name: "Error/" + name, give: one(text("error/"+name, "wh\xffy")), reason: "guest-error: " + name, text: "wh\uFFFDy"}
		if name == "timeout" {
			c.text = ""
		}
		list = append(list, c)
	}
	return list
}

// later is the delay that guests ask for.
func later() *time.Duration {
	d := 1500 * time.Millisecond
	return &d
}

func outcomes() []testCase {
	decide := func(name, data string, a messaging.Answer) testCase {
		return testCase{name: "Outcome/" + name, kind: outcome, give: one(text("in", data)), answers: []messaging.Answer{a}}
	}
	ack := decide("Ack", "anything else", messaging.Answer{Case: messaging.AnswerAck})
	ack.want = one(text("out", "anything else"))
	return []testCase{
		ack,
		decide("Retry", "retry", messaging.Answer{Case: messaging.AnswerRetry}),
		decide("RetryLater", "retry later", messaging.Answer{Case: messaging.AnswerRetry, Delay: later()}),
		decide("Reject", "reject wh\xffy", messaging.Answer{Case: messaging.AnswerReject, Text: "wh\uFFFDy"}),
		decide("RejectWithoutAText", "reject ", messaging.Answer{Case: messaging.AnswerReject}),
		decide("Skip", "skip", messaging.Answer{Case: messaging.AnswerSkip}),
	}
}

func batchesOfDeliveries() []testCase {
	delivered := func(texts ...string) (list []messaging.Message) {
		for i, s := range texts {
			m := text("in", s)
			m.Info = &messaging.Info{ID: "m-" + strconv.Itoa(i+1), Attempt: 1, MaxAttempts: 1}
			list = append(list, m)
		}
		return list
	}
	published := func(cause string) messaging.Message {
		m := text("out", "ack")
		m.Options = &messaging.PublishOptions{Cause: cause}
		return m
	}
	return []testCase{
		{
			name: "Batch/AnOutcomeForEach", kind: batch, give: delivered("ack", "retry", "reject", "skip", "ack"),
			want: []messaging.Message{published("m-1"), published("m-5")},
			answers: []messaging.Answer{
				{Case: messaging.AnswerAck},
				{Case: messaging.AnswerRetry, Delay: later()},
				{Case: messaging.AnswerReject, Text: "no"},
				{Case: messaging.AnswerSkip},
				{Case: messaging.AnswerAck},
			},
		},
		{name: "Batch/OfOne", kind: batch, give: delivered("ack"), want: one(published("m-1"))},
		{
			name: "Batch/AnErrorConcernsAll", kind: batch, give: delivered("ack", "error", "ack"),
			reason: "guest-error: connection", text: "all again",
		},
	}
}
