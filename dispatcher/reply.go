package dispatcher

import (
	"strings"
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/wasi/messaging"
)

// reply is an answer to a request, in the outbox of the call that gives it. It is handed to who asked once the handling of
// the request is acknowledged, and with nothing else.
type reply struct {
	request string // id of its message
	address string
	message messaging.Message
}

// reply takes a reply to one of the call's messages, if that is a request that a consumer of this tenant made: whom it names
// as its asker counts only under the seal of a host.
func (c *consumer) reply(r *run, to, m messaging.Message) (messaging.Admission, *messaging.PublishError) {
	d := r.delivery(to.Info.ID)
	if d == nil || d.who == nil || !strings.HasPrefix(d.who.Subject, subjectPrefix) ||
		c.inquiries.isAnothers(to.Info.ReplyTo, c.Tenant, d.Message.ID) {
		c.inquiries.refused()
		return messaging.Admission{}, &messaging.PublishError{
			Case: messaging.Unauthorized, Text: "the message isn't a request that a consumer made",
		}
	}
	hops := d.Message.Hops + 1
	err := limits.Check(limits.NameHops, int64(hops), limits.Hops)
	if err == nil {
		err = limits.Check(limits.NameReplyBytes, replyBytes(m), limits.ReplyBytes)
	}
	if err != nil {
		return messaging.Admission{}, refusalFor(err)
	}
	now := time.Now()
	m.Info = &messaging.Info{
		ID: c.queue.MintID(), Attempt: 1, MaxAttempts: 1, Published: now, Parent: d.Message.ID, Hops: hops,
		Claims: &messaging.Claims{Tenant: c.Tenant, Subject: c.principal.Subject, Issuer: d.who.Issuer, IssuedAt: now},
	}
	return messaging.Admission{ID: m.Info.ID, Token: &reply{request: d.Message.ID, address: to.Info.ReplyTo, message: m}}, nil
}

// delivery returns the run's delivery of a message, by its id; nil if there is none.
func (r *run) delivery(id string) *delivery {
	for _, d := range r.deliveries {
		if d.Message.ID == id {
			return d
		}
	}
	return nil
}

// answers returns the replies that belong to what a unit acknowledges.
func (u *unit) answers() (all []*reply) {
	if u.run == nil {
		return nil
	}
	var acked map[string]bool
	for i := range u.run.published {
		r, is := u.run.published[i].Token.(*reply)
		if !is {
			continue
		}
		if acked == nil {
			acked = u.acked()
		}
		if acked[r.request] {
			all = append(all, r)
		}
	}
	return all
}

// repliesTo returns how many replies are to a message.
func repliesTo(id string, all []*reply) (n int) {
	for _, r := range all {
		if r.request == id {
			n++
		}
	}
	return n
}
