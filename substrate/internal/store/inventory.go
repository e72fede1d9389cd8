package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/dgraph-io/badger/v4"
)

// inventoryName is the file that says what files the store had when it was synced last. Badger takes a tail that is gone for
// one that was never written, in its list of tables as in the logs of its memtables, and deletes the tables that the list
// doesn't name. So the store writes down itself what has to be there.
const inventoryName = "longshore.inventory"

// inventory is what was durable when the store was synced. What may still grow is described by its beginning.
type inventory struct {
	Version  int
	Manifest piece            // the list of tables
	Head     piece            // its beginning, which tells it from one that Badger has written anew
	Mems     map[string]piece // the logs of memtables that aren't written to any more
}

// piece is the first bytes of a file.
type piece struct {
	Bytes int64
	CRC   uint32
}

const (
	inventoryVersion = 1
	inventoryHead    = 64 // bytes of the list of tables that are taken for its beginning
)

// sealedInventory is the content of the file.
type sealedInventory struct {
	Inventory json.RawMessage
	CRC       uint32
}

// takeInventory notes the files that are there, after they were synced. It writes the file only if that has changed.
func (s *Store) takeInventory() error {
	next := inventory{Version: inventoryVersion, Mems: map[string]piece{}}
	var err error
	// The list comes first: it grows before the log of a memtable that became a table is deleted.
	if next.Manifest, next.Head, err = s.pieceOfManifest(); err != nil {
		return err
	}
	mems, err := filepath.Glob(filepath.Join(s.dir, "*.mem"))
	if err != nil {
		return err
	}
	newest, err := newestMemtable(s.dir)
	if err != nil {
		return err
	}
	for _, name := range mems {
		base := filepath.Base(name)
		if base == newest {
			continue
		}
		p, known := s.inventory.Mems[base]
		if !known {
			if p, err = pieceOf(name); errors.Is(err, os.ErrNotExist) || err == nil && p.Bytes == 0 {
				continue // a table by now
			}
			if err != nil {
				return err
			}
		}
		next.Mems[base] = p
	}
	if next.Manifest == s.inventory.Manifest && maps.Equal(next.Mems, s.inventory.Mems) {
		return nil
	}
	if err := next.write(s.dir); err != nil {
		return err
	}
	s.inventory = next
	return nil
}

// pieceOfManifest returns what the list of tables has so far, which it makes durable, and the beginning of that.
func (s *Store) pieceOfManifest() (all, head piece, err error) {
	f, err := os.Open(filepath.Join(s.dir, badger.ManifestFilename))
	if err != nil {
		return piece{}, piece{}, err
	}
	b, err := io.ReadAll(f)
	if err == nil {
		err = f.Sync()
	}
	return pieceFrom(b), pieceFrom(b[:min(len(b), inventoryHead)]), errors.Join(err, f.Close())
}

func pieceFrom(b []byte) piece { return piece{int64(len(b)), crc32.Checksum(b, castagnoli)} }

// pieceOf returns what a file holds up to its last byte that is not zero: Badger makes its files longer than it needs, and
// fills them.
func pieceOf(name string) (p piece, err error) {
	f, err := os.Open(name)
	if err != nil {
		return piece{}, err
	}
	buffer := make([]byte, pieceBytes)
	for off := int64(0); ; {
		n, err := f.ReadAt(buffer, off)
		if used := bytes.TrimRight(buffer[:n], "\x00"); len(used) > 0 {
			p.CRC = crc32.Update(crcOfZeros(p.CRC, off-p.Bytes), castagnoli, used)
			p.Bytes = off + int64(len(used))
		}
		off += int64(n)
		if errors.Is(err, io.EOF) {
			return p, f.Close()
		}
		if err != nil {
			return piece{}, errors.Join(err, f.Close())
		}
	}
}

// pieceBytes is how much of a file is read at a time.
const pieceBytes = 1 << 20

// crcOfZeros goes on from a checksum over n zeros.
func crcOfZeros(crc uint32, n int64) uint32 {
	zeros := make([]byte, min(n, pieceBytes))
	for ; n > 0; n -= int64(len(zeros)) {
		zeros = zeros[:min(n, pieceBytes)]
		crc = crc32.Update(crc, castagnoli, zeros)
	}
	return crc
}

