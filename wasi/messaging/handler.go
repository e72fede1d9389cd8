package messaging

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/longshore/longshore/limits"
)

// handlerKind says how a handler is called and what it answers.
type handlerKind uint8

const (
	batchHandler    handlerKind = iota // list<message> -> result<list<outcome>, error>
	outcomeHandler                     // message -> outcome
	incomingHandler                    // message -> result<_, error>
	brokerHandler                      // broker-message -> result<_, string>
)

// handler is one way to export a handler. All return a pointer.
type handler struct {
	kind                 handlerKind
	iface, version, name string
	params               string // as those of hostFunc
	allocs               bool   // its parameters need memory that the guest allocates
}

// handlers lists them, the preferred ones first.
func handlers() []handler {
	return []handler{
		{batchHandler, "longshore:messaging/batch-handler", ownVersion, "handle-batch", "ii", true},
		{outcomeHandler, "longshore:messaging/outcome-handler", ownVersion, "handle", "i", false},
		{incomingHandler, "wasi:messaging/incoming-handler", draftVersion, "handle", "i", false},
		{incomingHandler, "wasmcloud:messaging/incoming-handler", "0.3.0", "handle", "i", false},
		{brokerHandler, "wasmcloud:messaging/handler", "0.2.0", "handle-message", "iiiiiii", true},
	}
}

// findHandler returns the handler that is exported, and how its name is written. There is none if its name is "".
func findHandler(funcs map[string]api.FunctionDefinition) (handler, *mangling) {
	for _, h := range handlers() {
		for _, names := range []*mangling{&legacy, &standard32} {
			if _, ok := funcs[names.export(h.iface, h.version, h.name)]; ok {
				return h, names
			}
		}
	}
	return handler{}, &legacy
}

// handlerOf returns the handler whose interface, with its version, is given.
func handlerOf(iface string) (handler, bool) {
	for _, h := range handlers() {
		if iface == h.iface+"@"+h.version {
			return h, true
		}
	}
	return handler{}, false
}

// HandlerExport is a way to export a handler.
type HandlerExport struct{ Interface, Function string } // the interface with its version

// Handlers returns the ways in which a module may export its handler, the preferred ones first.
func Handlers() []HandlerExport {
	var all []HandlerExport
	for _, h := range handlers() {
		all = append(all, HandlerExport{h.iface + "@" + h.version, h.name})
	}
	return all
}

// handlerChoice names what a module may export.
func handlerChoice() string {
	var names []string
	for _, h := range handlers() {
		if h.iface[:strings.IndexByte(h.iface, ':')] != "wasmcloud" {
			names = append(names, fmt.Sprintf("%q", legacy.export(h.iface, h.version, h.name)))
		}
	}
	return "one of the exports " + strings.Join(names, ", ")
}

// Handle gives the call's messages to the handler of m, an instance of the module that the call was started on. It returns
// an answer for each message, in their order, or the error that the handler gave for all of them. ctx is that of Start.
//
// err is what ended the call otherwise: it wraps *ABIError, *limits.Error, ErrTimeout, ErrInterrupted, what a host
// function panicked with, or wazero's own error for a trap. The instance must not be used again then.
func (c *Call) Handle(ctx context.Context, m api.Module) (answers []Answer, refused *GuestError, err error) {
	c.bind(m)
	defer func() {
		var abi *ABIError
		if errors.As(err, &abi) && abi.Func == "" {
			abi.Func = c.current
		}
	}()
	if len(c.o.More) > 0 && !c.binding.Batches() {
		return nil, nil, fmt.Errorf("messaging: %d messages for a handler that takes one", 1+len(c.o.More))
	}
	handle := m.ExportedFunction(c.binding.exports.Handler)
	if handle == nil {
		return nil, nil, &ABIError{Func: c.binding.exports.Handler, Problem: "the module doesn't export it"}
	}
	c.current = c.binding.exports.Handler
	var stack [maxFlatParams]uint64
	if err := guarded(func() error { return c.lowerMessages(ctx, stack[:]) }); err != nil {
		return nil, nil, err
	}
	if err := handle.CallWithStack(ctx, stack[:max(len(c.binding.handler.params), 1)]); err != nil {
		return nil, nil, fmt.Errorf("handle: %w", err)
	}
	c.current = c.binding.exports.Handler
	ptr := api.DecodeU32(stack[0])
	err = guarded(func() (err error) {
		answers, refused, err = c.liftAnswers(ptr)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return answers, refused, c.postReturn(ctx, ptr)
}

// maxFlatParams is how many parameters the canonical ABI passes outside of memory.
const maxFlatParams = 16

// guarded returns what f panics with, outside of any guest frame, as an error. What isn't one goes on as a panic.
func guarded(f func() error) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case error:
			err = r
		default:
			panic(r)
		}
	}()
	return f()
}

