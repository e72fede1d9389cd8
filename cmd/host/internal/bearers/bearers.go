// Package bearers says whose a bearer token is and what the host config lets them do.
package bearers

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/signedctx/bearer"
)

// Bearers identifies bearers of tokens. It is safe for concurrent use.
type Bearers struct {
	options bearer.Options
	current atomic.Pointer[rules]
}

// rules are what one host config says.
type rules struct {
	host     *config.Host
	issuers  []bearer.Issuer
	verifier *bearer.Verifier
}

// New returns the Bearers of a host config.
func New(h *config.Host, o bearer.Options) (*Bearers, error) {
	b := &Bearers{options: o}
	if err := b.Reload(h); err != nil {
		return nil, err
	}
	return b, nil
}

// Reload makes another host config the one that counts, for requests that come from now on. Key sets that were fetched stay
// in use as long as the issuers are the same. On an error all stays as it was.
func (b *Bearers) Reload(h *config.Host) error {
	next := &rules{host: h, issuers: issuersOf(h)}
	if before := b.current.Load(); before != nil && slices.Equal(before.issuers, next.issuers) {
		next.verifier = before.verifier
	} else {
		var err error
		if next.verifier, err = bearer.New(next.issuers, b.options); err != nil {
			return fmt.Errorf("issuers of bearer tokens: %w", err)
		}
	}
	b.current.Store(next)
	return nil
}

func issuersOf(h *config.Host) (issuers []bearer.Issuer) {
	for _, t := range h.Tenants {
		for _, is := range t.Issuers {
			issuers = append(issuers, bearer.Issuer{
				Tenant: t.Name, Name: is.Name, Issuer: is.Issuer, Audience: is.Audience, Algorithm: is.Algorithm, JWKS: is.JWKS,
			})
		}
	}
	return issuers
}

// Identify verifies a token. Its errors are those of bearer.Verifier.
func (b *Bearers) Identify(ctx context.Context, raw string) (bearer.Identity, config.Rights, error) {
	r := b.current.Load()
	id, err := r.verifier.Verify(ctx, raw)
	if err != nil {
		return bearer.Identity{}, config.Rights{}, err
	}
	return id, r.host.Rights(id.Tenant, id.Subject), nil
}
