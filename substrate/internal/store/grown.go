package store

import "github.com/longshore/longshore/limits"

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

// add counts an entry.
func (g *grown) add(keyBytes, valueBytes int) {
	if valueBytes >= valueThreshold {
		g.values = true
		valueBytes = 0 // the memtable holds where it is, which memEntryBytes cover
	}
	n := int64(keyBytes + valueBytes + memEntryBytes)
	g.bytes += n
	g.batch += n
}

func (g *grown) addOp(op Op) {
	g.add(len(op.Key), len(op.Body)+recordHeader)
	g.values = g.values || op.From != nil // the size of what is moved isn't known here
}

// unsafe counts last, given the names of the log files, and reports whether what was written before has to be durable before last is. The caller makes it so.
func (g *grown) unsafe(names []string, last []Op) bool {
	newest := newestOf(names, memtableSuffix)
	rotated := newest != g.newest
	for _, op := range last {
		g.addOp(op)
	}
	unsafe := rotated || g.values || g.bytes >= rotationBytes
	if rotated {
		g.newest, g.bytes = newest, g.batch
	}
	return unsafe
}
