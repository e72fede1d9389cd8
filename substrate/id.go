package substrate

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/longshore/longshore/limits"
)

// messageID is an id in its compact form. Its text is `%013d-%016x`: unix milliseconds, and a number that is never used
// twice on one log: the number of this opening of the log (24 bits) and a counter (40 bits).
type messageID struct {
	millis uint64
	number uint64
}

const (
	idCounterBits  = 40
	idMillisDigits = 13
	idTextBytes    = idMillisDigits + 1 + 16
	idMaxMillis    = 9_999_999_999_999
)

// String returns the text of the id.
func (id messageID) String() string {
	if id.millis > idMaxMillis { // of a record that no mint made
		return fmt.Sprintf("%013d-%016x", id.millis, id.number)
	}
	const hex = "0123456789abcdef"
	var b [idTextBytes]byte
	for i, rest := idMillisDigits-1, id.millis; i >= 0; i, rest = i-1, rest/10 {
		b[i] = byte('0' + rest%10)
	}
	b[idMillisDigits] = '-'
	for i, rest := idTextBytes-1, id.number; i > idMillisDigits; i, rest = i-1, rest>>4 {
		b[i] = hex[rest&0xf]
	}
	return string(b[:])
}

// time returns when the id was minted.
func (id messageID) time() time.Time { return time.UnixMilli(int64(id.millis)) }

func parseID(s string) (messageID, error) {
	var id messageID
	ok := len(s) == idTextBytes && s[idMillisDigits] == '-'
	for i := 0; ok && i < idMillisDigits; i++ {
		ok = '0' <= s[i] && s[i] <= '9'
		id.millis = id.millis*10 + uint64(s[i]-'0')
	}
	for i := idMillisDigits + 1; ok && i < idTextBytes; i++ {
		digit := uint64(s[i] - '0')
		if 'a' <= s[i] && s[i] <= 'f' {
			digit = uint64(s[i]-'a') + 10
		} else {
			ok = '0' <= s[i] && s[i] <= '9'
		}
		id.number = id.number<<4 | digit
	}
	if !ok {
		return messageID{}, &NameError{Kind: "message id", Name: s, Want: "13 digits, -, 16 hexadecimal digits, as MintID returns it"}
	}
	return id, nil
}

// mint makes ids, and knows which of them were used: an id is good for one message, published in the same opening of the
// log and before limits.MintedIDs younger ones were minted.
type mint struct {
	opening uint64
	issued  atomic.Uint64
	used    []uint64 // a bit for each of the last limits.MintedIDs numbers; guarded by Log.mu
	swept   uint64   // counters up to this one have a valid bit; guarded by Log.mu
}

func newMint(opening uint64) *mint {
	return &mint{opening: opening, used: make([]uint64, limits.MintedIDs/64)}
}

func (m *mint) next(now time.Time) messageID {
	millis := min(max(now.UnixMilli(), 0), idMaxMillis)
	return messageID{millis: uint64(millis), number: m.opening<<idCounterBits | m.issued.Add(1)}
}

// check returns an error unless id may be published now.
func (m *mint) check(id messageID) error {
	counter, issued := id.number&(1<<idCounterBits-1), m.issued.Load()
	if id.number>>idCounterBits != m.opening || counter == 0 || counter > issued {
		return &NameError{Kind: "message id", Name: id.String(), Want: "an id minted by this log since it was opened"}
	}
	if issued-counter >= limits.MintedIDs {
		return &NameError{Kind: "message id", Name: id.String(), Want: fmt.Sprintf("one of the last %d ids minted", limits.MintedIDs)}
	}
	m.sweep(issued)
	if word, bit := m.slot(counter); m.used[word]&bit != 0 {
		return &NameError{Kind: "message id", Name: id.String(), Want: "an id that was not published before"}
	}
	return nil
}

// use marks an id that check let pass.
func (m *mint) use(id messageID) {
	word, bit := m.slot(id.number & (1<<idCounterBits - 1))
	m.used[word] |= bit
}

// unuse takes a mark back, when a later message of the same batch was refused.
func (m *mint) unuse(id messageID) {
	word, bit := m.slot(id.number & (1<<idCounterBits - 1))
	m.used[word] &^= bit
}

// sweep clears the bits that the numbers issued since the last sweep will use.
func (m *mint) sweep(issued uint64) {
	if issued-m.swept >= limits.MintedIDs {
		m.swept = issued - limits.MintedIDs
	}
	for ; m.swept < issued; m.swept++ {
		word, bit := m.slot(m.swept + 1)
		m.used[word] &^= bit
	}
}

func (m *mint) slot(counter uint64) (word int, bit uint64) {
	i := counter % limits.MintedIDs
	return int(i / 64), 1 << (i % 64)
}
