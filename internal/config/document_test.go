package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const plain = "consumers:\n  - name: a\n    topic: a\n    module: a.wasm\n"

func TestDocument(t *testing.T) {
	parse := func(text string) (*Plan, error) { return ParseManifest("m.yaml", []byte(text), DefaultHost()) }
	accepted := func(text string) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			plan, err := parse(text)
			require.NoError(t, err)
			require.Len(t, plan.Consumers, 1)
			require.Equal(t, "a", plan.Consumers[0].Topic)
		}
	}
	refused := func(text, fault string) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			_, err := parse(text)
			require.ErrorContains(t, err, fault)
		}
	}
	t.Run("ByteOrderMarkIsAccepted", accepted("\ufeff"+plain))
	t.Run("CarriageReturnsAreAccepted", accepted(strings.ReplaceAll(plain, "\n", "\r\n")))
	t.Run("DocumentMarkersAreAccepted", accepted("---\n"+plain+"...\n"))
	t.Run("FlowStyleIsAccepted", accepted(`{"consumers": [{"name": "a", "topic": "a", "module": "a.wasm"}]}`))
	t.Run("UTF16IsRefused", refused("\xff\xfec\x00", "m.yaml:1:1: byte 0xff is not UTF-8"))
	t.Run("ColumnsCountCharacters", refused("# é\xff", "m.yaml:1:4: byte 0xff"))
	t.Run("LargestFileIsAccepted", accepted(plain+"#"+strings.Repeat("x", maxFileBytes-len(plain)-1)))
	t.Run("LargerFileIsRefused", refused(plain+"#"+strings.Repeat("x", maxFileBytes-len(plain)), "the file is larger than 1MiB"))
	t.Run("DeepestNestingIsReadOn", refused("x: "+nested(maxDepth), "m.yaml:1:1: x: unknown key"))
	t.Run("DeeperNestingIsRefused", refused("x: "+nested(maxDepth+1), "nested too deeply (at most 16 levels)"))
	t.Run("AliasBombIsRefused", refused(
		"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nconsumers: [*c, *c]\n", "m.yaml:4:13: consumers[0]: an alias stands here"))
	t.Run("NameOfAnUnknownAnchorIsBounded", refused("a: *"+strings.Repeat("x", 1000), strings.Repeat("x", 60)))
	t.Run("MostItemsAreReadOn", refused("consumers: ["+strings.Repeat("x,", maxItems)+"]", "consumers[0]: "))
	t.Run("MoreItemsAreRefused", refused("consumers: ["+strings.Repeat("x,", maxItems+1)+"]", "m.yaml:1:12: consumers: 10001 items are too many (want at most 10000)"))
	t.Run("MoreKeysAreRefused", refused(strings.Repeat("x: 1\n", maxItems+1), "m.yaml:1:1: 10001 items are too many (want at most 10000)"))
	t.Run("TabInsideAValueIsAccepted", accepted(strings.ReplaceAll(plain, "name: a", "name: a\t# tab")))
	t.Run("HugeNumberIsAFault", refused(plain+"    max_attempts: 1e308\n", "m.yaml:5:19: consumers[0].max_attempts:"))
	t.Run("HugeExponentIsAFault", refused(plain+"    max_attempts: 1e999999999\n", "m.yaml:5:19: consumers[0].max_attempts:"))
}

func nested(levels int) string {
	return strings.Repeat("[", levels-1) + "1" + strings.Repeat("]", levels-1)
}

func TestNumbersAreWrittenInMoreWaysThanOne(t *testing.T) {
	for written, want := range map[string]int64{
		"500": 500, "1_000": 1000, "100e6": 100_000_000, "1e3": 1000, "0x10": 16, "7.0": 7, "+5": 5,
	} {
		plan, err := ParseManifest("m.yaml", []byte(plain+"    limits: {fuel: "+written+"}\n"), DefaultHost())
		require.NoError(t, err, written)
		require.Equal(t, want, plan.Consumers[0].Guest.Fuel, written)
	}
}

func TestPathsOfKeysAreDistinct(t *testing.T) {
	require.Equal(t, "a.b", join("a", "b"))
	require.Equal(t, `a."b.c"`, join("a", "b.c"))
	require.Equal(t, `a.""`, join("a", ""))
	require.Equal(t, `""`, join("", ""))
	require.Equal(t, `"\u202e"`, join("", "\u202e"))
	require.Equal(t, "a", parent("a[3]"))
	require.Equal(t, "a[3]", parent("a[3].b"))
	require.Empty(t, parent("a"))
}
