package signedctx

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// start is a whole second, so that the window of a token begins exactly with it.
var start = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// clock is a clock that stands until it is set. It is safe for concurrent use.
type clock struct{ nanos atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.set(start)
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.nanos.Load()) }
func (c *clock) set(t time.Time)         { c.nanos.Store(t.UnixNano()) }
func (c *clock) advance(d time.Duration) { c.nanos.Add(int64(d)) }

func newKey(tb testing.TB, a Algorithm) Key {
	tb.Helper()
	k, err := GenerateKey(a)
	require.NoError(tb, err)
	return k
}

func newKeyring(tb testing.TB, tokens, seals []Key) *Keyring {
	tb.Helper()
	r, err := NewKeyring(tokens, seals)
	require.NoError(tb, err)
	return r
}

func newContext(tb testing.TB, k *Keyring, c *clock) *Context {
	tb.Helper()
	ctx, err := New(k, "harbour", c.now)
	require.NoError(tb, err)
	return ctx
}

// generated returns a Context with keys of its own, and its clock.
func generated(tb testing.TB, a Algorithm) (*Context, *clock) {
	tb.Helper()
	c := newClock()
	return newContext(tb, newKeyring(tb, []Key{newKey(tb, a)}, []Key{newKey(tb, HS256)}), c), c
}

func principal() Principal {
	return Principal{Tenant: "acme", Subject: "local:1000", Claims: []Claim{{"role", "clerk"}, {"desk", "7 \"<&>\" ü"}}}
}

func binding() Binding {
	return Binding{
		MessageID: "1796040000000-00000000000000a1", Tenant: "acme", Topic: "orders/new",
		ContentType: "application/json", Metadata: [][2]string{{"trace", "t-1"}, {"shop", "north"}},
		Payload: []byte(`{"order":1}`), Options: []byte{1, 2}, Parent: "1796039999999-0000000000000001", Hops: 3,
	}
}

func mustSeal(tb testing.TB, c *Context, p Principal, b Binding) []byte {
	tb.Helper()
	e, err := c.Seal(p, b)
	require.NoError(tb, err)
	return e
}

// requireRefusal checks the class and that the text is free of the token's parts.
func requireRefusal(tb testing.TB, class Class, err error) {
	tb.Helper()
	var r *Refusal
	require.ErrorAs(tb, err, &r)
	require.Error(tb, r.Err)
	require.Equal(tb, class, r.Class, "%v", err)
}

// classOf returns the class of a refusal, or a word that no class has.
func classOf(err error) Class {
	var r *Refusal
	if errors.As(err, &r) && r.Err != nil {
		return r.Class
	}
	return "not a refusal"
}

// forge is what a holder of the keys can make: any token, sealed for b with the seal key of c.
func forge(tb testing.TB, c *Context, token string, b Binding, sealed time.Time) []byte {
	tb.Helper()
	e := envelope{
		token: []byte(token), keyID: []byte(c.Keys().sealer.id), sealed: sealed.UnixMilli(), binding: b.digest(),
	}
	e.seal = c.Keys().sealer.seal(e, tokenHash(token), nil)
	return e.encode()
}

// sign makes a token of any header and body, with a genuine signature by the token key of c.
func sign(tb testing.TB, c *Context, header, body string) string {
	tb.Helper()
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(body))
	signature, err := c.Keys().signer.method.Sign(text, c.Keys().signer.private)
	require.NoError(tb, err)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// goodHeader and goodBody are what mint makes, as maps to spoil.
func goodHeader(c *Context) map[string]any {
	return map[string]any{"alg": c.Keys().signer.method.Alg(), "kid": c.Keys().signer.id, "typ": jwtType}
}

func goodBody() map[string]any {
	return map[string]any{
		"iss": "harbour", "aud": "acme", "tnt": "acme", "sub": "local:1000", "jti": "01",
		"iat": start.Unix(), "exp": start.Unix() + 60, "ext": map[string]string{"role": "clerk"},
	}
}

func toJSON(tb testing.TB, v any) string {
	tb.Helper()
	raw, err := json.Marshal(v)
	require.NoError(tb, err)
	return string(raw)
}
