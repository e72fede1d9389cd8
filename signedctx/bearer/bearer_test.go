package bearer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestVerify(t *testing.T) {
	for _, algorithm := range Algorithms() {
		t.Run("AcceptsATokenOfItsIssuer/"+algorithm, func(t *testing.T) {
			p := newIDP(t, algorithm, "k1")
			v := newVerifier(t, newWorld(), acme(algorithm, writeSet(t, p.set)))
			who, err := v.Verify(t.Context(), p.sign(t, header(algorithm), goodClaims))
			require.NoError(t, err)
			require.Equal(t, Identity{Tenant: "acme", Subject: "idp:alice"}, who)
		})
		t.Run("RefusesAnotherKeyUnderTheSameKid/"+algorithm, func(t *testing.T) {
			p, forger := newIDP(t, algorithm, "k1"), newIDP(t, algorithm, "k1")
			v := newVerifier(t, newWorld(), acme(algorithm, writeSet(t, p.set)))
			_, err := v.Verify(t.Context(), forger.sign(t, header(algorithm), goodClaims))
			require.ErrorIs(t, err, ErrRefused)
		})
	}
	t.Run("TheAlgorithmIsTheIssuersAndNotTheTokens", func(t *testing.T) {
		ed, es := newIDP(t, "EdDSA", "k1"), newIDP(t, "ES256", "k1")
		v := newVerifier(t, newWorld(), acme("EdDSA", writeSet(t, ed.set)))
		_, err := v.Verify(t.Context(), es.sign(t, header("ES256"), goodClaims))
		require.ErrorContains(t, err, "not that of issuer idp")
		hmac := idp{method: jwt.SigningMethodHS256, private: []byte(ed.set)}
		_, err = v.Verify(t.Context(), hmac.sign(t, header("HS256"), goodClaims))
		require.ErrorContains(t, err, "an alg other than")
	})
	t.Run("AnIssuerSpeaksForItsOwnTenantOnly", func(t *testing.T) {
		p, q := newIDP(t, "EdDSA", "k1"), newIDP(t, "EdDSA", "k1")
		other := Issuer{Tenant: "other", Name: "idp", Issuer: "https://id.other.example", Audience: "longshore", Algorithm: "EdDSA", JWKS: writeSet(t, q.set)}
		v := newVerifier(t, newWorld(), acme("EdDSA", writeSet(t, p.set)), other)
		theirs := strings.Replace(goodClaims, "id.acme", "id.other", 1)
		who, err := v.Verify(t.Context(), q.sign(t, header("EdDSA"), theirs))
		require.NoError(t, err)
		require.Equal(t, "other", who.Tenant)
		_, err = v.Verify(t.Context(), q.sign(t, header("EdDSA"), goodClaims))
		require.ErrorIs(t, err, ErrRefused, "a token of acme's, signed by the other's issuer")
	})
	t.Run("ATokenForTwoTenantsIsNobodys", func(t *testing.T) {
		p := newIDP(t, "EdDSA", "k1")
		file := writeSet(t, p.set)
		two := acme("EdDSA", file)
		two.Tenant, two.Audience = "other", "harbour"
		v := newVerifier(t, newWorld(), acme("EdDSA", file), two)
		_, err := v.Verify(t.Context(), p.sign(t, header("EdDSA"), strings.Replace(goodClaims, `"longshore"`, `["longshore","harbour"]`, 1)))
		require.ErrorContains(t, err, "more than one tenant")
		_, err = v.Verify(t.Context(), p.sign(t, header("EdDSA"), strings.Replace(goodClaims, `"longshore"`, `["longshore","x"]`, 1)))
		require.NoError(t, err)
	})
	t.Run("TimesHaveALeewayOfAMinute", func(t *testing.T) {
		p := newIDP(t, "EdDSA", "k1")
		raw := p.sign(t, header("EdDSA"), strings.Replace(goodClaims, `"sub"`, `"nbf":1795953600,"sub"`, 1))
		for at, fine := range map[time.Duration]bool{
			-limits.TokenLeeway - time.Second: false, -limits.TokenLeeway: true, 0: true,
			time.Hour + limits.TokenLeeway - time.Second: true, time.Hour + limits.TokenLeeway: false,
		} {
			w := newWorld()
			w.advance(at)
			_, err := newVerifier(t, w, acme("EdDSA", writeSet(t, p.set))).Verify(t.Context(), raw)
			require.Equal(t, fine, err == nil, "%s: %v", at, err)
		}
	})
}

