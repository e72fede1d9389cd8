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
	Manifest piece               // the list of tables
	Head     piece               // its beginning, which tells it from one that Badger has written anew
	Mems     map[string]memtable // the logs of memtables that aren't written to any more

	active string // the log that was written to when the inventory was taken
}

// memtable is the log of a memtable that isn't written to any more.
type memtable struct {
	piece
	Manifest piece // the list of tables from when the log was still written to: it has grown once the log is a table
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
	next := inventory{Version: inventoryVersion, Mems: map[string]memtable{}}
	var err error
	// The list comes first: it has no table yet of a log that is written to later.
	if next.Manifest, next.Head, err = s.pieceOfManifest(); err != nil {
		return err
	}
	mems, err := filepath.Glob(filepath.Join(s.dir, "*.mem"))
	if err != nil {
		return err
	}
	newest := newestOf(mems, memtableSuffix)
	next.active = filepath.Base(newest)
	for _, name := range mems {
		if name == newest {
			continue
		}
		m, known, err := s.memtable(name)
		if err != nil {
			return err
		}
		if known {
			next.Mems[filepath.Base(name)] = m
		}
	}
	if next.Manifest == s.inventory.Manifest && maps.Equal(next.Mems, s.inventory.Mems) {
		s.inventory.active = next.active
		return nil
	}
	if err := next.write(s.dir); err != nil {
		return err
	}
	s.inventory = next
	return nil
}

// memtable describes the log of a memtable that isn't written to any more. It is known if an inventory was taken while it
// was: else nobody knows whether its table is in the list already.
func (s *Store) memtable(name string) (m memtable, known bool, err error) {
	base := filepath.Base(name)
	if m, known = s.inventory.Mems[base]; known || base != s.inventory.active {
		return m, known, nil
	}
	m.Manifest = s.inventory.Manifest
	m.piece, err = pieceOf(name)
	if errors.Is(err, os.ErrNotExist) { // a table by now
		return memtable{}, false, nil
	}
	return m, err == nil && m.Bytes > 0, err
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
	return syncFile(dir, (*os.File).Sync)
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
	return v.checkMems(dir, pieceFrom(manifest))
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
func (v inventory) checkMems(dir string, manifest piece) error {
	for name, m := range v.Mems {
		whole, err := m.beginsFile(filepath.Join(dir, name))
		switch {
		case errors.Is(err, os.ErrNotExist) && m.Manifest != manifest:
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("%w: %s is missing", ErrDamaged, name)
		case err != nil:
			return fmt.Errorf("store: %w", err)
		case !whole:
			return fmt.Errorf("%w: the first %d bytes of %s are not what they were", ErrDamaged, m.Bytes, name)
		}
	}
	return nil
}
