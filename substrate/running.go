package substrate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"os"
	"path/filepath"
	"sync"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/mapped"
)

// What runs when the process is killed is the only thing that may have killed it. So whoever handles a message notes its
// lease before, and takes the note back after, in the file "running" beside the journal, mapped into memory: a header and
// limits.RunningSlots slots of 32 bytes each.
//
//	header  0 8 bytes "longshrr"      slot  0 8 FNV-1a 64 of tenant, 0xff, topic, 0xff, lane
//	        8 4 format version, 1           8 8 position
//	       12 4 number of slots            16 8 token
//	       16 12 zero                      24 4 zero
//	       28 4 CRC-32C of bytes 0 to 27   28 4 CRC-32C of bytes 0 to 27
//
// A free slot is zero. One that was half written or half cleared when the process ended doesn't check, and doesn't count: the
// handling had not begun, or was over.
//
// The file is never flushed. A crash of the machine is not the doing of what ran on it, so that its notes need not survive;
// if the system happened to write one back and the message is still under that lease, it counts.

const (
	runningName      = "running"
	runningSlotBytes = 32
	runningBytes     = (1 + limits.RunningSlots) * runningSlotBytes
	runningMagic     = "longshrr"
	runningVersion   = 1
)

// runningFile is the mapped file. It is safe for concurrent use.
type runningFile struct {
	mu   sync.Mutex // guards all of it
	file *mapped.File
	free []uint16 // slots, the next one last; they begin with 0
	open bool
}

// runningNote is what a slot says.
type runningNote struct{ lane, position, token uint64 }

func noteOf(name laneName, position, token uint64) runningNote {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name.topic.Tenant + "\xff" + name.topic.Topic + "\xff" + name.lane)) // never fails
	return runningNote{lane: h.Sum64(), position: position, token: token}
}

func (n runningNote) slot() []byte {
	b := make([]byte, 0, runningSlotBytes)
	for _, v := range []uint64{n.lane, n.position, n.token} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = append(b, 0, 0, 0, 0)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli()))
}

func runningHeader() []byte {
	b := append(make([]byte, 0, runningSlotBytes), runningMagic...)
	b = binary.LittleEndian.AppendUint32(b, runningVersion)
	b = binary.LittleEndian.AppendUint32(b, limits.RunningSlots)
	b = append(b, make([]byte, 12)...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli()))
}

// checks reports whether a slot, or the header, is whole.
func checks(slot []byte) bool {
	return binary.LittleEndian.Uint32(slot[28:]) == crc32.Checksum(slot[:28], castagnoli())
}

// readRunning returns what ran in the process that had the folder before, when that ended. A file that is not there, or does
// not check, tells of nothing; one of a newer program is refused.
func readRunning(dir string) (map[runningNote]struct{}, error) {
	notes := map[runningNote]struct{}{}
	b, err := os.ReadFile(filepath.Join(dir, runningName))
	if errors.Is(err, os.ErrNotExist) {
		return notes, nil
	}
	if err != nil {
		return nil, err
	}
	if len(b) < runningSlotBytes || !bytes.HasPrefix(b, []byte(runningMagic)) || !checks(b) {
		return notes, nil
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != runningVersion {
		return nil, fmt.Errorf("%s: version %d was written by a newer program; this one knows %d", filepath.Join(dir, runningName), v, runningVersion)
	}
	for b = b[runningSlotBytes:]; len(b) >= runningSlotBytes; b = b[runningSlotBytes:] {
		if checks(b) {
			n := func(offset int) uint64 { return binary.LittleEndian.Uint64(b[offset:]) }
			notes[runningNote{lane: n(0), position: n(8), token: n(16)}] = struct{}{}
		}
	}
	return notes, nil
}

// openRunning maps the file of a folder, made if need be, without a note.
func openRunning(dir string) (*runningFile, error) {
	name := filepath.Join(dir, runningName)
	file, err := mapped.Open(name, runningBytes)
	if _, otherSize := errors.AsType[*mapped.SizeError](err); otherSize || errors.Is(err, os.ErrNotExist) {
		if err := mapped.Create(name, append(runningHeader(), make([]byte, runningBytes-runningSlotBytes)...)); err != nil {
			return nil, err
		}
		file, err = mapped.Open(name, runningBytes)
	}
	if err != nil {
		return nil, err
	}
	r := &runningFile{file: file, free: make([]uint16, limits.RunningSlots), open: true}
	copy(file.Bytes(), runningHeader())
	for i := range r.free {
		r.free[i] = uint16(limits.RunningSlots - 1 - i)
		if b := r.slot(uint16(i)); !isZero(b) {
			clear(b)
		}
	}
	return r, nil
}

func isZero(slot []byte) bool { return bytes.Equal(slot, make([]byte, runningSlotBytes)) }

func (r *runningFile) slot(i uint16) []byte {
	return r.file.Bytes()[(1+int(i))*runningSlotBytes:][:runningSlotBytes]
}

// start notes that the deliveries run, all of them or none.
func (r *runningFile) start(leases []Lease) ([]uint16, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open {
		return nil, ErrClosed
	}
	used := limits.RunningSlots - len(r.free)
	if err := limits.Check(limits.NameRunning, int64(used+len(leases)), limits.RunningSlots); err != nil {
		return nil, err
	}
	taken := make([]uint16, len(leases))
	for i, l := range leases {
		last := len(r.free) - 1
		taken[i], r.free = r.free[last], r.free[:last]
		copy(r.slot(taken[i]), noteOf(laneName{TopicName{l.Tenant, l.Topic}, l.Lane}, l.Position, l.Token).slot())
	}
	return taken, nil
}

// end takes the notes back.
func (r *runningFile) end(slots []uint16) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open {
		return
	}
	for _, i := range slots {
		clear(r.slot(i))
	}
	r.free = append(r.free, slots...)
}

// close takes all notes back: a process that gets to closing its log was not killed by what it ran.
func (r *runningFile) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open {
		return nil
	}
	r.open = false
	for i := range uint16(limits.RunningSlots) {
		if b := r.slot(i); !isZero(b) {
			clear(b)
		}
	}
	return r.file.Close()
}

// Start notes, before a handler runs on deliveries, that it is about to: if the process ends before ended is called, they, and
// no others, are charged for that attempt, and delivered alone from then on (Delivery.Suspect). ended must be called when the
// handler is done with all of them, and before they are settled; calling it again does nothing.
//
// It writes to memory alone. The error is ErrClosed, or a *limits.Error if more than limits.RunningSlots deliveries run.
func (l *Log) Start(leases ...Lease) (ended func(), err error) {
	slots, err := l.running.start(leases)
	if err != nil {
		return nil, err
	}
	return func() {
		l.running.end(slots)
		slots = nil
	}, nil
}
