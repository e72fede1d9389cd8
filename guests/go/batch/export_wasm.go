//go:build wasip1

package batch

import "github.com/longshore/longshore/guests/go/internal/hook"

//go:wasmexport longshore:messaging/batch-handler@0.1.0#handle-batch
func abiHandleBatch(messages, count uint32) uint32 {
	return hook.Longshore.HandleBatch(messages, count)
}

//go:wasmexport cabi_post_longshore:messaging/batch-handler@0.1.0#handle-batch
func abiPostHandleBatch(uint32) { hook.Longshore.PostReturn() }
