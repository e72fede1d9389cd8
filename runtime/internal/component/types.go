package component

import "bytes"

// Binding generators leave what a module was made for in it, as a component that has types alone (the custom section
// "component-type…"). Components have the types of what they import themselves. In both, an interface is an instance type:
// declarations, some of which take the next index of the interface's types:
//
//	instance type   42 │ n │ declaration*
//	declaration     01 type │ 02 alias │ 04 export: name, description        (00 core types aren't read)
//	description     01 function: type │ 03 type: 00 type or 01 resource │ …
//	type            40 function: n, (name, value type)*, 00 value type │ 73 string │ 6b option: value type │ …
//	value type      40 to 7f: a primitive, of which 73 is string │ else the number of a type

// sectionType is that of types.
const sectionType = 7

// maxTypeDepth bounds how deep types are nested: those of a module are two deep in the component that has them.
const maxTypeDepth = 8

// stringType is the primitive string.
const stringType = 0x73

// ReturnsString looks for a function among the interfaces whose types a component has, by its name. found is false if none
// has it, or what comes before it can't be read; yes says that it returns a string, and not an option of one, or whatever else.
func ReturnsString(binary []byte, function string) (yes, found bool) {
	if !bytes.HasPrefix(binary, []byte("\x00asm\x0d\x00\x01\x00")) {
		return false, false
	}
	t := &typeReader{function: function}
	r := &reader{buf: binary, pos: 8}
	for !r.atEnd() && !t.found {
		id, s := r.section()
		if id != sectionType {
			continue
		}
		scope := &typeScope{}
		for n := s.count(); n > 0 && s.err == nil && !t.found; n-- {
			t.define(s, scope, 0)
		}
	}
	return t.yes, t.found
}

// typeReader reads types until it finds a function.
type typeReader struct {
	function   string
	yes, found bool
}

// typeScope are the types of an interface, by number.
type typeScope struct{ types []typeInfo }

// typeInfo is what matters of a type: that it is a string, or a function that returns one.
type typeInfo struct{ isString, returnsString bool }

// info returns a type by its number; nothing is known of one that isn't there.
func (t *typeScope) info(i uint32) typeInfo {
	if int64(i) >= int64(len(t.types)) {
		return typeInfo{}
	}
	return t.types[i]
}

// define reads a type, which takes the next number of the scope.
func (t *typeReader) define(s *reader, scope *typeScope, depth int) {
	var info typeInfo
	switch b := s.byte(); b {
	case 0x40, 0x43: // a function; an asynchronous one
		for n := s.count(); n > 0 && s.err == nil; n-- {
			s.name()
			valueType(s)
		}
		info.returnsString = results(s, scope)
	case 0x41, 0x42: // a component, an instance
		if depth == maxTypeDepth {
			s.fail("types are nested too deep")
			return
		}
		inner := &typeScope{}
		for n := s.count(); n > 0 && s.err == nil && !t.found; n-- {
			t.declare(s, inner, depth+1)
		}
	case stringType:
		info.isString = true
	default:
		skipType(s, b)
	}
	scope.types = append(scope.types, info)
}

// results reads what a function returns, and reports whether that is a string.
func results(s *reader, scope *typeScope) bool {
	if s.byte() == 0 {
		primitive, index := valueType(s)
		return primitive == stringType || primitive == 0 && scope.info(index).isString
	}
	for n := s.count(); n > 0 && s.err == nil; n-- { // named results, of which there are none today
		s.name()
		valueType(s)
	}
	return false
}

// declare reads a declaration of a component or instance type.
func (t *typeReader) declare(s *reader, scope *typeScope, depth int) {
	switch kind := s.byte(); kind {
	case 1:
		t.define(s, scope, depth)
	case 2:
		if typeAlias(s) {
			scope.types = append(scope.types, typeInfo{})
		}
	case 3, 4: // an import, an export
		name := s.externName()
		t.describe(s, scope, name)
	default:
		s.fail("declaration %d is not read", kind)
	}
}

// describe reads what is imported or exported. A type takes the next number.
func (t *typeReader) describe(s *reader, scope *typeScope, name string) {
	switch k := readSort(s); k {
	case funcSort:
		of := s.u32()
		if name == t.function && s.err == nil {
			t.found, t.yes = true, scope.info(of).returnsString
		}
	case typeSort:
		info := typeInfo{}
		if s.byte() == 0 {
			info = scope.info(s.u32())
		}
		scope.types = append(scope.types, info)
	case coreModule, compSort, instanceSort:
		s.u32()
	default:
		s.fail("sort %#x is not read", int(k))
	}
}

// typeAlias reads an alias, and reports whether it is one of a type.
func typeAlias(s *reader) bool {
	k := readSort(s)
	switch form := s.byte(); form {
	case 0, 1:
		s.u32()
		s.name()
	case 2:
		s.u32()
		s.u32()
	default:
		s.fail("alias of form %d", form)
	}
	return k == typeSort
}

// valueType reads a value type: a primitive, or, if that is 0, the number of a type.
func valueType(s *reader) (primitive byte, index uint32) {
	if b := s.byte(); b >= 0x40 && b < 0x80 {
		return b, 0
	}
	if s.err == nil {
		s.pos--
	}
	return 0, s.u32()
}

// skipType reads a type of values, or a resource, of which nothing matters.
func skipType(s *reader, b byte) {
	many := func(one func()) {
		for n := s.count(); n > 0 && s.err == nil; n-- {
			one()
		}
	}
	value := func() { valueType(s) }
	maybe := func() {
		if s.byte() != 0 {
			value()
		}
	}
	switch b {
	case 0x3f: // resource
		s.byte()
		if s.byte() != 0 {
			s.u32()
		}
	case 0x72: // record
		many(func() { s.name(); value() })
	case 0x71: // variant
		many(func() { s.name(); maybe(); s.byte() })
	case 0x70, 0x6b: // list, option
		value()
	case 0x6f: // tuple
		many(value)
	case 0x6e, 0x6d: // flags, enum
		many(func() { s.name() })
	case 0x6a: // result
		maybe()
		maybe()
	case 0x69, 0x68: // own, borrow
		s.u32()
	default:
		if b < 0x74 || b > 0x7f { // the other primitives
			s.fail("type %#x is not read", b)
		}
	}
}
