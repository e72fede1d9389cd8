package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

const keysPath = "/admin/v1/keys"

// Keys lists the keys of signed contexts, oldest first.
func (a *Admin) Keys(ctx context.Context) ([]wire.Key, error) {
	var out wire.KeyList
	err := a.call(ctx, http.MethodGet, keysPath, nil, &out)
	return out.Keys, err
}

// ReloadKeys makes the host read its keys again.
func (a *Admin) ReloadKeys(ctx context.Context) ([]wire.Key, error) {
	var out wire.KeyList
	err := a.call(ctx, http.MethodPost, keysPath+"/reload", nil, &out)
	return out.Keys, err
}

// RotateKey makes a new key of a kind, which signs from now on.
func (a *Admin) RotateKey(ctx context.Context, kind string) (out wire.Key, err error) {
	err = a.call(ctx, http.MethodPost, keysPath+"/rotate", wire.KeyChange{Kind: kind}, &out)
	return out, err
}

// RetireKey takes a key out of use.
func (a *Admin) RetireKey(ctx context.Context, kind, id string) (out wire.KeyRetired, err error) {
	err = a.call(ctx, http.MethodDelete, keysPath+"/"+url.PathEscape(kind)+"/"+url.PathEscape(id), nil, &out)
	return out, err
}