// TestVerifyRefuses holds tokens with a genuine signature.
func TestVerifyRefuses(t *testing.T) {
	p := newIDP(t, "EdDSA", "k1")
	v := newVerifier(t, newWorld(), acme("EdDSA", writeSet(t, p.set)))
	h := header("EdDSA")
	head := func(member string) string { return strings.TrimSuffix(h, "}") + "," + member + "}" }
	claim := func(old, with string) string {
		require.Contains(t, goodClaims, old)
		return strings.Replace(goodClaims, old, with, 1)
	}
	with := func(member string) string { return strings.TrimSuffix(goodClaims, "}") + "," + member + "}" }
	for name, tt := range map[string]struct{ header, claims string }{
		"Crit":             {head(`"crit":["exp"]`), goodClaims},
		"EmbeddedKey":      {head(`"jwk":{"kty":"OKP"}`), goodClaims},
		"KeyURL":           {head(`"jku":"https://keys.example"`), goodClaims},
		"CertificateURL":   {head(`"x5u":"https://keys.example"`), goodClaims},
		"Certificates":     {head(`"x5c":["AA"]`), goodClaims},
		"TwoKids":          {head(`"kid":"k1"`), goodClaims},
		"TwoKidsUpToCase":  {head(`"KID":"k1"`), goodClaims},
		"NoKid":            {strings.Replace(h, `"kid":"k1",`, "", 1), goodClaims},
		"ObjectAsKid":      {strings.Replace(h, `"k1"`, `{"a":"k1"}`, 1), goodClaims},
		"LongKid":          {strings.Replace(h, `k1`, strings.Repeat("k", maxKeyID+1), 1), goodClaims},
		"None":             {strings.Replace(h, "EdDSA", "none", 1), goodClaims},
		"CaseOfAlg":        {strings.Replace(h, "EdDSA", "eddsa", 1), goodClaims},
		"OurOwnContextTyp": {strings.Replace(h, "JWT", "longshore-ctx+jwt", 1), goodClaims},
		"DuplicateClaim":   {h, with(`"sub":"bob"`)},
		"CaseVariantClaim": {h, with(`"SUB":"bob"`)},
		"KelvinSign":       {h, claim(`"nested":{"x":null}`, `"nested":{"k":1,"K":2}`)},
		"DuplicateNested":  {h, claim(`"x":null`, `"x":null,"x":1`)},
		"QuotedExp":        {h, claim(`"exp":1795957200`, `"exp":"1795957200"`)},
		"FractionOfExp":    {h, claim(`"exp":1795957200`, `"exp":1795957200.5`)},
		"FarExp":           {h, claim(`"exp":1795957200`, `"exp":253402300800`)},
		"NegativeExp":      {h, claim(`"exp":1795957200`, `"exp":-1`)},
		"NoExp":            {h, claim(`"exp":1795957200,`, ``)},
		"NoIat":            {h, claim(`"iat":1795953600,`, ``)},
		"ExpBeforeIat":     {h, claim(`"exp":1795957200`, `"exp":1795953600`)},
		"QuotedNbf":        {h, with(`"nbf":"1"`)},
		"LaterNbf":         {h, with(`"nbf":1795957000`)},
		"NoSub":            {h, claim(`"sub":"alice",`, ``)},
		"EmptySub":         {h, claim(`"alice"`, `""`)},
		"NumberAsSub":      {h, claim(`"alice"`, `7`)},
		"ControlInSub":     {h, claim(`alice`, `a\u001b[31m`)},
		"BidiInSub":        {h, claim(`alice`, `a\u202eb`)},
		"LongSub":          {h, claim(`alice`, strings.Repeat("a", limits.BearerSubjectBytes+1))},
		"NoAud":            {h, claim(`"aud":"longshore",`, ``)},
		"AnotherAud":       {h, claim(`"longshore"`, `"other"`)},
		"CaseOfAud":        {h, claim(`"longshore"`, `"Longshore"`)},
		"EmptyAuds":        {h, claim(`"longshore"`, `[]`)},
		"NumberInAuds":     {h, claim(`"longshore"`, `["longshore",1]`)},
		"ManyAuds":         {h, claim(`"longshore"`, `["longshore"`+strings.Repeat(`,"a"`, maxAudience)+`]`)},
		"AnotherIss":       {h, claim(`id.acme`, `id.acme2`)},
		"IssWithASlash":    {h, claim(`acme.example`, `acme.example/`)},
		"NoIss":            {h, claim(`"iss":"https://id.acme.example",`, ``)},
		"InvalidUTF8":      {h, claim(`alice`, "al\xffice")},
		"ATrailingValue":   {h, goodClaims + "{}"},
		"AListAsClaims":    {h, "[" + goodClaims + "]"},
		"DeepClaims":       {h, claim(`null`, strings.Repeat("[", maxDepth)+strings.Repeat("]", maxDepth))},
		"ManyMembers":      {h, claim(`null`, "["+strings.Repeat("1,", maxMembers)+"1]")},
		"AKidOfNobody":     {strings.Replace(h, "k1", "k2", 1), goodClaims},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := v.Verify(t.Context(), p.sign(t, tt.header, tt.claims))
			require.ErrorIs(t, err, ErrRefused)
			require.NotContains(t, err.Error(), "alice")
		})
	}
	good := p.sign(t, h, goodClaims)
	_, err := v.Verify(t.Context(), good)
	require.NoError(t, err, "what was spoiled is good")
	for name, raw := range map[string]string{
		"Empty": "", "TwoParts": strings.Join(strings.Split(good, ".")[:2], "."), "FourParts": good + ".", "Padding": good + "=",
		"Newline": good[:len(good)-3] + "\n" + good[len(good)-3:], "NoSignature": strings.TrimRight(good, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
		"TooLarge": good + strings.Repeat("A", limits.TokenBytes),
	} {
		t.Run("Shape/"+name, func(t *testing.T) {
			_, err := v.Verify(t.Context(), raw)
			require.ErrorIs(t, err, ErrRefused)
		})
	}
}

