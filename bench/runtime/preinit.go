package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero/api"
)

// Sections of a module, and what a global may hold here.
const (
	sectionMemory    = 5
	sectionGlobal    = 6
	sectionExport    = 7
	sectionStart     = 8
	sectionData      = 11
	sectionDataCount = 12

	kindGlobal = 3
	opI32Const = 0x41
	opI64Const = 0x42
	opEnd      = 0x0b

	wasmPage      = 65_536
	preambleBytes = 8
	globalPrefix  = "preinit "
)

var errMalformed = errors.New("not a module that can be initialised before: a global that isn't an integer, or a cut section")

// exportWarmUp is a function of the Go guest that is called once after its initialisation.
const exportWarmUp = "longshore:guest/warm-up@0.1.0"

// preinitialise returns wasm as it is after its initialisation and warm-up, as Wizer does: memory as data, globals with their values.
// It is for modules that use no data segment at run time, such as those of the Go compiler.
func preinitialise(ctx context.Context, wasm []byte) ([]byte, error) {
	m, err := parseModule(wasm)
	if err != nil {
		return nil, err
	}
	exported, err := m.exportGlobals()
	if err != nil {
		return nil, err
	}
	p, err := newPlain(ctx, map[string][]byte{guestGo: exported})
	if err != nil {
		return nil, err
	}
	instance := p.instances[guestGo]
	if _, err := instance.ExportedFunction(exportWarmUp).Call(ctx); err != nil {
		return nil, errors.Join(err, p.close(ctx))
	}
	m.freeze(instance)
	return m.encode(), p.close(ctx)
}

// rawModule is a module cut into its sections.
type rawModule struct {
	ids      []byte
	sections map[byte][]byte
	globals  []rawGlobal
}

// rawGlobal is a global that holds an integer. Its value is encoded as a constant.
type rawGlobal struct {
	valueType, mutable, op byte
	value                  int64
}

// parseModule cuts a module that it doesn't check otherwise, and leaves out custom sections.
func parseModule(wasm []byte) (*rawModule, error) {
	m := &rawModule{sections: map[byte][]byte{}}
	for b := wasm[preambleBytes:]; len(b) > 0; {
		id := b[0]
		size, n := binary.Uvarint(b[1:])
		if n <= 0 || size > uint64(len(b)-1-n) {
			return nil, errMalformed
		}
		content := b[1+n:][:size]
		b = b[1+n+int(size):]
		if id != 0 {
			m.ids = append(m.ids, id)
			m.sections[id] = content
		}
	}
	return m, m.parseGlobals()
}

func (m *rawModule) parseGlobals() error {
	r := bytes.NewReader(m.sections[sectionGlobal])
	count, err := binary.ReadUvarint(r)
	for range count {
		var g rawGlobal
		for _, field := range []*byte{&g.valueType, &g.mutable, &g.op} {
			*field, _ = r.ReadByte()
		}
		g.value = readSigned(r)
		if end, _ := r.ReadByte(); g.op != opI32Const && g.op != opI64Const || end != opEnd {
			return errMalformed
		}
		m.globals = append(m.globals, g)
	}
	return err
}

// exportGlobals returns the module with all globals exported.
func (m *rawModule) exportGlobals() ([]byte, error) {
	old := m.sections[sectionExport]
	count, n := binary.Uvarint(old)
	if n <= 0 {
		return nil, errMalformed
	}
	b := binary.AppendUvarint(nil, count+uint64(len(m.globals)))
	b = append(b, old[n:]...)
	for i := range m.globals {
		name := globalName(i)
		b = append(binary.AppendUvarint(b, uint64(len(name))), name...)
		b = binary.AppendUvarint(append(b, kindGlobal), uint64(i))
	}
	m.sections[sectionExport] = b
	wasm := m.encode()
	m.sections[sectionExport] = old
	return wasm, nil
}

func globalName(i int) string { return fmt.Sprint(globalPrefix, i) }

// freeze gives the module the state of an instance.
func (m *rawModule) freeze(instance api.Module) {
	b := binary.AppendUvarint(nil, uint64(len(m.globals)))
	for i, g := range m.globals {
		value := int64(instance.ExportedGlobal(globalName(i)).Get())
		if g.op == opI32Const {
			value = int64(int32(value))
		}
		b = append(b, g.valueType, g.mutable, g.op)
		b = append(appendSigned(b, value), opEnd)
	}
	m.sections[sectionGlobal] = b
	memory := instance.Memory()
	all, _ := memory.Read(0, memory.Size())
	m.sections[sectionData] = dataSection(all)
	// One memory without a maximum.
	m.sections[sectionMemory] = binary.AppendUvarint([]byte{1, 0}, uint64(memory.Size()/wasmPage))
	m.ids = slices.DeleteFunc(m.ids, func(id byte) bool { return id == sectionStart || id == sectionDataCount })
}

// dataSection encodes memory, without the 4 KiB pages that are zero, as active segments.
func dataSection(memory []byte) []byte {
	const page = 4096
	var segments [][2]int // from, to
	for at := 0; at < len(memory); at += page {
		if bytes.Count(memory[at:at+page], []byte{0}) == page {
			continue
		}
		if n := len(segments); n > 0 && segments[n-1][1] == at {
			segments[n-1][1] = at + page
			continue
		}
		segments = append(segments, [2]int{at, at + page})
	}
	b := binary.AppendUvarint(nil, uint64(len(segments)))
	for _, s := range segments {
		b = append(appendSigned(append(b, 0, opI32Const), int64(s[0])), opEnd)
		b = append(binary.AppendUvarint(b, uint64(s[1]-s[0])), memory[s[0]:s[1]]...)
	}
	return b
}

func (m *rawModule) encode() []byte {
	b := []byte("\x00asm\x01\x00\x00\x00")
	for _, id := range m.ids {
		b = binary.AppendUvarint(append(b, id), uint64(len(m.sections[id])))
		b = append(b, m.sections[id]...)
	}
	return b
}

// readSigned reads a signed LEB128 number; what is cut shows at the byte that must follow it.
func readSigned(r *bytes.Reader) (v int64) {
	for shift := 0; shift < 64; shift += 7 {
		b, err := r.ReadByte()
		v |= int64(b&0x7f) << shift
		if err != nil || b < 0x80 {
			if b&0x40 != 0 && shift+7 < 64 {
				v |= -1 << (shift + 7)
			}
			break
		}
	}
	return v
}

func appendSigned(b []byte, v int64) []byte {
	for v < -64 || v > 63 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v)&0x7f)
}
