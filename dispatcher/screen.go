package dispatcher

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

// Hook is code of the host's that looks at deliveries. Both functions may be nil. They are called from many goroutines, must
// not change what they are given, and keep none of it. A panic of theirs fails one delivery, not the host.
type Hook struct {
	// Before is asked once for each delivery, just before the guest is to run; who is nil if nobody signed for the message.
	// After an error the message is buried as "rejected", and the guest doesn't run. The error goes to the host's log.
	Before func(m *substrate.Message, who *signedctx.Verified) error
	// After is told what each delivery came to, whether its guest was run or not.
	After func(m *substrate.Message, r Receipt)
}

// screen looks at what the message asks for, and whether the consumer takes it. Its finding counts if the guest may not see it.
func (c *consumer) screen(d *delivery) (f finding, goesOn bool) {
	o := &d.Message.Options
	if o.Target != "" && o.Target != c.Name {
		return finding{end: atTarget}, false
	}
	if c.filter != nil {
		takes, err := c.filter.Match(forFilter(&d.Message, d.who))
		if err != nil {
			d.cause = err
			return finding{end: atFilterError}, false
		}
		if !takes {
			return finding{end: atFilter}, false
		}
	}
	for _, feature := range o.RequiredFeatures {
		if !slices.Contains(c.Features, feature) {
			d.cause = fmt.Errorf("the message requires the feature %q", feature)
			return finding{end: atFeature}, false
		}
	}
	return finding{}, true
}

// begin does what has to be done just before the guest runs. Its finding counts if the guest may not run.
func (c *consumer) begin(d *delivery) (f finding, goesOn bool) {
	if f, goesOn := c.raiseFence(d); !goesOn {
		return f, false
	}
	if deadline := d.Message.Options.Deadline; !deadline.IsZero() && !time.Now().Before(deadline) {
		return finding{end: atDeadline}, false
	}
	return c.askHooks(d)
}

// askHooks asks each hook in turn, until one rejects.
func (c *consumer) askHooks(d *delivery) (f finding, goesOn bool) {
	defer func() {
		if err := c.recovered(d, recover()); err != nil {
			d.cause = err
			f, goesOn = finding{end: atGuest, outcome: runtime.Outcome{Class: runtime.HostPanic, Err: err}}, false
		}
	}()
	for _, h := range c.hooks {
		if h.Before == nil {
			continue
		}
		if err := h.Before(&d.Message, d.who); err != nil {
			d.cause = errors.New(sanitize(err.Error()))
			return finding{end: atHook}, false
		}
	}
	return finding{}, true
}

// tellHooks tells each hook what the delivery came to.
func (c *consumer) tellHooks(d *delivery, r Receipt) {
	for _, h := range c.hooks {
		if h.After != nil {
			func() {
				defer func() { _ = c.recovered(d, recover()) }()
				h.After(&d.Message, r)
			}()
		}
	}
}

// recovered logs what a panic on the way of a delivery said, and returns it as an error; nil if there was none.
func (c *consumer) recovered(d *delivery, v any) error {
	if v == nil {
		return nil
	}
	err := fmt.Errorf("panic: %.200q", fmt.Sprint(v))
	c.log.Error("the host panicked in a delivery", zap.String("message", d.Message.ID), zap.Error(err), zap.Stack("stack"))
	return err
}
