package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/examples/misbehaving"
)

// work is where the messages are.
type work struct {
	left    int // not yet done, in the topics that have a consumer
	leased  int // of these, with a guest
	entries int // in the last topic
}

// work asks the host.
func (t *tale) work(ctx context.Context) (work, error) {
	topics, err := t.host.admin.Topics(ctx, "")
	if err != nil {
		return work{}, fmt.Errorf("read the counts: %w", err)
	}
	var w work
	for _, s := range topics {
		backlog := int(s.Ready + s.Delayed + s.Leased)
		switch {
		case s.Topic == entriesTopic:
			w.entries = backlog
		case hasConsumer(s):
			w.left += backlog
			w.leased += int(s.Leased)
		}
	}
	return w, nil
}

func hasConsumer(s wire.TopicStats) bool {
	return s.Topic == ordersTopic || s.Topic == linesTopic ||
		strings.HasPrefix(s.Topic, "misbehaving/") && s.Topic != misbehaving.Topic
}

// untilDone waits until every message is acknowledged or dead, as long as there is progress.
func (t *tale) untilDone(ctx context.Context, entries int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(stallTimeout, func() { cancel(fmt.Errorf("nothing moved for %s", stallTimeout)) })
	defer stall.Stop()
	var last work
	err := t.host.poll(ctx, "the messages to be done", func() (bool, error) {
		w, err := t.work(ctx)
		if err != nil {
			return false, err
		}
		if w != last {
			last = w
			stall.Reset(stallTimeout)
		}
		t.Screen.progress(w.entries, entries, "entries booked")
		return w.left == 0, nil
	})
	t.Screen.endProgress()
	return err
}
