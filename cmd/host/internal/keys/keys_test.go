package keys

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

// bench is a manager on a real log and real keys, with a clock of its own.
type bench struct {
	*Manager
	dir  string
	ring *signedctx.Context
	log  *substrate.Log
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	log, err := substrate.Open(t.Context(), substrate.Options{Dir: filepath.Join(dir, "log")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	folder := signedctx.Folder{Dir: filepath.Join(dir, "keys")}
	k, err := folder.Load()
	require.NoError(t, err)
	ring, err := signedctx.New(k, "test", time.Now)
	require.NoError(t, err)
	return &bench{New(folder, ring, log, zap.NewNop()), folder.Dir, ring, log}
}

// publish stores a message that is sealed now.
func (b *bench) publish(t *testing.T, topic string, delay time.Duration) {
	t.Helper()
	m := substrate.Message{ID: b.log.MintID(), Tenant: "acme", Topic: topic, Payload: []byte("x"), Options: substrate.MessageOptions{Delay: delay}}
	var err error
	m.Envelope, err = b.ring.Seal(signedctx.Principal{Tenant: "acme", Subject: "local:0"}, dispatcher.Binding(m))
	require.NoError(t, err)
	_, err = b.log.Publish(t.Context(), m)
	require.NoError(t, err)
}

// settle claims what waits in a topic and settles it.
func (b *bench) settle(t *testing.T, topic string, verdict substrate.Verdict) {
	t.Helper()
	got, err := b.log.Claim(t.Context(), substrate.ClaimRequest{
		Tenant: "acme", Topic: topic, MaxMessages: 10, MaxBytes: 1 << 20, Lease: time.Minute, MaxAttempts: 5,
	})
	require.NoError(t, err)
	for _, d := range got.Deliveries {
		require.NoError(t, b.log.Settle(t.Context(), []substrate.Settlement{{Lease: d.Lease, Verdict: verdict, Reason: "rejected"}}, nil))
	}
}

// later moves the manager's clock past the lifetime of keys.
func (b *bench) later() {
	b.now = func() time.Time { return time.Now().Add(signedctx.KeyLifetime + time.Second) }
}

func TestRotate(t *testing.T) {
	b := newBench(t)
	old := b.ring.Keys().SealKeyID()
	id, err := b.Rotate(signedctx.SealKind)
	require.NoError(t, err)
	require.NotEqual(t, old, id)
	require.Equal(t, id, b.ring.Keys().SealKeyID(), "without a restart")
	require.Len(t, b.List(), 3)
}

func TestRetire(t *testing.T) {
	for _, kind := range []signedctx.Kind{signedctx.TokenKind, signedctx.SealKind} {
		for name, store := range map[string]func(*testing.T, *bench){
			"Waiting": func(t *testing.T, b *bench) { t.Helper(); b.publish(t, "a", 0) },
			"Delayed": func(t *testing.T, b *bench) { t.Helper(); b.publish(t, "a", time.Hour) },
			"Dead": func(t *testing.T, b *bench) {
				t.Helper()
				b.publish(t, "a", 0)
				b.settle(t, "a", substrate.Bury)
			},
			"InFlight": func(t *testing.T, b *bench) {
				t.Helper()
				b.publish(t, "a", 0)
				_, err := b.log.Claim(t.Context(), substrate.ClaimRequest{Tenant: "acme", Topic: "a", MaxMessages: 1, MaxBytes: 1, Lease: time.Hour, MaxAttempts: 5})
				require.NoError(t, err)
			},
		} {
			t.Run("IsRefusedWhileAMessageNamesTheKey/"+string(kind)+"/"+name, func(t *testing.T) {
				b := newBench(t)
				store(t, b)
				old := b.List()[map[signedctx.Kind]int{signedctx.TokenKind: 0, signedctx.SealKind: 1}[kind]]
				require.Equal(t, kind, old.Kind)
				_, err := b.Rotate(kind)
				require.NoError(t, err)
				b.later()
				_, err = b.Retire(t.Context(), kind, old.ID)
				require.ErrorIs(t, err, ErrInUse)
				require.Len(t, b.List(), 3)
			})
		}
	}
	t.Run("IsDoneOnceNoMessageNamesIt", func(t *testing.T) {
		b := newBench(t)
		b.publish(t, "a", 0)
		old := b.ring.Keys().SealKeyID()
		_, err := b.Rotate(signedctx.SealKind)
		require.NoError(t, err)
		b.settle(t, "a", substrate.Ack)
		b.publish(t, "b", 0)
		b.publish(t, "b", time.Hour)
		b.later()
		require.Eventually(t, func() bool {
			looked, err := b.Retire(t.Context(), signedctx.SealKind, old)
			return err == nil && looked >= 2
		}, 10*time.Second, 10*time.Millisecond, "what was settled just now may still be stored")
		require.Len(t, b.List(), 2)
		require.FileExists(t, filepath.Join(b.dir, "seal-000001.jwk.retired"))
	})
	t.Run("IsRefusedForTheKeyThatSignsAndForOneThatDidLately", func(t *testing.T) {
		b := newBench(t)
		old := b.ring.Keys().TokenKeyID()
		_, err := b.Retire(t.Context(), signedctx.TokenKind, old)
		require.ErrorIs(t, err, signedctx.ErrKeySigns)
		_, err = b.Rotate(signedctx.TokenKind)
		require.NoError(t, err)
		_, err = b.Retire(t.Context(), signedctx.TokenKind, old)
		require.ErrorIs(t, err, ErrRecent)
		_, err = b.Retire(t.Context(), signedctx.TokenKind, "nobody")
		require.ErrorIs(t, err, signedctx.ErrNoKey)
	})
}

func TestReload(t *testing.T) {
	t.Run("KeepsTheKeysInUseIfTheFilesAreFaulty", func(t *testing.T) {
		b := newBench(t)
		before := b.List()
		require.NoError(t, os.WriteFile(filepath.Join(b.dir, "seal-000009.jwk"), []byte("{"), 0o600))
		require.ErrorContains(t, b.Reload(), "those of before stay in use")
		require.Equal(t, before, b.List())
	})
}
