package longshore

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// text reads the string at an offset of an arena, as a host does.
func (a *arena) text(at uint32) string {
	v := view(a.bytes)
	start := v.u32(at) - a.base
	return string(v[start : start+v.u32(at+4)])
}

func TestLowerResult(t *testing.T) {
	wrapped := &Error{Case: CaseConnection, Text: "refused"}
	for _, c := range []struct {
		name      string
		err       error
		errorCase ErrorCase
		text      string
	}{
		{"AnyErrorIsOther", errors.New("boom"), CaseOther, "boom"},
		{"AnErrorTellsItsCase", &Error{Case: CasePermissionDenied, Text: "no"}, CasePermissionDenied, "no"},
		{"AWrappedErrorKeepsWhatWrapsIt", fmt.Errorf("stock: %w", wrapped), CaseConnection, "stock: connection: refused"},
		{"AnUnknownCaseIsOther", &Error{Case: 9, Text: "no"}, CaseOther, "case 9: no"},
		{"Unauthorized", &PublishError{Case: PublishUnauthorized, Text: "no"}, CasePermissionDenied, "unauthorized: no"},
		{"Unavailable", &PublishError{Case: PublishUnavailable}, CaseConnection, "unavailable"},
		{"DepthExceeded", &PublishError{Case: PublishDepthExceeded, Limit: 3, Actual: 4}, CaseOther, "depth-exceeded: 4 is over the limit of 3"},
		{
			"ABatchTellsItsFirstRefusal", refused([]Result{{}, {Err: &PublishError{Case: PublishUnauthorized, Text: "no"}}}),
			CasePermissionDenied, "1 of 2 messages were refused, message 1 for: unauthorized: no",
		},
		{"BytesThatAreNotUTF8AreReplaced", errors.New("a\xff\xfeb"), CaseOther, "a\uFFFDb"},
		{"EmptyText", errors.New(""), CaseOther, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := lowerResult(c.err)
			v := view(a.bytes)
			if v.u8(0) != 1 || v.u8(4) != uint8(c.errorCase) {
				t.Errorf("got discriminants %d and %d, want 1 and %d", v.u8(0), v.u8(4), c.errorCase)
			}
			if got := a.text(8); got != c.text {
				t.Errorf("got %q, want %q", got, c.text)
			}
		})
	}
	t.Run("NilIsOk", func(t *testing.T) {
		if v := view(lowerResult(nil).bytes); len(v) != 16 || v.u8(0) != 0 {
			t.Errorf("got % x", v)
		}
	})
	t.Run("ATimeoutHasNoText", func(t *testing.T) {
		for _, err := range []error{&Error{Case: CaseTimeout, Text: "slow"}, &PublishError{Case: PublishTimeout}} {
			v := view(lowerResult(err).bytes)
			if v.u8(0) != 1 || v.u8(4) != 0 || v.u32(8) != 0 || v.u32(12) != 0 {
				t.Errorf("%v: got % x", err, v)
			}
		}
	})
}

func TestLowerMetadata(t *testing.T) {
	pairs := []Pair{{"a", "1"}, {"empty", ""}, {"ü", "✓"}}
	a := lowerMetadata(pairs)
	var got []Pair
	for i := range uint32(len(pairs)) {
		got = append(got, Pair{a.text(16 * i), a.text(16*i + 8)})
	}
	if !slices.Equal(got, pairs) {
		t.Errorf("got %v, want %v", got, pairs)
	}
}

func TestLowerBatch(t *testing.T) {
	a := lowerBatch([]Outgoing{{Topic: "orders/lines"}, {Topic: "x"}}, []uint32{7, 9})
	v := view(a.bytes)
	for i, want := range []struct {
		topic   string
		message uint32
	}{{"orders/lines", 7}, {"x", 9}} {
		at := 168 * uint32(i)
		if got := a.text(at); got != want.topic {
			t.Errorf("message %d: got topic %q, want %q", i, got, want.topic)
		}
		if got := v.u32(at + 8); got != want.message {
			t.Errorf("message %d: got handle %d, want %d", i, got, want.message)
		}
		if v.u8(at+16) != 0 {
			t.Errorf("message %d: it has options", i)
		}
	}
}
