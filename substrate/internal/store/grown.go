package store

import (
	"fmt"
	"os"
	"strings"

	"github.com/longshore/longshore/limits"
)

// grown watches how the store's files have grown, to tell when a checkpoint may be written without a sync before it.
//
// Badger appends what is written to the log of its memtable, and after a power cut it reads that up to the first entry
// that does not check: what is there is a prefix, so that a checkpoint in it comes with all that was written to the same
// file before. That is not so across files, which the system writes back in any order. So what another file holds has to be
// durable first: values that went to a value log, and the memtable log before a rotation.
type grown struct {
	newest string // name of the newest memtable log
	bytes  int64  // at least what that holds
	batch  int64  // of these, what the batch in hand added
	values bool   // the batch put something into a value log
}

const (
	// rotationBytes is where the memtable may soon be rotated, which Badger does on its own in any transaction.
	rotationBytes = memTableBytes - 8*limits.MiB
	// memEntryBytes bounds what an entry costs in a memtable, or in its log, beside its key and value.
	memEntryBytes = 160
)

// begin starts to count a batch.
func (g *grown) begin() { g.batch, g.values = 0, false }

func (g *grown) add(ops []Op) {
	for _, op := range ops {
		n := int64(len(op.Key) + len(op.Body) + memEntryBytes)
		g.bytes += n
		g.batch += n
		// The size of what is moved isn't known here.
		g.values = g.values || op.From != nil || len(op.Body)+recordHeader >= limits.InlinePayloadBytes
	}
}

// unsafe counts last, and reports whether what was written before has to be durable before last is. The caller makes it so.
func (g *grown) unsafe(dir string, last []Op) (bool, error) {
	newest, err := newestMemtable(dir)
	if err != nil {
		return false, err
	}
	rotated := newest != g.newest
	g.add(last)
	unsafe := rotated || g.values || g.bytes >= rotationBytes
	if rotated {
		g.newest, g.bytes = newest, g.batch
	}
	return unsafe, nil
}

// newestMemtable returns the name of the memtable log that Badger appends to. They are numbered.
func newestMemtable(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("store: %w", err)
	}
	newest := ""
	for _, e := range entries {
		name := e.Name()
		if strings.HasSuffix(name, ".mem") && (len(name) > len(newest) || len(name) == len(newest) && name > newest) {
			newest = name
		}
	}
	return newest, nil
}
