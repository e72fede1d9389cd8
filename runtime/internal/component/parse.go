package component

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/longshore/longshore/limits"
)

// Sections.
const (
	sectionCoreModule   = 1
	sectionCoreInstance = 2
	sectionComponent    = 4
	sectionInstance     = 5
	sectionAlias        = 6
	sectionCanon        = 8
	sectionStart        = 9
	sectionImport       = 10
	sectionExport       = 11
	sectionValue        = 12
)

// sort is what a definition is. Core sorts are those of core modules, after the byte 0.
type sort uint16

// The sorts that matter here.
const (
	coreFunc     sort = 0x000
	coreTable    sort = 0x001
	coreMemory   sort = 0x002
	coreGlobal   sort = 0x003
	coreTag      sort = 0x004
	coreType     sort = 0x010
	coreModule   sort = 0x011
	coreInstance sort = 0x012
	funcSort     sort = 0x100
	valueSort    sort = 0x200
	typeSort     sort = 0x300
	compSort     sort = 0x400
	instanceSort sort = 0x500
)

// kind is how something was defined.
type kind uint8

const (
	kindOther    kind = iota // of no use to a handler
	kindImport               // name
	kindModule               // body
	kindNested               // body: a component
	kindInstance             // of: what is instantiated; items: its arguments. of is -1: items are its exports
	kindExportOf             // of: an instance; name
	kindLift                 // of: a core function; opts
	kindLower                // opts
	kindOuter                // an alias of something outside of a nested component
)

// def is one definition.
type def struct {
	kind  kind
	name  string
	of    int
	body  []byte
	items []item
	opts  options
}

// item is a named argument or export.
type item struct {
	name  string
	sort  sort
	index int
}

// options of canon lift and lower; -1 = not given.
type options struct {
	encoding                    byte
	memory, realloc, postReturn int
	async                       bool
}

// component is a parsed component: what was defined, by sort. Types are left out, since nothing here depends on them.
type component struct {
	spaces  map[sort][]def
	exports []item
	defs    int
}

// NameDefinitions bounds how much a component defines.
const (
	NameDefinitions limits.Name = "component definitions"
	maxDefinitions  int64       = 100_000
)

// errAsync refuses what belongs to asynchronous components.
var errAsync = errors.New("asynchronous components (WASI 0.3) are not supported")

// parse reads a component.
func parse(wasm []byte) (*component, error) {
	if !bytes.HasPrefix(wasm, []byte("\x00asm\x0d\x00\x01\x00")) {
		return nil, errors.New("not a component")
	}
	c := &component{spaces: map[sort][]def{}}
	r := &reader{buf: wasm, pos: 8}
	for !r.atEnd() {
		id, s := r.section()
		if r.err != nil {
			return nil, r.err
		}
		if err := c.section(id, s); err != nil {
			return nil, err
		}
		if s.err != nil {
			return nil, s.err
		}
	}
	return c, nil
}

// section reads one section, whose failures to read are left in s.
func (c *component) section(id byte, s *reader) error {
	one, ok := map[byte]func(*reader) error{
		sectionCoreInstance: c.coreInstance, sectionInstance: c.instance, sectionAlias: c.alias, sectionCanon: c.canon,
		sectionImport: c.importOne, sectionExport: c.exportOne,
	}[id]
	switch {
	case id == sectionCoreModule:
		return c.define(coreModule, def{kind: kindModule, body: s.buf})
	case id == sectionComponent:
		return c.define(compSort, def{kind: kindNested, body: s.buf})
	case id == sectionStart, id == sectionValue:
		return errors.New("components with values or a start function are not supported")
	case !ok:
		return nil // types and custom sections
	}
	for n := s.count(); n > 0 && s.err == nil; n-- {
		if err := one(s); err != nil {
			return err
		}
	}
	if s.err == nil && !s.atEnd() {
		s.fail("section %d has %d bytes left", id, len(s.buf)-s.pos)
	}
	return nil
}

// define gives a definition the next index of its sort.
func (c *component) define(as sort, d def) error {
	c.defs += 1 + len(d.items)
	if err := limits.Check(NameDefinitions, int64(c.defs), maxDefinitions); err != nil {
		return err
	}
	if as != typeSort && as != coreType {
		c.spaces[as] = append(c.spaces[as], d)
	}
	return nil
}

// index reads a reference to something that was defined before.
func (c *component) index(s *reader, of sort) int {
	i := s.u32()
	if of != typeSort && of != coreType && int64(i) >= int64(len(c.spaces[of])) {
		s.fail("index %d of sort %#x, of which %d are defined", i, int(of), len(c.spaces[of]))
		return 0
	}
	return int(i)
}

func readCoreSort(s *reader) sort {
	k := sort(s.byte())
	switch k {
	case coreFunc, coreTable, coreMemory, coreGlobal, coreTag, coreType, coreModule, coreInstance:
	default:
		s.fail("core sort %#x is unknown", int(k))
	}
	return k
}

