package conformance_test

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore/longshore/wasi/messaging"
)

// requests are the cases of request and reply.
func requests() []testCase {
	asking := full()
	asking.Topic, asking.Info = "reply", &messaging.Info{ID: "m-1", ReplyTo: "inbox-7"}
	return []testCase{
		{name: "ARequestAndItsReplies", give: one(to("request/prices", full())), want: []messaging.Message{
			to("out", full()), text("out", "3 until 1500 ms"), text("out", ""), text("report", "r-1 of consumer:prices"),
		}},
		{name: "ARequestWithoutOptions", give: one(text("request/prices", "")), want: []messaging.Message{
			text("out", ""), text("report", "r-1 of consumer:prices"),
		}},
		{name: "ARequestWithoutReplies", give: one(text("request/silence", "x")), want: one(text("report", "timeout"))},
		{name: "ARequestToNobody", give: one(text("request/nobody", "x")), want: one(text("report", "connection: no consumer"))},
		{name: "ARequestOfATopicThatIsNotGranted", give: one(text("request/forbidden", "x")), want: one(text("report", "permission-denied: not granted"))},
		{name: "ARequestTooMany", give: one(text("request/full", "x")), want: one(text("report", "other: quota-exceeded: 11 is over the limit of 10"))},
		{name: "AReply", give: one(asking), want: []messaging.Message{to("inbox-7", full()), to("inbox-7", full())}},
		{name: "AReplyToWhatAsksForNone", give: one(to("reply", full())), want: one(text("report", "other: invalid: the message asks for no reply"))},
	}
}

// ask answers requests by their topic.
func ask(_ context.Context, r messaging.Request) ([]messaging.Message, *messaging.PublishError) {
	switch r.Topic {
	case "prices":
		first := r.Message
		first.Info = &messaging.Info{ID: "r-1", Claims: &messaging.Claims{Subject: "consumer:prices"}}
		wait := "1500 ms"
		if left := time.Until(r.Deadline); left > 1500*time.Millisecond {
			wait = left.String()
		}
		return []messaging.Message{first, text("", fmt.Sprintf("%d until %s", r.Replies, wait)), {}}[:r.Replies], nil
	case "nobody":
		return nil, &messaging.PublishError{Case: messaging.Unavailable, Text: "no consumer"}
	case "forbidden":
		return nil, &messaging.PublishError{Case: messaging.Unauthorized, Text: "not granted"}
	case "full":
		return nil, &messaging.PublishError{Case: messaging.QuotaExceeded, Limit: 10, Actual: 11}
	}
	return nil, nil
}

// answer takes all replies.
func answer(_, _ messaging.Message) (messaging.Admission, *messaging.PublishError) {
	return messaging.Admission{ID: "reply"}, nil
}
