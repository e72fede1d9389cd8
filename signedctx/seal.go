package signedctx

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
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

// desk is what seals of one key are made on. Desks are pooled: a keyed MAC is dear to set up, and whatever goes through an
// interface, as a hash is, would be allocated anew for each seal.
type desk struct {
	mac  hash.Hash // nil if seals are signatures
	text [maxSealedBytes]byte
	sum  [sha256.Size]byte
}

// maxSealedBytes is the length of the longest text that the seal of an envelope is made over.
const maxSealedBytes = 8 + len(sealDomain) + 8 + maxKeyIDBytes + 8 + 2*sha256.Size

// maxSealBytes is the length of the longest seal.
const maxSealBytes = max(sha256.Size, ed25519.SignatureSize)

// sealed returns what the seal of e is made over, all but its field seal being set. It may use the room.
func (k *sealKey) sealed(e envelope, token [sha256.Size]byte, room []byte) []byte {
	t := appendText(room, sealDomain)
	t = appendText(t, k.id)
	t = binary.BigEndian.AppendUint64(t, uint64(e.sealed))
	t = append(t, token[:]...)
	return append(t, e.binding[:]...)
}

// seal returns the seal of e, all but its field seal being set. It may use the room.
func (k *sealKey) seal(e envelope, token [sha256.Size]byte, room []byte) []byte {
	d := k.desks.Get().(*desk)
	defer k.desks.Put(d)
	return k.makeOn(d, k.sealed(e, token, d.text[:0]), room)
}

// check reports whether the seal of e was made with this key.
func (k *sealKey) check(e envelope, token [sha256.Size]byte) bool {
	d := k.desks.Get().(*desk)
	defer k.desks.Put(d)
	return k.madeOn(d, k.sealed(e, token, d.text[:0]), e.seal)
}

// make returns the seal of a text.
func (k *sealKey) make(text []byte) []byte {
	d := k.desks.Get().(*desk)
	defer k.desks.Put(d)
	return k.makeOn(d, text, nil)
}

// made reports whether a seal of a text was made with this key.
func (k *sealKey) made(text, seal []byte) bool {
	d := k.desks.Get().(*desk)
	defer k.desks.Put(d)
	return k.madeOn(d, text, seal)
}

// makeOn is make on a desk that is the caller's. The seal may use the room.
func (k *sealKey) makeOn(d *desk, text, room []byte) []byte {
	if k.public != nil {
		return append(room, ed25519.Sign(k.private, text)...)
	}
	return append(room, d.hash(text)...)
}

// madeOn is made on a desk that is the caller's.
func (k *sealKey) madeOn(d *desk, text, seal []byte) bool {
	if k.public != nil {
		return ed25519.Verify(k.public, text, seal) // false for any other length
	}
	return hmac.Equal(d.hash(text), seal)
}

// hash returns the MAC of a text, which stands on the desk.
func (d *desk) hash(text []byte) []byte {
	d.mac.Reset()
	_, _ = d.mac.Write(text) // a hash never returns an error
	return d.mac.Sum(d.sum[:0])
}

// appendText appends a text with its length before it.
func appendText[T string | []byte](b []byte, text T) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(text))), text...)
}
