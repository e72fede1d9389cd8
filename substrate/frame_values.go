package substrate

import "encoding/binary"

// valueWrite is a value that is set, or deleted, with a settlement.
type valueWrite struct {
	bucket BucketName
	key    string
	gone   bool
	data   []byte
	before int64 // what the value takes that it replaces; not part of the frame
}

// kind tells a settlement that stores values from one that doesn't: the latter is as older programs know it.
func (f *settleFrame) kind() uint8 {
	if len(f.writes) > 0 {
		return kindSettleValues
	}
	return kindSettle
}

// appendWrites appends what makes a settlement one that stores values: nothing, if there are none.
func appendWrites(b []byte, writes []valueWrite) []byte {
	if len(writes) == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(writes)))
	for i := range writes {
		w := &writes[i]
		b = appendString(appendString(appendString(b, w.bucket.Tenant), w.bucket.Bucket), w.key)
		b = appendString(append(b, bit(w.gone, 1)), w.data)
	}
	return b
}

func (d *decoder) settleValues() *settleFrame {
	f := d.settle()
	f.writes = make([]valueWrite, d.count(5))
	for i := range f.writes {
		w := valueWrite{bucket: BucketName{Tenant: d.string(), Bucket: d.string()}, key: d.string()}
		w.gone = d.byte()&1 != 0
		w.data = append([]byte(nil), d.bytes()...)
		f.writes[i] = w
	}
	if len(f.writes) == 0 {
		d.fail() // it would be written as a frame of another kind
	}
	return f
}

// appendValue appends the record of a value: what it is, and the number of the frame that set it.
func appendValue(b []byte, version uint64, data []byte) []byte {
	return append(binary.AppendUvarint(append(b, formatVersion), version), data...)
}

// decodeValue returns what appendValue was given. The data aliases body.
func decodeValue(body []byte) (version uint64, data []byte, err error) {
	d := decoder{b: body}
	if err := d.version("value"); err != nil {
		return 0, nil, err
	}
	version = d.uint()
	return version, d.b, d.err
}
