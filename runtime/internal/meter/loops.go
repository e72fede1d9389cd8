package meter

import "slices"

// Loops with more levels of loops inside, or with more locals that they assign, are not refreshed: those values don't
// all fit registers. A loop with more than outsideHeight levels inside is checked in place. So what the meter adds to a
// module, and to the time that the engine compiles for, stays a small multiple of what is there.
const (
	refreshHeight = 3
	refreshLocals = 32
	outsideHeight = 16
)

// loop is a loop of a function.
type loop struct {
	header  int      // index of the segment at its header
	refresh []uint32 // locals that it assigns
}

// refresher finds the locals that loops assign.
type refresher struct {
	nested   []nestedLoop // the loops around what is planned now
	assigned []uint32     // locals that they assign, those of the innermost last; repeated across them
	marks    []int        // by local: the last round of distinct that saw it
	round    int
}

type nestedLoop struct {
	index  int // in the plan
	from   int // in assigned
	height int // levels of loops inside
}

func (r *refresher) reset() { r.nested, r.assigned = r.nested[:0], r.assigned[:0] }

// enterLoop begins the loop that is appended to p next.
func (r *refresher) enterLoop(p *plan) {
	r.nested = append(r.nested, nestedLoop{index: len(p.loops), from: len(r.assigned)})
}

// assign notes an assignment to a local.
func (r *refresher) assign(local uint32) {
	if len(r.nested) > 0 {
		r.assigned = append(r.assigned, local)
	}
}

// leaveLoop ends the innermost loop.
func (r *refresher) leaveLoop(p *plan) {
	last := len(r.nested) - 1
	l := r.nested[last]
	r.nested = r.nested[:last]
	if last > 0 {
		r.nested[last-1].height = max(r.nested[last-1].height, l.height+1)
	}
	if l.height > outsideHeight {
		p.segments[p.loops[l.index].header].check = inline
	}
	if l.height > refreshHeight {
		r.assigned = r.assigned[:l.from] // the loops around it aren't refreshed either
		return
	}
	r.distinct(l.from)
	if locals := r.assigned[l.from:]; len(locals) <= refreshLocals {
		p.loops[l.index].refresh = slices.Clone(locals)
	}
}

// distinct takes repetitions out of the assigned locals from an index on.
func (r *refresher) distinct(from int) {
	r.round++
	kept := r.assigned[:from]
	for _, local := range r.assigned[from:] {
		if int(local) >= len(r.marks) {
			r.marks = append(r.marks, make([]int, int(local)+1-len(r.marks))...)
		}
		if r.marks[local] != r.round {
			r.marks[local] = r.round
			kept = append(kept, local)
		}
	}
	r.assigned = kept
}
