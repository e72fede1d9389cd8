package signedctx

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/longshore/longshore/limits"
)

func TestVerify(t *testing.T) {
	for _, a := range []Algorithm{EdDSA, HS256} {
		t.Run("AcceptsWhatSealMade/"+string(a), func(t *testing.T) {
			c, clock := generated(t, a)
			clock.advance(1234 * time.Millisecond)
			got, err := c.Verify(mustSeal(t, c, principal(), binding()), binding())
			require.NoError(t, err)
			require.Len(t, got.TokenID, 2*tokenIDBytes)
			got.TokenID = ""
			require.Equal(t, Verified{
				Tenant: "acme", Subject: "local:1000", Issuer: "harbour",
				IssuedAt: time.Unix(start.Unix()+1, 0), SealedAt: time.UnixMilli(start.UnixMilli() + 1234),
				Claims: []Claim{{"desk", "7 \"<&>\" ü"}, {"role", "clerk"}},
			}, got)
		})
	}
	t.Run("MissingEnvelope", func(t *testing.T) {
		c, _ := generated(t, EdDSA)
		for _, e := range [][]byte{nil, {}} {
			_, err := c.Verify(e, binding())
			requireRefusal(t, ClassMissing, err)
		}
	})
	t.Run("EveryCutAndEveryFlippedBitIsRefused", func(t *testing.T) {
		c, _ := generated(t, EdDSA)
		e := mustSeal(t, c, principal(), binding())
		for n := 1; n < len(e); n++ {
			_, err := c.Verify(e[:n], binding())
			require.NotEqual(t, Class("not a refusal"), classOf(err), "cut at %d: %v", n, err)
		}
		for bit := range len(e) * 8 {
			e[bit/8] ^= 1 << (bit % 8)
			_, err := c.Verify(e, binding())
			require.NotEqual(t, Class("not a refusal"), classOf(err), "bit %d: %v", bit, err)
			e[bit/8] ^= 1 << (bit % 8)
		}
		_, err := c.Verify(append(e, 0), binding())
		requireRefusal(t, ClassSignature, err)
		_, err = c.Verify(e, binding())
		require.NoError(t, err)
	})
	t.Run("AnotherVersionOrSizeIsMalformed", func(t *testing.T) {
		c, _ := generated(t, EdDSA)
		e := mustSeal(t, c, principal(), binding())
		e[0]++
		_, err := c.Verify(e, binding())
		requireRefusal(t, ClassMalformed, err)
		e[0]--
		_, err = c.Verify(append(e, make([]byte, limits.EnvelopeBytes)...), binding())
		requireRefusal(t, ClassMalformed, err)
	})
	t.Run("AFaultyTimeOrKeyIDIsMalformed", func(t *testing.T) {
		c, _ := generated(t, EdDSA)
		e, err := decodeEnvelope(mustSeal(t, c, principal(), binding()))
		require.NoError(t, err)
		late, odd := e, e
		late.sealed = maxMillis + 1
		_, err = c.Verify(late.encode(), binding())
		requireRefusal(t, ClassMalformed, err)
		odd.keyID = []byte("a\nb")
		_, err = c.Verify(odd.encode(), binding())
		requireRefusal(t, ClassMalformed, err)
	})
	t.Run("ClaimsBelongToTheCaller", func(t *testing.T) {
		c, _ := generated(t, EdDSA)
		e := mustSeal(t, c, principal(), binding())
		first, err := c.Verify(e, binding())
		require.NoError(t, err)
		first.Claims[0].Value = "changed"
		second, err := c.Verify(e, binding())
		require.NoError(t, err)
		require.Equal(t, "7 \"<&>\" ü", second.Claims[0].Value)
	})
}

