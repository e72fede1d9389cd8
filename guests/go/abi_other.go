//go:build !wasip1

package longshore

// Outside WebAssembly there is no host to call.
const noHost = "longshore: there is no host: build with GOOS=wasip1 GOARCH=wasm"

func abiClientConnect(string, *area)                  { panic(noHost) }
func abiClientDrop(uint32)                            { panic(noHost) }
func abiMessageNew(*byte, uint32) uint32              { panic(noHost) }
func abiMessageDrop(uint32)                           { panic(noHost) }
func abiMessageTopic(uint32, *area)                   { panic(noHost) }
func abiMessageContentType(uint32, *area)             { panic(noHost) }
func abiMessageSetContentType(uint32, string)         { panic(noHost) }
func abiMessageData(uint32, *area)                    { panic(noHost) }
func abiMessageMetadata(uint32, *area)                { panic(noHost) }
func abiMessageSetMetadata(uint32, *uint64, uint32)   { panic(noHost) }
func abiSend(uint32, string, uint32, *area)           { panic(noHost) }
func abiPublishBatch(uint32, *uint64, uint32, *area)  { panic(noHost) }
func abiPublishAtomic(uint32, *uint64, uint32, *area) { panic(noHost) }
func abiPublish(*uint64, *area)                       { panic(noHost) }
func abiInfo(uint32, *infoArea)                       { panic(noHost) }
func abiTimeLeft() uint64                             { panic(noHost) }
func abiDraining() uint32                             { panic(noHost) }
func abiLog(uint32, string, string)                   { panic(noHost) }

func abiRequestOptionsNew() uint32                             { panic(noHost) }
func abiRequestOptionsSetTimeout(uint32, uint32)               { panic(noHost) }
func abiRequestOptionsSetReplies(uint32, uint32)               { panic(noHost) }
func abiRequest(uint32, string, uint32, uint32, uint32, *area) { panic(noHost) }
func abiReply(uint32, uint32, *area)                           { panic(noHost) }

func abiConfigGet(string, *area)                        { panic(noHost) }
func abiStoreOpen(string, *area)                        { panic(noHost) }
func abiBucketDrop(uint32)                              { panic(noHost) }
func abiBucketGet(uint32, string, *area)                { panic(noHost) }
func abiBucketSet(uint32, string, *byte, uint32, *area) { panic(noHost) }
func abiBucketDelete(uint32, string, *area)             { panic(noHost) }
func abiBucketExists(uint32, string, *area)             { panic(noHost) }
func abiBucketListKeys(uint32, uint32, uint64, *area)   { panic(noHost) }
