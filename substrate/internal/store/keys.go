package store

import "encoding/binary"

// The classes of keys of a topic. State sorts before every other class, so that Topics can hop from one topic's state to the next.
const (
	classState      = 'A'
	classDead       = 'B'
	classDelayed    = 'D'
	classFence      = 'F'
	classGroup      = 'G'
	classHidden     = 'H'
	classKey        = 'K'
	classLane       = 'L'
	classMessage    = 'M'
	classBlock      = 'N'
	classDone       = 'O'
	classPriority   = 'P'
	classQuarantine = 'Q'
	classRecords    = 'R'
	classExpiry     = 'X'
	endClass        = 0xff // no class
)

// metaTenant is the length of no tenant: keys that start with it belong to the log itself.
const metaTenant = 0x00

// Topic is the key prefix of one topic: every key of a topic is made from it.
type Topic struct{ prefix []byte }

// TopicOf returns the prefix of a topic. Names are 1 to 255 bytes; the log validates them before.
func TopicOf(tenant, topic string) Topic {
	p := make([]byte, 0, len(tenant)+len(topic)+2)
	p = append(p, byte(len(tenant)))
	p = append(p, tenant...)
	p = append(p, byte(len(topic)))
	return Topic{append(p, topic...)}
}

// State returns the key of the topic's state.
func (t Topic) State() []byte { return append(t.prefix[:len(t.prefix):len(t.prefix)], classState) }

// Message returns the key of the message at position.
func (t Topic) Message(position uint64) []byte {
	k := make([]byte, 0, len(t.prefix)+9)
	k = append(append(k, t.prefix...), classMessage)
	return binary.BigEndian.AppendUint64(k, position)
}

// Messages returns the prefix of the topic's messages.
func (t Topic) Messages() []byte { return append(t.prefix[:len(t.prefix):len(t.prefix)], classMessage) }

// Lane returns the key of the delivery state of position in lane.
func (t Topic) Lane(lane string, position uint64) []byte {
	return binary.BigEndian.AppendUint64(t.class(classLane, lane), position)
}

// Lanes returns the prefix of the delivery states of lane.
func (t Topic) Lanes(lane string) []byte { return t.class(classLane, lane) }

// Dead returns the key of the dead letter of position in lane.
func (t Topic) Dead(lane string, position uint64) []byte {
	return binary.BigEndian.AppendUint64(t.class(classDead, lane), position)
}

// DeadLetters returns the prefix of the dead letters of lane.
func (t Topic) DeadLetters(lane string) []byte { return t.class(classDead, lane) }

// Fence returns the key of the mark that lane keeps for a fence key.
func (t Topic) Fence(lane, key string) []byte { return append(t.class(classFence, lane), key...) }

// Fences returns the prefix of the fence marks of lane.
func (t Topic) Fences(lane string) []byte { return t.class(classFence, lane) }

// FenceKey returns the fence key that the key of a fence mark of lane ends with.
func (t Topic) FenceKey(lane string, key []byte) string {
	return string(key[len(t.prefix)+2+len(lane):])
}

// Position returns the position that a key of a message, lane or dead letter ends with, or 0, which is none, if the key is
// too short to be one.
func Position(key []byte) uint64 { return number(key, 8) }

// number returns the 8 bytes that begin so many bytes before the end of the key, or 0 if it is shorter.
func number(key []byte, fromEnd int) uint64 {
	if len(key) < fromEnd {
		return 0
	}
	return binary.BigEndian.Uint64(key[len(key)-fromEnd:])
}

func setPosition(key []byte, position uint64) { binary.BigEndian.PutUint64(key[len(key)-8:], position) }

func (t Topic) class(class byte, lane string) []byte {
	k := make([]byte, 0, len(t.prefix)+2+len(lane)+8)
	k = append(k, t.prefix...)
	k = append(k, class, byte(len(lane)))
	return append(k, lane...)
}

// end returns the first key after all keys of the topic.
func (t Topic) end() []byte { return append(t.prefix[:len(t.prefix):len(t.prefix)], endClass) }

// parseTopic splits a key into its topic and the rest, or returns ok = false for a key that is not one of a topic.
func parseTopic(key []byte) (tenant, topic string, ok bool) {
	tenant, rest, ok := cutString(key)
	if !ok || tenant == "" {
		return "", "", false
	}
	topic, rest, ok = cutString(rest)
	return tenant, topic, ok && topic != "" && len(rest) > 0 && rest[0] != endClass
}

func cutString(b []byte) (s string, rest []byte, ok bool) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return "", nil, false
	}
	n := 1 + int(b[0])
	return string(b[1:n]), b[n:], true
}

// metaKey returns the key of a record of the log itself.
func metaKey(name string) []byte { return append([]byte{metaTenant}, name...) }

// Delayed returns the key of a delayed message: its due time in unix nanoseconds, and a number of its own.
func (t Topic) Delayed(due, number uint64) []byte {
	k := binary.BigEndian.AppendUint64(t.one(classDelayed), due)
	return binary.BigEndian.AppendUint64(k, number)
}

