package substrate

import "math/bits"

// positions is a set of positions. It costs a word for each run of 64 of them, so that runs are cheap.
type positions map[uint64]uint64

func (p positions) has(position uint64) bool { return p[position/64]>>(position%64)&1 != 0 }

func (p positions) add(position uint64) { p[position/64] |= 1 << (position % 64) }

func (p positions) remove(position uint64) {
	word := p[position/64] &^ (1 << (position % 64))
	if word == 0 {
		delete(p, position/64)
		return
	}
	p[position/64] = word
}

func (p positions) addAll(q positions) {
	for i, word := range q {
		p[i] |= word
	}
}

// removeBelow removes all positions below bound.
func (p positions) removeBelow(bound uint64) {
	for i, word := range p {
		switch {
		case i < bound/64:
			delete(p, i)
		case i == bound/64:
			if word = word >> (bound % 64) << (bound % 64); word == 0 {
				delete(p, i)
			} else {
				p[i] = word
			}
		}
	}
}

// some returns up to n of the positions, in no order.
func (p positions) some(n int) []uint64 {
	var some []uint64
	for i, word := range p {
		for ; word != 0; word &= word - 1 {
			if len(some) == n {
				return some
			}
			some = append(some, i*64+uint64(bits.TrailingZeros64(word)))
		}
	}
	return some
}
