package bearer

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

const place = "https://id.acme.example/keys"

func TestKeySet(t *testing.T) {
	p := newIDP(t, "EdDSA", "k1")
	good := p.sign(t, header("EdDSA"), goodClaims)
	unknown := p.sign(t, strings.Replace(header("EdDSA"), "k1", "k2", 1), goodClaims)
	serving := func(set string) func(*http.Request) (int, string) {
		return func(*http.Request) (int, string) { return http.StatusOK, set }
	}
	t.Run("IsFetchedOnceForManyTokens", func(t *testing.T) {
		w := newWorld()
		w.answer = serving(p.set)
		v := newVerifier(t, w, acme("EdDSA", place))
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if _, err := v.Verify(t.Context(), good); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		require.Equal(t, 1, w.fetches())
	})
	t.Run("UnknownKidsFetchOnceInAWhile", func(t *testing.T) {
		w := newWorld()
		w.answer = serving(p.set)
		v := newVerifier(t, w, acme("EdDSA", place))
		for range 100 {
			_, err := v.Verify(t.Context(), unknown)
			require.ErrorIs(t, err, ErrRefused)
		}
		require.Equal(t, 1, w.fetches())
		w.advance(limits.KeySetRetry)
		for range 100 {
			_, err := v.Verify(t.Context(), unknown)
			require.ErrorIs(t, err, ErrRefused)
		}
		require.Equal(t, 2, w.fetches())
	})
	t.Run("ANewKidIsFound", func(t *testing.T) {
		w := newWorld()
		w.answer = serving(p.set)
		v := newVerifier(t, w, acme("EdDSA", place))
		_, err := v.Verify(t.Context(), good)
		require.NoError(t, err)
		next := newIDP(t, "EdDSA", "k2")
		w.answer = serving(next.set)
		w.advance(limits.KeySetRetry)
		_, err = v.Verify(t.Context(), next.sign(t, strings.Replace(header("EdDSA"), "k1", "k2", 1), goodClaims))
		require.NoError(t, err)
		_, err = v.Verify(t.Context(), good)
		require.ErrorIs(t, err, ErrRefused, "the issuer took the key back")
	})
	t.Run("AKeyThatIsTakenBackEndsWithTheNextRefresh", func(t *testing.T) {
		w := newWorld()
		w.answer = serving(p.set)
		v := newVerifier(t, w, acme("EdDSA", place))
		_, err := v.Verify(t.Context(), good)
		require.NoError(t, err)
		w.answer = serving(newIDP(t, "EdDSA", "k9").set)
		w.advance(limits.KeySetRefresh - 1)
		_, err = v.Verify(t.Context(), good)
		require.NoError(t, err)
		w.advance(1)
		_, err = v.Verify(t.Context(), good)
		require.ErrorIs(t, err, ErrRefused)
	})
	t.Run("KeysAreUsedForADayWhileTheirPlaceIsDown", func(t *testing.T) {
		w := newWorld()
		w.answer = serving(p.set)
		v := newVerifier(t, w, acme("EdDSA", place))
		raw := p.sign(t, header("EdDSA"), strings.Replace(goodClaims, `"exp":1795957200`, `"exp":1800000000`, 1))
		_, err := v.Verify(t.Context(), raw)
		require.NoError(t, err)
		w.answer = func(*http.Request) (int, string) { return 0, "" }
		w.advance(limits.KeySetStale)
		_, err = v.Verify(t.Context(), raw)
		require.NoError(t, err)
		w.advance(time.Second)
		_, err = v.Verify(t.Context(), raw)
		require.ErrorIs(t, err, ErrUnavailable)
	})
	for name, answer := range map[string]func(*http.Request) (int, string){
		"AnError":       func(*http.Request) (int, string) { return http.StatusInternalServerError, p.set },
		"NoAnswer":      func(*http.Request) (int, string) { return 0, "" },
		"ARedirect":     func(*http.Request) (int, string) { return http.StatusFound, p.set },
		"NoKeySet":      serving("<html>"),
		"ALargeKeySet":  serving(p.set + strings.Repeat(" ", limits.KeySetBytes)),
		"ASetOfSecrets": serving(strings.Replace(p.set, `"use"`, `"d":"AA","use"`, 1)),
	} {
		t.Run("WithoutKeysItIsUnavailable/"+name, func(t *testing.T) {
			w := newWorld()
			w.answer = answer
			v := newVerifier(t, w, acme("EdDSA", place))
			for range 3 {
				_, err := v.Verify(t.Context(), good)
				require.ErrorIs(t, err, ErrUnavailable)
			}
			require.Equal(t, []string{place}, w.fetched, "one try, and nowhere else")
		})
	}
	t.Run("NothingIsFetchedForATokenOfNobody", func(t *testing.T) {
		w := newWorld()
		v := newVerifier(t, w, acme("EdDSA", place))
		_, err := v.Verify(t.Context(), p.sign(t, header("EdDSA"), strings.Replace(goodClaims, "id.acme", "evil", 1)))
		require.ErrorIs(t, err, ErrRefused)
		require.Zero(t, w.fetches())
	})
	t.Run("AFileThatIsGoneIsUnavailable", func(t *testing.T) {
		file := writeSet(t, p.set)
		require.NoError(t, os.Remove(file))
		_, err := newVerifier(t, newWorld(), acme("EdDSA", file)).Verify(t.Context(), good)
		require.ErrorIs(t, err, ErrUnavailable)
		require.True(t, errors.Is(err, os.ErrNotExist))
	})
}

