package substrate

import (
	"time"

	"github.com/longshore/longshore/limits"
)

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
	idle := time.NewTimer(limits.ReclaimIdle)
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
			idle.Reset(limits.ReclaimIdle)
		case <-idle.C:
			if k.freed >= limits.ReclaimBytes || k.pressed() {
				k.failed(k.tidy())
			}
		}
	}
}

// pressed reports whether the disk is nearly full and there is something to gain from tidying now.
func (k *keeper) pressed() bool {
	return k.freed > 0 && time.Since(k.tidied) >= limits.ReclaimPause && k.log.space.look().admits(needMuch) != nil
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
	k.freed, k.tidied = 0, time.Now()
	return k.log.store.Reclaim()
}

// failed stops the log if it could not be tidied between two batches.
func (k *keeper) failed(err error) {
	if err != nil {
		k.log.fault(err)
	}
}
