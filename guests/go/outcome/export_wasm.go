//go:build wasip1

package outcome

import "github.com/longshore/longshore/guests/go/internal/hook"

//go:wasmexport longshore:messaging/outcome-handler@0.1.0#handle
func abiHandle(message uint32) uint32 { return hook.Longshore.Decide(message) }

//go:wasmexport cabi_post_longshore:messaging/outcome-handler@0.1.0#handle
func abiPostHandle(uint32) { hook.Longshore.PostReturn() }
