package dispatcher

import (
	"fmt"
	"time"

	"github.com/longshore/longshore/signedctx"
)

// checkAge refuses a genuine message that is older than its topic allows. The age counts from when the message was sealed,
// delays included, or from its last redrive: who redrives a message wants it handled.
func (c *consumer) checkAge(d *delivery, v signedctx.Verified) (finding, bool) {
	most := c.maxAge(c.Tenant, c.Topic)
	since := v.SealedAt
	if at := signedctx.ParseOperator(d.Operator).At; at.After(since) {
		since = at
	}
	if age := time.Since(since); most > 0 && age > most {
		d.cause = fmt.Errorf("the message is %s old: max_age of its topic is %s", age.Round(time.Millisecond), most)
		return finding{end: atContext, refusal: signedctx.ClassExpired}, false
	}
	return finding{}, true
}

// anyAge is the MaxAge of a dispatcher without one.
func anyAge(_, _ string) time.Duration { return 0 }
