package signedctx

import "fmt"

// Class says what kind of fault a refused envelope has. The set is closed; the words are stable, because dead-letter
// reasons are made from them.
type Class string

// Classes of refusals.
const (
	// ClassMissing: there is no envelope.
	ClassMissing Class = "missing"
	// ClassMalformed: the envelope or its token isn't of the form that Seal writes.
	ClassMalformed Class = "malformed"
	// ClassSignature: the token's signature or the seal is not made by the key that it names.
	ClassSignature Class = "signature"
	// ClassExpired: sealed outside the window of the token.
	ClassExpired Class = "expired"
	// ClassUnknownKey: names a key that the keyring doesn't hold.
	ClassUnknownKey Class = "unknown-key"
	// ClassMismatch: genuine, but made for another message, tenant or issuer, or the message was changed after.
	ClassMismatch Class = "mismatch"
)

// Refusal is the error of every envelope that Context.Verify doesn't accept. Match it with errors.As. Its text never
// holds a part of the token but the id of a key, and is safe to log.
type Refusal struct {
	Class Class
	Err   error // what was wrong; never nil
}

// Error implements error.
func (r *Refusal) Error() string {
	return fmt.Sprintf("signed context refused (%s): %v", r.Class, r.Err)
}

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// refuse makes a Refusal with a formatted cause. No argument may be text of a token.
func refuse(class Class, format string, args ...any) *Refusal {
	return &Refusal{Class: class, Err: fmt.Errorf(format, args...)}
}
