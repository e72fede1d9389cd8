package api

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/substrate"
)

// addTenants registers what is about a tenant as a whole.
func (a *admin) addTenants() {
	const of = "/admin/v1/tenants/{tenant}"
	add(a, http.MethodGet, "/admin/v1/tenants", "list-tenants", "The tenants, with what they have", http.StatusOK,
		func(ctx context.Context, _ *none) (wire.TenantList, error) {
			list := wire.TenantList{Tenants: []wire.Tenant{}}
			all := a.tenants()
			for _, name := range slices.Sorted(maps.Keys(all)) {
				if c := credentialOf(ctx); c == nil || c.Tenant == name && c.Manage {
					list.Tenants = append(list.Tenants, *all[name])
				}
			}
			return list, nil
		})
	add(a, http.MethodGet, of, "get-tenant", "What a tenant has", http.StatusOK,
		func(_ context.Context, r *TenantPath) (*wire.Tenant, error) { return a.tenant(r.Tenant) })
	add(a, http.MethodDelete, of, "delete-tenant", "Delete all of a tenant, of which nothing may run", http.StatusOK,
		func(ctx context.Context, r *TenantPath) (*wire.Tenant, error) {
			t, err := a.tenant(r.Tenant)
			if err != nil {
				return nil, err
			}
			return t, a.DeleteTenant(ctx, r.Tenant)
		})
}

// tenant returns what there is of a tenant, or substrate.ErrNotFound.
func (a *admin) tenant(name string) (*wire.Tenant, error) {
	if err := substrate.ValidTenant(name); err != nil {
		return nil, err
	}
	t := a.tenants()[name]
	if t == nil {
		return nil, substrate.ErrNotFound
	}
	return t, nil
}

// tenants returns all tenants of which there is something: in the log, deployed, or running.
func (a *admin) tenants() map[string]*wire.Tenant {
	all := map[string]*wire.Tenant{}
	of := func(name string) *wire.Tenant {
		if all[name] == nil {
			all[name] = &wire.Tenant{Name: name, Consumers: []string{}}
		}
		return all[name]
	}
	for _, t := range a.Log.Tenants() {
		if t.Topics+t.Buckets == 0 && !t.Deleting {
			continue
		}
		w := of(t.Name)
		w.Topics, w.Messages, w.Bytes, w.Buckets, w.ValueBytes, w.Deleting = t.Topics, t.Messages, t.Bytes, t.Buckets, t.ValueBytes, t.Deleting
		for name, n := range t.Refused {
			if w.Refused == nil {
				w.Refused = map[string]int64{}
			}
			w.Refused[string(name)] = n
		}
	}
	for _, s := range a.Log.Topics() {
		w := of(s.Tenant)
		w.DeadLetters += s.DeadLetters
		w.Quarantined += s.Quarantined
		w.Groups += s.Groups
	}
	for _, c := range a.Consumers() {
		of(c.Tenant).Consumers = append(of(c.Tenant).Consumers, c.Name)
	}
	for _, name := range a.Deploy.Tenants() {
		of(name).Versions = len(a.Deploy.History(name).Versions)
	}
	return all
}
