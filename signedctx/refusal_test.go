package signedctx

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// fault spoils an attempt to pass for a genuine message.
type fault struct {
	name string
	do   func(a *attempt)
}

// attempt is what a holder of some keys may make of a token, an envelope and a message.
type attempt struct {
	header, body map[string]any
	signer       *Context // whose token key signs
	sealer       *Context // whose seal key seals
	sealed       time.Time
	message      Binding // as which it is delivered
}

// faults are one of each class, and several of some.
func faults(other *Context) []fault {
	return []fault{
		{"AnotherTenantsToken", func(a *attempt) { a.body["aud"], a.body["tnt"] = "rival", "rival" }},
		{"AnotherIssuer", func(a *attempt) { a.body["iss"] = "elsewhere" }},
		{"AMissingClaim", func(a *attempt) { delete(a.body, "sub") }},
		{"AnotherTyp", func(a *attempt) { a.header["typ"] = "JWT" }},
		{"AnUnknownKid", func(a *attempt) { a.header["kid"] = "nobody" }},
		{"AForgedToken", func(a *attempt) { a.signer = other }},
		{"AForgedSeal", func(a *attempt) { a.sealer = other }},
		{"SealedTooLate", func(a *attempt) { a.sealed = start.Add(time.Hour) }},
		{"SealedTooEarly", func(a *attempt) { a.sealed = start.Add(-time.Hour) }},
		{"AChangedPayload", func(a *attempt) { a.message.Payload = []byte("other") }},
		{"AnotherTopic", func(a *attempt) { a.message.Topic = "other" }},
	}
}

// make returns the envelope of the attempt, and the parts of its token.
func (a *attempt) make(t *testing.T, c *Context) (sealed []byte, parts []string) {
	t.Helper()
	token := sign(t, a.signer, toJSON(t, a.header), toJSON(t, a.body))
	e := envelope{
		token: []byte(token), keyID: []byte(c.Keys().sealer.id), sealed: a.sealed.UnixMilli(), binding: binding().digest(),
	}
	e.seal = a.sealer.Keys().sealer.seal(e, tokenHash(token), nil)
	return e.encode(), strings.Split(token, ".")
}

// Golang-jwt joins the errors of a token that is wrong in several ways, so that one that its caller forgives may hide one that
// it doesn't: no two faults together are less than each.
func TestEveryPairOfFaultsIsRefused(t *testing.T) {
	c, _ := generated(t, EdDSA)
	other, _ := generated(t, EdDSA)
	all := faults(other)
	genuine := func() *attempt {
		return &attempt{header: goodHeader(c), body: goodBody(), signer: c, sealer: c, sealed: start, message: binding()}
	}
	sealed, _ := genuine().make(t, c)
	_, err := c.Verify(sealed, binding())
	require.NoError(t, err, "what is spoiled here is good")
	for i := range all {
		for j := range i + 1 {
			t.Run(all[i].name+"And"+all[j].name, func(t *testing.T) {
				a := genuine()
				all[i].do(a)
				all[j].do(a)
				sealed, parts := a.make(t, c)
				_, err := c.Verify(sealed, a.message)
				require.NotEqual(t, Class("not a refusal"), classOf(err))
				for _, part := range parts {
					require.NotContains(t, err.Error(), part, "the text holds a part of the token")
				}
				for _, claim := range []string{"local:1000", "clerk", "elsewhere"} {
					require.NotContains(t, err.Error(), claim)
				}
			})
		}
	}
}

func TestATokenIsBoundedBeforeItIsDecoded(t *testing.T) {
	c, _ := generated(t, EdDSA)
	for size, large := range map[int]bool{limits.TokenBytes: false, limits.TokenBytes + 1: true} {
		_, err := c.Keys().verifyToken(strings.Repeat("x", size)) // no token at all
		requireRefusal(t, ClassMalformed, err)
		if large {
			require.ErrorIs(t, err, &limits.Error{Name: limits.NameTokenBytes})
		} else {
			require.NotErrorIs(t, err, &limits.Error{Name: limits.NameTokenBytes})
		}
	}
}
