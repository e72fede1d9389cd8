package bearer

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// TestParseSays holds each refusal to the check that it is for: what one lets through, another would often refuse.
func TestParseSays(t *testing.T) {
	raw := func(header, claims string) string {
		return segment([]byte(header)) + "." + segment([]byte(claims)) + ".AAAA"
	}
	h := header("EdDSA")
	claim := func(old, with string) string {
		require.Contains(t, goodClaims, old)
		return raw(h, strings.Replace(goodClaims, old, with, 1))
	}
	exp := func(value string) string { return claim(`"exp":1795957200`, `"exp":`+value) }
	const seconds = "exp is not a whole number of seconds"
	for name, tt := range map[string]struct{ raw, want string }{
		"NoKid":            {raw(strings.Replace(h, "k1", "", 1), goodClaims), "no kid of 1 to"},
		"LongKid":          {raw(strings.Replace(h, "k1", strings.Repeat("k", maxKeyID+1), 1), goodClaims), "no kid of 1 to"},
		"NoAlg":            {raw(strings.Replace(h, "EdDSA", "none", 1), goodClaims), "an alg other than"},
		"ATyp":             {raw(strings.Replace(h, "JWT", "dpop+jwt", 1), goodClaims), "a typ other than"},
		"EmptyIss":         {claim("https://id.acme.example", ""), "iss and sub are texts"},
		"EmptySub":         {claim("alice", ""), "iss and sub are texts"},
		"EmptyAuds":        {claim(`"longshore"`, `[]`), "aud has to be one text"},
		"NegativeExp":      {exp("-1"), seconds},
		"FractionOfExp":    {exp("1795957200.0"), seconds},
		"ExponentOfExp":    {exp("2e9"), seconds},
		"MinusZeroAsExp":   {exp("-0"), seconds},
		"HugeExp":          {exp("99999999999999999999"), seconds},
		"FarExp":           {exp("253402300800"), seconds},
		"NullAsExp":        {exp("null"), seconds},
		"ZeroByte":         {claim("alice", `a\u0000b`), "not valid text"},
		"ZeroByteAnywhere": {claim(`"roles":["a"`, `"roles":["a\u0000"`), "not valid text"},
		"AListAsClaims":    {raw(h, `["a"]`), "no JSON object"},
		"ANumberAsClaims":  {raw(h, `17`), "no JSON object"},
		"NothingAsClaims":  {raw(h, " "), "no JSON object"},
		"LeftOverBits":     {h + ".e31.AA", "not canonical"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(tt.raw)
			require.ErrorContains(t, err, tt.want)
		})
	}
	for name, header := range map[string]string{
		"AnAccessToken": strings.Replace(h, "JWT", "at+jwt", 1), "ATokenWithoutTyp": strings.Replace(h, `,"typ":"JWT"`, "", 1),
		"AThumbprint": strings.Replace(h, `"typ"`, `"x5t#S256":"AA","typ"`, 1), "TheLongestKid": strings.Replace(h, "k1", strings.Repeat("k", maxKeyID), 1),
	} {
		t.Run("Takes"+name, func(t *testing.T) {
			_, err := parse(raw(header, goodClaims))
			require.NoError(t, err)
		})
	}
}

func TestCurrent(t *testing.T) {
	at, leeway := start.Unix(), int64(limits.TokenLeeway/time.Second)
	later := at + leeway + 1
	for name, tt := range map[string]struct {
		token token
		fine  bool
	}{
		"IssuedNow":            {token{issued: at, expires: at + 1}, true},
		"IssuedWithinLeeway":   {token{issued: at + leeway, expires: later}, true},
		"IssuedLater":          {token{issued: later, expires: later + 1}, false},
		"ValidLater":           {token{issued: at, notBefore: later, expires: later + 1}, false},
		"ExpiredWithinLeeway":  {token{issued: 0, expires: at - leeway + 1}, true},
		"ExpiredBeforeAllThat": {token{issued: 0, expires: at - leeway}, false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.fine, tt.token.current(start) == nil) })
	}
}