func TestParseSet(t *testing.T) {
	ed, rs := newIDP(t, "EdDSA", "k1"), newIDP(t, "RS256", "k1")
	for name, tt := range map[string]struct{ set, algorithm, want string }{
		"AKeyOfAnotherAlgorithm": {rs.set, "EdDSA", "no key with a kid"},
		"AKeyToEncryptWith":      {strings.Replace(ed.set, `"sig"`, `"enc"`, 1), "EdDSA", "no key with a kid"},
		"NoKid":                  {strings.Replace(ed.set, `"kid"`, `"id"`, 1), "EdDSA", "no key with a kid"},
		"ASymmetricKey":          {`{"keys":[{"kty":"oct","kid":"a","k":"AAAA"}]}`, "EdDSA", "holds a secret"},
		"OneKidTwice":            {`{"keys":[` + strings.Repeat(strings.TrimSuffix(strings.TrimPrefix(ed.set, `{"keys":[`), "]}")+",", 1) + strings.TrimPrefix(ed.set, `{"keys":[`), "EdDSA", "kid of an earlier"},
		"TooManyKeys":            {`{"keys":[` + strings.Repeat("{},", limits.KeySetKeys) + `{}]}`, "EdDSA", "has 101 keys"},
		"AShortRSAKey":           {`{"keys":[{"kty":"RSA","kid":"a","n":"` + strings.Repeat("A", 20) + `QAAA","e":"AQAB"}]}`, "RS256", "want 2048"},
		"AnEvenExponent":         {strings.Replace(rs.set, `"AQAB"`, `"BA"`, 1), "RS256", "exponent"},
		"APointOffTheCurve":      {`{"keys":[{"kty":"EC","kid":"a","crv":"P-256","x":"` + segment(make([]byte, 32)) + `","y":"` + segment(make([]byte, 32)) + `"}]}`, "ES256", "key 0"},
		"AShortKey":              {`{"keys":[{"kty":"OKP","kid":"a","crv":"Ed25519","x":"AAAA"}]}`, "EdDSA", "no key of Ed25519"},
	} {
		t.Run("Refuses"+name, func(t *testing.T) {
			_, err := parseSet([]byte(tt.set), tt.algorithm)
			require.ErrorContains(t, err, tt.want)
		})
	}
	t.Run("LeavesOutWhatItDoesntNeed", func(t *testing.T) {
		mixed := `{"keys":[{"kty":"OKP","kid":"x","crv":"X25519","x":"AA"},` + strings.TrimPrefix(ed.set, `{"keys":[`)
		keys, err := parseSet([]byte(mixed), "EdDSA")
		require.NoError(t, err)
		require.Len(t, keys, 1)
	})
}

// FuzzParse checks that no token and no key set panics, and that what is read is as it should be.
func FuzzParse(f *testing.F) {
	f.Add("e30.e30.AA", goodClaims)
	f.Add("", `{"keys":[{"kty":"RSA","kid":"a","n":"AQAB","e":"AQAB"}]}`)
	f.Fuzz(func(t *testing.T, raw, text string) {
		if tok, err := parse(raw); err == nil {
			require.NotEmpty(t, tok.subject)
			require.Greater(t, tok.expires, tok.issued)
		}
		_, _ = strictObject([]byte(text))
		for _, a := range Algorithms() {
			_, _ = parseSet([]byte(text), a)
		}
	})
}
