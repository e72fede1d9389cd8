// Command conformance is a consumer that exercises the SDK under a real host: the topic of the message says what to do.
//
//	echo                 sends the message, as it came, to out
//	batch                publishes every line of the payload to out, and reports the ids to ids
//	again                publishes the message twice in one batch, the delivered one itself
//	refuse               publishes a batch to out and forbidden, and says in report what the host said; succeeds
//	collect              collects garbage before, between and after publishing the payload's lines one by one
//	error/<case>         returns an error of that case, with the payload as its text
//	panic                panics
//	exit/<code>          exits
//	forget/<n>           publishes n messages and panics
//	random               publishes one line for each way to draw something at random
//	warm                 publishes what the warm-up left
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
	case "again":
		_, err := longshore.PublishBatch([]longshore.Outgoing{{Topic: "out", Message: m}, {Topic: "out", Message: m}})
		return err
	case "refuse":
		return refuse(m)
	case "collect":
		return collect(m)
	case "error":
		return fail(detail, string(m.Data))
	case "exit":
		return exit(detail)
	case "panic":
		panic(string(m.Data))
	case "forget":
		return forget(detail)
	case "random":
		return longshore.Send("random", &longshore.Message{Data: []byte(random())})
	case "warm":
		return longshore.Send("out", &longshore.Message{Data: []byte(warmth)})
	}
	return errors.New("no such case: " + m.Topic)
}

func batch(m *longshore.Message) error {
	var batch []longshore.Outgoing
	for line := range bytes.Lines(m.Data) {
		batch = append(batch, longshore.Outgoing{
			Topic:   "out",
			Message: &longshore.Message{ContentType: m.ContentType, Metadata: m.Metadata, Data: line},
		})
	}
	results, err := longshore.PublishBatch(batch)
	if err != nil {
		return err
	}
	ids := ""
	for _, r := range results {
		ids += r.ID + "\n"
	}
	return longshore.Send("ids", &longshore.Message{Data: []byte(ids)})
}

func refuse(m *longshore.Message) error {
	_, err := longshore.PublishBatch([]longshore.Outgoing{{Topic: "out", Message: m}, {Topic: "forbidden", Message: m}})
	report := err.Error()
	if sendErr := longshore.Send("forbidden", m); sendErr != nil {
		report += "\n" + sendErr.Error()
	}
	return longshore.Send("report", &longshore.Message{Data: []byte(report)})
}

func collect(m *longshore.Message) error {
	runtime.GC()
	for line := range bytes.Lines(m.Data) {
		if err := longshore.Send("out", &longshore.Message{Metadata: m.Metadata, Data: bytes.Clone(line)}); err != nil {
			return err
		}
		runtime.GC()
	}
	return nil
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
