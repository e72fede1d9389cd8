//go:build wasip1

package longshore

// Imports. A string is passed as its address and length; a pointer keeps what it points to alive during the call.

//go:wasmimport wasi:messaging/types@0.2.0-draft [static]client.connect
func abiClientConnect(name string, ret *area)

//go:wasmimport wasi:messaging/types@0.2.0-draft [resource-drop]client
func abiClientDrop(client uint32)

//go:wasmimport wasi:messaging/types@0.2.0-draft [constructor]message
func abiMessageNew(data *byte, length uint32) uint32

//go:wasmimport wasi:messaging/types@0.2.0-draft [resource-drop]message
func abiMessageDrop(message uint32)

//go:wasmimport wasi:messaging/types@0.2.0-draft [method]message.topic
func abiMessageTopic(message uint32, ret *area)

//go:wasmimport wasi:messaging/types@0.2.0-draft [method]message.content-type
func abiMessageContentType(message uint32, ret *area)

//go:wasmimport wasi:messaging/types@0.2.0-draft [method]message.set-content-type
func abiMessageSetContentType(message uint32, contentType string)

//go:wasmimport wasi:messaging/types@0.2.0-draft [method]message.data
func abiMessageData(message uint32, ret *area)

//go:wasmimport wasi:messaging/types@0.2.0-draft [method]message.metadata
func abiMessageMetadata(message uint32, ret *area)

//go:wasmimport wasi:messaging/types@0.2.0-draft [method]message.set-metadata
func abiMessageSetMetadata(message uint32, pairs *uint64, length uint32)

//go:wasmimport wasi:messaging/producer@0.2.0-draft send
func abiSend(client uint32, topic string, message uint32, ret *area)

//go:wasmimport wasi:messaging/request-reply@0.2.0-draft [constructor]request-options
func abiRequestOptionsNew() uint32

//go:wasmimport wasi:messaging/request-reply@0.2.0-draft [method]request-options.set-timeout-ms
func abiRequestOptionsSetTimeout(options, millis uint32)

//go:wasmimport wasi:messaging/request-reply@0.2.0-draft [method]request-options.set-expected-replies
func abiRequestOptionsSetReplies(options, replies uint32)

//go:wasmimport wasi:messaging/request-reply@0.2.0-draft request
func abiRequest(client uint32, topic string, message, some, options uint32, ret *area)

//go:wasmimport wasi:messaging/request-reply@0.2.0-draft reply
func abiReply(to, message uint32, ret *area)

//go:wasmimport longshore:messaging/publisher@0.1.0 publish-batch
func abiPublishBatch(client uint32, batch *uint64, length uint32, ret *area)

//go:wasmimport longshore:messaging/publisher@0.1.0 publish-atomic
func abiPublishAtomic(client uint32, batch *uint64, length uint32, ret *area)

//go:wasmimport longshore:messaging/publisher@0.1.0 publish
func abiPublish(arguments *uint64, ret *area)

//go:wasmimport longshore:messaging/delivery@0.1.0 info
func abiInfo(message uint32, ret *infoArea)

//go:wasmimport longshore:messaging/delivery@0.1.0 time-left
func abiTimeLeft() uint64

//go:wasmimport longshore:messaging/delivery@0.1.0 draining
func abiDraining() uint32

//go:wasmimport wasi:logging/logging@0.1.0-draft log
func abiLog(level uint32, context, text string)

//go:wasmimport wasi:config/store@0.2.0-draft get
func abiConfigGet(key string, ret *area)

//go:wasmimport wasi:keyvalue/store@0.2.0-draft open
func abiStoreOpen(name string, ret *area)

//go:wasmimport wasi:keyvalue/store@0.2.0-draft [resource-drop]bucket
func abiBucketDrop(bucket uint32)

//go:wasmimport wasi:keyvalue/store@0.2.0-draft [method]bucket.get
func abiBucketGet(bucket uint32, key string, ret *area)

//go:wasmimport wasi:keyvalue/store@0.2.0-draft [method]bucket.set
func abiBucketSet(bucket uint32, key string, value *byte, length uint32, ret *area)

//go:wasmimport wasi:keyvalue/store@0.2.0-draft [method]bucket.delete
func abiBucketDelete(bucket uint32, key string, ret *area)

//go:wasmimport wasi:keyvalue/store@0.2.0-draft [method]bucket.exists
func abiBucketExists(bucket uint32, key string, ret *area)

//go:wasmimport wasi:keyvalue/store@0.2.0-draft [method]bucket.list-keys
func abiBucketListKeys(bucket, some uint32, cursor uint64, ret *area)

// Exports.

//go:wasmexport wasi:messaging/incoming-handler@0.2.0-draft#handle
func abiHandle(message uint32) uint32 { return guest.handle(message) }

//go:wasmexport cabi_post_wasi:messaging/incoming-handler@0.2.0-draft#handle
func abiPostHandle(uint32) { guest.postReturn() }

//go:wasmexport cabi_realloc
func abiRealloc(old, oldSize, align, size uint32) uint32 {
	return guest.heap.realloc(old, oldSize, align, size)
}

//go:wasmexport longshore:guest/warm-up@0.1.0
func abiWarmUp() { guest.warm() }
