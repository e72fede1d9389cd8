package signedctx

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
)

// Algorithm says what a key is for, in the words of JWT.
type Algorithm string

// Algorithms of keys, for tokens and for seals alike.
const (
	EdDSA Algorithm = "EdDSA" // Ed25519: who verifies can't mint
	HS256 Algorithm = "HS256" // HMAC-SHA-256
)

// Kind says what a key is for.
type Kind string

// Kinds of keys, in the words that begin the names of their files.
const (
	TokenKind Kind = "token"
	SealKind  Kind = "seal"
)

const (
	minSecretBytes = 32 // of an HMAC key: 256 bits
	maxSecretBytes = 64 // the block of SHA-256; a longer key would be hashed down
	keyIDBytes     = 8  // random bytes of a generated id
)

// maxKeyIDBytes is the length of the longest key id that keyIDForm allows.
const maxKeyIDBytes = 64

// keyIDForm is what a key id may be. It is safe in a file, a log line and a URL.
var keyIDForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// Key is a key with its id. It has either a secret, and signs and verifies, or only the public half, and verifies. It
// prints without its secret.
type Key struct {
	ID        string    // 1 to 64 letters, digits, '.', '_' or '-'
	Algorithm Algorithm // EdDSA or HS256
	Secret    []byte    `json:"-"` // EdDSA: the seed, 32 bytes; HS256: 32 to 64 bytes
	Public    []byte    // of an EdDSA key without Secret: 32 bytes
}

// String names the key, without its secret.
func (k Key) String() string { return fmt.Sprintf("%s key %q", k.Algorithm, k.ID) }

// GoString is String, so that %#v doesn't show the secret either.
func (k Key) GoString() string { return k.String() }

// GenerateKey makes a random key with a random id.
func GenerateKey(a Algorithm) (Key, error) {
	k := Key{Algorithm: a, Secret: make([]byte, minSecretBytes)}
	_, _ = rand.Read(k.Secret) // never fails: crypto/rand ends the process instead
	k.ID = randomID(keyIDBytes)
	return k, k.check()
}

// check says what is wrong with the key.
func (k Key) check() error {
	if !keyIDForm.MatchString(k.ID) {
		return fmt.Errorf("key id %.80q: use 1 to 64 letters, digits, '.', '_' or '-'", k.ID)
	}
	switch k.Algorithm {
	case EdDSA:
		if k.Secret == nil && k.Public != nil {
			return k.checkPublic()
		}
		if len(k.Secret) != ed25519.SeedSize {
			return fmt.Errorf("%v has a seed of %d bytes: an Ed25519 seed has %d", k, len(k.Secret), ed25519.SeedSize)
		}
	case HS256:
		if len(k.Secret) < minSecretBytes || len(k.Secret) > maxSecretBytes {
			return fmt.Errorf("%v has %d bytes: use %d to %d", k, len(k.Secret), minSecretBytes, maxSecretBytes)
		}
	default:
		return fmt.Errorf("key %q has the algorithm %.20q: use %s or %s", k.ID, string(k.Algorithm), EdDSA, HS256)
	}
	return nil
}

func (k Key) checkPublic() error {
	if len(k.Public) != ed25519.PublicKeySize {
		return fmt.Errorf("%v has a public half of %d bytes: that of Ed25519 has %d", k, len(k.Public), ed25519.PublicKeySize)
	}
	return nil
}

// public returns the public half of an EdDSA key.
func (k Key) public() ed25519.PublicKey {
	if k.Secret == nil {
		return ed25519.PublicKey(bytes.Clone(k.Public))
	}
	return ed25519.PublicKey(ed25519.NewKeyFromSeed(k.Secret)[ed25519.SeedSize:])
}

// randomID returns n random bytes in hexadecimal.
func randomID(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b)
}