// lowerMessages puts the call's messages into the handler's parameters.
func (c *Call) lowerMessages(ctx context.Context, params []uint64) error {
	switch c.binding.handler.kind {
	case batchHandler:
		n := 1 + len(c.o.More)
		list := make([]byte, n*int(handleShape.size))
		binary.LittleEndian.PutUint32(list, c.deliver(c.o.Message))
		for i, m := range c.o.More {
			binary.LittleEndian.PutUint32(list[(i+1)*int(handleShape.size):], c.deliver(m))
		}
		ptr := c.guest.alloc(ctx, n, handleShape)
		copy(c.guest.list(ptr, uint32(n), handleShape), list)
		params[0], params[1] = api.EncodeU32(ptr), uint64(n)
	case brokerHandler:
		c.lowerBrokerMessage(ctx, params)
	case outcomeHandler, incomingHandler:
		params[0] = api.EncodeU32(c.deliver(c.o.Message))
	}
	return nil
}

// deliver gives the guest one of the call's messages.
func (c *Call) deliver(m Message) uint32 {
	delivered := &message{Message: m, held: heldBytes(m)}
	delivered.Options = nil
	c.held += delivered.held
	return c.newMessage(delivered)
}

// liftAnswers reads what the handler returned a pointer to.
func (c *Call) liftAnswers(ptr uint32) ([]Answer, *GuestError, error) {
	switch c.binding.handler.kind {
	case batchHandler:
		return c.liftBatch(ptr)
	case outcomeHandler:
		answers := make([]Answer, 1)
		var texts int64
		err := c.liftOutcome(c.guest.value(ptr, outcomeShape), &answers[0], &texts)
		return answers, nil, err
	case brokerHandler:
		return c.liftBrokerResult(ptr)
	case incomingHandler:
	}
	b := c.guest.value(ptr, unitResultShape)
	if checkCase(unitResultShape, b[0]) == 0 {
		return []Answer{{}}, nil, nil
	}
	refused, err := c.liftError(b[unitResultShape.payload:])
	return nil, refused, err
}

// liftBatch reads the result<list<outcome>, error> at ptr. What the guest left out is skipped.
func (c *Call) liftBatch(ptr uint32) ([]Answer, *GuestError, error) {
	b := c.guest.value(ptr, outcomesResultShape)
	if checkCase(outcomesResultShape, b[0]) == 1 {
		refused, err := c.liftError(b[outcomesResultShape.payload:])
		return nil, refused, err
	}
	at, n := getList(b[outcomesResultShape.payload:])
	messages := 1 + len(c.o.More)
	if int64(n) > int64(messages) {
		return nil, nil, &ABIError{Problem: fmt.Sprintf("%d outcomes for %d messages", n, messages)}
	}
	list := c.guest.list(at, n, outcomeShape)
	answers := make([]Answer, messages)
	var texts int64
	for i := range answers {
		if i >= int(n) {
			answers[i].Case = AnswerSkip
			continue
		}
		if err := c.liftOutcome(list[i*int(outcomeShape.size):], &answers[i], &texts); err != nil {
			return nil, nil, err
		}
	}
	return answers, nil, nil
}

// liftOutcome reads an outcome. texts counts the bytes of all texts of the result.
func (c *Call) liftOutcome(b []byte, a *Answer, texts *int64) error {
	a.Case = AnswerCase(checkCase(outcomeShape, b[0]))
	v := b[outcomeShape.payload:]
	switch a.Case {
	case AnswerRetry:
		ms, ok := liftOptionU64(v)
		if ok {
			d := time.Duration(min(ms, uint64(limits.OptionDuration.Milliseconds()))) * time.Millisecond
			a.Delay = &d
		}
	case AnswerReject:
		text, err := c.liftResultText(v, texts)
		a.Text = text
		return err
	case AnswerAck, AnswerSkip:
	}
	return nil
}

// liftError reads an error of wasi:messaging.
func (c *Call) liftError(b []byte) (*GuestError, error) {
	e := &GuestError{Case: ErrorCase(checkCase(errorShape, b[0]))}
	if e.Case == ErrorTimeout {
		return e, nil
	}
	var texts int64
	text, err := c.liftResultText(b[errorShape.payload:], &texts)
	if err != nil {
		return nil, err
	}
	e.Text = text
	return e, nil
}

// liftResultText reads a string of a result, unless it makes all of them too long.
func (c *Call) liftResultText(b []byte, texts *int64) (string, error) {
	at, n := getList(b)
	*texts += int64(n)
	if err := limits.Check(limits.NameResultBytes, *texts, c.o.Limits.ResultBytes); err != nil {
		return "", err
	}
	return string(c.guest.text(at, n)), nil
}

// postReturn lets the guest free its result, if it wants to.
func (c *Call) postReturn(ctx context.Context, ptr uint32) error {
	post := c.guest.module.ExportedFunction(c.binding.exports.PostReturn)
	if post == nil {
		return nil
	}
	c.guest.busy = true
	defer func() { c.guest.busy = false }()
	stack := [1]uint64{api.EncodeU32(ptr)}
	if err := post.CallWithStack(ctx, stack[:]); err != nil {
		return fmt.Errorf("post-return: %w", err)
	}
	return nil
}
