package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/cli"
	"github.com/longshore/longshore/cmd/host/internal/wire"
)

const deployersConfig = `
listen: {admin_http: "127.0.0.1:0"}
tenants:
  - tenant: acme
    issuers:
      - {name: idp, issuer: "https://id.example", audience: longshore, algorithm: EdDSA, jwks: jwks.json}
    grants:
      - {subject: "idp:deployer", manage: true}
`

// TestATenantDeploys deploys with the token of a tenant, over TCP, from a folder that the host doesn't see.
func TestATenantDeploys(t *testing.T) {
	dir, s := t.TempDir(), shop{t, t.TempDir()}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	encode := base64.RawURLEncoding.EncodeToString
	set := fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k1","x":%q}]}`, encode(public))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jwks.json"), []byte(set), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "longshore.yaml"), []byte(deployersConfig), 0o600))
	p := startHost(t, dir)
	found := regexp.MustCompile(`"address":"(127\.0\.0\.1:\d+)"`).FindStringSubmatch(p.stderr.String())
	require.NotNil(t, found, p.stderr.String())
	token := func(subject string) string {
		now := time.Now().Unix()
		text := encode([]byte(`{"alg":"EdDSA","kid":"k1"}`)) + "." + encode(fmt.Appendf(nil,
			`{"iss":"https://id.example","aud":"longshore","sub":%q,"iat":%d,"exp":%d}`, subject, now, now+60))
		return s.file(subject+".token", []byte(text+"."+encode(ed25519.Sign(private, []byte(text)))+"\n"))
	}
	remote := func(subject string, args ...string) answer {
		return run(t, dir, "", append(args, "--server", "http://"+found[1], "--token-file", token(subject))...)
	}
	s.module("trap")
	operators := filepath.Join(s.dir, "operators.yaml")
	require.NoError(t, os.WriteFile(operators, []byte("consumers: [{name: a, topic: a, module: a.wasm}]\n"), 0o600))
	ok(t, dir, "apply", "-f", operators)

	manifest := s.write("name: a, tenant: acme, topic: a, module: a.wasm")
	out := remote("deployer", "apply", "-f", manifest, "--tenant", "acme")
	require.Equal(t, cli.ExitOK, out.code, out.err)
	require.Contains(t, out.err, "uploading a.wasm", "that another tenant has it is not told")
	running := func() (names []string) {
		all, err := p.admin.Consumers(t.Context())
		require.NoError(t, err)
		for _, c := range all {
			names = append(names, c.Tenant+"/"+c.Name)
		}
		return names
	}
	require.Equal(t, []string{"acme/a", "default/a"}, running())
	ok(t, dir, "apply", "-f", operators)
	require.Equal(t, []string{"acme/a", "default/a"}, running(), "what a tenant deployed stays")

	s.write("name: b, tenant: acme, topic: b, module: a.wasm", "name: c, topic: c, module: a.wasm")
	out = remote("deployer", "apply", "-f", manifest, "--tenant", "acme")
	require.Equal(t, cli.ExitUsage, out.code, out.err)
	require.Regexp(t, `consumers.yaml:3:\d+: consumers\[1\]: it is of tenant default \(want tenant: acme`, out.err)
	require.Equal(t, []string{"acme/a", "default/a"}, running())

	s.write("name: b, tenant: acme, topic: b, module: a.wasm")
	require.Equal(t, cli.ExitRefused, remote("stranger", "apply", "-f", manifest, "--tenant", "acme").code)
	require.Equal(t, cli.ExitFailed, remote("deployer", "apply", "-f", manifest, "--tenant", "default").code, "404")
	require.Equal(t, cli.ExitFailed, remote("deployer", "history", "--tenant", "default").code)
	require.Equal(t, cli.ExitUsage, remote("deployer", "apply", "-f", manifest).code, "a token is for one tenant")
	out = remote("deployer", "apply", "-f", manifest, "--tenant", "acme")
	require.Equal(t, cli.ExitOK, out.code, out.err)
	require.Equal(t, []string{"acme/b", "default/a"}, running())
	out = remote("deployer", "rehearse", "b", "-f", manifest, "--tenant", "acme")
	require.Equal(t, cli.ExitOK, out.code, out.err)
	require.Contains(t, out.err, "0 messages rehearsed")
	require.Equal(t, cli.ExitRefused, remote("stranger", "rehearse", "b", "-f", manifest, "--tenant", "acme").code)
	out = remote("deployer", "rehearse", "a", "-f", operators, "--tenant", "default")
	require.Equal(t, cli.ExitFailed, out.code, "404")
	require.Contains(t, out.err, "not found")
	out = remote("deployer", "rollback", "--tenant", "acme")
	require.Equal(t, cli.ExitOK, out.code, out.err)
	require.Equal(t, []string{"acme/a", "default/a"}, running())
	out = remote("deployer", "history", "--tenant", "acme", "-o", "json")
	var list wire.VersionList
	require.NoError(t, json.Unmarshal([]byte(out.out), &list), out.err)
	require.Len(t, list.Versions, 3)
	require.Equal(t, "idp:deployer", list.Versions[0].By)
}
