//go:build failpoint

package substrate

import (
	"errors"
	"time"

	"github.com/longshore/longshore/substrate/internal/failpoint"
)

// proofDelay is how long a failpoint delays what hits it.
const proofDelay = 40 * time.Millisecond

// arm arms the errand's failpoint if phase is its turn, and returns what is closed when it fires.
func (e *errand) arm(phase string) <-chan struct{} {
	if e.Point == "" || e.Phase != phase {
		return nil
	}
	if e.ThenPoint == "" {
		return failpoint.Arm(e.Point, e.Nth, func() error { return fault(e.Fault, e.Point) })
	}
	then := make(chan struct{})
	failpoint.Arm(e.Point, e.Nth, func() error {
		failpoint.Arm(e.ThenPoint, 1, func() error {
			close(then)
			return fault(e.ThenFault, e.ThenPoint)
		})
		return fault(e.Fault, e.Point)
	})
	return then
}

// fault happens.
func fault(kind, point string) error {
	switch kind {
	case "crash":
		die()
	case "delay":
		time.Sleep(proofDelay)
	case "error":
		return errors.New("injected at " + point)
	}
	return nil
}