// beginsFile reports whether a file begins with the piece. Of one that is gone, or empty, the error is os.ErrNotExist.
func (p piece) beginsFile(name string) (bool, error) {
	f, err := os.Open(name)
	if err != nil {
		return false, err
	}
	sum := crc32.New(castagnoli)
	n, err := io.CopyN(sum, f, p.Bytes)
	if errors.Is(err, io.EOF) {
		err = nil
		if n == 0 {
			err = os.ErrNotExist
		}
	}
	return n == p.Bytes && sum.Sum32() == p.CRC, errors.Join(err, f.Close())
}

// write replaces the file, durably.
func (v inventory) write(dir string) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	content, err := json.Marshal(sealedInventory{body, crc32.Checksum(body, castagnoli)})
	if err != nil {
		return err
	}
	name := filepath.Join(dir, inventoryName)
	f, err := os.OpenFile(name+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(content, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(name+".new", name); err != nil {
		return err
	}
	return syncFile(dir)
}

// checkInventory compares the files of the closed database in dir with those that it had when it was synced last.
func checkInventory(dir string) error {
	content, err := os.ReadFile(filepath.Join(dir, inventoryName))
	if errors.Is(err, os.ErrNotExist) {
		return checkUnlisted(dir)
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	var sealed sealedInventory
	var v inventory
	if err := json.Unmarshal(content, &sealed); err != nil || crc32.Checksum(sealed.Inventory, castagnoli) != sealed.CRC {
		return fmt.Errorf("%w: %s does not check", ErrDamaged, inventoryName)
	}
	if err := json.Unmarshal(sealed.Inventory, &v); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, inventoryName, err)
	}
	if v.Version != inventoryVersion {
		return fmt.Errorf("store: %s has version %d, this program knows %d", inventoryName, v.Version, inventoryVersion)
	}
	return v.check(dir)
}

// checkUnlisted checks the folder of a store that was never synced. One without a list of tables has nothing else either.
func checkUnlisted(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	listed, used := false, ""
	for _, e := range entries {
		listed = listed || e.Name() == badger.ManifestFilename
		if isLogFile(e.Name()) || strings.HasSuffix(e.Name(), ".sst") {
			used = e.Name()
		}
	}
	if used != "" && !listed {
		return fmt.Errorf("%w: there is %s, and no %s", ErrDamaged, used, badger.ManifestFilename)
	}
	return nil
}

func (v inventory) check(dir string) error {
	manifest, err := os.ReadFile(filepath.Join(dir, badger.ManifestFilename))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %s is missing", ErrDamaged, badger.ManifestFilename)
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if !v.Manifest.begins(manifest) && (v.Head.begins(manifest) || !writtenAnew(manifest)) {
		return fmt.Errorf("%w: the first %d bytes of %s are not what they were", ErrDamaged, v.Manifest.Bytes, badger.ManifestFilename)
	}
	return v.checkMems(dir, v.Manifest != pieceFrom(manifest))
}

// begins reports whether b begins with the piece.
func (p piece) begins(b []byte) bool {
	return int64(len(b)) >= p.Bytes && pieceFrom(b[:p.Bytes]) == p
}

// writtenAnew reports whether a list of tables may be one that Badger has written anew, and not one whose end was lost: a
// list of records, of which none but the first is empty.
func writtenAnew(manifest []byte) bool {
	const magic, head = 8, 8
	if len(manifest) < inventoryHead {
		return false
	}
	for at := magic; at+head <= len(manifest); {
		n := int(uint32(manifest[at])<<24 | uint32(manifest[at+1])<<16 | uint32(manifest[at+2])<<8 | uint32(manifest[at+3]))
		if n == 0 && at > magic {
			return false
		}
		at += head + n
	}
	return true
}

// checkMems checks the logs of memtables. One may be gone if it has become a table since, for which the list has grown.
func (v inventory) checkMems(dir string, grown bool) error {
	for name, p := range v.Mems {
		whole, err := p.beginsFile(filepath.Join(dir, name))
		switch {
		case errors.Is(err, os.ErrNotExist) && grown:
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("%w: %s is missing", ErrDamaged, name)
		case err != nil:
			return fmt.Errorf("store: %w", err)
		case !whole:
			return fmt.Errorf("%w: the first %d bytes of %s are not what they were", ErrDamaged, p.Bytes, name)
		}
	}
	return nil
}
