package payload

// pins keep deleted files for those who began to read before. Readers belong to the generation that was current when they
// began; a file that is deleted ends a generation, and is kept until no reader of that one, or of one before it, is left.
type pins struct{ oldest, current *generation }

type generation struct {
	readers int
	retired []*file // when it ended
	next    *generation
}

func newPins() pins {
	g := &generation{}
	return pins{g, g}
}

// pin returns the generation of a reader that begins.
func (p *pins) pin() *generation {
	p.current.readers++
	return p.current
}

// unpin ends a reader, and returns the files that nobody needs any more.
func (p *pins) unpin(g *generation) []*file {
	g.readers--
	return p.over()
}

// retire ends the generation with a file, and returns the files that nobody needs any more.
func (p *pins) retire(f *file) []*file {
	p.current.retired = append(p.current.retired, f)
	p.current.next = &generation{}
	p.current = p.current.next
	return p.over()
}

func (p *pins) over() (gone []*file) {
	for p.oldest != p.current && p.oldest.readers == 0 {
		gone = append(gone, p.oldest.retired...)
		p.oldest = p.oldest.next
	}
	return gone
}
