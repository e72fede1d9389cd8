package longshore

import (
	"errors"
	"slices"
	"testing"
)

func TestLift(t *testing.T) {
	t.Run("OptionOfAString", func(t *testing.T) {
		var h heap
		var ret area
		if got := h.liftOptString(ret.view()); got != "" {
			t.Errorf("none: got %q", got)
		}
		v := ret.view()
		v[0] = 1
		put(&h, v, 4, "orders")
		if got := h.liftOptString(v); got != "orders" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("OptionOfMetadata", func(t *testing.T) {
		var h heap
		var ret area
		v := ret.view()
		if got := h.liftOptPairs(v); got != nil {
			t.Errorf("none: got %v", got)
		}
		want := []Pair{{"a", "1"}, {"b", ""}}
		v[0] = 1
		list := putList(&h, v, 4, layoutPair, len(want))
		for i, p := range want {
			put(&h, list, 16*uint32(i), p.Key)
			put(&h, list, 16*uint32(i)+8, p.Value)
		}
		if got := h.liftOptPairs(v); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if len(h.blocks) != 0 {
			t.Errorf("%d blocks are still pinned", len(h.blocks))
		}
	})
	t.Run("ResultOfSend", func(t *testing.T) {
		var h heap
		var ret area
		v := ret.view()
		if err := h.liftResultNone(v); err != nil {
			t.Errorf("ok: got %v", err)
		}
		v[0], v[4] = 1, byte(CasePermissionDenied)
		put(&h, v, 8, "not granted")
		e, ok := errors.AsType[*Error](h.liftResultNone(v))
		if !ok || *e != (Error{CasePermissionDenied, "not granted"}) {
			t.Errorf("got %v", e)
		}
	})
	t.Run("ResultOfConnect", func(t *testing.T) {
		var h heap
		var ret area
		v := ret.view()
		putWords(v, 4, 5)
		if handle, err := h.liftResultOwn(v); handle != 5 || err != nil {
			t.Errorf("got %d, %v", handle, err)
		}
		v[0], v[4] = 1, byte(CaseTimeout)
		if _, err := h.liftResultOwn(v); err == nil || err.Error() != "timeout" {
			t.Errorf("got %v", err)
		}
	})
}

func TestLiftBatch(t *testing.T) {
	t.Run("EachMessageHasItsResult", func(t *testing.T) {
		var h heap
		var ret area
		items := putList(&h, ret.view(), 8, layoutResultItem, 4)
		put(&h, items, 8, "id-0")
		put(&h, items, 56+8, "id-1")
		items[56+16] = 1 // duplicate
		putLimit(&h, items[2*56:], PublishRateExceeded, 10, 11, 1500)
		items[3*56], items[3*56+8] = 1, byte(PublishInvalid)
		put(&h, items, 3*56+16, "bad topic")

		got, err := h.liftBatch(ret.view())
		if err != nil || len(got) != 4 {
			t.Fatalf("got %v, %v", got, err)
		}
		if got[0] != (Result{ID: "id-0"}) || got[1] != (Result{ID: "id-1", Duplicate: true}) {
			t.Errorf("accepted: got %+v", got[:2])
		}
		for i, want := range []PublishError{
			{Case: PublishRateExceeded, Limit: 10, Actual: 11, RetryAfterMillis: 1500},
			{Case: PublishInvalid, Text: "bad topic"},
		} {
			e, ok := errors.AsType[*PublishError](got[2+i].Err)
			if !ok || *e != want {
				t.Errorf("refused: got %+v, want %+v", got[2+i], want)
			}
		}
		if len(h.blocks) != 0 {
			t.Errorf("%d blocks are still pinned", len(h.blocks))
		}
	})
	t.Run("TheWholeBatchMayBeRefused", func(t *testing.T) {
		var h heap
		var ret area
		v := ret.view()
		putLimit(&h, v, PublishQuotaExceeded, 256, 257, 0)
		got, err := h.liftBatch(v)
		e, ok := errors.AsType[*PublishError](err)
		if !ok || *e != (PublishError{Case: PublishQuotaExceeded, Limit: 256, Actual: 257}) || got != nil {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

// putLimit writes a result that is a publish-error with numbers, and with an extension that is to be ignored.
func putLimit(h *heap, v view, c PublishCase, limit, actual, retryAfter uint32) {
	v[0], v[8] = 1, byte(c)
	putWords(v, 16, limit, 0, actual, 0)
	if retryAfter > 0 {
		v[32] = 1
		putWords(v, 40, retryAfter, 0)
	}
	extension := putList(h, v, 48, layoutPair, 1)
	put(h, extension, 0, "unit")
	put(h, extension, 8, "messages")
}

func TestRefused(t *testing.T) {
	if err := refused([]Result{{ID: "a"}, {ID: "b"}}); err != nil {
		t.Errorf("all were accepted: got %v", err)
	}
	full := &PublishError{Case: PublishStorageFull}
	err := refused([]Result{{ID: "a"}, {Err: full}, {ID: "c"}, {Err: &PublishError{Case: PublishTimeout}}})
	e, ok := errors.AsType[*BatchError](err)
	if !ok || *e != (BatchError{Size: 4, Refused: 2, First: 1, Err: full}) || !errors.Is(err, full) {
		t.Errorf("got %+v", err)
	}
}