// TestKeysOfASet holds each check of a key to what it alone refuses.
func TestKeysOfASet(t *testing.T) {
	ed, es, rs := newIDP(t, "EdDSA", "k1"), newIDP(t, "ES256", "k1"), newIDP(t, "RS256", "k1")
	replaced := func(set, old, with string) string {
		require.Contains(t, set, old)
		return strings.Replace(set, old, with, 1)
	}
	member := func(set, name string) string {
		_, rest, ok := strings.Cut(set, `"`+name+`":"`)
		require.True(t, ok)
		value, _, _ := strings.Cut(rest, `"`)
		return value
	}
	const none = "no key with a kid"
	decode := func(s string) []byte {
		b, err := decodeSegment(s)
		require.NoError(t, err)
		return b
	}
	x, y := member(es.set, "x"), member(es.set, "y")
	both := append(decode(x), decode(y)...)
	rsa := func(n []byte, e string) string {
		return `{"keys":[{"kty":"RSA","kid":"a","n":"` + segment(n) + `","e":"` + e + `"}]}`
	}
	bits := func(n int) []byte { return append([]byte{0x80}, append(make([]byte, n/8-2), 1)...) }
	for name, tt := range map[string]struct{ set, algorithm, want string }{
		"AnotherAlg":             {replaced(ed.set, `"alg":"EdDSA"`, `"alg":"ES256"`), "EdDSA", none},
		"AnotherAlgThanRS256":    {replaced(rs.set, `"alg":"RS256"`, `"alg":"Ed25519"`), "RS256", none},
		"RS512":                  {replaced(rs.set, `"alg":"RS256"`, `"alg":"RS512"`), "RS256", none},
		"AnotherKty":             {replaced(ed.set, `"OKP"`, `"EC"`), "EdDSA", none},
		"TheCurveOfAnother":      {replaced(ed.set, `"Ed25519"`, `"P-256"`), "EdDSA", "no key of Ed25519"},
		"NoCurve":                {replaced(ed.set, `"crv":"Ed25519",`, ``), "EdDSA", "no key of Ed25519"},
		"NoX":                    {replaced(ed.set, member(ed.set, "x"), ""), "EdDSA", "no key of Ed25519"},
		"XThatIsNoBase64":        {replaced(ed.set, member(ed.set, "x"), "!"), "EdDSA", "no key of Ed25519"},
		"Ed25519AsCurveOfP256":   {replaced(es.set, `"P-256"`, `"Ed25519"`), "ES256", "no key of P-256"},
		"ABorderThatMoved":       {replaced(replaced(es.set, x, segment(both[:33])), y, segment(both[33:])), "ES256", "no key of P-256"},
		"AnotherBorderThatMoved": {replaced(replaced(es.set, x, segment(both[:31])), y, segment(both[31:])), "ES256", "no key of P-256"},
		"NoY":                    {replaced(es.set, y, ""), "ES256", "no key of P-256"},
		"AHugeModulus":           {rsa(bits(maxRSABits+8), "AQAB"), "RS256", "want 2048 to 8192"},
		"AHugeExponent":          {rsa(bits(2048), "AQAAAAE"), "RS256", "exponent"},
		"OneAsExponent":          {rsa(bits(2048), "AQ"), "RS256", "exponent"},
		"NoExponent":             {rsa(bits(2048), ""), "RS256", "not base64url"},
		"NoKeys":                 {`{}`, "EdDSA", "no JSON Web Key Set"},
		"NoJSON":                 {`{"keys":[]} x`, "EdDSA", "no JSON Web Key Set"},
	} {
		t.Run("Refuses"+name, func(t *testing.T) {
			_, err := parseSet([]byte(tt.set), tt.algorithm)
			require.ErrorContains(t, err, tt.want)
		})
	}
	for name, set := range map[string]string{
		"TheNameOfTheCurveAsAlg": replaced(ed.set, `"alg":"EdDSA"`, `"alg":"Ed25519"`), "NoAlg": replaced(ed.set, `"alg":"EdDSA",`, ``),
	} {
		t.Run("Takes"+name, func(t *testing.T) {
			keys, err := parseSet([]byte(set), "EdDSA")
			require.NoError(t, err)
			require.Len(t, keys, 1)
		})
	}
	t.Run("TakesTheLargestModulus", func(t *testing.T) {
		_, err := parseSet([]byte(rsa(bits(maxRSABits), "AQAB")), "RS256")
		require.NoError(t, err)
	})
}

func TestPlaces(t *testing.T) {
	for place, url := range map[string]bool{"https://a/b": true, "http://127.0.0.1/b": true, "keys.json": false, "/http://a": false, "httpsx://a": false} {
		require.Equal(t, url, IsURL(place), place)
	}
	for name, spoil := range map[string]func(*Issuer){"NoIssuer": func(i *Issuer) { i.Issuer = "" }} {
		bad := acme("EdDSA", "keys.json")
		spoil(&bad)
		_, err := New([]Issuer{bad}, Options{})
		require.ErrorContains(t, err, "must not be empty", name)
	}
}
