package signedctx

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestReload(t *testing.T) {
	for _, kind := range []Kind{TokenKind, SealKind} {
		t.Run("ANewKeySignsAndTheOldOneVerifies/"+string(kind), func(t *testing.T) {
			dir := Folder{Dir: t.TempDir()}
			c, at := newContext(t, mustLoad(t, dir.Dir), newClock()), newClock()
			c.now = at.now
			stored := mustSeal(t, c, principal(), binding())
			id, err := dir.Rotate(kind)
			require.NoError(t, err)
			c.Reload(mustLoad(t, dir.Dir))
			fresh := mustSeal(t, c, principal(), binding())
			token, seal := KeysOf(fresh)
			require.Equal(t, id, map[Kind]string{TokenKind: token, SealKind: seal}[kind], "the window of the old token isn't over")
			at.advance(366 * 24 * time.Hour)
			for _, e := range [][]byte{stored, fresh} {
				_, err := c.Verify(e, binding())
				require.NoError(t, err)
			}
		})
		t.Run("ARetiredKeyVerifiesNothingThoughItsTokenWasVerifiedBefore/"+string(kind), func(t *testing.T) {
			dir := Folder{Dir: t.TempDir()}
			c := newContext(t, mustLoad(t, dir.Dir), newClock())
			stored := mustSeal(t, c, principal(), binding())
			_, err := c.Verify(stored, binding())
			require.NoError(t, err)
			token, seal := KeysOf(stored)
			id := map[Kind]string{TokenKind: token, SealKind: seal}[kind]
			_, err = dir.Rotate(kind)
			require.NoError(t, err)
			require.NoError(t, dir.Retire(kind, id))
			c.Reload(mustLoad(t, dir.Dir))
			_, err = c.Verify(stored, binding())
			requireRefusal(t, ClassUnknownKey, err)
		})
	}
	t.Run("SaysUntilWhenAKeySigned", func(t *testing.T) {
		dir, at := Folder{Dir: t.TempDir()}, newClock()
		c := newContext(t, mustLoad(t, dir.Dir), at)
		first := c.Keys().SealKeyID()
		at.advance(time.Hour)
		require.Equal(t, at.now(), c.LastSigned(SealKind, first))
		require.Zero(t, c.LastSigned(TokenKind, first))
		_, err := dir.Rotate(SealKind)
		require.NoError(t, err)
		c.Reload(mustLoad(t, dir.Dir))
		was := at.now()
		at.advance(time.Hour)
		require.Equal(t, was, c.LastSigned(SealKind, first))
	})
}

func TestRotate(t *testing.T) {
	t.Run("MakesOwnerOnlyFilesInTheirOrder", func(t *testing.T) {
		dir := Folder{Dir: t.TempDir()}
		mustLoad(t, dir.Dir)
		for range 3 {
			id, err := dir.Rotate(TokenKind)
			require.NoError(t, err)
			require.Equal(t, id, mustLoad(t, dir.Dir).TokenKeyID())
		}
		info, err := os.Stat(filepath.Join(dir.Dir, "token-000004.jwk"))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		require.NoFileExists(t, filepath.Join(dir.Dir, "seal-000002.jwk"))
	})
	t.Run("RefusesBeyondTheLastNumber", func(t *testing.T) {
		dir := t.TempDir()
		mustLoad(t, dir)
		writeKey(t, dir, "seal-999999.jwk", newKey(t, HS256))
		_, err := Folder{Dir: dir}.Rotate(SealKind)
		require.ErrorContains(t, err, "number 999999 is taken")
	})
	t.Run("MakesAKeyOfTheAlgorithmThatIsAskedFor", func(t *testing.T) {
		dir := t.TempDir()
		old := mustLoad(t, dir)
		signed := Folder{Dir: dir, Seal: EdDSA}
		now, err := signed.Load()
		require.NoError(t, err)
		require.NotEqual(t, old.SealKeyID(), now.SealKeyID())
		require.Equal(t, old.TokenKeyID(), now.TokenKeyID())
		again, err := signed.Load()
		require.NoError(t, err)
		require.Equal(t, now.Keys(), again.Keys(), "once is enough")
		require.Equal(t, []KeyInfo{
			{ID: old.TokenKeyID(), Kind: TokenKind, Algorithm: EdDSA, Signs: true, Secret: true},
			{ID: old.SealKeyID(), Kind: SealKind, Algorithm: HS256, Secret: true},
			{ID: now.SealKeyID(), Kind: SealKind, Algorithm: EdDSA, Signs: true, Secret: true},
		}, now.Keys())
	})
}

func TestRetire(t *testing.T) {
	t.Run("RefusesTheKeyThatSigns", func(t *testing.T) {
		dir := t.TempDir()
		k := mustLoad(t, dir)
		require.ErrorIs(t, Folder{Dir: dir}.Retire(SealKind, k.SealKeyID()), ErrKeySigns)
		require.Equal(t, k.SealKeyID(), mustLoad(t, dir).SealKeyID())
	})
	t.Run("RefusesAnUnknownKey", func(t *testing.T) {
		dir := t.TempDir()
		k := mustLoad(t, dir)
		require.ErrorIs(t, Folder{Dir: dir}.Retire(SealKind, k.TokenKeyID()), ErrNoKey, "of the other kind")
	})
	t.Run("KeepsTheFileToPutBack", func(t *testing.T) {
		dir := Folder{Dir: t.TempDir()}
		c := newContext(t, mustLoad(t, dir.Dir), newClock())
		stored, old := mustSeal(t, c, principal(), binding()), c.Keys().SealKeyID()
		_, err := dir.Rotate(SealKind)
		require.NoError(t, err)
		require.NoError(t, dir.Retire(SealKind, old))
		path := filepath.Join(dir.Dir, "seal-000001.jwk")
		require.NoError(t, os.Rename(path+".retired", path))
		c.Reload(mustLoad(t, dir.Dir))
		_, err = c.Verify(stored, binding())
		require.NoError(t, err)
	})
	t.Run("ANumberIsNotUsedAgain", func(t *testing.T) {
		dir := Folder{Dir: t.TempDir()}
		k := mustLoad(t, dir.Dir)
		_, err := dir.Rotate(SealKind)
		require.NoError(t, err)
		require.NoError(t, dir.Retire(SealKind, k.SealKeyID()))
		_, err = dir.Rotate(SealKind)
		require.NoError(t, err)
		require.FileExists(t, filepath.Join(dir.Dir, "seal-000003.jwk"))
	})
	t.Run("TheLifetimeIsThatOfATokenWithItsLeeway", func(t *testing.T) {
		require.Equal(t, limits.TokenWindow+limits.TokenLeeway, KeyLifetime)
	})
}

func TestKeysOf(t *testing.T) {
	c, _ := generated(t, EdDSA)
	e := mustSeal(t, c, principal(), binding())
	token, seal := KeysOf(e)
	require.Equal(t, []string{c.Keys().TokenKeyID(), c.Keys().SealKeyID()}, []string{token, seal})
	for _, bad := range [][]byte{nil, {1}, e[:40], append([]byte{9}, e[1:]...)} {
		token, seal := KeysOf(bad)
		require.Empty(t, token+seal)
	}
}
