package messaging

import (
	"context"

	"github.com/longshore/longshore/limits"
)

// logLevels are the cases of wasi:logging's enum level.
var logLevels = [...]string{"trace", "debug", "info", "warn", "error", "critical"}

// logLine is wasi:logging's log: func(level: level, context: string, message: string). Its lines go to the call's log, as
// the stream of their level, each after the context.
//
//	level, context ptr, len, message ptr, len
func logLine(_ context.Context, c *Call, stack []uint64) {
	level := logLevels[checkFlatCase(uint32(len(logLevels)), arg(stack, 0))]
	where := c.guest.text(arg(stack, 1), arg(stack, 2))
	text := c.guest.text(arg(stack, 3), arg(stack, 4))
	if n := int64(len(where)) + int64(len(text)); n > c.o.Limits.LogBytes {
		panic(&limits.Error{Name: limits.NameLogBytes, Limit: c.o.Limits.LogBytes, Actual: n})
	}
	line := make([]byte, 0, len(where)+len(text)+3)
	if len(where) > 0 {
		line = append(append(line, where...), ": "...)
	}
	c.WriteLog(level, append(append(line, text...), '\n'))
}

// configGet is wasi:config's get: func(key: string) -> result<option<string>, error>.
//
//	key ptr, len, ret | result<option<string>, error>
func configGet(ctx context.Context, c *Call, stack []uint64) {
	key := c.guest.text(arg(stack, 0), arg(stack, 1))
	b := make([]byte, configResultShape.size)
	for _, p := range c.o.Config {
		if p.Key == string(key) { // a comparison, which doesn't copy
			v := b[configResultShape.payload:]
			v[0] = 1
			c.guest.lowerText(ctx, v[optionTextShape.payload:], p.Value)
			break
		}
	}
	c.guest.store(arg(stack, 2), configResultShape, b)
}

// configGetAll is wasi:config's get-all: func() -> result<list<tuple<string, string>>, error>.
//
//	ret | result<list<tuple<string, string>>, error>
func configGetAll(ctx context.Context, c *Call, stack []uint64) {
	b := make([]byte, configAllShape.size)
	c.guest.lowerPairs(ctx, b[configAllShape.payload:], c.o.Config)
	c.guest.store(arg(stack, 0), configAllShape, b)
}
