package signedctx

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/longshore/longshore/limits"
)

const (
	envelopeVersion  = 1
	envelopeOverhead = 1 + 2 + 1 + 8 + sha256.Size // bytes beside token, key id and seal
	maxMillis        = maxSeconds * 1000
)

// envelope is the decoded form of the bytes that the package comment draws. Its slices are parts of those bytes.
type envelope struct {
	token   []byte
	keyID   []byte // of the seal key
	sealed  int64  // milliseconds since 1970
	binding [sha256.Size]byte
	seal    []byte
}

// encode returns the envelope's bytes. No length overflows its field: a token has at most limits.TokenBytes, a key id
// at most 64 bytes, and the sealed time is after 1970.
func (e envelope) encode() []byte {
	b := make([]byte, 0, envelopeOverhead+len(e.token)+len(e.keyID)+len(e.seal))
	b = append(b, envelopeVersion)
	b = binary.BigEndian.AppendUint16(b, uint16(len(e.token)))
	b = append(b, e.token...)
	b = append(b, byte(len(e.keyID)))
	b = append(b, e.keyID...)
	b = binary.BigEndian.AppendUint64(b, uint64(e.sealed))
	b = append(b, e.binding[:]...)
	return append(b, e.seal...)
}

// decodeEnvelope reads an envelope of at most limits.EnvelopeBytes. It copies nothing.
func decodeEnvelope(b []byte) (envelope, error) {
	if len(b) > limits.EnvelopeBytes {
		return envelope{}, fmt.Errorf("the envelope has %d bytes: at most %d are allowed", len(b), limits.EnvelopeBytes)
	}
	if len(b) < 3 {
		return envelope{}, errShortEnvelope
	}
	if b[0] != envelopeVersion {
		return envelope{}, fmt.Errorf("the envelope has version %d: this host reads version %d", b[0], envelopeVersion)
	}
	var e envelope
	tokenBytes := int(binary.BigEndian.Uint16(b[1:]))
	b = b[3:]
	if len(b) < tokenBytes+1 {
		return envelope{}, errShortEnvelope
	}
	e.token, b = b[:tokenBytes], b[tokenBytes:]
	keyIDBytes := int(b[0])
	b = b[1:]
	if len(b) < keyIDBytes+8+sha256.Size {
		return envelope{}, errShortEnvelope
	}
	e.keyID, b = b[:keyIDBytes], b[keyIDBytes:]
	sealed := binary.BigEndian.Uint64(b)
	if sealed > maxMillis {
		return envelope{}, errors.New("the envelope's sealed time is after the year 9999")
	}
	e.sealed = int64(sealed)
	copy(e.binding[:], b[8:])
	e.seal = b[8+sha256.Size:]
	return e, nil
}

var errShortEnvelope = errors.New("the envelope ends too early")
