package signedctx

import (
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/longshore/longshore/limits"
)

// Operator is what is kept beside the envelope of a message that an operator gave back to its consumers. The envelope still
// says who published it; this says who acted since. It isn't signed: whoever can write it can write the log.
type Operator struct {
	Act string    // the operator's subject; at most limits.KeyBytes
	At  time.Time // when, to the millisecond
	Why string    // in the operator's words; at most limits.OperatorWhyBytes
}

// operatorSeparator stands between the parts of a record; no part has a control character.
const operatorSeparator = "\x1f"

// nameWhyBytes names limits.OperatorWhyBytes.
const nameWhyBytes limits.Name = "bytes of why"

// Encode returns the record as text, of at most limits.OperatorBytes.
func (o Operator) Encode() (string, error) {
	if o.Act == "" || !isLine(o.Act) || !isLine(o.Why) {
		return "", errors.New("operator record: it needs a subject, and that and why have to be valid text of one line")
	}
	if err := limits.Check(limits.NameKeyBytes, int64(len(o.Act)), limits.KeyBytes); err != nil {
		return "", err
	}
	if err := limits.Check(nameWhyBytes, int64(len(o.Why)), limits.OperatorWhyBytes); err != nil {
		return "", err
	}
	return strings.Join([]string{o.Act, strconv.FormatInt(o.At.UnixMilli(), 10), o.Why}, operatorSeparator), nil
}

func isLine(s string) bool { return checkText(s) == nil && !strings.ContainsFunc(s, unicode.IsControl) }

// ParseOperator reads a record as Encode wrote it. Any other text, and none, is the zero Operator.
func ParseOperator(text string) Operator {
	parts := strings.Split(text, operatorSeparator)
	if len(parts) != 3 {
		return Operator{}
	}
	ms, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return Operator{}
	}
	return Operator{Act: parts[0], At: time.UnixMilli(ms).UTC(), Why: parts[2]}
}
