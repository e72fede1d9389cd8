package substrate

import (
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/failpoint"
)

// housekeeping says when the space of what was deleted is given back, beside when the disk is nearly full.
type housekeeping struct {
	idle  time.Duration // that the store has nothing to do before that; 0 means limits.ReclaimIdle
	bytes int64         // deleted since the last time; 0 means limits.ReclaimBytes

	eraseKeys int    // of a tenant that are deleted with one batch; 0 means limits.EraseKeys
	erasing   func() // told before each such batch; tests look at what is on disk then
}

func (h housekeeping) withDefaults() housekeeping {
	if h.idle == 0 {
		h.idle = limits.ReclaimIdle
	}
	if h.bytes == 0 {
		h.bytes = limits.ReclaimBytes
	}
	if h.eraseKeys == 0 {
		h.eraseKeys = limits.EraseKeys
	}
	return h
}

// keeper is the goroutine behind the write-behind, the only one that writes to the store: it stores batches, and keeps
// house when there are none.
type keeper struct {
	log     *Log
	batches <-chan *batch
	stored  chan<- error // one answer for each batch

	freed  int64     // bytes deleted since the space was last given back
	tidied time.Time // when that was
}

// run stores batches until there are no more.
func (k *keeper) run() {
	defer close(k.stored)
	idle := time.NewTimer(k.log.housekeeping.idle)
	defer idle.Stop()
	for {
		select {
		case b, more := <-k.batches:
			if !more {
				return
			}
			err := k.log.storeBatch(b)
			k.freed += b.freed
			if err == nil && (k.pressed() || k.worn()) {
				err = k.tidy() // before the answer: there is no room to go on with, or will not be
			}
			k.stored <- err
			idle.Reset(k.log.housekeeping.idle)
		case <-idle.C:
			switch {
			case k.log.store.Snapshots(): // a backup holds what was deleted
				idle.Reset(k.log.housekeeping.idle)
			case k.freed >= k.log.housekeeping.bytes || k.pressed():
				k.failed(k.tidy())
			}
		}
	}
}

// pressed reports whether the disk is nearly full and there is something to gain from tidying now.
func (k *keeper) pressed() bool {
	return k.freed > 0 && time.Since(k.tidied) >= limits.ReclaimPause && !k.log.store.Snapshots() && k.log.space.look().admits(needMuch) != nil
}

// worn reports whether so much was deleted that tidying can't wait until there is nothing else to do: as much as is left.
func (k *keeper) worn() bool {
	if k.freed < limits.ReclaimBusyBytes {
		return false
	}
	held, err := k.log.store.ValueLogBytes()
	return err == nil && k.freed >= held/2
}

// tidy gives back the space of what was deleted.
func (k *keeper) tidy() error {
	if err := failpoint.Hit("keeper.tidy"); err != nil {
		return err
	}
	k.freed, k.tidied = 0, time.Now()
	return k.log.store.Reclaim()
}

// failed stops the log if it could not be tidied between two batches.
func (k *keeper) failed(err error) {
	if err != nil {
		k.log.fault(err)
	}
}
