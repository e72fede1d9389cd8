// Package keys changes the keys of signed contexts while a host runs.
package keys

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

// Errors of Manager.Retire, beside those of signedctx.Folder.Retire.
var (
	ErrInUse  = errors.New("a stored message names the key: wait until such messages are done, or discard them")
	ErrRecent = fmt.Errorf("the key signed less than %s ago: wait until what it signed is stored", signedctx.KeyLifetime)
)

// Manager changes the keys of a folder, and of the context that uses them. It is safe for concurrent use.
type Manager struct {
	mu      sync.Mutex // of the folder
	folder  signedctx.Folder
	context *signedctx.Context
	log     *substrate.Log
	logger  *zap.Logger
	now     func() time.Time
}

// New returns a Manager. It owns none of its arguments.
func New(folder signedctx.Folder, c *signedctx.Context, log *substrate.Log, logger *zap.Logger) *Manager {
	return &Manager{folder: folder, context: c, log: log, logger: logger, now: time.Now}
}

// List describes the keys in use.
func (m *Manager) List() []signedctx.KeyInfo { return m.context.Keys().Keys() }

// JWKS returns the public keys in use.
func (m *Manager) JWKS() []byte { return m.context.Keys().JWKS() }

// Reload reads the keys again. If they can't be read, those in use stay.
func (m *Manager) Reload() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reload()
}

func (m *Manager) reload() error {
	k, err := m.folder.Load()
	if err != nil {
		return fmt.Errorf("read the signing keys again: %w; those of before stay in use", err)
	}
	m.context.Reload(k)
	m.logger.Info("signing keys are read", zap.String("token_key", k.TokenKeyID()), zap.String("seal_key", k.SealKeyID()), zap.Int("keys", len(k.Keys())))
	return nil
}

// Rotate makes a new key, which signs from now on.
func (m *Manager) Rotate(kind signedctx.Kind) (id string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if id, err = m.folder.Rotate(kind); err != nil {
		return "", err
	}
	return id, m.reload()
}

// Retire takes a key out of use that no stored message names, and returns at how many it looked.
//
// It reads the whole log: retiring is rare, and a count that is kept with each publish would cost every message. A message
// that the key sealed just before it was rotated may not be stored yet, so a key that signed lately is refused. Backups are
// not looked at.
func (m *Manager) Retire(ctx context.Context, kind signedctx.Kind, id string) (looked int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range m.List() {
		if k.Signs && k.Kind == kind && k.ID == id {
			return 0, signedctx.ErrKeySigns
		}
	}
	if signed := m.context.LastSigned(kind, id); !signed.IsZero() && m.now().Sub(signed) < signedctx.KeyLifetime {
		return 0, ErrRecent
	}
	looked, err = m.log.EachEnvelope(ctx, func(envelope []byte) error {
		token, seal := signedctx.KeysOf(envelope)
		if kind == signedctx.TokenKind && token == id || kind == signedctx.SealKind && seal == id {
			return ErrInUse
		}
		return nil
	})
	if err != nil {
		return looked, err
	}
	if err := m.folder.Retire(kind, id); err != nil {
		return looked, err
	}
	m.logger.Info("signing key is retired", zap.String("kind", string(kind)), zap.String("key", id), zap.Int("messages", looked))
	return looked, m.reload()
}