func readSort(s *reader) sort {
	k := sort(s.byte()) << 8
	if k == 0 {
		return readCoreSort(s)
	}
	if k > instanceSort {
		s.fail("sort %#x is unknown", int(k>>8))
	}
	return k
}

func (c *component) coreInstance(s *reader) error {
	d := def{kind: kindInstance, of: -1}
	switch form := s.byte(); form {
	case 0:
		d.of = c.index(s, coreModule)
		for n := s.count(); n > 0; n-- {
			name := s.name()
			if k := readCoreSort(s); k != coreInstance {
				s.fail("an argument of sort %#x", int(k))
			}
			d.items = append(d.items, item{name, coreInstance, c.index(s, coreInstance)})
		}
	case 1:
		for n := s.count(); n > 0; n-- {
			name, k := s.name(), readCoreSort(s)
			d.items = append(d.items, item{name, k, c.index(s, k)})
		}
	default:
		s.fail("core instance of form %d", form)
	}
	return c.define(coreInstance, d)
}

func (c *component) instance(s *reader) error {
	d := def{kind: kindInstance, of: -1}
	read := s.name
	switch form := s.byte(); form {
	case 0:
		d.of = c.index(s, compSort)
	case 1:
		read = s.externName
	default:
		s.fail("instance of form %d", form)
	}
	for n := s.count(); n > 0; n-- {
		name, k := read(), readSort(s)
		d.items = append(d.items, item{name, k, c.index(s, k)})
	}
	return c.define(instanceSort, d)
}

func (c *component) alias(s *reader) error {
	k := readSort(s)
	d := def{kind: kindExportOf}
	switch form := s.byte(); form {
	case 0:
		d.of, d.name = c.index(s, instanceSort), s.name()
	case 1:
		d.of, d.name = c.index(s, coreInstance), s.name()
	case 2:
		s.u32() // how many components outwards
		s.u32()
		d.kind = kindOuter
	default:
		s.fail("alias of form %d", form)
	}
	return c.define(k, d)
}

func (c *component) importOne(s *reader) error {
	d := def{kind: kindImport, name: s.externName()}
	k := externType(s)
	if s.err != nil {
		return nil //nolint:nilerr // the caller looks at s.err
	}
	return c.define(k, d)
}

// externType reads what is imported, or what an export is ascribed.
func externType(s *reader) sort {
	k := readSort(s)
	switch k {
	case coreModule, funcSort, compSort, instanceSort:
		s.u32()
	case typeSort:
		if bound := s.byte(); bound == 0 {
			s.u32()
		} else if bound != 1 {
			s.fail("type bound %d is unknown", bound)
		}
	default:
		s.fail("an import or export of sort %#x is not supported", int(k))
	}
	return k
}

func (c *component) exportOne(s *reader) error {
	name, k := s.externName(), readSort(s)
	e := item{name, k, c.index(s, k)}
	if ascribed := s.byte(); ascribed == 1 {
		externType(s)
	} else if ascribed != 0 {
		s.fail("ascription %d", ascribed)
	}
	if s.err != nil {
		return nil //nolint:nilerr // the caller looks at s.err
	}
	c.exports = append(c.exports, e)
	if k == typeSort || k == coreType {
		return c.define(k, def{})
	}
	return c.define(k, c.spaces[k][e.index]) // an export has an index of its own
}

func (c *component) canon(s *reader) error {
	switch op := s.byte(); op {
	case 0: // lift
		s.byte()
		d := def{kind: kindLift, of: c.index(s, coreFunc)}
		d.opts = c.canonOptions(s)
		s.u32() // its type
		return c.define(funcSort, d)
	case 1: // lower
		s.byte()
		c.index(s, funcSort)
		return c.define(coreFunc, def{kind: kindLower, opts: c.canonOptions(s)})
	case 2, 3, 4: // resource.new, drop, rep
		s.u32()
		return c.define(coreFunc, def{})
	default:
		if s.err != nil {
			return nil //nolint:nilerr // the caller looks at s.err
		}
		return fmt.Errorf("canonical function %#x: %w", op, errAsync)
	}
}

func (c *component) canonOptions(s *reader) options {
	o := options{memory: -1, realloc: -1, postReturn: -1}
	for n := s.count(); n > 0; n-- {
		switch opt := s.byte(); opt {
		case 0, 1, 2:
			o.encoding = opt
		case 3:
			o.memory = c.index(s, coreMemory)
		case 4:
			o.realloc = c.index(s, coreFunc)
		case 5:
			o.postReturn = c.index(s, coreFunc)
		case 6:
			o.async = true
		case 7:
			o.async = true
			c.index(s, coreFunc)
		default:
			s.fail("canonical option %#x is not supported", opt)
		}
	}
	return o
}
