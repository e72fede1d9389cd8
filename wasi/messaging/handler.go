package messaging

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero/api"

	"github.com/longshore/longshore/limits"
)

// Handle gives the call's message to the handler that in exports, and returns the error that the handler answered, or
// nil. ctx is the one of Start.
//
// err is what ended the call otherwise: it wraps *ABIError, *limits.Error, ErrTimeout, ErrInterrupted, what a host
// function panicked with, or wazero's own error for a trap. The instance must not be used again then.
func (c *Call) Handle(ctx context.Context, in *Instance) (answer *GuestError, err error) {
	c.guest = &in.guest
	defer func() {
		var abi *ABIError
		if errors.As(err, &abi) && abi.Func == "" {
			abi.Func = c.current
		}
	}()
	handle := c.guest.export(&c.guest.handle, exportHandle)
	if handle == nil {
		return nil, &ABIError{Func: exportHandle, Problem: "the module doesn't export it"}
	}
	delivered := &message{Message: c.o.Message, held: heldBytes(c.o.Message)}
	c.held += delivered.held
	stack := [1]uint64{api.EncodeU32(c.newMessage(delivered))}
	if err := handle.CallWithStack(ctx, stack[:]); err != nil {
		return nil, fmt.Errorf("handle: %w", err)
	}
	c.current = exportHandle
	ptr := api.DecodeU32(stack[0])
	if answer, err = c.liftAnswer(ptr); err != nil {
		return nil, err
	}
	return answer, c.postReturn(ctx, ptr)
}

// liftAnswer reads the result<_, error> at ptr. What breaks the ABI or a bound is returned, not panicked.
func (c *Call) liftAnswer(ptr uint32) (answer *GuestError, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *ABIError:
			err = r
		default:
			panic(r)
		}
	}()
	b := c.guest.value(ptr, unitResultShape)
	if checkCase(unitResultShape, b[0]) == 0 {
		return nil, nil //nolint:nilnil // ok: no answer, no failure
	}
	v := b[unitResultShape.payload:]
	answer = &GuestError{Case: ErrorCase(checkCase(errorShape, v[0]))}
	if answer.Case == ErrorTimeout {
		return answer, nil
	}
	at, n := getList(v[errorShape.payload:])
	if err := limits.Check(limits.NameResultBytes, int64(n), c.o.Limits.ResultBytes); err != nil {
		return nil, err
	}
	answer.Text = string(c.guest.text(at, n))
	return answer, nil
}

// postReturn lets the guest free its result, if it wants to.
func (c *Call) postReturn(ctx context.Context, ptr uint32) error {
	post := c.guest.export(&c.guest.postReturn, exportPostReturn)
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
