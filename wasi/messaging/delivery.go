package messaging

import (
	"context"
	"encoding/binary"
	"time"
)

// deliveryInfo is delivery's info: func(message: borrow<message>) -> option<delivery-info>. It is none for a message
// that the guest made.
//
//	message, ret | option<delivery-info>
func deliveryInfo(ctx context.Context, c *Call, stack []uint64) {
	m := c.message(stack)
	b := make([]byte, optionDeliveryInfoShape.size)
	if m.Info != nil {
		b[0] = 1
		c.lowerInfo(ctx, b[optionDeliveryInfoShape.payload:], m)
	}
	c.guest.store(arg(stack, 1), optionDeliveryInfoShape, b)
}

// timeLeft is delivery's time-left: func() -> milliseconds.
func timeLeft(_ context.Context, c *Call, stack []uint64) {
	stack[0] = uint64(max(time.Until(c.deadline).Milliseconds(), 0))
}

// draining is delivery's draining: func() -> bool.
func draining(_ context.Context, c *Call, stack []uint64) {
	stack[0] = 0
	if c.o.Draining != nil && c.o.Draining() {
		stack[0] = 1
	}
}

// lowerInfo writes a delivery-info to at.
func (c *Call) lowerInfo(ctx context.Context, at []byte, m *message) {
	i := m.Info
	w := recordWriter{ctx: ctx, guest: &c.guest, shape: deliveryInfoShape, at: at}
	w.text("id", i.ID)
	w.text("topic", m.Topic)
	w.u32("attempt", i.Attempt)
	w.u32("max-attempts", i.MaxAttempts)
	w.optionText("previous-reason", i.PreviousReason)
	w.optionText("group", i.Group)
	w.u64("published-at", unixMillis(i.Published))
	w.optionTime("expires-at", i.Expires)
	w.optionTime("deadline", i.Deadline)
	w.field("priority")[0] = i.Priority
	w.optionText("idempotency-key", i.IdempotencyKey)
	w.optionText("ordering-key", i.OrderingKey)
	if i.Fence != nil {
		w.fence(w.field("fence"), i.Fence)
	}
	w.optionText("parent", i.Parent)
	w.u32("hops", i.Hops)
	if i.Claims != nil {
		b := w.field("claims")
		b[0] = 1
		c.lowerClaims(ctx, b[optionOf(claimsShape).payload:], i.Claims)
	}
	w.pairs("trace", i.Trace)
	w.pairs("extensions", i.Extensions)
}

// lowerClaims writes claims to at.
func (c *Call) lowerClaims(ctx context.Context, at []byte, v *Claims) {
	w := recordWriter{ctx: ctx, guest: &c.guest, shape: claimsShape, at: at}
	w.text("tenant", v.Tenant)
	w.text("subject", v.Subject)
	w.text("issuer", v.Issuer)
	w.text("token-id", v.TokenID)
	w.u64("issued-at", unixMillis(v.IssuedAt))
	w.pairs("extra", v.Extra)
	w.pairs("extensions", v.Extensions)
}

// recordWriter writes the fields of a record, by name. at is the host's own copy of the record.
type recordWriter struct {
	ctx   context.Context //nolint:containedctx // it lives as long as the function that makes it
	guest *guest
	shape shape
	at    []byte
}

func (w *recordWriter) field(name string) []byte { return w.at[w.shape.at(name):] }

func (w *recordWriter) u32(name string, v uint32) { binary.LittleEndian.PutUint32(w.field(name), v) }

func (w *recordWriter) u64(name string, v uint64) { binary.LittleEndian.PutUint64(w.field(name), v) }

func (w *recordWriter) text(name, v string) { w.guest.lowerText(w.ctx, w.field(name), v) }

func (w *recordWriter) pairs(name string, v []Pair) { w.guest.lowerPairs(w.ctx, w.field(name), v) }

// optionText writes none for "".
func (w *recordWriter) optionText(name, v string) {
	if v != "" {
		b := w.field(name)
		b[0] = 1
		w.guest.lowerText(w.ctx, b[optionTextShape.payload:], v)
	}
}

// optionTime writes none for the zero time.
func (w *recordWriter) optionTime(name string, v time.Time) {
	if !v.IsZero() {
		putOptionU64(w.field(name), unixMillis(v))
	}
}

func (w *recordWriter) fence(b []byte, f *Fence) {
	b[0] = 1
	v := b[optionFenceShape.payload:]
	w.guest.lowerText(w.ctx, v[fenceKeyAt:], f.Key)
	binary.LittleEndian.PutUint64(v[fenceTokenAt:], f.Token)
}

// unixMillis returns 0 for times before 1970, which no timestamp can be.
func unixMillis(t time.Time) uint64 { return uint64(max(t.UnixMilli(), 0)) }
