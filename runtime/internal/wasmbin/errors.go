package wasmbin

import (
	"errors"
	"fmt"
)

// ErrComponent is wrapped by the DecodeError for a WebAssembly component, which wraps core modules and isn't one.
var ErrComponent = errors.New("a WebAssembly component, not a core module")

// DecodeError says why bytes are not a module that Decode accepts. Its text quotes nothing from the module unescaped.
type DecodeError struct {
	Offset  int    // bytes from the start of the module
	Section string // "header", "type", "import", …, in the words of the WebAssembly specification
	Msg     string // what is wrong there
	Feature string // not empty: the module is refused because it uses this feature, which Longshore doesn't run
	Err     error  // nil, or a sentinel of this package
}

// Error implements error.
func (e *DecodeError) Error() string {
	if e.Feature != "" {
		return fmt.Sprintf("offset %#x, %s section: %s: the feature %s is not supported", e.Offset, e.Section, e.Msg, e.Feature)
	}
	return fmt.Sprintf("offset %#x, %s section: %s", e.Offset, e.Section, e.Msg)
}

// Unwrap returns the sentinel.
func (e *DecodeError) Unwrap() error { return e.Err }

// Features that Decode refuses, as DecodeError.Feature names them.
const (
	FeatureThreads     = "threads"
	FeatureExceptions  = "exception handling"
	FeatureMemory64    = "memory64"
	FeatureMultiMemory = "multiple memories"
	FeatureGC          = "garbage collection"
	FeatureFuncRefs    = "typed function references"
	FeatureRelaxedSIMD = "relaxed SIMD"
)
