package dispatcher

import "time"

// State says what a consumer is doing.
type State string

// States of a consumer.
const (
	StateIdle      State = "idle"      // not started yet
	StateRunning   State = "running"   // claiming and handling
	StateHolding   State = "holding"   // not claiming for a while, for Reason; goes on by itself
	StateUnhealthy State = "unhealthy" // the storage failed limits.StorageErrorsInARow times in a row; still trying
	StatePaused    State = "paused"    // stopped for Reason until an operator has seen to it: see Dispatcher.Resume
	StateStopped   State = "stopped"   // the dispatcher was stopped
)

// ConsumerStatus is what a consumer is doing now.
type ConsumerStatus struct {
	Name     string
	Tenant   string
	Topic    string
	Lane     string
	Module   string // hex SHA-256
	Version  string // of the deployment
	State    State
	Reason   string    // why it is holding, unhealthy or paused; a reason as messages have them, or ""
	Since    time.Time // when it entered the state
	InFlight int       // messages claimed and not yet settled
	Canary   *CanaryStatus
	Draining int // messages that versions before a Swap claimed, and have not yet settled
}
