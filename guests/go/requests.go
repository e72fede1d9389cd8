package longshore

// RequestOptions say how long a request waits, and for how many replies.
type RequestOptions struct {
	TimeoutMillis uint32 // 0 is for as long as the call has time
	Replies       uint32 // that end the waiting; 0 is 1
}

// Request publishes a message to a topic at once, and waits for replies to it: until as many came as are expected, or until
// the time is over, which returns those that came. o may be nil. Without any reply the error is an *Error of CaseTimeout;
// another *Error says why the host didn't take the request. A reply's Delivery says who replied.
//
// A request isn't undone if the handler fails afterwards, and made again when the message is delivered again. Call Request
// from a handler only.
func Request(topic string, m *Message, o *RequestOptions) ([]*Message, error) {
	if what := notUTF8(topic, m, nil); what != "" {
		return nil, &Error{Case: CaseOther, Text: what}
	}
	client, err := guest.connect()
	if err != nil {
		return nil, err
	}
	some, options := lowerRequestOptions(o)
	message := lowerMessage(m)
	var ret area
	abiRequest(client, topic, message, some, options, &ret)
	replies, err := guest.liftReplies(ret.view())
	abiMessageDrop(message)
	return replies, err
}

// Reply publishes an answer to a delivered message, for whoever waits for it with Request, when the handler has returned nil.
// The error is an *Error: also if the message asks for no reply. Call it from a handler only.
func Reply(to, m *Message) error {
	if what := notUTF8("", m, nil); what != "" {
		return &Error{Case: CaseOther, Text: what}
	}
	if !guest.handling || to.handle == 0 {
		return &Error{Case: CaseOther, Text: "only a message that is being handled can be replied to"}
	}
	var ret area
	abiReply(to.handle, lowerMessage(m), &ret)
	return guest.heap.liftResultNone(ret.view())
}

// lowerRequestOptions makes options of the host's, and returns them as a flattened option.
func lowerRequestOptions(o *RequestOptions) (some, handle uint32) {
	if o == nil {
		return 0, 0
	}
	handle = abiRequestOptionsNew()
	if o.TimeoutMillis != 0 {
		abiRequestOptionsSetTimeout(handle, o.TimeoutMillis)
	}
	if o.Replies != 0 {
		abiRequestOptionsSetReplies(handle, o.Replies)
	}
	return 1, handle
}

// liftReplies adopts a result<list<own<message>>, error>.
func (g *instance) liftReplies(v view) ([]*Message, error) {
	if v.u8(layoutResultList.at(discriminant)) != 0 {
		return nil, g.heap.liftError(v, layoutResultList.at(payload))
	}
	var handles []uint32 // read before the next call to the host
	g.heap.liftList(v, layoutResultList.at(payload), layoutU32, func(e view) { handles = append(handles, e.u32(0)) })
	replies := make([]*Message, len(handles))
	for i, h := range handles {
		replies[i] = g.liftMessage(h)
	}
	return replies, nil
}
