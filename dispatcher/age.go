package dispatcher

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/longshore/longshore/signedctx"
)

// checkAge refuses a genuine message that is older than its topic allows. The age counts from when the message was sealed,
// delays included, or from its last redrive: who redrives a message wants it handled.
func (c *consumer) checkAge(d *delivery, v signedctx.Verified) (finding, bool) {
	most := c.maxAge(c.Tenant, c.Topic)
	if most == 0 {
		return finding{}, true
	}
	since := v.SealedAt
	if at := c.redrivenAt(d); at.After(since) {
		since = at
	}
	if age := time.Since(since); age > most {
		d.cause = fmt.Errorf("the message is %s old: max_age of its topic is %s", age.Round(time.Millisecond), most)
		return finding{end: atContext, refusal: signedctx.ClassExpired}, false
	}
	return finding{}, true
}

// redrivenAt returns when a message was redriven last, if the record of that is genuine, else the zero time.
func (c *consumer) redrivenAt(d *delivery) time.Time {
	if d.Operator == "" {
		return time.Time{}
	}
	by, err := c.context.VerifyOperator(d.Operator, d.Message.Envelope, Binding(d.Message))
	if err != nil {
		c.log.Warn("the record of a redrive does not verify: the message's age counts from its publication",
			zap.String("message", d.Message.ID), zap.Error(err))
		return time.Time{}
	}
	return by.At
}

// anyAge is the MaxAge of a dispatcher without one.
func anyAge(_, _ string) time.Duration { return 0 }
