package messaging

import (
	"context"
	"strings"

	"github.com/tetratelabs/wazero/api"
)

// hostFunc is one function that guests import. name is that of the legacy mangling. Each letter of params and results is
// a parameter or result: i = i32, l = i64, f = f32, d = f64. The stack holds the parameters, and takes the result in stack[0].
type hostFunc struct {
	name    string
	params  string
	results string
	allocs  bool // its result needs memory that the guest allocates
	call    func(ctx context.Context, c *Call, stack []uint64)
}

// hostInterface is one interface as guests import it.
type hostInterface struct {
	name     string   // without the version
	versions []string // "" = none; one that ends in ".*" stands for all releases that begin so
	draft    Draft    // of wasi:messaging that has it in this form; "" = any
	funcs    []hostFunc
}

// Packages and their versions.
const (
	draftVersion = "0.2.0-draft" // of wasi:messaging, whatever the draft
	ownVersion   = "0.1.0"       // of longshore:messaging

	ifaceTypes        = "wasi:messaging/types"
	ifaceProducer     = "wasi:messaging/producer"
	ifaceRequestReply = "wasi:messaging/request-reply"
	ifacePublisher    = "longshore:messaging/publisher"
	ifaceDelivery     = "longshore:messaging/delivery"
)

// Draft is one of the drafts of wasi:messaging that share a version.
type Draft string

// The drafts that are served.
const (
	// DraftC is that of December 2024 and later.
	DraftC Draft = "draft-c"
	// DraftB is that of a few weeks before: message.topic returns a plain string, and request takes no topic.
	DraftB Draft = "draft-b"
)

// interfaces lists all that is served, in the order of the WIT.
func interfaces() []hostInterface {
	var all []hostInterface
	for _, list := range [][]hostInterface{messagingInterfaces(), ownInterfaces(), wasmcloudInterfaces(), besideInterfaces(), keyvalueInterfaces(), wasi2Interfaces()} {
		all = append(all, list...)
	}
	return all
}

// messagingInterfaces are those of wasi:messaging. wasmCloud published draft C as its own 0.3.0.
func messagingInterfaces() []hostInterface {
	var all []hostInterface
	add := func(iface string, draft Draft, funcs ...hostFunc) {
		all = append(all, hostInterface{name: iface, versions: []string{draftVersion}, draft: draft, funcs: funcs})
		if draft != DraftB {
			alias := strings.Replace(iface, "wasi:", "wasmcloud:", 1)
			all = append(all, hostInterface{name: alias, versions: []string{"0.3.0"}, funcs: funcs})
		}
	}
	topicB := hostFunc{name: "[method]message.topic", params: "ii", allocs: true, call: messageTopicB}
	topicC := hostFunc{name: "[method]message.topic", params: "ii", allocs: true, call: messageTopic}
	requestB := hostFunc{name: "request", params: "iiiii", allocs: true, call: requestWithoutTopic}
	requestC := hostFunc{name: "request", params: "iiiiiii", allocs: true, call: request}
	add(ifaceTypes, DraftC, append(typesFuncs(), topicC)...)
	add(ifaceTypes, DraftB, append(typesFuncs(), topicB)...)
	add(ifaceProducer, "", hostFunc{name: "send", params: "iiiii", allocs: true, call: send})
	add(ifaceRequestReply, DraftC, append(requestReplyFuncs(), requestC)...)
	add(ifaceRequestReply, DraftB, append(requestReplyFuncs(), requestB)...)
	return all
}

// typesFuncs are the functions of types that all drafts share.
func typesFuncs() []hostFunc {
	return []hostFunc{
		{name: "[static]client.connect", params: "iii", allocs: true, call: clientConnect},
		{name: "[method]client.disconnect", params: "ii", call: clientDisconnect},
		{name: "[resource-drop]client", params: "i", call: clientDrop},
		{name: "[constructor]message", params: "ii", results: "i", call: messageNew},
		{name: "[method]message.content-type", params: "ii", allocs: true, call: messageContentType},
		{name: "[method]message.set-content-type", params: "iii", call: messageSetContentType},
		{name: "[method]message.data", params: "ii", allocs: true, call: messageData},
		{name: "[method]message.set-data", params: "iii", call: messageSetData},
		{name: "[method]message.metadata", params: "ii", allocs: true, call: messageMetadata},
		{name: "[method]message.add-metadata", params: "iiiii", call: messageAddMetadata},
		{name: "[method]message.set-metadata", params: "iii", call: messageSetMetadata},
		{name: "[method]message.remove-metadata", params: "iii", call: messageRemoveMetadata},
		{name: "[resource-drop]message", params: "i", call: messageDrop},
	}
}