func TestVerifyKeys(t *testing.T) {
	token, seal := newKey(t, EdDSA), newKey(t, HS256)
	c := newContext(t, newKeyring(t, []Key{token}, []Key{seal}), newClock())
	as := func(id string, a Algorithm) Key { k := newKey(t, a); k.ID = id; return k }
	tests := []struct {
		name        string
		token, seal Key
		want        Class
	}{
		{"AnotherTokenKeyUnderTheSameIDIsAForgery", as(token.ID, EdDSA), seal, ClassSignature},
		{"AnotherSealKeyUnderTheSameIDIsAForgery", token, as(seal.ID, HS256), ClassSignature},
		{"BothKeysUnderTheSameIDsAreAForgery", as(token.ID, EdDSA), as(seal.ID, HS256), ClassSignature},
		{"AnotherAlgorithmUnderTheSameIDIsAForgery", as(token.ID, HS256), seal, ClassSignature},
		{"AnUnknownTokenKeyIsNamedSo", newKey(t, EdDSA), seal, ClassUnknownKey},
		{"AnUnknownSealKeyIsNamedSo", token, newKey(t, HS256), ClassUnknownKey},
		{"ThePublicKeyIsNoSecret", publicAsSecret(token), seal, ClassSignature},
		// Ids are only looked up among the keys of their kind.
		{"ASealKeyIsNoTokenKey", seal, seal, ClassUnknownKey},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			other := newContext(t, newKeyring(t, []Key{tt.token}, []Key{tt.seal}), newClock())
			_, err := c.Verify(mustSeal(t, other, principal(), binding()), binding())
			requireRefusal(t, tt.want, err)
		})
	}
}

// publicAsSecret is the classic confusion: the public key, that everybody has, used as an HMAC secret.
func publicAsSecret(k Key) Key {
	raw, err := decodeSegment(newJWK(k).Public)
	if err != nil {
		panic(err)
	}
	return Key{ID: k.ID, Algorithm: HS256, Secret: raw}
}

func TestRotation(t *testing.T) {
	oldToken, oldSeal := newKey(t, EdDSA), newKey(t, HS256)
	newToken, newSeal := newKey(t, HS256), newKey(t, HS256)
	before := newContext(t, newKeyring(t, []Key{oldToken}, []Key{oldSeal}), newClock())
	during := newContext(t, newKeyring(t, []Key{oldToken, newToken}, []Key{oldSeal, newSeal}), newClock())
	after := newContext(t, newKeyring(t, []Key{newToken}, []Key{newSeal}), newClock())
	stored, fresh := mustSeal(t, before, principal(), binding()), mustSeal(t, during, principal(), binding())

	t.Run("OldKeysStillVerify", func(t *testing.T) {
		_, err := during.Verify(stored, binding())
		require.NoError(t, err)
	})
	t.Run("TheNewestKeysSign", func(t *testing.T) {
		require.Equal(t, newToken.ID, during.Keys().TokenKeyID())
		require.Equal(t, newSeal.ID, during.Keys().SealKeyID())
		_, err := after.Verify(fresh, binding())
		require.NoError(t, err)
	})
	t.Run("ARetiredKeyIsUnknown", func(t *testing.T) {
		_, err := after.Verify(stored, binding())
		requireRefusal(t, ClassUnknownKey, err)
	})
}

