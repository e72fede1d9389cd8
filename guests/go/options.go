package longshore

import "unicode/utf8"

// Options say how a message is published. The zero value is: now, to anybody, once. Durations are in milliseconds and times in
// Unix milliseconds, 0 meaning none; they are no time.Duration, because importing time makes every module 250 KB larger.
type Options struct {
	DelayMillis      uint64 // invisible until then
	TTLMillis        uint64 // dead-lettered if still undelivered so long after it became visible
	DeadlineMillis   uint64 // dead-lettered instead of delivered after this time
	Priority         uint8  // higher is delivered first
	IdempotencyKey   string // a second publish with this key stores nothing
	OrderingKey      string // messages of one key are handled one at a time, in order
	Fence            *Fence // drops a message that is older than another of the key
	RequiredFeatures []string
	Target           string // the only consumer that is given the message
	Cause            string // in a batch handler: the id of the delivery with whose acknowledgement the message is committed
	Extensions       []Pair // for what the ABI doesn't have yet
}

// Fence drops a message whose token is lower than the highest one seen for the same key.
type Fence struct {
	Key   string
	Token uint64
}

// notUTF8 says whether a text of the options isn't UTF-8, which would break the ABI.
func (o *Options) notUTF8() bool {
	if o == nil {
		return false
	}
	texts := append([]string{o.IdempotencyKey, o.OrderingKey, o.Target, o.Cause}, o.RequiredFeatures...)
	for _, p := range o.Extensions {
		texts = append(texts, p.Key, p.Value)
	}
	if o.Fence != nil {
		texts = append(texts, o.Fence.Key)
	}
	for _, t := range texts {
		if !utf8.ValidString(t) {
			return true
		}
	}
	return false
}

// bytes is how much room the options' lists and texts need in an arena, at most.
func (o *Options) bytes() int {
	if o == nil {
		return 0
	}
	n := len(o.IdempotencyKey) + len(o.OrderingKey) + len(o.Target) + len(o.Cause) + pairsBytes(o.Extensions) + 2*wordBytes
	for _, f := range o.RequiredFeatures {
		n += int(layoutString.size) + len(f)
	}
	if o.Fence != nil {
		n += len(o.Fence.Key)
	}
	return n
}

// pairsBytes is how much room a list of pairs needs, at most.
func pairsBytes(pairs []Pair) int {
	n := len(pairs) * int(layoutPair.size)
	for _, p := range pairs {
		n += len(p.Key) + len(p.Value)
	}
	return n
}

// putOptions writes an option<publish-options>.
func (a *arena) putOptions(at uint32, o *Options) {
	if o == nil {
		return
	}
	a.putU8(at+layoutOptOptions.at(discriminant), 1)
	at += layoutOptOptions.at(payload)
	field := layoutPublishOptions.at
	a.putOptU64(at+field(optionsDelay), o.DelayMillis)
	a.putOptU64(at+field(optionsTTL), o.TTLMillis)
	a.putOptU64(at+field(optionsDeadline), o.DeadlineMillis)
	a.putU8(at+field(optionsPriority), o.Priority)
	a.putOptString(at+field(optionsIdempotencyKey), o.IdempotencyKey)
	a.putOptString(at+field(optionsOrderingKey), o.OrderingKey)
	if f := o.Fence; f != nil {
		fence := at + field(optionsFence)
		a.putU8(fence+layoutOptFence.at(discriminant), 1)
		fence += layoutOptFence.at(payload)
		a.putString(fence+layoutFence.at(fenceKey), f.Key)
		a.putU64(fence+layoutFence.at(fenceToken), f.Token)
	}
	list := a.putList(at+field(optionsRequiredFeatures), layoutString, len(o.RequiredFeatures))
	for i, f := range o.RequiredFeatures {
		a.putString(list+uint32(i)*layoutString.size, f) //nolint:gosec // 32-bit memory
	}
	a.putOptString(at+field(optionsTarget), o.Target)
	a.putOptString(at+field(optionsCause), o.Cause)
	list = a.putList(at+field(optionsExtensions), layoutPair, len(o.Extensions))
	for i, p := range o.Extensions {
		pair := list + uint32(i)*layoutPair.size //nolint:gosec // 32-bit memory
		a.putString(pair+layoutPair.at(pairKey), p.Key)
		a.putString(pair+layoutPair.at(pairValue), p.Value)
	}
}
