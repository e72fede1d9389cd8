package substrate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"github.com/longshore/longshore/substrate/internal/mapped"
)

// mark is what the log knows of itself outside of its journal, so that it can tell when the end of that is gone. It is kept
// in the file "mark" beside the journal, mapped into memory, in two slots that are written in turn:
//
//	offset 0      64          2048        2112         4096
//	       +------+- - - - - -+------+- - - - - - - - -+
//	       | slot |  zero     | slot |      zero       |
//	       +------+- - - - - -+------+- - - - - - - - -+
//
//	slot   0 8 bytes "longshrm"      24 8 epoch of the journal
//	       8 4 format version, 1     32 8 number of the last durable frame
//	      12 4 opening               40 8 number of the last frame written
//	      16 8 sequence              48 8 next position
//	                                 56 4 zero
//	                                 60 4 CRC-32C of bytes 0 to 59
//
// The slot with the higher sequence counts. A crash in the middle of a write costs that slot alone, and then the one before
// it counts.
//
// # Why it never accuses a journal that is whole
//
// The committer stores a mark after the journal's flush and before it answers. So whatever moment a crash of the process
// picks, and whichever mark of the past a crash of the machine brings back: the frames up to durable had been flushed before
// that mark was made. They are in the journal still, or their segment was used again, and then the store has them durably.
// Written, position and opening may be ahead of what is durable. They say which numbers were given away, and all that follows
// from them is that numbers are skipped.
//
// # What it sees
//
// After a crash of the process it is exact: the file is as it was stored last. After one of the machine it may lag, for it is
// flushed only with the store and at Close, and then frames that are lost after it are not missed.
type mark struct {
	epoch    uint64
	durable  uint64
	written  uint64
	position uint64
	opening  uint64 // of the log: see mint
}

const (
	markName      = "mark"
	acceptedName  = "mark.accepted" // what an operator renames it to, to go on without what is lost
	markBytes     = 4096
	markSlotBytes = 64
	markSecond    = 2048 // offset of the second slot
	markMagic     = "longshrm"
	markVersion   = 1
)

// LostError says that frames which were durable, and may have been answered, are gone from the end of the journal. It is an
// ErrDamaged.
type LostError struct {
	From, To uint64 // numbers of the frames, both inclusive
	Mark     string // the file that tells of them
}

// Error implements error. It says what may be done.
func (e *LostError) Error() string {
	return fmt.Sprintf("the end of the journal is gone: frames %d to %d were on disk, and what was published and settled in them is lost; "+
		"restore the folder from a copy, or, to go on without them, rename %s to %s and open the log again", e.From, e.To, e.Mark, acceptedName)
}

// Unwrap returns ErrDamaged.
func (e *LostError) Unwrap() error { return ErrDamaged }

// slot returns the bytes of a slot.
func (m mark) slot(sequence uint64) []byte {
	b := make([]byte, 0, markSlotBytes)
	b = append(b, markMagic...)
	b = binary.LittleEndian.AppendUint32(b, markVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(m.opening)) // at most 24 bits
	for _, n := range []uint64{sequence, m.epoch, m.durable, m.written, m.position} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	b = append(b, 0, 0, 0, 0)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli()))
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// parseMark returns the newest mark of a file's content and its sequence.
func parseMark(b []byte) (m mark, sequence uint64, err error) {
	for _, s := range [][]byte{b[:markSlotBytes], b[markSecond : markSecond+markSlotBytes]} {
		if !bytes.HasPrefix(s, []byte(markMagic)) || binary.LittleEndian.Uint32(s[60:]) != crc32.Checksum(s[:60], castagnoli()) {
			continue
		}
		if v := binary.LittleEndian.Uint32(s[8:]); v != markVersion {
			return mark{}, 0, fmt.Errorf("version %d was written by a newer program; this one knows %d", v, markVersion)
		}
		n := func(offset int) uint64 { return binary.LittleEndian.Uint64(s[offset:]) }
		if n(16) <= sequence {
			continue
		}
		sequence = n(16)
		m = mark{epoch: n(24), durable: n(32), written: n(40), position: n(48), opening: uint64(binary.LittleEndian.Uint32(s[12:]))}
	}
	if sequence == 0 {
		return mark{}, 0, fmt.Errorf("%w: it does not check, so that nobody can tell whether the journal is whole: "+
			"restore the folder from a copy, or delete the file to go on without knowing", ErrDamaged)
	}
	return m, sequence, nil
}

// markFile is the mapped file. The committer stores into it.
type markFile struct {
	file     *mapped.File
	sequence uint64 // of the newest slot
}

// set stores a mark, which survives the process from here on.
func (f *markFile) set(m mark) {
	f.sequence++
	copy(f.file.Bytes()[f.sequence%2*markSecond:], m.slot(f.sequence))
}

// known is what the marks of a folder say, when it is opened.
type known struct {
	dir      string
	found    bool // there is a mark
	mark     mark
	accepted bool // an operator accepts that the journal ends before a mark
	given    mark // the highest numbers of both files
}

// readMarks reads the marks of a folder. It may have none: it is new, or was written by an older program.
func readMarks(dir string) (known, error) {
	k := known{dir: dir}
	var err error
	if k.mark, k.found, err = readMark(filepath.Join(dir, markName)); err != nil {
		return k, err
	}
	accepted, found, err := readMark(filepath.Join(dir, acceptedName))
	if err != nil {
		return k, err
	}
	k.accepted, k.given = found, mark{
		written:  max(k.mark.written, k.mark.durable, accepted.written, accepted.durable),
		position: max(k.mark.position, accepted.position),
		opening:  max(k.mark.opening, accepted.opening),
	}
	return k, nil
}

func readMark(name string) (m mark, found bool, err error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return mark{}, false, nil
	}
	if err != nil {
		return mark{}, false, err
	}
	if len(b) != markBytes {
		b = make([]byte, markBytes)
	}
	if m, _, err = parseMark(b); err != nil {
		return mark{}, false, fmt.Errorf("%s: %w", name, err)
	}
	return m, true, nil
}

// check returns an error if frames that were durable are neither among those up to end nor accepted as lost.
func (k *known) check(end uint64) error {
	if k.mark.durable <= end {
		return nil
	}
	return &LostError{From: end + 1, To: k.mark.durable, Mark: filepath.Join(k.dir, markName)}
}

// open maps the mark, made if there is none, and stores m, durably. What was accepted is done with then.
func (k *known) open(m mark) (*markFile, error) {
	name := filepath.Join(k.dir, markName)
	if !k.found {
		content := make([]byte, markBytes)
		copy(content[markSecond:], m.slot(1))
		if err := mapped.Create(name, content); err != nil {
			return nil, err
		}
	}
	file, err := mapped.Open(name, markBytes)
	if err != nil {
		return nil, err
	}
	f := &markFile{file: file}
	if _, f.sequence, err = parseMark(file.Bytes()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	f.set(m)
	err = file.Sync()
	if err == nil && k.accepted {
		if err = os.Remove(filepath.Join(k.dir, acceptedName)); err == nil {
			err = mapped.SyncFolder(k.dir)
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

// marked stores what the journal holds, before anybody is answered.
func (c *committer) marked() {
	l := c.log
	l.mark.set(mark{
		epoch: l.journal.Epoch(), durable: l.journal.Synced(), written: l.journal.Next() - 1,
		position: l.state.nextPosition, opening: l.mint.opening,
	})
}
