package signedctx

import (
	"crypto/sha256"
	"encoding/binary"
)

// Domains keep the encodings apart from each other and from any other use of the hash or the key.
const (
	sealDomain    = "longshore signed context seal v1"
	bindingDomain = "longshore signed context binding v1"
)

// digest hashes every field of the message, as the package comment draws it.
func (b Binding) digest() [sha256.Size]byte {
	var room [1024]byte
	payload := sha256.Sum256(b.Payload)
	t := appendText(room[:0], bindingDomain)
	t = appendText(t, b.MessageID)
	t = appendText(t, b.Tenant)
	t = appendText(t, b.Topic)
	t = append(t, payload[:]...)
	t = appendText(t, b.ContentType)
	t = binary.BigEndian.AppendUint64(t, uint64(len(b.Metadata)))
	for _, pair := range b.Metadata {
		t = appendText(t, pair[0])
		t = appendText(t, pair[1])
	}
	t = appendText(t, b.Options)
	t = appendText(t, b.Parent)
	t = binary.BigEndian.AppendUint32(t, b.Hops)
	return sha256.Sum256(t)
}

// sealed returns what the seal of e is made over, all but its field seal being set. It may use the room.
func (k *sealKey) sealed(e envelope, token [sha256.Size]byte, room []byte) []byte {
	t := appendText(room, sealDomain)
	t = appendText(t, k.id)
	t = binary.BigEndian.AppendUint64(t, uint64(e.sealed))
	t = append(t, token[:]...)
	return append(t, e.binding[:]...)
}

// seal returns the seal of e, all but its field seal being set.
func (k *sealKey) seal(e envelope, token [sha256.Size]byte) []byte {
	var room [256]byte
	return k.make(k.sealed(e, token, room[:0]), nil)
}

// check reports whether the seal of e was made with this key.
func (k *sealKey) check(e envelope, token [sha256.Size]byte) bool {
	var room [256]byte
	return k.made(k.sealed(e, token, room[:0]), e.seal)
}

// appendText appends a text with its length before it.
func appendText[T string | []byte](b []byte, text T) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(text))), text...)
}
