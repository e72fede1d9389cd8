package longshore

import (
	"errors"
	"testing"
)

func TestHandle(t *testing.T) {
	t.Cleanup(func() { guest.handler = nil })
	mustPanic(t, func() { Handle(nil) })
	Handle(func(*Message) error { return nil })
	mustPanic(t, func() { Handle(func(*Message) error { return nil }) })
}

func TestWarmUp(t *testing.T) {
	t.Cleanup(func() { guest.warmUp = nil })
	guest.warm() // without one nothing happens
	mustPanic(t, func() { WarmUp(nil) })
	calls := 0
	WarmUp(func() { calls++ })
	mustPanic(t, func() { WarmUp(func() {}) })
	if guest.warm(); calls != 1 {
		t.Errorf("called %d times", calls)
	}
}

func TestInstance(t *testing.T) {
	t.Run("AMessageWithoutAHandlerIsADefect", func(t *testing.T) {
		mustPanic(t, func() { (&instance{}).handle(1) })
	})
	t.Run("PostReturnFreesTheResultAndWhatWasNotAdopted", func(t *testing.T) {
		g := instance{result: []*arena{lowerResult(errors.New("boom"))}}
		g.heap.realloc(0, 0, 1, 5)
		g.postReturn()
		if g.result != nil || len(g.heap.blocks) != 0 {
			t.Errorf("left: %v and %d blocks", g.result, len(g.heap.blocks))
		}
	})
}

func TestPublish(t *testing.T) {
	t.Run("OutsideAHandlerIsRefused", func(t *testing.T) {
		e, ok := errors.AsType[*Error](Send("topic", &Message{}))
		if !ok || e.Case != CaseConnection {
			t.Errorf("Send: got %v", e)
		}
		_, err := PublishBatch([]Outgoing{{Topic: "topic", Message: &Message{}}})
		if e, ok := errors.AsType[*Error](err); !ok || e.Case != CaseConnection {
			t.Errorf("PublishBatch: got %v", err)
		}
	})
	t.Run("TextThatIsNotUTF8IsRefusedBeforeTheHostSeesIt", func(t *testing.T) {
		const bad = "\xff"
		for _, o := range []Outgoing{
			{Topic: bad, Message: &Message{}},
			{Topic: "topic", Message: &Message{ContentType: bad}},
			{Topic: "topic", Message: &Message{Metadata: []Pair{{bad, ""}}}},
			{Topic: "topic", Message: &Message{Metadata: []Pair{{"", bad}}}},
		} {
			if e, ok := errors.AsType[*Error](Send(o.Topic, o.Message)); !ok || e.Case != CaseOther {
				t.Errorf("Send %+v: got %v", o, e)
			}
			_, err := PublishBatch([]Outgoing{o})
			if e, ok := errors.AsType[*PublishError](err); !ok || e.Case != PublishInvalid {
				t.Errorf("PublishBatch %+v: got %v", o, err)
			}
			_, err = Publish(o.Topic, o.Message, nil)
			if e, ok := errors.AsType[*PublishError](err); !ok || e.Case != PublishInvalid {
				t.Errorf("Publish %+v: got %v", o, err)
			}
		}
	})
	t.Run("OptionsThatAreNotUTF8AreRefusedBeforeTheHostSeesThem", func(t *testing.T) {
		const bad = "\xff"
		for _, o := range []Options{
			{IdempotencyKey: bad},
			{OrderingKey: bad},
			{Fence: &Fence{Key: bad}},
			{RequiredFeatures: []string{"gpu", bad}},
			{Target: bad},
			{Cause: bad},
			{Extensions: []Pair{{"", bad}}},
		} {
			_, err := Publish("topic", &Message{}, &o)
			if e, ok := errors.AsType[*PublishError](err); !ok || e.Case != PublishInvalid || e.Text != "an option isn't valid UTF-8" {
				t.Errorf("Publish with %+v: got %v", o, err)
			}
		}
	})
}
