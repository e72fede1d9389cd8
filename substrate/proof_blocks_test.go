package substrate

import (
	"bytes"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/longshore/longshore/limits"
)

const cutPageBytes = 4 * limits.KiB

// blocks reads and copies files by blocks that may hold something.
type blocks struct{ buffer, zeros []byte }

func newBlocks() blocks { return blocks{make([]byte, limits.MiB), make([]byte, limits.MiB)} }

// each calls for each block of a file that may hold something.
func (b *blocks) each(f *os.File, call func(block []byte, off int64) error) error {
	buffer := b.buffer
	for off := int64(0); ; {
		data, err := f.Seek(off, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil
		}
		if err != nil {
			return err
		}
		data -= data % cutPageBytes
		n, err := f.ReadAt(buffer, data)
		if ignoreEOF(err) != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		if err := call(buffer[:n], data); err != nil {
			return err
		}
		off = data + int64(n)
	}
}

// copy copies a file. Zeros become holes.
func (b *blocks) copy(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = b.each(in, func(block []byte, off int64) error {
		if bytes.Equal(block, b.zeros[:len(block)]) {
			return nil
		}
		_, err := out.WriteAt(block, off)
		return err
	})
	return errors.Join(err, out.Truncate(info.Size()), out.Close())
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