// requestReplyFuncs are the functions of request-reply that all drafts share.
func requestReplyFuncs() []hostFunc {
	return []hostFunc{
		{name: "[constructor]request-options", results: "i", call: requestOptionsNew},
		{name: "[method]request-options.set-timeout-ms", params: "ii", call: requestOptionsSetTimeout},
		{name: "[method]request-options.set-expected-replies", params: "ii", call: requestOptionsSetReplies},
		{name: "[resource-drop]request-options", params: "i", call: requestOptionsDrop},
		{name: "reply", params: "iii", allocs: true, call: reply},
	}
}

// ownInterfaces are those of longshore:messaging. Its interface types has no functions: what is imported from there are
// the resources of wasi:messaging.
func ownInterfaces() []hostInterface {
	own := []string{ownVersion}
	return []hostInterface{
		{name: ifacePublisher, versions: own, funcs: []hostFunc{
			{name: "publish", params: "ii", allocs: true, call: publish},
			{name: "publish-batch", params: "iiii", allocs: true, call: publishBatch},
			{name: "publish-atomic", params: "iiii", allocs: true, call: publishAtomic},
		}},
		{name: ifaceDelivery, versions: own, funcs: []hostFunc{
			{name: "info", params: "ii", allocs: true, call: deliveryInfo},
			{name: "time-left", results: "l", call: timeLeft},
			{name: "draining", results: "i", call: draining},
		}},
	}
}

// wasmcloudInterfaces are those of wasmcloud:messaging before it took over wasi:messaging.
func wasmcloudInterfaces() []hostInterface {
	return []hostInterface{{name: "wasmcloud:messaging/consumer", versions: []string{"0.2.0"}, funcs: []hostFunc{
		{name: "publish", params: "iiiiiiii", allocs: true, call: brokerPublish},
		{name: "request", params: "iiiiii", allocs: true, call: brokerRequest},
	}}}
}

// besideInterfaces are those beside messaging.
func besideInterfaces() []hostInterface {
	return []hostInterface{
		{name: "wasi:logging/logging", versions: []string{"", "0.1.0-draft"}, funcs: []hostFunc{
			{name: "log", params: "iiiii", call: logLine},
		}},
		{name: "wasi:config/store", versions: []string{draftVersion, "0.2.0-rc.1"}, funcs: []hostFunc{
			{name: "get", params: "iii", allocs: true, call: configGet},
			{name: "get-all", params: "i", allocs: true, call: configGetAll},
		}},
	}
}

// adapt makes f what wazero calls: without reflection, with the checks that every host function begins with.
func (f hostFunc) adapt(module string) api.GoModuleFunc {
	name := module + " " + f.name
	return func(ctx context.Context, m api.Module, stack []uint64) {
		c := FromContext(ctx)
		c.Enter(ctx)
		c.bind(m)
		c.current = name
		if c.guest.busy {
			panic(&ABIError{Problem: "called while the guest may not leave realloc or post-return"})
		}
		f.call(ctx, c, stack)
	}
}

// valueTypes returns what the letters of a signature stand for.
func valueTypes(letters string) []api.ValueType {
	t := make([]api.ValueType, len(letters))
	for i, l := range letters {
		switch l {
		case 'l':
			t[i] = api.ValueTypeI64
		case 'f':
			t[i] = api.ValueTypeF32
		case 'd':
			t[i] = api.ValueTypeF64
		default:
			t[i] = api.ValueTypeI32
		}
	}
	return t
}

// arg reads parameter i of a host function.
func arg(stack []uint64, i int) uint32 { return api.DecodeU32(stack[i]) }
