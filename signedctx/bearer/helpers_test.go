package bearer

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// idp is an issuer as tests play it: its private key, and the set that it publishes.
type idp struct {
	method  jwt.SigningMethod
	private any
	set     string
}

func segment(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func newIDP(t *testing.T, algorithm, kid string) idp {
	t.Helper()
	member := map[string]string{"kid": kid, "use": "sig", "alg": algorithm}
	p := idp{method: methods()[algorithm]}
	switch algorithm {
	case "EdDSA":
		public, private, err := ed25519.GenerateKey(rand.Reader)
		require.NoError(t, err)
		p.private = private
		member["kty"], member["crv"], member["x"] = "OKP", "Ed25519", segment(public)
	case "ES256":
		private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		raw, err := private.PublicKey.Bytes()
		require.NoError(t, err)
		p.private = private
		member["kty"], member["crv"], member["x"], member["y"] = "EC", "P-256", segment(raw[1:33]), segment(raw[33:])
	case "RS256":
		private, err := rsa.GenerateKey(rand.Reader, 2048)
		require.NoError(t, err)
		p.private = private
		member["kty"], member["n"], member["e"] = "RSA", segment(private.N.Bytes()), segment(big.NewInt(int64(private.E)).Bytes())
	}
	raw, err := json.Marshal(map[string]any{"keys": []any{member}})
	require.NoError(t, err)
	p.set = string(raw)
	return p
}

func (p idp) sign(t *testing.T, header, claims string) string {
	t.Helper()
	text := segment([]byte(header)) + "." + segment([]byte(claims))
	signature, err := p.method.Sign(text, p.private)
	require.NoError(t, err)
	return text + "." + segment(signature)
}

func header(algorithm string) string { return `{"alg":"` + algorithm + `","kid":"k1","typ":"JWT"}` }

const goodClaims = `{"iss":"https://id.acme.example","aud":"longshore","sub":"alice","iat":1795953600,"exp":1795957200,` +
	`"roles":["a","b"],"email_verified":true,"nested":{"x":null}}`

func acme(algorithm, place string) Issuer {
	return Issuer{Tenant: "acme", Name: "idp", Issuer: "https://id.acme.example", Audience: "longshore", Algorithm: algorithm, JWKS: place}
}

// writeSet puts a key set into a file.
func writeSet(t *testing.T, set string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "jwks.json")
	require.NoError(t, os.WriteFile(file, []byte(set), 0o600))
	return file
}

// world is a clock and a network.
type world struct {
	mu      sync.Mutex
	now     time.Time
	answer  func(*http.Request) (int, string)
	fetched []string
}

func newWorld() *world { return &world{now: start} }

func (w *world) options() Options {
	return Options{Transport: w, Now: func() time.Time {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.now
	}}
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) fetches() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.fetched)
}

// RoundTrip implements http.RoundTripper.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.fetched = append(w.fetched, r.URL.String())
	w.mu.Unlock()
	status, body := w.answer(r)
	if status == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{
		StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Request: r,
		Header: http.Header{"Location": {"https://elsewhere.example/keys"}},
	}, nil
}

func newVerifier(t *testing.T, w *world, issuers ...Issuer) *Verifier {
	t.Helper()
	v, err := New(issuers, w.options())
	require.NoError(t, err)
	return v
}
