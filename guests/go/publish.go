package longshore

import (
	"runtime"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// clientName is the name under which the host knows the log that it runs on.
const clientName = "default"

// Outgoing is one message of a batch.
type Outgoing struct {
	Topic   string
	Message *Message // only read: may be in a batch twice, and may be the delivered message itself
	Options *Options // how it is published; nil is the default
}

// Receipt is what the host gave for a message.
type Receipt struct {
	ID        string // the message's id
	Duplicate bool   // it was published before, under this id
}

// Result is what became of one message of a batch.
type Result struct {
	ID        string // the message's id, if it was accepted
	Duplicate bool   // it was published before, under this id
	Err       error  // nil, or a *PublishError
}

// Send publishes a message to a topic when the handler has returned nil. The host checks it now: an *Error tells what is
// wrong with it, and the handler decides what to do about that. Call it from a handler only.
func Send(topic string, m *Message) error {
	if what := notUTF8(topic, m, nil); what != "" {
		return &Error{Case: CaseOther, Text: what}
	}
	client, err := guest.connect()
	if err != nil {
		return err
	}
	var ret area
	abiSend(client, topic, lowerMessage(m), &ret)
	return guest.heap.liftResultNone(ret.view())
}

// Publish publishes a message like Send, with options, which may be nil. It says more than Send: the id that the message will
// have, or a *PublishError. Call it from a handler only.
func Publish(topic string, m *Message, o *Options) (Receipt, error) {
	if what := notUTF8(topic, m, o); what != "" {
		return Receipt{}, &PublishError{Case: PublishInvalid, Text: what}
	}
	client, err := guest.connect()
	if err != nil {
		return Receipt{}, err
	}
	message := lowerMessage(m)
	arguments := lowerPublish(client, topic, message, o)
	var ret area
	abiPublish(unsafe.SliceData(arguments.block), &ret)
	runtime.KeepAlive(arguments)
	r := guest.heap.liftItem(ret.view())
	abiMessageDrop(message)
	return Receipt{ID: r.ID, Duplicate: r.Duplicate}, r.Err
}

// PublishBatch publishes messages, in their order, when the handler has returned nil. It crosses to the host once for all
// of them, and says more than Send about what it refuses: there is one Result for each message.
//
// The error is nil only if every message was accepted. If some were refused it is a *BatchError, and the others are in the
// outbox nevertheless: return the error, and nothing is published; go on, and they are. A *PublishError or an *Error
// concerns the whole batch; none was accepted then, and there are no results. Call it from a handler only.
func PublishBatch(batch []Outgoing) ([]Result, error) {
	ret, err := withBatch(batch, abiPublishBatch)
	if err != nil {
		return nil, err
	}
	results, err := guest.heap.liftBatch(ret.view())
	if err != nil {
		return nil, err
	}
	return results, refused(results)
}

// PublishAtomic publishes messages like PublishBatch, but all of them or, if the host refuses one, none. Its error is a
// *PublishError or an *Error. Call it from a handler only.
func PublishAtomic(batch []Outgoing) ([]Receipt, error) {
	ret, err := withBatch(batch, abiPublishAtomic)
	if err != nil {
		return nil, err
	}
	return guest.heap.liftAtomic(ret.view())
}

// withBatch makes messages of the host's for a batch, calls the host, and drops them.
func withBatch(batch []Outgoing, call func(client uint32, batch *uint64, length uint32, ret *area)) (*area, error) {
	for i, o := range batch {
		if what := notUTF8(o.Topic, o.Message, o.Options); what != "" {
			return nil, &PublishError{Case: PublishInvalid, Text: "message " + strconv.Itoa(i) + ": " + what}
		}
	}
	client, err := guest.connect()
	if err != nil {
		return nil, err
	}
	messages := make([]uint32, len(batch))
	for i, o := range batch {
		messages[i] = lowerMessage(o.Message)
	}
	list := lowerBatch(batch, messages)
	ret := new(area)
	call(client, unsafe.SliceData(list.block), uint32(len(batch)), ret) //nolint:gosec // 32-bit memory
	runtime.KeepAlive(list)
	for _, m := range messages {
		abiMessageDrop(m)
	}
	return ret, nil
}

// refused returns a *BatchError if any of the results is a refusal.
func refused(results []Result) error {
	var e *BatchError
	for i, r := range results {
		pe, ok := r.Err.(*PublishError) //nolint:errorlint // never wrapped
		if !ok {
			continue
		}
		if e == nil {
			e = &BatchError{Size: len(results), First: i, Err: pe}
		}
		e.Refused++
	}
	if e == nil {
		return nil
	}
	return e
}

// connect returns the delivery's client, which is opened by the first publish.
func (g *instance) connect() (uint32, error) {
	if !g.handling {
		return 0, &Error{Case: CaseConnection, Text: "no message is being handled: publish from inside a handler"}
	}
	if g.isOpen {
		return g.client, nil
	}
	var ret area
	abiClientConnect(clientName, &ret)
	client, err := g.heap.liftResultOwn(ret.view())
	if err != nil {
		return 0, err
	}
	g.client, g.isOpen = client, true
	return client, nil
}

// lowerMessage makes a message of the host's and returns its handle.
func lowerMessage(m *Message) uint32 {
	handle := abiMessageNew(unsafe.SliceData(m.Data), uint32(len(m.Data))) //nolint:gosec // 32-bit memory
	if m.ContentType != "" {
		abiMessageSetContentType(handle, m.ContentType)
	}
	if len(m.Metadata) > 0 {
		list := lowerMetadata(m.Metadata)
		abiMessageSetMetadata(handle, unsafe.SliceData(list.block), uint32(len(m.Metadata))) //nolint:gosec // 32-bit memory
		runtime.KeepAlive(list)
	}
	return handle
}

// notUTF8 names the first text of a message that isn't UTF-8, which would break the ABI; "" if all are.
func notUTF8(topic string, m *Message, o *Options) string {
	const fault = " isn't valid UTF-8"
	switch {
	case !utf8.ValidString(topic):
		return "the topic" + fault
	case !utf8.ValidString(m.ContentType):
		return "the content type" + fault
	case o.notUTF8():
		return "an option" + fault
	}
	for _, p := range m.Metadata {
		if !utf8.ValidString(p.Key) || !utf8.ValidString(p.Value) {
			return "the metadata" + fault
		}
	}
	return ""
}
