// Command handler is the conformance guest: the topic of the message says what to do. guests/conformance/README.md lists the
// cases.
package main

import (
	"bytes"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	longshore "github.com/longshore/longshore/guests/go"
)

// warmth is what the warm-up left.
var warmth = "cold"

func init() {
	longshore.Handle(handle)
	longshore.WarmUp(func() { warmth = "warm" })
}

func handle(m *longshore.Message) error {
	what, detail, _ := strings.Cut(m.Topic, "/")
	switch what {
	case "echo":
		return longshore.Send("out", m)
	case "batch":
		return batch(m)
	case "atomic":
		return atomic(m)
	case "again":
		_, err := longshore.PublishBatch([]longshore.Outgoing{{Topic: "out", Message: m}, {Topic: "out", Message: m}})
		return err
	case "refuse":
		return refuse(m)
	case "each":
		return each(m)
	case "publish":
		return publish(m)
	case "request":
		return request(detail, m)
	case "reply":
		return reply(m)
	case "info":
		return info(m)
	case "log":
		longshore.Log(longshore.LevelWarn, string(m.Data))
		return nil
	case "error":
		return fail(detail, string(m.Data))
	case "exit":
		return exit(detail)
	case "random":
		return report("random", random())
	case "values":
		return values(m)
	case "config":
		return config(m)
	case "warm":
		return report("out", warmth)
	case "trap":
		panic(string(m.Data))
	case "forget":
		return forget(detail)
	}
	return errors.New("no such case: " + m.Topic)
}

// lines returns the payload's lines as messages, the lines' ends included.
func lines(m *longshore.Message) []longshore.Outgoing {
	var batch []longshore.Outgoing
	for line := range bytes.Lines(m.Data) {
		batch = append(batch, longshore.Outgoing{
			Topic:   "out",
			Message: &longshore.Message{ContentType: m.ContentType, Metadata: m.Metadata, Data: bytes.Clone(line)},
		})
	}
	return batch
}

func report(topic, text string) error {
	return longshore.Send(topic, &longshore.Message{Data: []byte(text)})
}

func batch(m *longshore.Message) error {
	results, err := longshore.PublishBatch(lines(m))
	if err != nil {
		return err
	}
	ids := ""
	for _, r := range results {
		ids += r.ID + "\n"
	}
	return report("ids", ids)
}

func atomic(m *longshore.Message) error {
	batch := lines(m)
	if m.ContentType != "" && len(batch) > 0 {
		batch[len(batch)-1].Topic = m.ContentType
	}
	receipts, err := longshore.PublishAtomic(batch)
	if err != nil {
		return report("report", err.Error())
	}
	ids := ""
	for _, r := range receipts {
		ids += r.ID + "\n"
	}
	return report("report", ids)
}

func refuse(m *longshore.Message) error {
	results, _ := longshore.PublishBatch([]longshore.Outgoing{
		{Topic: "out", Message: m}, {Topic: "forbidden", Message: m}, {Topic: "full", Message: m},
	})
	text := ""
	for _, r := range results {
		e, refused := errors.AsType[*longshore.PublishError](r.Err)
		if !refused {
			text += "ok\n"
			continue
		}
		text += e.Error() + "\n"
		if e.RetryAfterMillis != 0 {
			text += "after " + number(e.RetryAfterMillis) + "\n"
		}
	}
	if err := longshore.Send("forbidden", m); err != nil {
		text += err.Error()
	}
	return report("report", text)
}

// each collects garbage before, between and after publishing the payload's lines one by one.
func each(m *longshore.Message) error {
	runtime.GC()
	for _, line := range lines(m) {
		if err := longshore.Send("out", line.Message); err != nil {
			return err
		}
		runtime.GC()
	}
	return nil
}

func publish(m *longshore.Message) error {
	o := &longshore.Options{
		DelayMillis: 1000, TTLMillis: 2000, DeadlineMillis: 1_900_000_000_000, Priority: 7,
		IdempotencyKey: "once", OrderingKey: "in order", Fence: &longshore.Fence{Key: "gate", Token: 9},
		RequiredFeatures: []string{"gpu", "eu"}, Target: "me",
	}
	switch string(m.Data) {
	case "none":
		o = &longshore.Options{}
	case "null":
		o = nil
	case "extension":
		o.Extensions = []longshore.Pair{{Key: "x", Value: "y"}}
	}
	r, err := longshore.Publish("out", m, o)
	if err != nil {
		return err
	}
	if r.Duplicate {
		return report("report", r.ID+" duplicate")
	}
	return report("report", r.ID+" new")
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

func info(m *longshore.Message) error {
	d := m.Delivery()
	if d == nil {
		return errors.New("no delivery info")
	}
	text := ""
	field := func(name, value string) { text += name + "=" + value + "\n" }
	maybe := func(name, value string) {
		if value != "" && value != "0" {
			field(name, value)
		}
	}
	field("id", d.ID)
	field("topic", d.Topic)
	field("attempt", number(uint64(d.Attempt)))
	field("max-attempts", number(uint64(d.MaxAttempts)))
	maybe("previous-reason", d.PreviousReason)
	maybe("group", d.Group)
	field("published-at", number(d.PublishedMillis))
	maybe("expires-at", number(d.ExpiresMillis))
	maybe("deadline", number(d.DeadlineMillis))
	field("priority", number(uint64(d.Priority)))
	maybe("idempotency-key", d.IdempotencyKey)
	maybe("ordering-key", d.OrderingKey)
	if f := d.Fence; f != nil {
		field("fence."+f.Key, number(f.Token))
	}
	maybe("parent", d.Parent)
	field("hops", number(uint64(d.Hops)))
	if c := d.Claims; c != nil {
		field("tenant", c.Tenant)
		field("subject", c.Subject)
		field("issuer", c.Issuer)
		field("token-id", c.TokenID)
		field("issued-at", number(c.IssuedMillis))
		for _, p := range c.Extra {
			field("extra."+p.Key, p.Value)
		}
	}
	for _, p := range d.Trace {
		field("trace."+p.Key, p.Value)
	}
	word := map[bool]string{true: "some", false: "none"}
	field("time-left", word[longshore.TimeLeftMillis() > 0])
	field("draining", map[bool]string{true: "yes", false: "no"}[longshore.Draining()])
	field("own", word[(&longshore.Message{}).Delivery() != nil])
	return report("report", text)
}

func fail(errorCase, text string) error {
	for c := longshore.CaseTimeout; c <= longshore.CaseOther; c++ {
		if c.String() == errorCase {
			return &longshore.Error{Case: c, Text: text}
		}
	}
	return errors.New(text)
}

func exit(code string) error {
	n, err := strconv.Atoi(code)
	if err != nil {
		return err
	}
	syscall.Exit(n) // what os.Exit does, without the size of package os
	return nil
}

func forget(count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	for range n {
		if err := longshore.Send("out", &longshore.Message{}); err != nil {
			return err
		}
	}
	panic("forget it")
}

func main() {}