// Hidden returns the key of the record of a delayed message, by its number.
func (t Topic) Hidden(number uint64) []byte {
	return binary.BigEndian.AppendUint64(t.one(classHidden), number)
}

// AllDelayed returns the prefix of the delayed messages.
func (t Topic) AllDelayed() []byte { return t.one(classDelayed) }

// Due returns the due time of the key of a delayed message, or 0 if the key is too short to be one.
func Due(key []byte) uint64 { return number(key, 16) }

// Idempotency returns the key of the first use of an idempotency key, by its hash.
func (t Topic) Idempotency(hash []byte) []byte { return append(t.one(classKey), hash...) }

// Idempotencies returns the prefix of the idempotency keys.
func (t Topic) Idempotencies() []byte { return t.one(classKey) }

// Expiry returns the key of the expiry of position.
func (t Topic) Expiry(position uint64) []byte {
	return binary.BigEndian.AppendUint64(t.one(classExpiry), position)
}

// Expiries returns the prefix of the expiries.
func (t Topic) Expiries() []byte { return t.one(classExpiry) }

// one returns the prefix of a class, with room for what follows.
func (t Topic) one(class byte) []byte {
	k := make([]byte, 0, len(t.prefix)+17)
	return append(append(k, t.prefix...), class)
}

// Group returns the key of the state of a consumer group.
func (t Topic) Group(name string) []byte { return append(t.one(classGroup), name...) }

// Groups returns the prefix of the consumer groups.
func (t Topic) Groups() []byte { return t.one(classGroup) }

// GroupName returns the name that the key of a consumer group of t ends with.
func (t Topic) GroupName(key []byte) string { return string(key[len(t.prefix)+1:]) }

// Priority returns the key of the pointer to the message of a priority at position.
func (t Topic) Priority(level uint8, position uint64) []byte {
	return binary.BigEndian.AppendUint64(append(t.one(classPriority), level), position)
}

// Priorities returns the prefix of the pointers to messages of a priority.
func (t Topic) Priorities(level uint8) []byte { return append(t.one(classPriority), level) }

// Quarantine returns the key of the quarantine entry of the message at a position.
func (t Topic) Quarantine(position uint64) []byte {
	return binary.BigEndian.AppendUint64(append(t.one(classQuarantine), byPosition), position)
}

// QuarantineHash returns the key of the quarantine entry of bytes whose position is not known.
func (t Topic) QuarantineHash(hash uint64) []byte {
	return binary.BigEndian.AppendUint64(append(t.one(classQuarantine), byHash), hash)
}

// Quarantined returns the prefix of the quarantine entries: those with a position come first.
func (t Topic) Quarantined() []byte { return t.one(classQuarantine) }

// QuarantineID splits the key of a quarantine entry of t into its position or hash, and whether it is a hash.
func (t Topic) QuarantineID(key []byte) (n uint64, hash bool) {
	return Position(key), len(key) > len(t.prefix)+1 && key[len(t.prefix)+1] == byHash
}

// What a quarantine entry is named by.
const (
	byPosition = 0
	byHash     = 1
)

// Rest returns what follows the topic in one of its keys, and Key the key of which it is the rest.
func (t Topic) Rest(key []byte) []byte { return key[len(t.prefix):] }

// Key returns the key of the topic of which rest is the rest.
func (t Topic) Key(rest []byte) []byte {
	return append(t.prefix[:len(t.prefix):len(t.prefix)], rest...)
}

// IsDelayed reports whether key has the form of one of a delayed message of t.
func (t Topic) IsDelayed(key []byte) bool { return len(key) == len(t.prefix)+17 }

// block, done and records return the keys of the block that begins at position.
func (t Topic) block(first uint64) []byte {
	return binary.BigEndian.AppendUint64(t.one(classBlock), first)
}

func (t Topic) done(first uint64) []byte {
	return binary.BigEndian.AppendUint64(t.one(classDone), first)
}

func (t Topic) records(first uint64) []byte {
	return binary.BigEndian.AppendUint64(t.one(classRecords), first)
}

// parseMessage splits the key of a message, or the prefix of a topic's messages, into its topic and its position, which is
// 0 for the prefix. The topic aliases the key.
func parseMessage(key []byte) (t Topic, position uint64, ok bool) {
	return parsePositioned(key, classMessage)
}

// parseBlock splits the key of a block in the same way.
func parseBlock(key []byte) (t Topic, first uint64, ok bool) { return parsePositioned(key, classBlock) }

// parseRecords splits the key of the records of a block in the same way.
func parseRecords(key []byte) (t Topic, first uint64, ok bool) {
	return parsePositioned(key, classRecords)
}

func parsePositioned(key []byte, class byte) (t Topic, position uint64, ok bool) {
	n := 0
	for range 2 {
		if n >= len(key) {
			return Topic{}, 0, false
		}
		n += 1 + int(key[n])
	}
	switch {
	case n >= len(key) || key[n] != class:
		return Topic{}, 0, false
	case len(key) == n+1:
		return Topic{key[:n:n]}, 0, true
	case len(key) == n+9:
		return Topic{key[:n:n]}, Position(key), true
	}
	return Topic{}, 0, false
}