func TestBinding(t *testing.T) {
	c, _ := generated(t, EdDSA)

	// Every field is found by reflection, so that one that is added to Binding but not to the seal fails here.
	t.Run("EveryFieldOfTheMessageIsSealed", func(t *testing.T) {
		fields := reflect.TypeFor[Binding]().NumField()
		rapid.Check(t, func(r *rapid.T) {
			b := drawBinding(r)
			p := Principal{Tenant: b.Tenant, Subject: "s"}
			e, err := c.Seal(p, b)
			require.NoError(r, err)
			_, err = c.Verify(e, b)
			require.NoError(r, err)
			for i := range fields {
				changed := b
				change(r, reflect.ValueOf(&changed).Elem().Field(i))
				_, err := c.Verify(e, changed)
				require.Equal(r, ClassMismatch, classOf(err), "field %s", reflect.TypeFor[Binding]().Field(i).Name)
			}
		})
	})
	t.Run("NoTwoMessagesHaveOneEncoding", func(t *testing.T) {
		rapid.Check(t, func(r *rapid.T) {
			a, b := drawBinding(r), drawBinding(r)
			require.Equal(r, reflect.DeepEqual(a, b), a.digest() == b.digest(), "%+v %+v", a, b)
		})
	})
	t.Run("BytesDontMoveBetweenNeighbours", func(t *testing.T) {
		neighbours := []Binding{
			{MessageID: "ab", Tenant: "c"},
			{MessageID: "a", Tenant: "bc"},
			{Tenant: "ab", Topic: "c"},
			{ContentType: "a", Metadata: [][2]string{{"b", "c"}}},
			{Metadata: [][2]string{{"a", "b"}, {"c", ""}}},
			{Metadata: [][2]string{{"a", ""}, {"b", "c"}}},
			{Metadata: [][2]string{{"ab", "c"}}},
			{Metadata: [][2]string{{"a", "bc"}}},
			{Metadata: [][2]string{{"", ""}}, Options: []byte("abc")},
			{Options: []byte("ab"), Parent: "c"},
			{Options: []byte("a"), Parent: "bc"},
		}
		seen := make(map[[32]byte]int)
		for i, b := range neighbours {
			require.NotContains(t, seen, b.digest(), "%d", i)
			seen[b.digest()] = i
		}
	})
	t.Run("AnEnvelopeDoesntMoveToAnotherTenant", func(t *testing.T) {
		b := binding()
		e := mustSeal(t, c, principal(), b)
		b.Tenant = "acme2"
		_, err := c.Verify(e, b)
		requireRefusal(t, ClassMismatch, err)
	})
	t.Run("ATokenDoesntMoveUnderAnotherSeal", func(t *testing.T) {
		clerk, boss := principal(), principal()
		boss.Subject = "local:0"
		mine, err := decodeEnvelope(mustSeal(t, c, clerk, binding()))
		require.NoError(t, err)
		theirs, err := decodeEnvelope(mustSeal(t, c, boss, binding()))
		require.NoError(t, err)
		mine.token = theirs.token
		_, err = c.Verify(mine.encode(), binding())
		requireRefusal(t, ClassSignature, err)
	})
	t.Run("AnotherIssuerIsAMismatch", func(t *testing.T) {
		other, err := New(c.Keys(), "another", c.now)
		require.NoError(t, err)
		_, err = other.Verify(mustSeal(t, c, principal(), binding()), binding())
		requireRefusal(t, ClassMismatch, err)
	})
	t.Run("AudienceAndTenantMustAgree", func(t *testing.T) {
		for _, name := range []string{"aud", "tnt", "iss"} {
			body := goodBody()
			body[name] = "other"
			e := forge(t, c, sign(t, c, toJSON(t, goodHeader(c)), toJSON(t, body)), binding(), start)
			_, err := c.Verify(e, binding())
			requireRefusal(t, ClassMismatch, err)
		}
	})
}

// drawBinding draws a message of few and short texts, so that collisions of a careless encoding are likely.
func drawBinding(r *rapid.T) Binding {
	text := rapid.StringOfN(rapid.SampledFrom([]rune{'a', 'b', 0, 1}), 0, 3, -1)
	name := rapid.StringOfN(rapid.SampledFrom([]rune{'a', 'b'}), 1, 3, -1)
	return Binding{
		MessageID: name.Draw(r, "id"), Tenant: name.Draw(r, "tenant"), Topic: name.Draw(r, "topic"),
		ContentType: text.Draw(r, "content type"),
		Metadata: rapid.SliceOfN(rapid.Custom(func(r *rapid.T) [2]string {
			return [2]string{text.Draw(r, "key"), text.Draw(r, "value")}
		}), 0, 3).Draw(r, "metadata"),
		Payload: []byte(text.Draw(r, "payload")), Options: []byte(text.Draw(r, "options")),
		Parent: text.Draw(r, "parent"), Hops: rapid.Uint32().Draw(r, "hops"),
	}
}

// change gives a field another value, near to the old one.
func change(r *rapid.T, f reflect.Value) {
	switch f.Interface().(type) {
	case string:
		f.SetString(changeText(r, f.String()))
	case []byte:
		f.SetBytes([]byte(changeText(r, string(f.Bytes()))))
	case uint32:
		f.SetUint(f.Uint() ^ 1<<rapid.IntRange(0, 31).Draw(r, "bit"))
	case [][2]string:
		f.Set(reflect.ValueOf(changePairs(r, f.Interface().([][2]string))))
	default:
		r.Fatalf("a field of type %v: teach change about it", f.Type())
	}
}

