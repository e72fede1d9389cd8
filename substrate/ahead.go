package substrate

import (
	"fmt"

	"github.com/longshore/longshore/substrate/internal/store"
)

// checkAhead refuses a store that has messages of which neither its checkpoint nor the journal tells. Messages are stored
// before the checkpoint that names them, but never before their frames are durable: so the journal has lost those frames.
func (r *recovery) checkAhead() error {
	for _, t := range r.state.topics {
		key := t.key()
		ahead := uint64(0)
		err := r.store.Scan(key.Messages(), key.Message(r.state.nextPosition), func(k, _ []byte, _ error) bool {
			ahead = store.Position(k)
			return false
		})
		if err != nil {
			return err
		}
		if ahead != 0 {
			return fmt.Errorf("%w: the store has a message at position %d of topic %s of tenant %s, and the journal ends before that",
				ErrDamaged, ahead, t.name.Topic, t.name.Tenant)
		}
	}
	return nil
}
