package component

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const topicOf = "[method]message.topic"

// embedded returns the types of the world messaging-core as wit-component embeds them, of a draft of wasi:messaging.
func embedded(tb testing.TB, draft string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", draft+".wasm"))
	require.NoError(tb, err)
	return b
}

// world is a component with one interface of these declarations.
func world(declarations ...string) []byte {
	iface := "\x42" + leb(len(declarations)) + strings.Join(declarations, "")
	return newBuilder().items(sectionType, iface).b
}

func TestReturnsString(t *testing.T) {
	export := func(name string, f int) string { return "\x04\x00" + str(name) + "\x01" + leb(f) }
	returning := func(result string) string { return "\x01\x40\x00\x00" + result }
	for name, c := range map[string]struct {
		types      []byte
		yes, found bool
	}{
		"InDraftB":                   {embedded(t, "draft-b"), true, true},
		"InDraftCItIsAnOption":       {embedded(t, "draft-c"), false, true},
		"AString":                    {world(returning("\x73"), export(topicOf, 0)), true, true},
		"ANamedString":               {world("\x01\x73", "\x04\x00"+str("topic")+"\x03\x00\x00", returning("\x01"), export(topicOf, 2)), true, true},
		"AnOption":                   {world("\x01\x6b\x73", returning("\x00"), export(topicOf, 1)), false, true},
		"ANumber":                    {world(returning("\x79"), export(topicOf, 0)), false, true},
		"Nothing":                    {world("\x01\x40\x00\x01\x00", export(topicOf, 0)), false, true},
		"OfAnotherFunction":          {world(returning("\x73"), export("topic", 0)), false, false},
		"OfATypeThatIsNotThere":      {world(returning("\x05"), export(topicOf, 7)), false, true},
		"BehindAllKindsOfTypes":      {world(append(allTypes(), returning("\x73"), export(topicOf, len(allTypes())))...), true, true},
		"InAComponentThatIsAWhole":   {whole(), false, false},
		"BehindWhatIsNotRead":        {world("\x01\x20", returning("\x73"), export(topicOf, 1)), false, false},
		"InAModule":                  {[]byte("\x00asm\x01\x00\x00\x00"), false, false},
		"NestedTooDeep":              {newBuilder().items(sectionType, strings.Repeat("\x42\x01\x01", maxTypeDepth+1)+"\x42\x02"+returning("\x73")+export(topicOf, 0)).b, false, false},
		"NestedAsDeepAsTypesMayBeIs": {newBuilder().items(sectionType, strings.Repeat("\x42\x01\x01", maxTypeDepth-1)+"\x42\x02"+returning("\x73")+export(topicOf, 0)).b, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			yes, found := ReturnsString(c.types, topicOf)
			require.Equal(t, [2]bool{c.yes, c.found}, [2]bool{yes, found})
		})
	}
	t.Run("WhatIsCutOffOrDamagedNeverPanics", func(*testing.T) {
		for _, draft := range []string{"draft-b", "draft-c"} {
			b := embedded(t, draft)
			for i := range b {
				ReturnsString(b[:i], topicOf)
				damaged := append([]byte(nil), b...)
				for _, v := range []byte{0, 0x42, 0x7f, 0xff} {
					damaged[i] = v
					ReturnsString(damaged, topicOf)
				}
			}
		}
	})
}

// allTypes declares a type of each kind.
func allTypes() []string {
	var all []string
	for _, t := range []string{
		"\x79", "\x3f\x7f\x00", "\x3f\x7f\x01\x00", "\x72\x01" + str("a") + "\x79", "\x71\x02" + str("a") + "\x01\x73\x00" + str("b") + "\x00\x00",
		"\x70\x73", "\x6b\x00", "\x6f\x02\x73\x79", "\x6e\x01" + str("f"), "\x6d\x01" + str("e"), "\x6a\x01\x73\x00", "\x69\x01", "\x68\x01",
		"\x42\x00", "\x41\x00", "\x40\x01" + str("p") + "\x73\x01\x00",
	} {
		all = append(all, "\x01"+t)
	}
	alias := []string{"\x02\x03\x00\x00" + str("t"), "\x02\x03\x02\x01\x00"}
	return append(all, alias...)
}
