package meter

import "github.com/longshore/longshore/runtime/internal/wasmbin"

// leafCost bounds the instructions that a function may run before its first check, see the package comment.
const leafCost = 64

// A path through code that doesn't loop meets a check after so many instructions or calls at the latest.
const (
	checkInstrs = 4_000
	checkCalls  = 64
)

// plan says where a function pays and what else its rewriting has to know.
type plan struct {
	segments []segment // by position; the first is the function's entry
	loops    []loop    // in the order of their headers
	fuel     bool      // pays or checks anywhere
	nests    bool      // has calls that return here, or wide tail calls
	lengths  bool      // has instructions that pay by length
	faithful bool      // leaves tables and segments alone
	data     bool      // uses data segments
}

// segment is a basic block: it pays cost at pos.
type segment struct {
	pos   int // byte offset in the function's expression, after the instruction that precedes the block
	cost  int64
	check check
}

// check says how a basic block looks at what is left of the fuel.
type check uint8

const (
	unchecked check = iota
	inline          // yields in a branch of its own
	outside         // leaves the loop or the function's body, yields there, and comes back
)

// planner makes the plans of one function after the other, reusing its memory.
type planner struct {
	plan
	r     *wasmbin.InstrReader
	types *callTypes
	open  []openBlock
	live  bool // the last of segments takes the cost of what follows; else it can't be reached
	since distance
	early bool // the entry has to be checked: a call, a bulk instruction or too much comes before another check
	total int64
	refresher
}

type openBlock struct {
	op       wasmbin.Op
	targeted bool // a branch leads to the block's label
	reach    distance
	entry    distance // of an if
}

// distance is the longest way from a check to a point of the code.
type distance struct {
	instrs, calls int
	entry         bool // one of the ways comes from the function's entry, which counts as a check until it is known not to be
}

func (d distance) longer(e distance) distance {
	return distance{max(d.instrs, e.instrs), max(d.calls, e.calls), d.entry || e.entry}
}

// function plans the function with the given expression, which wasmbin.Decode has accepted.
func (p *planner) function(expr []byte) *plan {
	p.plan = plan{segments: p.segments[:0], loops: p.loops[:0], faithful: true}
	p.open = append(p.open[:0], openBlock{op: wasmbin.OpBlock})
	p.total, p.early = 0, false
	p.reset()
	p.begin(0, outside)
	p.since.entry = true
	p.r.Reset(expr, 0, "code")
	pos := 0
	var in wasmbin.Instr
	for p.r.Next(&in) {
		pos += len(in.Raw)
		p.instr(&in, pos)
	}
	if !p.early {
		p.segments[0].check = unchecked
	}
	p.fuel = p.total > 0 || len(p.loops) > 0
	return &p.plan
}

// begin starts a basic block.
func (p *planner) begin(pos int, c check) {
	p.segments = append(p.segments, segment{pos: pos, check: c})
	p.live = true
	if c != unchecked {
		p.since = distance{}
	}
}

func (p *planner) pay() {
	p.total++
	if p.live {
		p.segments[len(p.segments)-1].cost++
		p.since.instrs++
		if p.since.instrs > leafCost {
			p.needEntry()
		}
	}
}

// needEntry notes that the entry has to be checked if it is where this code comes from.
func (p *planner) needEntry() { p.early = p.early || p.live && p.since.entry }

// far begins a checked block at pos if the last check is too long ago.
func (p *planner) far(pos int) {
	if p.live && (p.since.instrs >= checkInstrs || p.since.calls >= checkCalls) {
		p.begin(pos, inline)
	}
}

// leave marks what follows as out of reach.
func (p *planner) leave() {
	p.live, p.since = false, distance{}
}

// instr plans one instruction, which ends at pos.
func (p *planner) instr(in *wasmbin.Instr, pos int) {
	switch in.Op {
	case wasmbin.OpNop:
	case wasmbin.OpBlock:
		p.open = append(p.open, openBlock{op: in.Op})
	case wasmbin.OpLoop:
		p.loop(in, pos)
	case wasmbin.OpIf:
		p.pay()
		p.open = append(p.open, openBlock{op: in.Op, entry: p.since})
		p.begin(pos, unchecked)
	case wasmbin.OpElse:
		b := &p.open[len(p.open)-1]
		b.reach = b.reach.longer(p.since)
		p.since, b.entry = b.entry, distance{}
		p.begin(pos, unchecked)
	case wasmbin.OpEnd:
		p.end(pos)
	case wasmbin.OpBr, wasmbin.OpBrIf, wasmbin.OpBrTable:
		p.branch(in, pos)
	case wasmbin.OpReturn, wasmbin.OpUnreachable:
		p.pay()
		p.leave()
	case wasmbin.OpReturnCall, wasmbin.OpReturnCallIndirect:
		p.pay()
		p.needEntry()
		p.nests = p.nests || p.types.wide(in)
		p.leave()
	default:
		p.pay()
		p.note(in)
		p.far(pos)
	}
}

// loop begins a loop.
func (p *planner) loop(in *wasmbin.Instr, pos int) {
	c := outside
	if p.types.hasParams(in) {
		c = inline
	}
	p.open = append(p.open, openBlock{op: in.Op})
	p.enterLoop(&p.plan)
	p.loops = append(p.loops, loop{header: len(p.segments)})
	p.begin(pos, c)
}

// end closes a block. What follows is a new basic block if it is reached in more than one way.
func (p *planner) end(pos int) {
	last := len(p.open) - 1
	b := p.open[last]
	p.open = p.open[:last]
	p.since = p.since.longer(b.reach).longer(b.entry)
	if b.op == wasmbin.OpLoop {
		p.leaveLoop(&p.plan)
	}
	if b.op == wasmbin.OpIf || b.op == wasmbin.OpBlock && b.targeted {
		p.begin(pos, unchecked)
	}
}

func (p *planner) branch(in *wasmbin.Instr, pos int) {
	p.pay()
	if in.Op == wasmbin.OpBrTable {
		for _, l := range in.Targets {
			p.target(l)
		}
		p.leave()
		return
	}
	p.target(in.X)
	if in.Op == wasmbin.OpBrIf {
		p.begin(pos, unchecked)
	} else {
		p.leave()
	}
}

// target notes a branch to the label l.
func (p *planner) target(l uint32) {
	b := &p.open[len(p.open)-1-int(l)]
	b.targeted = true
	b.reach = b.reach.longer(p.since)
}

// note takes down what an instruction of straight-line code means for the function.
func (p *planner) note(in *wasmbin.Instr) {
	if in.Op.PaysByLength() {
		p.lengths = true
		p.needEntry()
	}
	switch in.Op {
	case wasmbin.OpLocalSet, wasmbin.OpLocalTee:
		p.assign(in.X)
	case wasmbin.OpCall, wasmbin.OpCallIndirect:
		p.nests = true
		p.since.calls++
		p.needEntry()
	case wasmbin.OpMemoryGrow:
		p.needEntry()
	case wasmbin.OpMemoryInit, wasmbin.OpDataDrop:
		p.faithful, p.data = false, true
	case wasmbin.OpTableSet, wasmbin.OpTableInit, wasmbin.OpTableCopy, wasmbin.OpTableGrow, wasmbin.OpTableFill, wasmbin.OpElemDrop:
		p.faithful = false
	default:
	}
}
