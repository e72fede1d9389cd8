package signedctx

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// golangJWT parses as strictly as golang-jwt can be told to.
func golangJWT(raw string, key any, algorithm string) (*jwt.RegisteredClaims, error) {
	parser := jwt.NewParser(jwt.WithValidMethods([]string{algorithm}), jwt.WithStrictDecoding(),
		jwt.WithExpirationRequired(), jwt.WithIssuer("harbour"), jwt.WithAudience("acme"),
		jwt.WithTimeFunc(newClock().now))
	c := new(jwt.RegisteredClaims)
	_, err := parser.ParseWithClaims(raw, c, func(*jwt.Token) (any, error) { return key, nil })
	return c, err
}

// TestWhatGolangJWTAccepts holds a case for each liberty of golang-jwt: the token carries a genuine signature, golang-jwt
// accepts it (which the test checks, so that no case is idle), and we don't.
func TestWhatGolangJWTAccepts(t *testing.T) {
	c, _ := generated(t, EdDSA)
	header, body := toJSON(t, goodHeader(c)), toJSON(t, goodBody())
	headerWith := func(member string) string { return strings.TrimSuffix(header, "}") + "," + member + "}" }
	bodyWith := func(member string) string { return strings.TrimSuffix(body, "}") + "," + member + "}" }
	bodyBut := func(good, bad string) string {
		require.Contains(t, body, good)
		return strings.Replace(body, good, bad, 1)
	}
	headerBut := func(good, bad string) string {
		require.Contains(t, header, good)
		return strings.Replace(header, good, bad, 1)
	}
	kid := toJSON(t, c.Keys().signer.id)
	tests := []struct{ name, header, body string }{
		{"QuotedExp", header, bodyBut(`"exp":1795953660`, `"exp":"1795953660"`)},
		{"FractionOfExp", header, bodyBut(`"exp":1795953660`, `"exp":1795953660.5`)},
		{"ExponentOfExp", header, bodyBut(`"exp":1795953660`, `"exp":1795953660e0`)},
		{"FarExp", header, bodyBut(`"exp":1795953660`, `"exp":253402300800`)},
		{"DuplicateClaim", header, bodyWith(`"sub":"local:0"`)},
		{"DuplicateClaimFirst", header, `{"tnt":"other",` + body[1:]},
		{"DuplicateOwnClaim", header, bodyBut(`"role":"clerk"`, `"role":"clerk","role":"boss"`)},
		{"OwnClaimsThatDifferInCase", header, bodyBut(`"role":"clerk"`, `"role":"clerk","ROLE":"boss"`)},
		{"UpperCaseExp", header, bodyWith(`"EXP":1795999999`)},
		{"UpperCaseExpInsteadOfExp", header, bodyBut(`"exp"`, `"EXP"`)},
		{"DuplicateHeader", headerWith(`"kid":` + kid), body},
		{"CaseVariantHeader", headerWith(`"KID":` + kid), body},
		{"Crit", headerWith(`"crit":["b64"]`), body},
		{"EmbeddedKey", headerWith(`"jwk":{"kty":"OKP"}`), body},
		{"KeyURL", headerWith(`"jku":"https://keys.example"`), body},
		{"CertificateURL", headerWith(`"x5u":"https://keys.example"`), body},
		{"AnyTyp", headerBut(`"longshore-ctx+jwt"`, `"JWT"`), body},
		{"CaseVariantTyp", headerBut(`"longshore-ctx+jwt"`, `"Longshore-Ctx+JWT"`), body},
		{"NoTyp", headerBut(`,"typ":"longshore-ctx+jwt"`, ``), body},
		{"NumberAsTyp", headerBut(`"longshore-ctx+jwt"`, `1`), body},
		{"ObjectAsKid", headerBut(kid, `{"a":`+kid+`}`), body},
		{"ListAsKid", headerBut(kid, `[`+kid+`]`), body},
		{"NoKid", headerBut(`"kid":`+kid+`,`, ``), body},
		{"ListAsAudience", header, bodyBut(`"aud":"acme"`, `"aud":["acme","other"]`)},
		{"InvalidUTF8", header, bodyBut("local:1000", "local:\xff")},
		{"HalfASurrogatePair", header, bodyBut("local:1000", `local:\ud800`)},
		{"InvalidUTF8InHeader", headerWith("\"a\":\"\xff\""), body},
		{"MoreClaims", header, bodyWith(`"nbf":1`)},
		{"NestedOwnClaims", header, bodyBut(`"clerk"`, `{"a":{"b":1}}`)},
		{"NumberAsOwnClaim", header, bodyBut(`"clerk"`, `7`)},
		{"ListAsOwnClaims", header, bodyBut(`{"role":"clerk"}`, `["clerk"]`)},
		{"NoOwnClaims", header, bodyBut(`"ext":{"role":"clerk"},`, ``)},
		{"NoTenant", header, bodyBut(`,"tnt":"acme"`, ``)},
		{"EmptySubject", header, bodyBut(`"local:1000"`, `""`)},
		{"EmptyTokenID", header, bodyBut(`"jti":"01"`, `"jti":""`)},
		{"ExpNotAfterIat", header, bodyBut(`"iat":1795953600`, `"iat":1795953660`)},
		{"ManyMembers", header, bodyBut(`"role":"clerk"`, manyMembers(limits.TokenClaims+1))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			raw := sign(t, c, tt.header, tt.body)
			_, err := golangJWT(raw, c.Keys().signer.public, "EdDSA")
			require.NoError(t, err, "golang-jwt has become stricter: move the case")
			requireMalformed(t, c, raw)
		})
	}
	t.Run("TheTokenThatWasSpoiledIsGood", func(t *testing.T) {
		_, err := c.Verify(forge(t, c, sign(t, c, header, body), binding(), start), binding())
		require.NoError(t, err)
	})
	t.Run("NewlineInEachPart", func(t *testing.T) {
		good := sign(t, c, header, body)
		for _, newline := range []string{"\n", "\r"} {
			raw := good[:len(good)-3] + newline + good[len(good)-3:]
			_, err := golangJWT(raw, c.Keys().signer.public, "EdDSA")
			require.NoError(t, err)
			requireMalformed(t, c, raw)
			requireMalformed(t, c, good[:5]+newline+good[5:])
			requireMalformed(t, c, good[:len(good)/2]+newline+good[len(good)/2:])
			requireMalformed(t, c, good+newline)
		}
	})
	t.Run("ATokenOfMegabytes", func(t *testing.T) {
		raw := sign(t, c, header, bodyBut("local:1000", strings.Repeat("x", limits.MiB)))
		_, err := golangJWT(raw, c.Keys().signer.public, "EdDSA")
		require.NoError(t, err)
		_, err = c.Keys().verifyToken(raw)
		requireRefusal(t, ClassMalformed, err)
		require.ErrorIs(t, err, &limits.Error{Name: limits.NameTokenBytes})
	})
	t.Run("ATwistedECDSASignature", func(t *testing.T) {
		requireMalformed(t, c, twistedES256(t, c.Keys().signer.id, body))
	})
}