func TestNew(t *testing.T) {
	is := acme("EdDSA", "keys.json")
	for name, spoil := range map[string]func(*Issuer){
		"HS256": func(i *Issuer) { i.Algorithm = "HS256" }, "NoName": func(i *Issuer) { i.Name = "" },
		"NoTenant": func(i *Issuer) { i.Tenant = "" }, "NoAudience": func(i *Issuer) { i.Audience = "" }, "NoPlace": func(i *Issuer) { i.JWKS = "" },
	} {
		t.Run("Refuses"+name, func(t *testing.T) {
			bad := is
			spoil(&bad)
			_, err := New([]Issuer{bad}, Options{})
			require.ErrorContains(t, err, "issuer 0")
		})
	}
	t.Run("RefusesOneIssuerAndAudienceTwice", func(t *testing.T) {
		other := is
		other.Tenant = "other"
		_, err := New([]Issuer{is, other}, Options{})
		require.ErrorContains(t, err, "whose tenant's")
	})
}

func TestFromHeader(t *testing.T) {
	for value, want := range map[string]string{"Bearer a.b": "a.b", "bearer a": "a", "Basic a": "", "Bearer": "", "Bearer ": "", "": ""} {
		got, err := FromHeader(value)
		require.Equal(t, want, got, fmt.Sprintf("%q", value))
		require.Equal(t, want == "", err != nil)
	}
}
