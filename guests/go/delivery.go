package longshore

import "unsafe"

// Delivery is what a message doesn't say of its delivery. Times are Unix milliseconds, 0 meaning none; "" is none too.
type Delivery struct {
	ID              string
	Topic           string
	Attempt         uint32 // 1 for the first
	MaxAttempts     uint32
	PreviousReason  string // why the previous attempt failed
	Group           string
	PublishedMillis uint64
	ExpiresMillis   uint64
	DeadlineMillis  uint64
	Priority        uint8
	IdempotencyKey  string
	OrderingKey     string
	Fence           *Fence
	Parent          string // the message whose handling published this one
	Hops            uint32 // how long the chain of parents is
	Claims          *Claims
	Trace           []Pair // traceparent and tracestate
	Extensions      []Pair
}

// Claims say who published a message: its signed context, which the host has verified.
type Claims struct {
	Tenant, Subject, Issuer, TokenID string
	IssuedMillis                     uint64 // Unix milliseconds
	Extra, Extensions                []Pair
}

// infoArea is where delivery.info returns an option<delivery-info>.
type infoArea [31]uint64

// Delivery returns the details of a message's delivery, or nil for a message that the handler made itself. Call it from a
// handler only.
func (m *Message) Delivery() *Delivery {
	if !guest.handling || m.handle == 0 {
		return nil
	}
	var ret infoArea
	abiInfo(m.handle, &ret)
	v := view(unsafe.Slice((*byte)(unsafe.Pointer(&ret)), len(ret)*wordBytes))
	if v.u8(layoutOptInfo.at(discriminant)) == 0 {
		return nil
	}
	return guest.heap.liftDelivery(v[layoutOptInfo.at(payload):])
}

func (h *heap) liftDelivery(v view) *Delivery {
	field := layoutInfo.at
	d := &Delivery{
		ID:              h.liftString(v, field(infoID)),
		Topic:           h.liftString(v, field(infoTopic)),
		Attempt:         v.u32(field(infoAttempt)),
		MaxAttempts:     v.u32(field(infoMaxAttempts)),
		PreviousReason:  h.liftOptString(v[field(infoPreviousReason):]),
		Group:           h.liftOptString(v[field(infoGroup):]),
		PublishedMillis: v.u64(field(infoPublishedAt)),
		ExpiresMillis:   v.optU64(field(infoExpiresAt)),
		DeadlineMillis:  v.optU64(field(infoDeadline)),
		Priority:        v.u8(field(infoPriority)),
		IdempotencyKey:  h.liftOptString(v[field(infoIdempotencyKey):]),
		OrderingKey:     h.liftOptString(v[field(infoOrderingKey):]),
		Parent:          h.liftOptString(v[field(infoParent):]),
		Hops:            v.u32(field(infoHops)),
		Trace:           h.liftPairs(v, field(infoTrace)),
		Extensions:      h.liftPairs(v, field(infoExtensions)),
	}
	if f := v[field(infoFence):]; f.u8(layoutOptFence.at(discriminant)) != 0 {
		f = f[layoutOptFence.at(payload):]
		d.Fence = &Fence{Key: h.liftString(f, layoutFence.at(fenceKey)), Token: f.u64(layoutFence.at(fenceToken))}
	}
	if c := v[field(infoClaims):]; c.u8(layoutOptClaims.at(discriminant)) != 0 {
		d.Claims = h.liftClaims(c[layoutOptClaims.at(payload):])
	}
	return d
}

func (h *heap) liftClaims(v view) *Claims {
	field := layoutClaims.at
	return &Claims{
		Tenant: h.liftString(v, field(claimsTenant)), Subject: h.liftString(v, field(claimsSubject)),
		Issuer: h.liftString(v, field(claimsIssuer)), TokenID: h.liftString(v, field(claimsTokenID)),
		IssuedMillis: v.u64(field(claimsIssuedAt)),
		Extra:        h.liftPairs(v, field(claimsExtra)), Extensions: h.liftPairs(v, field(claimsExtensions)),
	}
}

// TimeLeftMillis returns how many milliseconds are left for this call. Call it from a handler only.
func TimeLeftMillis() uint64 { return abiTimeLeft() }

// Draining reports whether the host is stopping: finish what is begun, skip the rest. Call it from a handler only.
func Draining() bool { return abiDraining() != 0 }
