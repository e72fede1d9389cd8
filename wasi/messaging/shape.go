package messaging

// kind tells what a shape holds.
type kind uint8

const (
	scalar  kind = iota // an integer, a bool, a handle
	list                // pointer and length: a string or a list
	record              // fields one after another; tuples too
	variant             // a case number and the value of that case; options and results too
)

// shape is the layout of a WIT type in linear memory, as the canonical ABI defines it. Shapes are built once and never
// changed. Sizes and offsets are bytes.
type shape struct {
	kind        kind
	size, align uint32
	fields      []field // of a record
	cases       uint32  // of a variant
	payload     uint32  // of a variant: where the value of a case begins
}

// field is a field of a record.
type field struct {
	name   string
	shape  shape
	offset uint32 // set by recordOf
}

// scalarOf is an integer of size bytes.
func scalarOf(size uint32) shape { return shape{kind: scalar, size: size, align: size} }

// listShape is a string or a list, whatever its elements.
func listShape() shape { return shape{kind: list, size: 8, align: 4} }

// recordOf lays fields out in order, each at its alignment.
func recordOf(fields ...field) shape {
	s := shape{kind: record, align: 1}
	for _, f := range fields {
		f.offset = alignUp(s.size, f.shape.align)
		s.fields = append(s.fields, f)
		s.size = f.offset + f.shape.size
		s.align = max(s.align, f.shape.align)
	}
	s.size = alignUp(s.size, s.align)
	return s
}

// variantOf lays a one-byte case number and then the largest of the cases' values out. A case without a value is the
// zero shape.
func variantOf(cases ...shape) shape {
	s := shape{kind: variant, align: 1, cases: uint32(len(cases))}
	var size uint32
	for _, c := range cases {
		s.align = max(s.align, c.align)
		size = max(size, c.size)
	}
	payloadAlign := uint32(1)
	for _, c := range cases {
		payloadAlign = max(payloadAlign, c.align)
	}
	s.payload = alignUp(1, payloadAlign)
	s.size = alignUp(s.payload+size, s.align)
	return s
}

// optionOf is none or a value.
func optionOf(s shape) shape { return variantOf(shape{}, s) }

// at returns the offset of a record's field. A name that doesn't exist is a mistake of this package.
func (s shape) at(name string) uint32 {
	for _, f := range s.fields {
		if f.name == name {
			return f.offset
		}
	}
	panic("messaging: no field " + name)
}

func alignUp(n, align uint32) uint32 { return (n + align - 1) / align * align }
