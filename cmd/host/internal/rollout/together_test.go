package rollout

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAddAll(t *testing.T) {
	// A store in which both tenants run version 1, and what is to be their version 2.
	prepare := func(t *testing.T) (s *Store, next []*Version) {
		t.Helper()
		s = openStore(t, t.TempDir())
		for _, tenant := range []string{"acme", "other"} {
			require.NoError(t, s.Add(versionOf(tenant, 1, put(t, s, tenant, "1"))))
			next = append(next, versionOf(tenant, 2, put(t, s, tenant, "2")))
		}
		return s, next
	}
	current := func(s *Store) [2]int { return [2]int{s.Current("acme").Number, s.Current("other").Number} }
	again := func(t *testing.T, s *Store) *Store {
		t.Helper()
		s = openStore(t, s.dir)
		require.NoFileExists(t, s.together())
		return s
	}
	t.Run("KeepsAll", func(t *testing.T) {
		s, next := prepare(t)
		require.NoError(t, s.AddAll(next))
		require.NoFileExists(t, s.together())
		require.Equal(t, [2]int{2, 2}, current(s))
		require.Equal(t, [2]int{2, 2}, current(again(t, s)))
	})
	for kept := range 3 {
		t.Run("KeepsNoneIfACrashComesAfter "+string(rune('0'+kept)), func(t *testing.T) {
			s, next := prepare(t)
			require.NoError(t, s.noteTogether(next))
			for _, v := range next[:kept] {
				require.NoError(t, s.Add(v))
			}
			s = again(t, s)
			require.Equal(t, [2]int{1, 1}, current(s))
			require.Equal(t, 1, modules(t, s))
			put(t, s, "acme", "2")
			require.NoError(t, s.Add(next[0]), "the number may be given again")
			require.Equal(t, [2]int{2, 1}, current(again(t, s)))
		})
	}
	t.Run("KeepsNoneIfOneFails", func(t *testing.T) {
		s, next := prepare(t)
		place := s.version("other", 2)
		require.NoError(t, os.MkdirAll(filepath.Join(place, "full"), 0o700))
		require.ErrorContains(t, s.AddAll(next), "keep version 2 of tenant other")
		require.Equal(t, [2]int{1, 1}, current(s))
		require.NoError(t, os.RemoveAll(place))
		require.Equal(t, [2]int{1, 1}, current(again(t, s)))
	})
	for _, tt := range []struct {
		name   string
		failed int // syncs of the folder of "other"
		says   string
		noted  bool
	}{
		{"KeepsNoneIfTheFolderOfOneIsNotFlushed", 1, "keep version 2 of tenant other: no flush", false},
		{"SaysWhatMayRunIfThatIsNotTakenBackEither", 2, "take back version 2 of tenant other, which may run after the next start: no flush", true},
	} {
		for _, alone := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.name, "/alone=", alone), func(t *testing.T) {
				s, next := prepare(t)
				left := tt.failed
				s.sync = func(dir string) error {
					if left > 0 && filepath.Base(dir) == "other" {
						left--
						return errors.New("no flush")
					}
					return syncFolder(dir)
				}
				if alone {
					next = next[1:]
				}
				require.ErrorContains(t, s.AddAll(next), tt.says)
				require.Zero(t, left)
				require.NoFileExists(t, s.version("other", 2))
				require.Equal(t, [2]int{1, 1}, current(s))
				_, err := os.Stat(s.together())
				require.Equal(t, tt.noted && !alone, err == nil)
				require.Equal(t, [2]int{1, 1}, current(again(t, s)))
				require.NoError(t, s.AddAll(next), "the number may be given again")
			})
		}
	}
	t.Run("ANoteThatIsNoneIsAnError", func(t *testing.T) {
		s, _ := prepare(t)
		require.NoError(t, os.WriteFile(s.together(), []byte("?"), 0o600))
		_, err := OpenStore(s.dir)
		require.ErrorContains(t, err, s.together())
	})
}
