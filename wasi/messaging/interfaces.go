package messaging

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Import modules that this package serves, and the export that it calls.
const (
	moduleTypes     = "wasi:messaging/types@0.2.0-draft"
	moduleProducer  = "wasi:messaging/producer@0.2.0-draft"
	modulePublisher = "longshore:messaging/publisher@0.1.0"

	exportHandle     = "wasi:messaging/incoming-handler@0.2.0-draft#handle"
	exportPostReturn = "cabi_post_" + exportHandle
	exportMemory     = "memory"
)

// ExportInitialize is the function that a module may export to be called once, before anything else.
const ExportInitialize = "_initialize"

// hostFunc is one function that guests import. stack holds its parameters, and takes its result in stack[0].
type hostFunc struct {
	name    string
	params  int  // all i32
	results int  // all i32
	allocs  bool // its result needs memory that the guest allocates
	call    func(ctx context.Context, c *Call, stack []uint64)
}

// hostInterface is one import module.
type hostInterface struct {
	module string
	funcs  []hostFunc
}

// interfaces lists what is served, in the order of the WIT.
func interfaces() []hostInterface {
	return []hostInterface{
		{moduleTypes, []hostFunc{
			{name: "[static]client.connect", params: 3, allocs: true, call: clientConnect},
			{name: "[method]client.disconnect", params: 2, call: clientDisconnect},
			{name: "[resource-drop]client", params: 1, call: clientDrop},
			{name: "[constructor]message", params: 2, results: 1, call: messageNew},
			{name: "[method]message.topic", params: 2, allocs: true, call: messageTopic},
			{name: "[method]message.content-type", params: 2, allocs: true, call: messageContentType},
			{name: "[method]message.set-content-type", params: 3, call: messageSetContentType},
			{name: "[method]message.data", params: 2, allocs: true, call: messageData},
			{name: "[method]message.set-data", params: 3, call: messageSetData},
			{name: "[method]message.metadata", params: 2, allocs: true, call: messageMetadata},
			{name: "[method]message.add-metadata", params: 5, call: messageAddMetadata},
			{name: "[method]message.set-metadata", params: 3, call: messageSetMetadata},
			{name: "[method]message.remove-metadata", params: 3, call: messageRemoveMetadata},
			{name: "[resource-drop]message", params: 1, call: messageDrop},
		}},
		{moduleProducer, []hostFunc{
			{name: "send", params: 5, allocs: true, call: send},
		}},
		{modulePublisher, []hostFunc{
			{name: "publish", params: 2, allocs: true, call: publish},
			{name: "publish-batch", params: 4, allocs: true, call: publishBatch},
		}},
	}
}

// Register makes the interfaces available to all modules of r. Host functions find their Call in the context, see
// Call.Start.
func Register(ctx context.Context, r wazero.Runtime) error {
	for _, i := range interfaces() {
		b := r.NewHostModuleBuilder(i.module)
		for _, f := range i.funcs {
			b.NewFunctionBuilder().WithGoModuleFunction(f.adapt(i.module), i32s(f.params), i32s(f.results)).Export(f.name)
		}
		if _, err := b.Instantiate(ctx); err != nil {
			return fmt.Errorf("messaging: registering %s: %w", i.module, err)
		}
	}
	return nil
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

func i32s(n int) []api.ValueType {
	t := make([]api.ValueType, n)
	for i := range t {
		t[i] = api.ValueTypeI32
	}
	return t
}

// arg reads parameter i of a host function.
func arg(stack []uint64, i int) uint32 { return api.DecodeU32(stack[i]) }
