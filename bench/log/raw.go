package main

import (
	"context"
	"errors"
	"os"
)

const (
	rawFileBytes  = 256 << 20 // as the log's journal
	rawGroupBytes = 8 << 20
	rawChunkBytes = 1 << 20
)

// rawFile is the limit of the disk: payloads appended to a preallocated file, with one fdatasync for whatever was asked
// meanwhile. It frames nothing, indexes nothing, and begins again at the start when the file is full.
type rawFile struct {
	file     *os.File
	payload  []byte
	requests chan rawRequest
	ended    chan struct{}
}

type rawRequest struct {
	copies int // of the payload
	done   chan error
}

func openRaw(path string, payload []byte) (*rawFile, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	zeros := make([]byte, rawChunkBytes)
	for off := int64(0); err == nil && off < rawFileBytes; off += rawChunkBytes {
		_, err = f.WriteAt(zeros, off)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r := &rawFile{file: f, payload: payload, requests: make(chan rawRequest, 1_024), ended: make(chan struct{})}
	go r.commit()
	return r, nil
}

// commit is the one committer.
func (r *rawFile) commit() {
	defer close(r.ended)
	var off int64
	var buf []byte
	var group []rawRequest
	for first := range r.requests {
		group, buf = append(group[:0], first), r.put(buf[:0], first)
		for more := true; more && len(buf) < rawGroupBytes; {
			select {
			case next, open := <-r.requests:
				if more = open; open {
					group, buf = append(group, next), r.put(buf, next)
				}
			default:
				more = false
			}
		}
		if off+int64(len(buf)) > rawFileBytes {
			off = 0
		}
		_, err := r.file.WriteAt(buf, off)
		if err == nil {
			err = datasync(r.file)
		}
		off += int64(len(buf))
		for _, q := range group {
			q.done <- err
		}
	}
}

func (r *rawFile) put(buf []byte, q rawRequest) []byte {
	for range q.copies {
		buf = append(buf, r.payload...)
	}
	return buf
}

// publish implements target. A file has no topics.
func (r *rawFile) publish(_ context.Context, _ string, n int) error {
	q := rawRequest{copies: n, done: make(chan error, 1)}
	r.requests <- q
	return <-q.done
}

func (r *rawFile) Close() error {
	close(r.requests)
	<-r.ended
	return r.file.Close()
}
