// Command outcome is the conformance guest with explicit outcomes: the payload says which.
package main

import (
	"strings"

	longshore "github.com/longshore/longshore/guests/go"
	"github.com/longshore/longshore/guests/go/outcome"
)

func init() { outcome.Handle(decide) }

func decide(m *longshore.Message) longshore.Outcome {
	text := string(m.Data)
	why, isReject := strings.CutPrefix(text, "reject ")
	switch {
	case text == "retry":
		return longshore.Retry()
	case text == "retry later":
		return longshore.RetryAfterMillis(1500)
	case text == "skip":
		return longshore.Skip()
	case isReject:
		return longshore.Reject(why)
	}
	if err := longshore.Send("out", m); err != nil {
		return longshore.Reject(err.Error())
	}
	return longshore.Ack()
}

func main() {}
