package store

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/fb"
	"github.com/dgraph-io/badger/v4/table"
)

// verifyTables reads all tables of the closed database in dir, none of which is compressed, and checks every byte of them.
// Badger itself would notice a damaged table late, or never, or end the process.
func verifyTables(dir string) error {
	f, err := os.Open(filepath.Join(dir, badger.ManifestFilename))
	if errors.Is(err, os.ErrNotExist) {
		return nil // there are none
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	manifest, _, err := badger.ReplayManifestFile(f, 0, options(dir))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, badger.ManifestFilename, err)
	}
	ids := make([]uint64, 0, len(manifest.Tables))
	for id := range manifest.Tables {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		name := table.NewFilename(id, dir)
		if err := verifyTable(name); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrDamaged, filepath.Base(name), err)
		}
	}
	return nil
}

// A table of Badger is its blocks, and then
//
//	index | length of the index u32 | checksum of the index | length of the checksum u32      (big-endian)
//
// A block ends with a checksum of what is before it, and the length of the checksum. A checksum is a protobuf message with a
// CRC-32C in its second field.

// maxChecksumBytes bounds a checksum: a tag, and a varint of 32 bits.
const maxChecksumBytes = 6

// verifyTable checks a table.
func verifyTable(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it is only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	r := tableReader{file: f, end: info.Size()}
	chk, err := r.sized(maxChecksumBytes)
	if err != nil {
		return fmt.Errorf("checksum of the index: %w", err)
	}
	index, err := r.sized(r.end)
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	if len(index) == 0 || !checks(index, chk) {
		return errors.New("the checksum of the index does not match")
	}
	return r.blocks(fb.GetRootAsTableIndex(index, 0))
}

// tableReader reads a table from its end.
type tableReader struct {
	file *os.File
	end  int64 // of what was not read yet
}

// sized reads the last piece, which has its length after it.
func (r *tableReader) sized(most int64) ([]byte, error) {
	length := make([]byte, 4)
	if r.end < int64(len(length)) {
		return nil, errors.New("the table is cut")
	}
	if _, err := r.file.ReadAt(length, r.end-4); err != nil {
		return nil, err
	}
	r.end -= 4
	n := int64(binary.BigEndian.Uint32(length))
	if n > most || n > r.end {
		return nil, fmt.Errorf("%d bytes are too many", n)
	}
	b := make([]byte, n)
	if _, err := r.file.ReadAt(b, r.end-n); err != nil {
		return nil, err
	}
	r.end -= n
	return b, nil
}

// blocks checks the blocks that the index names, which lie one after the other and fill what is before it.
func (r *tableReader) blocks(index *fb.TableIndex) error {
	in := bufio.NewReaderSize(io.NewSectionReader(r.file, 0, r.end), 1<<20)
	var place fb.BlockOffset
	var buffer []byte
	at := int64(0)
	for i := range index.OffsetsLength() {
		if !index.Offsets(&place, i) {
			return fmt.Errorf("block %d is not in the index", i)
		}
		n := int64(place.Len())
		if int64(place.Offset()) != at || n > r.end-at {
			return fmt.Errorf("block %d is not where it should be", i)
		}
		buffer = slices.Grow(buffer[:0], int(n))[:n]
		if _, err := io.ReadFull(in, buffer); err != nil {
			return err
		}
		if !blockChecks(buffer) {
			return fmt.Errorf("the checksum of block %d, at byte %d, does not match", i, at)
		}
		at += n
	}
	if at != r.end {
		return fmt.Errorf("%d bytes belong to no block", r.end-at)
	}
	return nil
}

func blockChecks(block []byte) bool {
	body := len(block) - 4
	if body < 0 {
		return false
	}
	n := int(binary.BigEndian.Uint32(block[body:]))
	if n > maxChecksumBytes || n > body {
		return false
	}
	return checks(block[:body-n], block[body-n:body])
}

// checks reports whether chk is the checksum of b.
func checks(b, chk []byte) bool {
	sum := crc32.Checksum(b, castagnoli)
	if sum == 0 {
		return len(chk) == 0 // a field that is zero is not written
	}
	const tag = 2 << 3 // second field, a varint
	return bytes.Equal(chk, binary.AppendUvarint([]byte{tag}, uint64(sum)))
}
