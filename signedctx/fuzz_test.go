package signedctx

import (
	"bytes"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// FuzzVerify looks for an envelope that verifies though nobody sealed it, and for a crash. The keys are fixed, so that
// what is found stays found.
func FuzzVerify(f *testing.F) {
	token := Key{ID: "t", Algorithm: EdDSA, Secret: bytes.Repeat([]byte{1}, 32)}
	seal := Key{ID: "s", Algorithm: HS256, Secret: bytes.Repeat([]byte{2}, 32)}
	c := newContext(f, newKeyring(f, []Key{token}, []Key{seal}), newClock())
	// Ed25519 signs the same text the same way each time, but the id of a minted token is random.
	raw := sign(f, c, toJSON(f, goodHeader(c)), toJSON(f, goodBody()))
	good := forge(f, c, raw, binding(), start)
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(forge(f, c, raw, Binding{}, start))
	f.Add(forge(f, c, unsigned(`{"alg":"none"}`, `{}`), binding(), start))
	f.Fuzz(func(t *testing.T, e []byte) {
		_, err := c.Verify(e, binding())
		if bytes.Equal(e, good) {
			require.NoError(t, err)
			return
		}
		require.Contains(t, []Class{
			ClassMissing, ClassMalformed, ClassSignature, ClassExpired, ClassUnknownKey, ClassMismatch,
		}, classOf(err), "%v", err)
	})
}

// FuzzSignedToken goes behind the signature: whatever the text, it is signed with our key. What is accepted must be
// what golang-jwt reads too, so that no two readers of a token differ.
func FuzzSignedToken(f *testing.F) {
	secret := Key{ID: "t", Algorithm: HS256, Secret: bytes.Repeat([]byte{1}, 32)}
	c := newContext(f, newKeyring(f, []Key{secret}, []Key{{ID: "s", Algorithm: HS256, Secret: secret.Secret}}), newClock())
	header, body := toJSON(f, goodHeader(c)), toJSON(f, goodBody())
	f.Add(header, body)
	f.Add(header, `{"EXP":1,`+body[1:])
	f.Add(`{"crit":["b64"],`+header[1:], body)
	f.Fuzz(func(t *testing.T, header, body string) {
		raw := sign(t, c, header, body)
		got, err := c.Keys().verifyToken(raw)
		if err != nil {
			require.Contains(t, []Class{ClassMalformed, ClassUnknownKey, ClassSignature}, classOf(err), "%v", err)
			return
		}
		own := make(map[string]any, len(got.own))
		for _, o := range got.own {
			own[o.Key] = o.Value
		}
		read := jwt.MapClaims{}
		_, err = jwt.NewParser(jwt.WithoutClaimsValidation()).ParseWithClaims(raw, read,
			func(*jwt.Token) (any, error) { return secret.Secret, nil })
		require.NoError(t, err)
		require.Equal(t, jwt.MapClaims{
			"iss": got.issuer, "aud": got.audience, "tnt": got.tenant, "sub": got.subject, "jti": got.id,
			"iat": float64(got.issued), "exp": float64(got.expires), "ext": own,
		}, read)
	})
}
