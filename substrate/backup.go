package substrate

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/dump"
	"github.com/longshore/longshore/substrate/internal/store"
)

// BackupInfo describes a backup.
type BackupInfo struct {
	Frame       uint64    // the last frame that is in it
	Taken       time.Time // when it was begun; it shows the log as of then
	Topics      int
	Backlog     int64 // messages that are not done
	DeadLetters int64
	Records     uint64 // of the store: messages and state
	Damaged     uint64 // of these, those that did not check in the log already, and are copied as they are
	Bytes       int64  // of the stream
}

// Backup writes the log to w as it is at one moment: all that was confirmed before the call is in it, and a commit is in it
// whole or not at all. The log goes on meanwhile; what is deleted keeps its space on disk until the backup is done. Only
// what Restore can take is ever called a success: if there is an error, what was written is cut short, and Restore says so.
//
// The backup holds what was published, as it was published. It doesn't hold the keys that messages were sealed with.
//
// Errors: those of ctx and w; ErrClosed, also if the log is closed meanwhile; ErrDeleting; ErrDamaged if the store can't be read.
func (l *Log) Backup(ctx context.Context, w io.Writer) (BackupInfo, error) {
	p, err := l.picture(ctx)
	if err != nil {
		return BackupInfo{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &backupStream{ctx: ctx, log: l, chunks: make(chan []byte)}
	go s.read(p)
	for chunk := range s.chunks {
		if _, err = w.Write(chunk); err != nil {
			break
		}
	}
	cancel()
	for range s.chunks { // until read has ended
	}
	if err == nil {
		err = s.err
	}
	if err != nil {
		return BackupInfo{}, fmt.Errorf("backup: %w", err)
	}
	return p.info, nil
}

// picture is the log as of one moment.
type picture struct {
	store      *store.Snapshot
	checkpoint checkpoint
	info       BackupInfo
}

// picture takes one between two groups of the committer, once the store is up to date: the store alone says then what the
// log is.
func (l *Log) picture(ctx context.Context) (*picture, error) {
	var p *picture
	err := l.submit(ctx, &request{before: func(cp checkpoint) error {
		for tenant := range l.state.erasing { // of which nothing fits together
			return fmt.Errorf("tenant %s: %w", tenant, ErrDeleting)
		}
		snapshot, err := l.store.Snapshot()
		if err != nil {
			return closedOr(err)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		sum := (&recovery{state: l.state}).recovered()
		p = &picture{store: snapshot, checkpoint: cp, info: BackupInfo{
			Frame: cp.frame, Taken: l.now(), Topics: sum.Topics, Backlog: sum.Backlog, DeadLetters: sum.DeadLetters,
		}}
		return nil
	}})
	if err != nil && p != nil { // what was committed in the same group failed
		p.store.Close()
	}
	return p, err
}

// backupStream reads a picture ahead of the one who writes it, so that the log can be closed while that one is stuck.
type backupStream struct {
	ctx    context.Context // of the call
	log    *Log
	chunks chan []byte
	err    error // set before chunks is closed
}

// read reads the picture to its end, or until the call or the log ends.
func (s *backupStream) read(p *picture) {
	defer close(s.chunks)
	defer p.store.Close()
	if s.err = damagedOr(p.store.Verify()); s.err != nil {
		return
	}
	out := bufio.NewWriterSize(s, limits.BackupChunkBytes)
	w, err := dump.NewWriter(out, p.appendHead(nil))
	if err == nil {
		err = p.store.Each(func(key, value []byte) error {
			if !store.Sound(key, value) {
				p.info.Damaged++
			}
			if err := s.over(); err != nil {
				return err
			}
			return w.Add(key, value)
		})
	}
	if err != nil {
		s.err = err
		return
	}
	total, err := w.End()
	p.info.Records, p.info.Bytes = total.Records, total.Bytes
	s.err = errors.Join(err, out.Flush())
}

// Write hands a copy of b to the caller of Backup.
func (s *backupStream) Write(b []byte) (int, error) {
	select {
	case s.chunks <- append([]byte(nil), b...):
		return len(b), nil
	case <-s.ctx.Done():
	case <-s.log.stop:
	case <-s.log.failed:
	}
	return 0, s.over()
}

// over returns why the reading has to end, or nil.
func (s *backupStream) over() error {
	select {
	case <-s.log.stop:
		return ErrClosed
	case <-s.log.failed:
		return ErrClosed
	default:
		return s.ctx.Err()
	}
}

// appendHead appends what a backup says of itself, before its records:
//
//	1 | taken ns | topics | backlog | dead letters | checkpoint
func (p *picture) appendHead(b []byte) []byte {
	b = binary.AppendVarint(append(b, formatVersion), p.info.Taken.UnixNano())
	for _, n := range []uint64{uint64(p.info.Topics), uint64(p.info.Backlog), uint64(p.info.DeadLetters)} {
		b = binary.AppendUvarint(b, n)
	}
	return p.checkpoint.append(b)
}

// decodeHead reads what appendHead wrote.
func decodeHead(head []byte) (BackupInfo, checkpoint, error) {
	d := decoder{b: head}
	if err := d.version("backup"); err != nil {
		return BackupInfo{}, checkpoint{}, err
	}
	info := BackupInfo{Taken: time.Unix(0, d.int()), Topics: int(d.uint()), Backlog: int64(d.uint()), DeadLetters: int64(d.uint())}
	if d.err != nil {
		return BackupInfo{}, checkpoint{}, fmt.Errorf("backup: %w", d.err)
	}
	cp, err := decodeCheckpoint(d.b)
	info.Frame = cp.frame
	return info, cp, err
}