// manyMembers returns n members of an object.
func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`,"` + strings.Repeat("k", i+1) + `":""`)
	}
	return b.String()[1:]
}

// twistedES256 returns a token whose signature (r, n-s) was made from another one without the key, and that golang-jwt
// accepts all the same.
func twistedES256(t *testing.T, kid, body string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"`+kid+`","typ":"`+jwtType+`"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(body))
	signature, err := jwt.SigningMethodES256.Sign(text, key)
	require.NoError(t, err)
	s := new(big.Int).SetBytes(signature[32:])
	s.Sub(key.Params().N, s).FillBytes(signature[32:])
	raw := text + "." + base64.RawURLEncoding.EncodeToString(signature)
	_, err = golangJWT(raw, &key.PublicKey, "ES256")
	require.NoError(t, err)
	return raw
}

// requireMalformed checks that the token doesn't pass even under a genuine seal.
func requireMalformed(t *testing.T, c *Context, raw string) {
	t.Helper()
	require.LessOrEqual(t, len(raw), limits.TokenBytes)
	_, err := c.Verify(forge(t, c, raw, binding(), start), binding())
	requireRefusal(t, ClassMalformed, err)
	requireSilent(t, raw, err)
}

// requireSilent checks that an error doesn't quote the token: no eight characters in a row of any part, encoded or
// decoded, except for what our own texts say and the id of the key.
func requireSilent(t *testing.T, raw string, err error) {
	t.Helper()
	said := regexp.MustCompile(`key "[0-9a-f]{16}"`).ReplaceAllString(err.Error(), "key")
	for _, part := range strings.Split(raw, ".") {
		decoded, _ := base64.RawURLEncoding.DecodeString(part)
		for _, text := range []string{part, string(decoded)} {
			for i := 0; i+8 <= len(text); i++ {
				if piece := text[i : i+8]; !strings.Contains(jwtType, piece) {
					require.NotContains(t, said, piece)
				}
			}
		}
	}
}

