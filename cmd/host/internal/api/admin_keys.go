package api

import (
	"context"
	"net/http"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/signedctx"
)

// KeySetPath is where the public keys of signed contexts are.
const KeySetPath = "/.well-known/jwks.json"

// KeyManager rotates the keys of signed contexts. It is safe for concurrent use.
type KeyManager interface {
	List() []signedctx.KeyInfo
	JWKS() []byte
	Reload() error
	Rotate(kind signedctx.Kind) (id string, err error)
	// Retire refuses a key that signs, that signed lately, or that a stored message names. It returns how many it looked at.
	Retire(ctx context.Context, kind signedctx.Kind, id string) (scanned int, err error)
}

type rotateRequest struct{ Body wire.KeyChange }

type retireRequest struct {
	ID   string `path:"id" doc:"id of the key"`
	Kind string `path:"kind" enum:"token,seal" doc:"kind of the key"`
}

// addKeys registers what is about the keys of signed contexts. They are the host's, and so the operator's alone.
func (a *admin) addKeys() {
	const route = "/admin/v1/keys"
	add(a, http.MethodGet, route, "list-keys", "The keys of signed contexts", http.StatusOK, a.listKeys)
	add(a, http.MethodPost, route+"/reload", "reload-keys", "Read the keys again", http.StatusOK, func(ctx context.Context, q *none) (wire.KeyList, error) {
		if err := a.Keys.Reload(); err != nil {
			return wire.KeyList{}, err
		}
		return a.listKeys(ctx, q)
	})
	add(a, http.MethodPost, route+"/rotate", "rotate-key", "Make a new key, which signs from now on", http.StatusCreated,
		func(_ context.Context, r *rotateRequest) (wire.Key, error) {
			id, err := a.Keys.Rotate(signedctx.Kind(r.Body.Kind))
			if err != nil {
				return wire.Key{}, err
			}
			for _, k := range a.Keys.List() {
				if k.ID == id && string(k.Kind) == r.Body.Kind {
					return keyOf(k), nil
				}
			}
			return wire.Key{ID: id, Kind: r.Body.Kind}, nil
		})
	add(a, http.MethodDelete, route+"/{kind}/{id}", "retire-key", "Take a key out of use that nothing names any more", http.StatusOK,
		func(ctx context.Context, r *retireRequest) (wire.KeyRetired, error) {
			n, err := a.Keys.Retire(ctx, signedctx.Kind(r.Kind), r.ID)
			return wire.KeyRetired{Scanned: n}, err
		})
}

func (a *admin) listKeys(context.Context, *none) (wire.KeyList, error) {
	list := wire.KeyList{Keys: []wire.Key{}}
	for _, k := range a.Keys.List() {
		list.Keys = append(list.Keys, keyOf(k))
	}
	return list, nil
}

func keyOf(k signedctx.KeyInfo) wire.Key {
	out := wire.Key{ID: k.ID, Kind: string(k.Kind), Algorithm: string(k.Algorithm), State: "public"}
	switch {
	case k.Signs:
		out.State = "signs"
	case k.Secret:
		out.State = "verifies"
	}
	return out
}

// keySetHandler answers with the public keys.
func keySetHandler(keys KeyManager) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/jwk-set+json")
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(keys.JWKS())
	})
}
