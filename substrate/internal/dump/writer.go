package dump

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"

	"github.com/longshore/longshore/limits"
)

// Writer writes a stream. It makes two small writes for each record: give it a buffer. After an error it is of no more use.
type Writer struct {
	to     io.Writer
	digest hash.Hash
	crc    uint32
	total  Total
}

// NewWriter begins a stream with a head.
func NewWriter(to io.Writer, head []byte) (*Writer, error) {
	if len(head) > maxHeadBytes {
		return nil, fmt.Errorf("backup: a head of %d bytes is over %d", len(head), maxHeadBytes)
	}
	w := &Writer{to: to, digest: sha256.New()}
	b := le32(le32([]byte(magic), formatVersion), uint32(len(head)))
	b = append(b, head...)
	w.crc = chain(0, b)
	return w, w.write(le32(b, w.crc))
}

// Add writes a record. It keeps neither slice.
func (w *Writer) Add(key, value []byte) error {
	if len(key) == 0 || len(key) > maxKeyBytes {
		return fmt.Errorf("backup: a key has %d bytes: want 1 to %d", len(key), maxKeyBytes)
	}
	if err := limits.Check(limits.NameBackupRecord, int64(len(value)), limits.BackupRecordBytes); err != nil {
		return err
	}
	var prefix [recordPrefix]byte
	binary.LittleEndian.PutUint32(prefix[0:], uint32(len(key)))
	binary.LittleEndian.PutUint32(prefix[4:], uint32(len(value)))
	w.crc = chain(w.crc, prefix[:8], key, value)
	binary.LittleEndian.PutUint32(prefix[8:], w.crc)
	w.total.Records++
	if err := w.write(append(prefix[:], key...)); err != nil {
		return err
	}
	return w.write(value)
}

// End ends the stream and says what it holds.
func (w *Writer) End() (Total, error) {
	end := make([]byte, 8, endBytes)
	end = binary.LittleEndian.AppendUint64(end, w.total.Records)
	end = w.digest.Sum(end)
	binary.LittleEndian.PutUint32(end[4:], chain(w.crc, end[:4], end[8:]))
	err := w.write(end)
	return w.total, err
}

func (w *Writer) write(b []byte) error {
	w.digest.Write(b)
	n, err := w.to.Write(b)
	w.total.Bytes += int64(n)
	return err
}
