package hostile

import "github.com/longshore/longshore/limits"

// most is all the memory that a guest may have by default, in pages and bytes.
const (
	mostPages = limits.GuestMemoryBytes >> 16
	mostBytes = limits.GuestMemoryBytes
)

// memories use memory for the sake of it.
func memories() []Module {
	const failed = "\x41\x7f\x46" // is it -1?
	atOnce := growTo(mostPages - 1)
	byOne := loop(konst(1) + grow + konst(-1) + eq + eqz + brIf0)
	touch := loop(get(1) + konst(1) + store8 + bump(4096) + get(1) + konst(mostBytes) + ltU + brIf0)
	touchAll := konst(0) + set(1) + touch
	fill := konst(0) + konst(1) + konst(mostBytes) + memoryFill
	manyFuel := func(g *limits.Guest) { g.Fuel = 1 << 60 }
	const behind = "guest-trap: memory-out-of-bounds"
	beyond := ends("a fill of four gigabytes, with fuel for it", behind, guest{handler: konst(0) + konst(1) + konst(-1) + memoryFill + konst(0)})
	beyond.Change = manyFuel
	onePage := func(page int32) string { return konst(page*4096) + konst(1) + store8 }
	everyPage := ""
	for page := range int32(mostBytes / 4096) {
		everyPage += onePage(page)
	}
	const last = mostBytes - 8
	bigSegment := times(1<<20, "x")
	return []Module{
		endless("touching all memory, grown at once", guest{handler: atOnce + forever(touchAll)}),
		endless("touching all memory, grown page by page", guest{handler: byOne + forever(touchAll)}),
		endless("filling all memory, grown page by page", guest{handler: byOne + forever(fill)}),
		endless("growing page by page and touching each", guest{
			handler: loop("\x3f\x00"+konst(16)+"\x74"+konst(4)+sub+konst(7)+store+
				konst(1)+grow+konst(-1)+eq+eqz+brIf0) + forever(touchAll),
		}),
		endless("copying all memory", guest{handler: atOnce + forever(konst(1)+konst(0)+konst(mostBytes-1)+memoryCopy)}),
		endless("copying over itself", guest{handler: atOnce + forever(konst(0)+konst(1)+konst(mostBytes-1)+memoryCopy)}),
		endless("initialising memory again and again", guest{
			passive: bigSegment, handler: growTo(32) + forever(konst(0)+konst(0)+konst(1<<20)+memoryInit0),
		}),
		endless("growing by nothing", guest{handler: forever(konst(0) + grow + drop)}),
		endless("copying nothing", guest{handler: forever(konst(0) + konst(0) + konst(0) + memoryCopy)}),
		endless("growing where there is no room", guest{handler: atOnce + forever(konst(1)+grow+drop)}),
		endless("growing by 65535 pages", guest{handler: forever(konst(65_535) + grow + drop)}),
		endless("growing by four billion pages", guest{handler: forever(konst(-1) + grow + drop)}),
		ends("a fill of four gigabytes", behind, guest{handler: konst(0) + konst(1) + konst(-1) + memoryFill + konst(0)}),
		beyond,
		ends("a copy of four gigabytes", behind, guest{handler: konst(1) + konst(0) + konst(-1) + memoryCopy + konst(0)}),
		ends("a segment that was dropped", "guest-trap: memory-out-of-bounds", guest{
			passive: bigSegment, handler: dataDrop0 + konst(0) + konst(0) + konst(1) + memoryInit0 + konst(0),
		}),
		ends("giving up when memory is used up", "out-of-memory", guest{handler: byOne + unreachable}),
		ends("giving up when far too much is refused", "guest-trap: unreachable", guest{
			handler: konst(65_535) + grow + failed + when(unreachable) + konst(0),
		}),
		ends("a maximum of 65536 pages", "guest-trap: unreachable", guest{
			memory: "\x01\x01" + uleb(1<<16), handler: konst(65_535) + grow + failed + when(unreachable) + konst(0),
		}),
		ends("all memory from the start", "", guest{memory: "\x00" + uleb(mostPages), handler: touchAll + konst(8)}),
		ends("all memory from the start, with data at its end", "", guest{
			memory: "\x00" + uleb(mostPages), handler: touchAll + konst(8),
			more: func(m *module) { m.data = append(m.data, "\x00"+konst(last)+end+vec("the last")) },
		}),
		ends("all memory, filled before and filled again", "", guest{
			memory: "\x00" + uleb(mostPages), init: fill, handler: konst(0) + konst(2) + konst(mostBytes) + memoryFill + konst(0) + konst(0) + store + konst(0),
		}),
		ends("touching all memory without a loop", "", guest{memory: "\x00" + uleb(mostPages), handler: everyPage + konst(8)}),
		endless("touching all memory without a loop, after a loop", guest{
			memory: "\x00" + uleb(mostPages), handler: loop(bump(1)+get(1)+konst(1<<20)+ltU+brIf0) + everyPage + forever(everyPage),
		}),
	}
}

// tables use tables for the sake of it.
func tables() []Module {
	const most = limits.TableElements
	noRoom := loop(nullFunc + konst(1) + tableGrow + konst(-1) + eq + eqz + brIf0)
	segment := func(m *module) {
		m.elements = []string{"\x01\x00" + uleb(90_000) + times(90_000, "\x01")}
	}
	full := guest{table: "\x00" + uleb(most)}
	endlessly := func(name string, g guest, body string) Module {
		g.handler = forever(body)
		return endless(name, g)
	}
	return []Module{
		endlessly("filling a table", full, konst(0)+nullFunc+konst(most)+tableFill),
		endlessly("copying a table", full, konst(0)+konst(1)+konst(most-1)+tableCopy),
		endlessly("initialising a table again and again", guest{table: "\x00" + uleb(most), more: segment}, konst(0)+konst(0)+konst(90_000)+tableInit0),
		endlessly("growing a table by nothing", guest{table: "\x00\x01"}, nullFunc+konst(0)+tableGrow+drop),
		endlessly("growing a table by four billion", guest{table: "\x00\x01"}, nullFunc+konst(-1)+tableGrow+drop),
		endless("growing a table one by one", guest{table: "\x00\x01", handler: noRoom + forever("")}),
		ends("a fill of a table that is too small", "guest-trap: invalid-table-access", guest{
			table: "\x00\x01", handler: konst(0) + nullFunc + konst(1_000) + tableFill + konst(0),
		}),
	}
}
