package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/cmd/host/internal/app"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

// forge writes one order into the log, past the host, as somebody could who reaches the disk but not the keys: its
// context names the host's keys, and is signed by others. No host runs meanwhile.
func forge(ctx context.Context, h *config.Host) (err error) {
	seal, err := foreignContext(h.Keys)
	if err != nil {
		return err
	}
	log, err := app.OpenLog(ctx, h, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	payload, err := json.Marshal(order{ID: "forged", Customer: "nobody", Lines: []item{{SKU: "gold", Quantity: 1, Cents: 1}}})
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	m := substrate.Message{ID: log.MintID(), Tenant: tenant, Topic: ordersTopic, ContentType: orderContentType, Payload: payload}
	who := signedctx.Principal{Tenant: tenant, Subject: "local:0"}
	if m.Envelope, err = seal.Seal(who, dispatcher.Binding(m)); err != nil {
		return fmt.Errorf("seal: %w", err)
	}
	if _, err := log.Publish(ctx, m); err != nil {
		return fmt.Errorf("write the forged message: %w", err)
	}
	return nil
}

// foreignContext signs with keys that have the names of the host's keys, but are not them.
func foreignContext(keyDir string) (*signedctx.Context, error) {
	own, err := signedctx.LoadOrCreate(keyDir)
	if err != nil {
		return nil, fmt.Errorf("make the host's keys: %w", err)
	}
	token, err := signedctx.GenerateKey(signedctx.EdDSA)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	seal, err := signedctx.GenerateKey(signedctx.HS256)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	token.ID, seal.ID = own.TokenKeyID(), own.SealKeyID()
	ring, err := signedctx.NewKeyring([]signedctx.Key{token}, []signedctx.Key{seal})
	if err != nil {
		return nil, fmt.Errorf("make a keyring: %w", err)
	}
	return signedctx.New(ring, config.DefaultHost().Issuer, time.Now)
}
