package hostile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Code describes a module that may be hard to compile: a handler, and copies of one function made of pieces. Search for
// the hardest with Random and Mutated. The zero value is a function that does nothing.
type Code struct {
	Copies int // of the function
	Locals int // i32
	Pieces []Piece
}

// Piece is a kind of code, so many times.
type Piece struct{ Kind, Times int }

// These bound a Code; the caps on modules allow less of most kinds.
const (
	maxBytes  = 16 << 20
	maxPieces = 8
	maxTimes  = 60_000
	maxCopies = 2_000
)

// calledFunc is the first of the copies: a guest without imports has two functions before.
const calledFunc = 2

// pieceKind is code that leaves the stack as it was. n numbers the pieces, so that they use different locals.
type pieceKind struct {
	name string
	code func(n, locals int) string
	// around, if it isn't empty, goes around what follows, instead of before it.
	around [2]string
}

func pieceKinds() []pieceKind {
	of := func(name, code string) pieceKind {
		return pieceKind{name: name, code: func(int, int) string { return code }}
	}
	using := func(name string, code func(a, b int) string) pieceKind {
		return pieceKind{name: name, code: func(n, locals int) string { return code(n%locals, (n*7+3)%locals) }}
	}
	const v128const, v128add = "\xfd\x0c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "\xfd\xae\x01"
	return []pieceKind{
		of("loads", konst(0)+load+drop),
		of("stores", konst(0)+konst(1)+store),
		of("divisions", konst(9)+konst(3)+divS+drop),
		of("branches", block(konst(0)+brIf0)),
		of("loops", loop(konst(0)+brIf0)),
		of("calls", call(calledFunc)),
		of("fills", konst(0)+konst(0)+konst(0)+memoryFill),
		of("growing", konst(0)+grow+drop),
		of("vectors", v128const+v128const+v128add+drop),
		using("sums", func(a, b int) string { return get(a) + get(b) + add + set(a) }),
		using("choices", func(a, b int) string {
			return get(a) + "\x04" + empty + get(b) + set(a) + "\x05" + get(a) + set(b) + end
		}),
		using("loops that carry", func(a, b int) string { return loop(get(a) + konst(1) + add + tee(b) + brIf0) }),
		using("loads of what was stored", func(a, b int) string { return get(a) + get(b) + store + get(b) + load + set(a) }),
		using("switches", func(a, b int) string {
			return block(block(get(a)+"\x0e\x06\x00\x01\x00\x01\x00\x01\x00") + get(b) + set(a))
		}),
		{name: "nested loops", around: [2]string{"\x03" + empty, end}},
		{name: "nested blocks", around: [2]string{"\x02" + empty, end}},
		{name: "nested choices", around: [2]string{get(0) + "\x04" + empty, end}},
	}
}

// Random returns some code.
func Random(r *rand.Rand) Code {
	c := Code{Copies: 1, Locals: 1 + r.IntN(1_900)}
	for range 1 + r.IntN(4) {
		c.Pieces = append(c.Pieces, randomPiece(r))
	}
	return c
}

func randomPiece(r *rand.Rand) Piece { return Piece{r.IntN(len(pieceKinds())), 1 << r.IntN(14)} }

// Mutated returns code that differs a little.
func (c Code) Mutated(r *rand.Rand) Code {
	c.Pieces = slices.Clone(c.Pieces)
	at := r.IntN(len(c.Pieces))
	scaled := func(n, most int) int { return min(max(n*[...]int{1, 3, 5, 8}[r.IntN(4)]/4, 1), most) }
	switch r.IntN(6) {
	case 0:
		c.Copies = scaled(c.Copies*2, maxCopies)
	case 1:
		c.Locals = scaled(c.Locals, 1_990)
	case 2:
		c.Pieces[at].Kind = r.IntN(len(pieceKinds()))
	case 3:
		if len(c.Pieces) < maxPieces {
			c.Pieces = slices.Insert(c.Pieces, at, randomPiece(r))
		}
	case 4:
		if len(c.Pieces) > 1 {
			c.Pieces = slices.Delete(c.Pieces, at, at+1)
		}
	default:
		c.Pieces[at].Times = scaled(c.Pieces[at].Times, maxTimes)
	}
	return c
}

// Smaller returns code of about half the size.
func (c Code) Smaller() Code {
	c.Pieces = slices.Clone(c.Pieces)
	c.Copies, c.Locals = (c.Copies+1)/2, (c.Locals+1)/2
	for i := range c.Pieces {
		c.Pieces[i].Times = (c.Pieces[i].Times + 1) / 2
	}
	return c
}

// Wasm encodes the module.
func (c Code) Wasm() []byte {
	kinds, body, before := pieceKinds(), "", []string(nil)
	for _, p := range slices.Backward(c.Pieces) {
		k := kinds[p.Kind]
		if k.around[0] != "" {
			body = times(p.Times, k.around[0]) + body + times(p.Times, k.around[1])
			continue
		}
		before = before[:0]
		for n := range p.Times {
			before = append(before, k.code(n, c.Locals))
		}
		body = strings.Join(before, "") + body
	}
	g := guest{more: func(m *module) {
		t := m.typ("", "")
		for range min(c.Copies, 1+maxBytes/(1+len(body))) {
			m.fnOf(t, "\x01"+uleb(c.Locals)+i32, body)
		}
	}}
	return g.bytes()
}

// String describes the code.
func (c Code) String() string {
	s := fmt.Sprintf("%d functions of %d locals:", c.Copies, c.Locals)
	for _, p := range c.Pieces {
		s += fmt.Sprintf(" %d %s;", p.Times, pieceKinds()[p.Kind].name)
	}
	return s
}
