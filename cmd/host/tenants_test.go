package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const tenantsConfig = `
listen: {admin_http: "127.0.0.1:0"}
seal: jws
tenants:
  - tenant: acme
    issuers:
      - {name: idp, issuer: "https://id.example", audience: longshore, algorithm: EdDSA, jwks: jwks.json}
    grants:
      - {subject: "idp:shop-*", publish: [orders], consume: [orders]}
`

// TestBearers runs a host whose config has an issuer, and meets it as the bearer of a token does.
func TestBearers(t *testing.T) {
	dir := t.TempDir()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	encode := base64.RawURLEncoding.EncodeToString
	set := fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k1","x":%q}]}`, encode(public))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jwks.json"), []byte(set), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "longshore.yaml"), []byte(tenantsConfig), 0o600))
	p := startHost(t, dir)
	found := regexp.MustCompile(`"address":"(127\.0\.0\.1:\d+)"`).FindStringSubmatch(p.stderr.String())
	require.NotNil(t, found, p.stderr.String())

	token := func(subject string) string {
		now := time.Now().Unix()
		text := encode([]byte(`{"alg":"EdDSA","kid":"k1"}`)) + "." + encode(fmt.Appendf(nil,
			`{"iss":"https://id.example","aud":"longshore","sub":%q,"iat":%d,"exp":%d}`, subject, now, now+60))
		return "Bearer " + text + "." + encode(ed25519.Sign(private, []byte(text)))
	}
	call := func(method, url, authorization string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+url, strings.NewReader("hello"))
		require.NoError(t, err)
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode, string(text)
	}
	publish := func(authorization string) int {
		code, _ := call(http.MethodPost, p.info.HTTP+"/v1/topics/orders/messages", authorization)
		return code
	}
	require.Equal(t, http.StatusCreated, publish(token("shop-1")))
	require.Equal(t, http.StatusForbidden, publish(token("other")))
	require.Equal(t, http.StatusUnauthorized, publish(token("shop-1")+"A"))
	require.Equal(t, http.StatusUnauthorized, publish(""))

	ok(t, dir, "publish", "orders", "--data", "of the tenant default")
	code, topics := call(http.MethodGet, found[1]+"/admin/v1/topics", token("shop-1"))
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, topics, `"tenant":"acme"`)
	require.NotContains(t, topics, "default\",\"topic")
	code, _ = call(http.MethodGet, found[1]+"/admin/v1/tenants/default/topics/orders", token("shop-1"))
	require.Equal(t, http.StatusNotFound, code)
	code, _ = call(http.MethodGet, found[1]+"/admin/v1/topics", "")
	require.Equal(t, http.StatusUnauthorized, code)
	require.NotContains(t, p.stderr.String(), "eyJ", "no token is logged")

	// What the config says of tenants counts without a new start, and one that is wrong changes nothing.
	reload := func(config, logged string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "longshore.yaml"), []byte(config), 0o600))
		before := strings.Count(p.stderr.String(), logged)
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
		require.Eventually(t, func() bool { return strings.Count(p.stderr.String(), logged) > before }, 20*time.Second, 20*time.Millisecond)
	}
	const read = "issuers, grants and caps of tenants are read"
	reload(tenantsConfig+"    grunts: []\n", "the host config is not read")
	require.Equal(t, http.StatusCreated, publish(token("shop-1")))
	reload(strings.Replace(tenantsConfig, "idp:shop-*", "idp:other", 1), read)
	require.Equal(t, http.StatusForbidden, publish(token("shop-1")), "the grant is taken away")
	require.Equal(t, http.StatusCreated, publish(token("other")))
	reload(strings.Replace(tenantsConfig, "audience: longshore", "audience: elsewhere", 1), read)
	require.Equal(t, http.StatusUnauthorized, publish(token("shop-1")), "the issuer is another")
	reload(tenantsConfig+"    caps: {messages: 4}\n", read)
	require.Equal(t, http.StatusCreated, publish(token("shop-1")))
	require.Equal(t, http.StatusInsufficientStorage, publish(token("shop-1")))
	require.Contains(t, ok(t, dir, "keys", "list"), "seal   EdDSA      signs")
	require.Zero(t, p.signal(t, syscall.SIGTERM))
}
