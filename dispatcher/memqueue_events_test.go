package dispatcher

import (
	"context"

	"github.com/longshore/longshore/substrate"
)

func (q *memQueue) Publish(_ context.Context, msgs ...substrate.Message) ([]substrate.Receipt, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.fail("publish", len(msgs)); err != nil {
		return nil, err
	}
	q.alone = append(q.alone, msgs...)
	return make([]substrate.Receipt, len(msgs)), nil
}

// DeadMessage knows what a claim buried.
func (q *memQueue) DeadMessage(_ context.Context, d substrate.DeadLetter) (substrate.Message, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	m, found := q.dead[d.ID]
	if !found {
		return substrate.Message{}, substrate.ErrNotFound
	}
	return m, nil
}
