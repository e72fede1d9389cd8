package config

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const tenantsText = `
issuer: fleet-1
seal: jws
trust: [peers/a.json, /b.json]
listen: {admin_http: 127.0.0.1:0}
tenants:
  - tenant: acme
    issuers:
      - {name: idp, issuer: https://id.example, audience: longshore, algorithm: EdDSA, jwks: keys/idp.json}
      - {name: ci, issuer: https://ci.example, audience: longshore, algorithm: RS256, jwks: https://ci.example/jwks}
      - {name: own, issuer: own, audience: longshore, algorithm: ES256, jwks: "http://127.0.0.1:8080/jwks"}
    grants:
      - {subject: idp:alice, publish: [orders, orders/*], fence: true}
      - {subject: "idp:*", consume: ["*"]}
      - {subject: "ci:repo:acme/*", manage: true}
topics:
  - {tenant: acme, topic: orders, max_age: 48h}
`

func TestTenants(t *testing.T) {
	h, err := ParseHost("etc/h.yaml", []byte(tenantsText), Overrides{})
	require.NoError(t, err)
	t.Run("EveryKeyIsTaken", func(t *testing.T) {
		require.Equal(t, "fleet-1", h.Issuer)
		require.Equal(t, SealJWS, h.Seal)
		require.Equal(t, []string{filepath.Join("etc", "peers/a.json"), "/b.json"}, h.Trust)
		require.Equal(t, "127.0.0.1:0", h.Listen.AdminHTTP)
		require.Equal(t, 48*time.Hour, *h.Topics[0].MaxAge)
		require.Len(t, h.Tenants, 1)
		require.Equal(t, []Issuer{
			{Name: "idp", Issuer: "https://id.example", Audience: "longshore", Algorithm: "EdDSA", JWKS: filepath.Join("etc", "keys/idp.json")},
			{Name: "ci", Issuer: "https://ci.example", Audience: "longshore", Algorithm: "RS256", JWKS: "https://ci.example/jwks"},
			{Name: "own", Issuer: "own", Audience: "longshore", Algorithm: "ES256", JWKS: "http://127.0.0.1:8080/jwks"},
		}, h.Tenants[0].Issuers)
	})
	t.Run("RightsAreAllThatGrantsGive", func(t *testing.T) {
		alice := h.Rights("acme", "idp:alice")
		require.True(t, alice.MayPublish("orders") && alice.MayPublish("orders/new") && alice.Fence)
		require.False(t, alice.MayPublish("ordersx") || alice.MayPublish("other") || alice.Manage)
		require.True(t, alice.MayRead("anything"))
		bob := h.Rights("acme", "idp:bob")
		require.Equal(t, Rights{Consume: []string{"*"}}, bob)
		ci := h.Rights("acme", "ci:repo:acme/shop")
		require.True(t, ci.Manage && ci.MayRead("x"))
		require.False(t, ci.MayPublish("x"), "to manage a tenant is not to speak for it")
	})
	t.Run("OthersHaveNone", func(t *testing.T) {
		for _, who := range [][2]string{{"acme", "idp"}, {"acme", "ci:repo:acme"}, {"other", "idp:alice"}, {"acme", "local:0"}, {"acme", ""}} {
			require.Equal(t, Rights{}, h.Rights(who[0], who[1]), who)
		}
	})
}
