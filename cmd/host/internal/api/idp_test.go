package api

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/internal/config"
)

// idp issues bearer tokens for the tenants acme and other, whose issuers share its key and differ in their audience.
type idp struct {
	private ed25519.PrivateKey
	host    *config.Host
}

func newIDP(t *testing.T) *idp {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "jwks.json")
	set := fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k1","use":"sig","x":%q}]}`, base64.RawURLEncoding.EncodeToString(public))
	require.NoError(t, os.WriteFile(file, []byte(set), 0o600))
	h := config.DefaultHost()
	for _, tenant := range []string{"acme", "other"} {
		h.Tenants = append(h.Tenants, config.Tenant{
			Name: tenant,
			Issuers: []config.Issuer{{
				Name: "idp", Issuer: "https://id.example", Audience: tenant, Algorithm: "EdDSA", JWKS: file,
			}},
			Grants: []config.Grant{
				{Subject: "idp:admin", Rights: config.Rights{Publish: []string{"*"}, Consume: []string{"*"}, Fence: true, Manage: true}},
				{Subject: "idp:producer", Rights: config.Rights{Publish: []string{"orders"}}},
				{Subject: "idp:reader", Rights: config.Rights{Consume: []string{"orders"}}},
			},
		})
	}
	return &idp{private, h}
}

// header returns the Authorization header of a tenant's subject, as do takes it.
func (p *idp) header(t *testing.T, tenant, subject string) []string {
	t.Helper()
	claims, err := json.Marshal(map[string]any{
		"iss": "https://id.example", "aud": tenant, "sub": subject, "iat": time.Now().Unix(), "exp": time.Now().Unix() + 600,
	})
	require.NoError(t, err)
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"EdDSA","kid":"k1","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(claims)
	raw := text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(p.private, []byte(text)))
	return []string{"Authorization", "Bearer " + raw}
}