// TestWhatGolangJWTRefuses holds what golang-jwt refuses as well, under the signature of our key.
func TestWhatGolangJWTRefuses(t *testing.T) {
	c, _ := generated(t, EdDSA)
	header, body := toJSON(t, goodHeader(c)), toJSON(t, goodBody())
	good := sign(t, c, header, body)
	for _, alg := range []string{"none", "None", "NONE", "eddsa", "EDDSA", "ES256", "HS512", "RS256", "", " EdDSA"} {
		t.Run("Alg/"+alg, func(t *testing.T) {
			requireMalformed(t, c, sign(t, c, strings.Replace(header, "EdDSA", alg, 1), body))
			requireMalformed(t, c, unsigned(strings.Replace(header, "EdDSA", alg, 1), body))
		})
	}
	for name := range goodBody() {
		t.Run("Without/"+name, func(t *testing.T) {
			b := goodBody()
			delete(b, name)
			requireMalformed(t, c, sign(t, c, header, toJSON(t, b)))
		})
	}
	times := []string{
		"1e300", "-1", "-0", "1.0", "99999999999999999999", "253402300800", "true", "null", `""`, "[]", "{}", "NaN",
		"0x7fffffff", "+1795953660", "1_795_953_660", "01795953660",
	}
	for _, value := range times {
		t.Run("Exp/"+value, func(t *testing.T) {
			requireMalformed(t, c, sign(t, c, header, strings.Replace(body, "1795953660", value, 1)))
			requireMalformed(t, c, sign(t, c, header, strings.Replace(body, "1795953600", value, 1)))
		})
	}
	for _, kid := range []string{"", "a b", "../a", "a\n", strings.Repeat("a", 65)} {
		h := goodHeader(c)
		h["kid"] = kid
		t.Run(fmt.Sprintf("Kid/%.10q", kid), func(t *testing.T) { requireMalformed(t, c, sign(t, c, toJSON(t, h), body)) })
	}
	shapes := map[string]string{
		"Empty": "", "NoParts": "a", "TwoParts": good[:strings.LastIndex(good, ".")], "FourParts": good + ".",
		"Padded": good + "=", "StandardAlphabet": strings.NewReplacer("-", "+", "_", "/").Replace(good) + "+",
		"NoSignature": good[:strings.LastIndex(good, ".")+1] + "=", "LooseBits": loosen(good),
		"HeaderIsAList": sign(t, c, "["+header+"]", body), "BodyIsAString": sign(t, c, header, `"a"`),
		"TextAfterBody": sign(t, c, header, body+"{}"), "TextAfterHeader": sign(t, c, header+"1", body),
		"TrailingComma": sign(t, c, header, strings.TrimSuffix(body, "}")+",}"), "EmptyBody": sign(t, c, header, ""),
		"DeepBody": sign(t, c, header, strings.Repeat("[", 2000)+strings.Repeat("]", 2000)),
	}
	for name, raw := range shapes {
		t.Run("Shape/"+name, func(t *testing.T) { requireMalformed(t, c, raw) })
	}
	t.Run("AnEmptySignatureIsAForgery", func(t *testing.T) {
		_, err := c.Verify(forge(t, c, good[:strings.LastIndex(good, ".")+1], binding(), start), binding())
		requireRefusal(t, ClassSignature, err)
		requireSilent(t, good, err)
	})
	t.Run("AnotherBodyUnderTheSignatureIsAForgery", func(t *testing.T) {
		parts := strings.Split(good, ".")
		parts[1] = encodeSegment([]byte(strings.Replace(body, "local:1000", "local:0", 1)))
		_, err := c.Verify(forge(t, c, strings.Join(parts, "."), binding(), start), binding())
		requireRefusal(t, ClassSignature, err)
		requireSilent(t, good, err)
	})
	t.Run("HS256UnderAnEdDSAKeyIsAForgery", func(t *testing.T) {
		_, err := c.Verify(forge(t, c, sign(t, c, strings.Replace(header, "EdDSA", "HS256", 1), body), binding(), start),
			binding())
		requireRefusal(t, ClassSignature, err)
	})
}

// unsigned makes a token without a signature.
func unsigned(header, body string) string {
	return encodeSegment([]byte(header)) + "." + encodeSegment([]byte(body)) + "."
}

// loosen sets bits of the last character that don't belong to the signature.
func loosen(raw string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, raw[len(raw)-1])
	return raw[:len(raw)-1] + string(alphabet[last|1]) // 64 bytes leave four bits over
}

func TestParseObject(t *testing.T) {
	o, err := parseObject([]byte(` {"a": "x", "b": 1, "c": {"A": "y"}} `))
	require.NoError(t, err)
	require.Equal(t, object{"a": "x", "b": json.Number("1"), "c": object{"A": "y"}}, o)
	for _, raw := range []string{
		``, `{`, `{}{}`, `[]`, `"a"`, `1`, `null`, `{"a":null}`, `{"a":true}`, `{"a":[]}`, `{"a":{"b":{}}}`,
		`{"a":1,"a":1}`, `{"k":1,"K":1}`, "{\"k\":1,\"\u212a\":1}", // the Kelvin sign folds to k
		`{"a":1,"\u0061":1}`, "{\"\xff\":1}", `{"a":"\udfff"}`, `{"\ud800":1}`, "{\"a\":\"\uFFFD\"}", "\ufeff{}",
	} {
		_, err := parseObject([]byte(raw))
		require.Error(t, err, "%q", raw)
	}
}
