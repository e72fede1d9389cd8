package substrate

import "fmt"

// lastMessage is the last message of the store that its checkpoint does not tell of; its position is 0 if there is none.
type lastMessage struct {
	tenant, topic string
	position      uint64
}

// checkAhead refuses a store that has messages of which neither its checkpoint nor the journal tells. Messages are stored
// before the checkpoint that names them, but never before their frames are durable: so the journal has lost those frames.
func (r *recovery) checkAhead() error {
	if a := r.ahead; a.position >= r.state.nextPosition {
		return fmt.Errorf("%w: the store has a message at position %d of topic %s of tenant %s, and the journal ends before that",
			ErrDamaged, a.position, a.topic, a.tenant)
	}
	return nil
}

// dropAhead deletes what a crash left of a batch that the checkpoint does not tell of, before its frames store it again.
func (r *recovery) dropAhead() error {
	if r.ahead.position == 0 || r.dropped {
		return nil
	}
	r.dropped = true
	return r.store.DropFrom(r.stored)
}
