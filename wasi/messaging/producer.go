package messaging

import "context"

// send is producer's send: func(c: borrow<client>, topic: topic, message: message) -> result<_, error>. The message is
// the host's from then on, even if it is refused.
//
//	client, topic ptr, topic len, message, ret | result<_, error>
func send(ctx context.Context, c *Call, stack []uint64) {
	from := lookup[*client](&c.handles, arg(stack, 0))
	m := c.takeMessage(arg(stack, 3))
	topic, refused := c.topic(arg(stack, 1), arg(stack, 2))
	if refused == nil {
		_, refused = c.post(ctx, from, topic, &m)
	}
	c.returnError(ctx, arg(stack, 4), unitResultShape, refused.forSend())
}
