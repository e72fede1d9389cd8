package component

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestFind(t *testing.T) {
	want := &Handler{Interface: iface, Module: []byte(module), Function: "h", PostReturn: "p", Realloc: "r"}
	t.Run("FollowsTheLiftToItsModule", func(t *testing.T) {
		h, err := Find(whole(), wanted)
		require.NoError(t, err)
		require.Equal(t, want, h)
	})
	t.Run("WithoutANestedComponent", func(t *testing.T) {
		h, err := Find(upTo("\x00", optMemory(0), optRealloc(1), optPost(2)).
			items(sectionInstance, inline("handle", 0)).items(sectionExport, exportInstance(iface, 0)).b, wanted)
		require.NoError(t, err)
		require.Equal(t, want, h)
	})
	t.Run("ThroughAnInlineInstanceOfTheCore", func(t *testing.T) {
		b := newBuilder().raw(sectionCoreModule, module).items(sectionCoreInstance, instantiate).
			items(sectionAlias, coreAlias(0, 0, "h")).
			items(sectionCoreInstance, "\x01\x01"+str("again")+"\x00\x00").
			items(sectionAlias, coreAlias(0, 1, "again")).
			items(sectionCanon, lift(1)).
			items(sectionInstance, inline("handle", 0)).items(sectionExport, exportInstance(iface, 0)).b
		h, err := Find(b, wanted)
		require.NoError(t, err)
		require.Equal(t, "h", h.Function)
		require.Empty(t, h.Realloc)
	})
	t.Run("TheAllocatorMayBeThatOfALoweredFunction", func(t *testing.T) {
		b := newBuilder().
			items(sectionImport, "\x00"+str("f")+"\x01\x00").
			raw(sectionCoreModule, module).items(sectionCoreInstance, instantiate).
			items(sectionAlias, coreAlias(0, 0, "h"), coreAlias(0, 0, "r")).
			items(sectionCanon, "\x01\x00\x00\x01"+optRealloc(1), lift(0)).
			items(sectionInstance, inline("handle", 1)).items(sectionExport, exportInstance(iface, 0)).b
		h, err := Find(b, wanted)
		require.NoError(t, err)
		require.Equal(t, "r", h.Realloc)
	})
	t.Run("TheFirstWantedInterfaceWins", func(t *testing.T) {
		b := upTo().items(sectionInstance, inline("handle", 0), inline("handle-batch", 0)).
			items(sectionExport, exportInstance(iface, 0), exportInstance(wanted[0].Interface, 1)).b
		h, err := Find(b, wanted)
		require.NoError(t, err)
		require.Equal(t, wanted[0].Interface, h.Interface)
	})
}

// Each component is refused in words that name what is wrong.
func TestFind_Refuses(t *testing.T) {
	exported := func(b *builder) []byte {
		return b.items(sectionInstance, inline("handle", 0)).items(sectionExport, exportInstance(iface, 0)).b
	}
	two := func(options ...string) *builder { // two instances of the module, with a realloc and memory of the second
		return newBuilder().raw(sectionCoreModule, module).items(sectionCoreInstance, instantiate, instantiate).
			items(sectionAlias, coreAlias(0, 0, "h"), coreAlias(0, 1, "r"), coreAlias(2, 1, "m")).
			items(sectionCanon, lift(0, options...))
	}
	inner := upTo().items(sectionExport, "\x00"+str("handle")+"\x01\x00\x00").b
	composed := newBuilder().raw(sectionComponent, string(inner)).
		items(sectionInstance, "\x00\x00\x00").items(sectionExport, exportInstance(iface, 0)).b
	aliased := newBuilder().raw(sectionComponent, string(whole())).items(sectionInstance, "\x00\x00\x00").
		items(sectionAlias, "\x05\x00\x00"+str(iface)).items(sectionExport, exportInstance(iface, 1)).b
	cases := map[string]struct {
		wasm  []byte
		words string
	}{
		"ACoreModule":     {[]byte(module), "not a component"},
		"NoHandler":       {upTo().items(sectionInstance, inline("handle", 0)).items(sectionExport, exportInstance("wasi:cli/run@0.2.0", 0)).b, `no handler: it exports "wasi:cli/run@0.2.0"; one of longshore`},
		"NoFunction":      {upTo().items(sectionInstance, inline("other", 0)).items(sectionExport, exportInstance(iface, 0)).b, `there is no function "handle"`},
		"Async":           {exported(upTo("\x06")), "asynchronous components"},
		"AsyncCallback":   {exported(upTo("\x07\x00")), "asynchronous components"},
		"AsyncBuiltin":    {newBuilder().items(sectionCanon, "\x09\x00").b, "asynchronous components"},
		"UTF16":           {exported(upTo("\x01")), "another encoding than UTF-8"},
		"Composed":        {composed, "composed of others"},
		"ComposedByAlias": {aliased, "composed of others"},
		"ForeignRealloc":  {exported(two(optRealloc(1))), "realloc: it is of another module than the handler: dynamic linking"},
		"ForeignMemory":   {exported(two(optMemory(0))), "memory is of another module: dynamic linking"},
		"ImportedHandler": {newBuilder().items(sectionImport, "\x00"+str("f")+"\x01\x00").items(sectionInstance, inline("handle", 0)).items(sectionExport, exportInstance(iface, 0)).b, "is an import of the component"},
		"ImportedModule":  {exported(newBuilder().items(sectionImport, "\x00"+str("m")+"\x00\x11\x00").items(sectionCoreInstance, instantiate).items(sectionAlias, coreAlias(0, 0, "h")).items(sectionCanon, lift(0))), "its module is an import"},
		"AStart":          {newBuilder().raw(sectionStart, "").b, "start function"},
		"BadIndex":        {newBuilder().items(sectionCoreInstance, instantiate).b, "index 0 of sort 0x11, of which 0 are defined"},
		"ForwardIndex":    {newBuilder().items(sectionCanon, lift(0)).b, "of which 0 are defined"},
		"HugeCount":       {newBuilder().raw(sectionAlias, "\xff\xff\xff\xff\x0f").b, "can't fit into"},
		"TornSection":     {append(newBuilder().b, 1, 100), "100 bytes are wanted, 0 are left"},
		"LongName":        {newBuilder().raw(sectionExport, "\x01\x00"+str(strings.Repeat("n", maxNameBytes+1))).b, "a name has 4097 bytes, the limit is 4096"},
		"BytesLeft":       {newBuilder().raw(sectionAlias, "\x00\x00").b, "has 1 bytes left"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Find(c.wasm, wanted)
			require.ErrorContains(t, err, c.words)
		})
	}
	t.Run("MoreDefinitionsThanAllowed", func(t *testing.T) {
		one := coreAlias(0, 0, "h")
		most := int(maxDefinitions) - 2
		b := newBuilder().raw(sectionCoreModule, module).items(sectionCoreInstance, instantiate)
		_, err := parse(b.raw(sectionAlias, leb(most)+strings.Repeat(one, most)).b)
		require.NoError(t, err)
		_, err = parse(b.items(sectionAlias, one).b)
		require.ErrorIs(t, err, &limits.Error{Name: NameDefinitions})
	})
}

// Whatever the bytes are, Find returns.
func FuzzFind(f *testing.F) {
	f.Add(whole())
	f.Add(upTo(optPost(2)).items(sectionInstance, inline("handle", 0)).items(sectionExport, exportInstance(iface, 0)).b)
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := Find(b, wanted)
		if err == nil && !bytes.Contains(b, h.Module) {
			t.Fatal("a module that isn't in the component")
		}
	})
}
