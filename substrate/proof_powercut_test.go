package substrate

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// cutJournal makes the frames after a number of the journal in dir unreadable, as those are that never reached the disk;
// or, with hole, the first of them only, as it is when the system had written later ones.
func cutJournal(t *testing.T, dir string, last uint64, hole bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "journal", "seg-*"))
	require.NoError(t, err)
	var epoch uint64
	contents := map[string][]byte{}
	for _, name := range files {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		contents[name] = b
		epoch = max(epoch, binary.LittleEndian.Uint64(b[16:]))
	}
	for name, b := range contents {
		if binary.LittleEndian.Uint64(b[16:]) != epoch {
			continue
		}
		for number, off := binary.LittleEndian.Uint64(b[32:]), 4096; off+32 <= len(b) && binary.LittleEndian.Uint64(b[off+8:]) == number; number++ {
			next := off + (32+int(binary.LittleEndian.Uint32(b[off+24:]))+7)/8*8
			if number == last+1 || number > last && !hole {
				erase(t, name, off)
			}
			off = next
		}
	}
}

func erase(t *testing.T, name string, off int) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, 32), int64(off))
	require.NoError(t, errors.Join(err, f.Close()))
}
