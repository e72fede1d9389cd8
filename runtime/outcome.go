package runtime

import (
	"fmt"
	"time"

	"github.com/longshore/longshore/wasi/messaging"
)

// Class says how a guest call ended.
type Class uint8

// The classes. All but OK, Interrupted and ModuleFault are the message's doing, as far as the host can tell.
const (
	OK            Class = iota // the handler answered; Answers are what
	GuestError                 // the handler returned an error, for all messages; Detail is its case
	Trap                       // a WebAssembly trap; Detail is its kind
	OutOfFuel                  // used more instructions than allowed
	Timeout                    // still running at the deadline
	OutOfMemory                // failed after it was refused memory, or made the host hold too much
	StackOverflow              // calls nested too deep
	Exit                       // called proc_exit; Detail is the code
	BadABI                     // broke the canonical ABI
	HostCallLimit              // called the host too often
	HandleLimit                // held too many resources
	OutputLimit                // wrote too much log, or returned too large a result
	HostPanic                  // a host function panicked: a defect of the host
	Interrupted                // ctx was cancelled: the host stops, or the lease is lost
	ModuleFault                // the module couldn't be instantiated or initialised, or is closed
)

// String returns the class as failure reasons name it.
func (c Class) String() string {
	names := [...]string{
		"ok", "guest-error", "guest-trap", "out-of-fuel", "timeout", "out-of-memory", "stack-overflow", "exit", "bad-abi",
		"host-call-limit", "handle-limit", "output-limit", "host-panic", "interrupted", "module-fault",
	}
	if int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("class %d", uint8(c))
}

// Outcome is the result of one call and what it used.
type Outcome struct {
	Class           Class
	Answers         []messaging.Answer // of OK: one for each message of the call, in their order
	Detail          string             // one of the host's own words: an error case, a trap kind, an exit code
	Err             error              // what happened, for the log, safe to print; nil for OK and GuestError
	GuestText       string             // the text of a GuestError: untrusted
	FuelUsed        int64              // instructions
	Wall            time.Duration
	PeakMemoryBytes int64 // linear memory at the end of the call, which never shrinks
	HostCalls       int64
}

// Reason returns the outcome as the short, enumerated text that failure reasons use, all in the host's words: "" for OK.
func (o Outcome) Reason() string {
	switch o.Class {
	case OK:
		return ""
	case GuestError, Trap:
		return o.Class.String() + ": " + o.Detail
	case Exit:
		return o.Class.String() + " " + o.Detail
	case OutOfFuel, Timeout, OutOfMemory, StackOverflow, BadABI, HostCallLimit, HandleLimit, OutputLimit, HostPanic,
		Interrupted, ModuleFault:
	}
	return o.Class.String()
}
