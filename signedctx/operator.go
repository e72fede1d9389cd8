package signedctx

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/longshore/longshore/limits"
)

// Operator is what is kept beside the envelope of a message that an operator gave back to its consumers. The envelope still
// says who published it; this says who acted since. It is sealed with the host's seal key to the message and its envelope, so that
// whoever can write the log but has no key can't make one:
//
//	act | unix ms | why | id of the seal key | seal in base64url      separated by 0x1f
//
//	seal of: domain, id of the key, SHA-256 of the envelope, digest of the message (as for its envelope), act, unix ms, why
type Operator struct {
	Act string    // the operator's subject; at most limits.KeyBytes
	At  time.Time // when, to the millisecond
	Why string    // in the operator's words; at most limits.OperatorWhyBytes
}

// operatorSeparator stands between the parts of a record; no part has a control character.
const operatorSeparator = "\x1f"

// operatorDomain keeps these seals apart from those of envelopes.
const operatorDomain = "longshore operator record seal v1"

// nameWhyBytes names limits.OperatorWhyBytes.
const nameWhyBytes limits.Name = "bytes of why"

func (o Operator) check() error {
	if o.Act == "" || !isLine(o.Act) || !isLine(o.Why) {
		return errors.New("operator record: it needs a subject, and that and why have to be valid text of one line")
	}
	if err := limits.Check(limits.NameKeyBytes, int64(len(o.Act)), limits.KeyBytes); err != nil {
		return err
	}
	return limits.Check(nameWhyBytes, int64(len(o.Why)), limits.OperatorWhyBytes)
}

func isLine(s string) bool { return checkText(s) == nil && !strings.ContainsFunc(s, unicode.IsControl) }

// sealed returns what the seal of a record is made over.
func (o Operator) sealed(keyID string, envelope []byte, b Binding) []byte {
	hash, digest := sha256.Sum256(envelope), b.digest()
	t := appendText(nil, operatorDomain)
	t = appendText(t, keyID)
	t = append(append(t, hash[:]...), digest[:]...)
	t = appendText(t, o.Act)
	t = binary.BigEndian.AppendUint64(t, uint64(o.At.UnixMilli()))
	return appendText(t, o.Why)
}

// SealOperator returns a record as text, of at most limits.OperatorBytes, sealed to a message and its envelope, which may be
// empty.
func (c *Context) SealOperator(o Operator, envelope []byte, b Binding) (string, error) {
	if err := o.check(); err != nil {
		return "", err
	}
	key := c.current.Load().sealer
	if key == nil {
		return "", errors.New("operator record: this host holds public keys only, which verify: give it a seal key with its secret")
	}
	seal := base64.RawURLEncoding.EncodeToString(key.make(o.sealed(key.id, envelope, b)))
	return strings.Join([]string{o.Act, strconv.FormatInt(o.At.UnixMilli(), 10), o.Why, key.id, seal}, operatorSeparator), nil
}

// VerifyOperator accepts a record that was sealed for exactly this message and envelope, and returns it. Every error is a
// *Refusal; of no record at all it is of ClassMissing.
func (c *Context) VerifyOperator(text string, envelope []byte, b Binding) (Operator, error) {
	if text == "" {
		return Operator{}, refuse(ClassMissing, "the message has no operator record")
	}
	o, keyID, seal := parseOperator(text)
	if o.Act == "" || seal == "" {
		return Operator{}, refuse(ClassMalformed, "the operator record has no seal")
	}
	key := c.current.Load().seals[keyID]
	if key == nil {
		return Operator{}, refuse(ClassUnknownKey, "no seal key has the id of the operator record's")
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(seal)
	if err != nil {
		return Operator{}, refuse(ClassMalformed, "the seal of the operator record is not in base64")
	}
	if !key.made(o.sealed(keyID, envelope, b), raw) {
		return Operator{}, refuse(ClassSignature, "the operator record isn't sealed for this message by key %q", keyID)
	}
	return o, nil
}

// ParseOperator reads what a record says, whether it is true or not: see VerifyOperator. Any other text, and none, is the zero
// Operator.
func ParseOperator(text string) Operator {
	o, _, _ := parseOperator(text)
	return o
}

// parseOperator reads a record, or one of an older program, which has no seal.
func parseOperator(text string) (o Operator, keyID, seal string) {
	parts := strings.Split(text, operatorSeparator)
	if len(parts) != 3 && len(parts) != 5 {
		return Operator{}, "", ""
	}
	ms, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return Operator{}, "", ""
	}
	if len(parts) == 5 {
		keyID, seal = parts[3], parts[4]
	}
	return Operator{Act: parts[0], At: time.UnixMilli(ms).UTC(), Why: parts[2]}, keyID, seal
}
