// Package bearers says whose a bearer token is and what the host config lets them do.
package bearers

import (
	"context"
	"fmt"

	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/signedctx/bearer"
)

// Bearers identifies bearers of tokens. It is safe for concurrent use.
type Bearers struct {
	host     *config.Host
	verifier *bearer.Verifier
}

// New returns the Bearers of a host config.
func New(h *config.Host, o bearer.Options) (*Bearers, error) {
	var issuers []bearer.Issuer
	for _, t := range h.Tenants {
		for _, is := range t.Issuers {
			issuers = append(issuers, bearer.Issuer{
				Tenant: t.Name, Name: is.Name, Issuer: is.Issuer, Audience: is.Audience, Algorithm: is.Algorithm, JWKS: is.JWKS,
			})
		}
	}
	v, err := bearer.New(issuers, o)
	if err != nil {
		return nil, fmt.Errorf("issuers of bearer tokens: %w", err)
	}
	return &Bearers{h, v}, nil
}

// Identify verifies a token. Its errors are those of bearer.Verifier.
func (b *Bearers) Identify(ctx context.Context, raw string) (bearer.Identity, config.Rights, error) {
	id, err := b.verifier.Verify(ctx, raw)
	if err != nil {
		return bearer.Identity{}, config.Rights{}, err
	}
	return id, b.host.Rights(id.Tenant, id.Subject), nil
}