func changeText(r *rapid.T, s string) string {
	if len(s) == 0 || rapid.Bool().Draw(r, "longer") {
		return s + string(rapid.SampledFrom([]rune{'a', 0}).Draw(r, "more"))
	}
	if rapid.Bool().Draw(r, "shorter") {
		return s[:len(s)-1]
	}
	b := []byte(s)
	b[rapid.IntRange(0, len(b)-1).Draw(r, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(r, "bit")
	return string(b)
}

func changePairs(r *rapid.T, pairs [][2]string) [][2]string {
	changed := append([][2]string{}, pairs...)
	switch n := rapid.IntRange(0, 3).Draw(r, "how"); {
	case n == 0 || len(changed) == 0:
		return append(changed, [2]string{})
	case n == 1:
		return changed[:len(changed)-1]
	case n == 2 && changed[0] != changed[len(changed)-1]:
		changed[0], changed[len(changed)-1] = changed[len(changed)-1], changed[0]
	default:
		at, part := rapid.IntRange(0, len(changed)-1).Draw(r, "pair"), rapid.IntRange(0, 1).Draw(r, "part")
		changed[at][part] = changeText(r, changed[at][part])
	}
	return changed
}

func TestWindow(t *testing.T) {
	t.Run("ADeliveryMonthsLaterVerifies", func(t *testing.T) {
		c, clock := generated(t, EdDSA)
		e := mustSeal(t, c, principal(), binding())
		clock.advance(90 * 24 * time.Hour)
		_, err := c.Verify(e, binding())
		require.NoError(t, err)
	})
	t.Run("AClockSetBackRefusesNothing", func(t *testing.T) {
		c, clock := generated(t, EdDSA)
		e := mustSeal(t, c, principal(), binding())
		clock.advance(-24 * time.Hour)
		_, err := c.Verify(e, binding())
		require.NoError(t, err)
		_, err = c.Verify(mustSeal(t, c, principal(), binding()), binding()) // not with the token of tomorrow
		require.NoError(t, err)
	})
	t.Run("ATokenSealsWithinItsWindowOnly", func(t *testing.T) {
		c, _ := generated(t, EdDSA)
		raw := sign(t, c, toJSON(t, goodHeader(c)), toJSON(t, goodBody()))
		last := start.Add(60*time.Second + limits.TokenLeeway)
		for sealed, want := range map[time.Time]bool{
			start.Add(-limits.TokenLeeway):                    true,
			start.Add(-limits.TokenLeeway - time.Millisecond): false,
			start:                          true,
			last.Add(-time.Millisecond):    true,
			last:                           false,
			last.Add(365 * 24 * time.Hour): false,
		} {
			_, err := c.Verify(forge(t, c, raw, binding(), sealed), binding())
			if want {
				require.NoError(t, err, "%v", sealed)
				continue
			}
			requireRefusal(t, ClassExpired, err)
		}
	})
	t.Run("OneTokenServesAPrincipalForItsWindow", func(t *testing.T) {
		c, clock := generated(t, EdDSA)
		id := func() string {
			v, err := c.Verify(mustSeal(t, c, principal(), binding()), binding())
			require.NoError(t, err)
			return v.TokenID
		}
		first := id()
		clock.advance(limits.TokenWindow - time.Millisecond)
		require.Equal(t, first, id())
		clock.advance(time.Millisecond)
		require.NotEqual(t, first, id())
	})
	t.Run("OtherPrincipalsHaveOtherTokens", func(t *testing.T) {
		c, _ := generated(t, EdDSA)
		seen := make(map[string]bool)
		for _, p := range []Principal{
			{Tenant: "acme", Subject: "ab"},
			{Tenant: "acme", Subject: "a"},
			{Tenant: "acme", Subject: "a", Claims: []Claim{{"b", "c"}}},
			{Tenant: "acme", Subject: "a", Claims: []Claim{{"bc", ""}}},
		} {
			v, err := c.Verify(mustSeal(t, c, p, binding()), binding())
			require.NoError(t, err)
			require.Equal(t, p.Subject, v.Subject)
			require.Equal(t, p.Claims, v.Claims)
			require.False(t, seen[v.TokenID])
			seen[v.TokenID] = true
		}
	})
}

func TestSeal(t *testing.T) {
	c, clock := generated(t, EdDSA)
	many := make([]Claim, limits.TokenClaims+1)
	for i := range many {
		many[i].Key = fmt.Sprint(i)
	}
	tests := []struct {
		name  string
		spoil func(*Principal, *Binding)
		want  string
	}{
		{"TenantOfAnother", func(p *Principal, _ *Binding) { p.Tenant = "other" }, "must be the same"},
		{"NoTenant", func(p *Principal, b *Binding) { p.Tenant, b.Tenant = "", "" }, "must not be empty"},
		{"NoSubject", func(p *Principal, _ *Binding) { p.Subject = "" }, "must not be empty"},
		{"NoID", func(_ *Principal, b *Binding) { b.MessageID = "" }, "needs its id"},
		{"NoTopic", func(_ *Principal, b *Binding) { b.Topic = "" }, "needs its id and topic"},
		{"LongSubject", func(p *Principal, _ *Binding) { p.Subject = strings.Repeat("s", 257) }, "limit of 256"},
		{"InvalidSubject", func(p *Principal, _ *Binding) { p.Subject = "\xff" }, "not valid Unicode"},
		{"InvalidClaim", func(p *Principal, _ *Binding) { p.Claims = []Claim{{"a", "\xff"}} }, "not valid Unicode"},
		{"EqualKeys", func(p *Principal, _ *Binding) { p.Claims = []Claim{{"a", ""}, {"A", ""}} }, "distinct"},
		{"ManyClaims", func(p *Principal, _ *Binding) { p.Claims = many }, "limit of 32"},
		{"LargeClaims", func(p *Principal, _ *Binding) {
			p.Claims = []Claim{{"a", strings.Repeat("x", limits.TokenClaimsBytes)}}
		}, "limit of 2048"},
		{"ClaimsThatEscapeToALargeToken", func(p *Principal, _ *Binding) {
			p.Claims = []Claim{{"a", strings.Repeat("\x01", limits.TokenClaimsBytes-1)}}
		}, "limit of 8192"},
	}
	for _, tt := range tests {
		t.Run("Refuses"+tt.name, func(t *testing.T) {
			p, b := principal(), binding()
			tt.spoil(&p, &b)
			_, err := c.Seal(p, b)
			require.ErrorContains(t, err, tt.want)
		})
	}
	t.Run("TakesClaimsUpToTheirLimits", func(t *testing.T) {
		p := principal()
		p.Claims = many[:limits.TokenClaims]
		_, err := c.Verify(mustSeal(t, c, p, binding()), binding())
		require.NoError(t, err)
		p.Claims = []Claim{{"a", strings.Repeat("x", limits.TokenClaimsBytes-1)}}
		_, err = c.Verify(mustSeal(t, c, p, binding()), binding())
		require.NoError(t, err)
	})
	t.Run("RefusesATimeBefore1970", func(t *testing.T) {
		defer clock.set(start)
		clock.set(time.UnixMilli(-1))
		_, err := c.Seal(principal(), binding())
		require.ErrorContains(t, err, "clock")
	})
}

func TestNew(t *testing.T) {
	k := newKeyring(t, []Key{newKey(t, EdDSA)}, []Key{newKey(t, HS256)})
	for _, issuer := range []string{"", "\xff", strings.Repeat("i", limits.KeyBytes+1)} {
		_, err := New(k, issuer, time.Now)
		require.Error(t, err, "%q", issuer)
	}
	_, err := New(nil, "harbour", time.Now)
	require.Error(t, err)
	_, err = New(k, "harbour", nil)
	require.Error(t, err)
}

func TestContext(t *testing.T) {
	t.Run("IsSafeForConcurrentUse", func(t *testing.T) {
		c, clock := generated(t, EdDSA)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for n := range 50 {
					b := binding()
					b.MessageID = fmt.Sprintf("%d-%d", i, n)
					e, err := c.Seal(Principal{Tenant: "acme", Subject: fmt.Sprint(n % 5)}, b)
					if err == nil {
						_, err = c.Verify(e, b)
					}
					if err != nil {
						t.Errorf("message %s: %v", b.MessageID, err)
					}
					clock.advance(time.Second)
				}
			})
		}
		wg.Wait()
	})
	t.Run("DoesntCacheWhatItRefuses", func(t *testing.T) {
		c, _ := generated(t, EdDSA)
		other, _ := generated(t, EdDSA)
		_, err := c.Verify(mustSeal(t, other, principal(), binding()), binding())
		requireRefusal(t, ClassUnknownKey, err)
		require.Zero(t, c.current.Load().verified.len())
		for i := range c.current.Load().recent {
			require.Nil(t, c.current.Load().recent[i].Load())
		}
	})
}
