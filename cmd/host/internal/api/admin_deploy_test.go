package api

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/rollout"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/internal/config"
)

func TestATenantHasOneDeploymentAtATime(t *testing.T) {
	h := newHarness(t)
	deployer, ok := h.options.Deploy.(*rollout.Deployer)
	require.True(t, ok)
	reached, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	deployer.Lanes = func(context.Context, []config.Consumer) error {
		once.Do(func() { close(reached); <-goOn })
		return nil
	}
	bearers := NewAdmin(h.options).Remote(h.bearers, zap.NewNop())
	const apply = `{"manifest":"consumers: []","modules":{}}`
	post := func(tenant, path, body string) (int, http.Header, string) {
		header := append(h.idp.header(t, tenant, "admin"), "Content-Type", "application/json")
		w := do(t, bearers, http.MethodPost, "/admin/v1/tenants/"+tenant+"/deployments"+path, strings.NewReader(body), header...)
		return w.Code, w.Header(), w.Body.String()
	}
	var under sync.WaitGroup
	succeeds := func(tenant string) {
		under.Go(func() {
			code, _, body := post(tenant, "", apply)
			if code != http.StatusOK {
				t.Errorf("apply of %s: %d %s", tenant, code, body)
			}
		})
	}
	succeeds("acme")
	<-reached
	for path, body := range map[string]string{
		"": apply, "/rollback": `{"version":1}`, "/promote": `{}`,
		"/rehearse": `{"consumer":"c","manifest":"consumers: []","modules":{}}`,
	} {
		code, header, said := post("acme", path, body)
		require.Equal(t, http.StatusConflict, code, said)
		require.Equal(t, "1", header.Get("Retry-After"))
		require.Contains(t, said, "another deployment of this tenant is under way, or waits for its turn")
	}
	for _, path := range []string{"/admin/v1/tenants/acme/deployments", "/admin/v1/tenants"} {
		w := do(t, bearers, http.MethodGet, path, nil, h.idp.header(t, "acme", "admin")...)
		require.Equal(t, http.StatusOK, w.Code, "reading waits for nothing: %s", w.Body)
	}

	succeeds("other") // in its turn
	admin := client.NewAdmin(h.serveAdmin(t))
	under.Go(func() {
		if _, err := admin.Apply(t.Context(), "acme", "", wire.Apply{Manifest: "consumers: []", Modules: map[string]string{}}); err != nil {
			t.Errorf("the operator may deploy for a tenant that does: %v", err)
		}
	})
	close(goOn)
	under.Wait()
	code, _, body := post("acme", "", apply)
	require.Equal(t, http.StatusOK, code, body)
}
