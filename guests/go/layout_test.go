package longshore

import (
	"slices"
	"testing"
)

func TestLayout(t *testing.T) {
	t.Run("IsThatOfTheCanonicalABI", func(t *testing.T) {
		for _, want := range []struct {
			name        string
			got         layout
			size, align uint32
			offsets     []uint32
		}{
			{"string", layoutString, 8, 4, []uint32{0, 4}},
			{"list", layoutList, 8, 4, []uint32{0, 4}},
			{"pair", layoutPair, 16, 4, []uint32{0, 8}},
			{"option<string>", layoutOptString, 12, 4, []uint32{0, 4}},
			{"option<list>", layoutOptList, 12, 4, []uint32{0, 4}},
			{"option<u64>", layoutOptU64, 16, 8, []uint32{0, 8}},
			{"error", layoutError, 12, 4, []uint32{0, 4}},
			{"result<_, error>", layoutResultNone, 16, 4, []uint32{0, 4}},
			{"result<own, error>", layoutResultOwn, 16, 4, []uint32{0, 4}},
			{"result<list<own>, error>", layoutResultList, 16, 4, []uint32{0, 4}},
			{"fence", layoutFence, 16, 8, []uint32{0, 8}},
			{"publish-options", layoutPublishOptions, 144, 8, []uint32{0, 16, 32, 48, 52, 64, 80, 104, 112, 124, 136}},
			{"option<publish-options>", option(layoutPublishOptions), 152, 8, []uint32{0, 8}},
			{"outgoing", layoutOutgoing, 168, 8, []uint32{0, 8, 16}},
			{"limit", layoutLimit, 40, 8, []uint32{0, 8, 16, 32}},
			{"publish-error", layoutPublishError, 48, 8, []uint32{0, 8}},
			{"receipt", layoutReceipt, 20, 4, []uint32{0, 8, 12}},
			{"result<receipt, publish-error>", layoutResultItem, 56, 8, []uint32{0, 8}},
			{"result<list, publish-error>", layoutResultBatch, 56, 8, []uint32{0, 8}},
			{"publish's arguments", layoutPublish, 168, 8, []uint32{0, 4, 12, 16}},
			{"claims", layoutClaims, 56, 8, []uint32{0, 8, 16, 24, 32, 40, 48}},
			{
				"delivery-info", layoutInfo, 240, 8,
				[]uint32{0, 8, 16, 20, 24, 36, 48, 56, 72, 88, 92, 104, 120, 144, 156, 160, 224, 232},
			},
			{"option<delivery-info>", layoutOptInfo, 248, 8, []uint32{0, 8}},
			{"outcome", layoutOutcome, 24, 8, []uint32{0, 8}},
			{"result<list<outcome>, error>", layoutResultOutcomes, 16, 4, []uint32{0, 4}},
		} {
			if want.got.size != want.size || want.got.align != want.align || !slices.Equal(want.got.offsets, want.offsets) {
				t.Errorf("%s: got %+v, want size %d, align %d, offsets %v", want.name, want.got, want.size, want.align, want.offsets)
			}
		}
	})
	t.Run("FitsIntoTheAreaForResults", func(t *testing.T) {
		size := uint32(len((&area{}).view()))
		for name, l := range map[string]layout{"option": layoutOptString, "own": layoutResultOwn, "batch": layoutResultBatch} {
			if l.size > size {
				t.Errorf("%s takes %d bytes, there are %d", name, l.size, size)
			}
		}
		if size := uint32(len(infoArea{}) * wordBytes); layoutOptInfo.size != size {
			t.Errorf("option<delivery-info> takes %d bytes, there are %d", layoutOptInfo.size, size)
		}
	})
}
