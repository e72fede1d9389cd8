package runtime_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

// withSection returns a module with one more custom section.
func withSection(wasm []byte, name string, content []byte) []byte {
	section := append(append(uleb(len(name)), name...), content...)
	return append(append(append([]byte(nil), wasm...), 0), append(uleb(len(section)), section...)...)
}

// The handler answers with the place where it was given the topic of its message. What draft C puts there, some text, reads as
// an error; what draft B does, a pointer with a zero in its lowest byte, as ok.
func TestDraft(t *testing.T) {
	types := func(draft string) []byte {
		b, err := os.ReadFile(filepath.Join("internal", "component", "testdata", draft+".wasm"))
		require.NoError(t, err)
		return b
	}
	const i32x5 = i32 + i32 + i32 + i32 + i32
	m := wasmModule{
		imports: []wasmImport{{"wasi:messaging/types@0.2.0-draft", "[method]message.topic", i32 + i32, ""}},
		handler: []byte(opGet(0) + opConst(512) + opCall(0) + opConst(512)),
	}
	plain := m.assemble()
	m.imports = append(m.imports, wasmImport{"wasi:messaging/request-reply@0.2.0-draft", "request", i32x5, ""})
	shortRequest := m.assemble()
	m.imports[1].params += i32 + i32
	longRequest := m.assemble()
	e := newEngine(t)
	for name, c := range map[string]struct {
		wasm []byte
		says messaging.Draft // the manifest
		want messaging.Draft
	}{
		"IsTheLastOneIfNothingTells":            {plain, "", messaging.DraftC},
		"IsToldByTheModulesTypes":               {withSection(plain, "component-type:world", types("draft-b")), "", messaging.DraftB},
		"IsTheLastOneIfTheTypesSaySo":           {withSection(plain, "component-type", types("draft-c")), "", messaging.DraftC},
		"IsNotToldByTypesUnderAnotherName":      {withSection(plain, "types", types("draft-b")), "", messaging.DraftC},
		"IsNotToldByTypesThatEndTooEarly":       {withSection(plain, "component-type", types("draft-b")[:300]), "", messaging.DraftC},
		"IsToldByTheArityOfRequest":             {shortRequest, "", messaging.DraftB},
		"ArityIsStrongerThanTypes":              {withSection(shortRequest, "component-type", types("draft-c")), "", messaging.DraftB},
		"ArityIsStrongerThanTypesTheOtherWay":   {withSection(longRequest, "component-type", types("draft-b")), "", messaging.DraftC},
		"IsWhatTheManifestSays":                 {plain, messaging.DraftB, messaging.DraftB},
		"IsWhatTheManifestSaysAgainstTheTypes":  {withSection(plain, "component-type", types("draft-b")), messaging.DraftC, messaging.DraftC},
		"IsWhatTheManifestSaysBesideTheArity":   {shortRequest, messaging.DraftB, messaging.DraftB},
		"IsWhatTheManifestSaysBesideTheArityOf": {longRequest, messaging.DraftC, messaging.DraftC},
	} {
		t.Run(name, func(t *testing.T) {
			module, err := e.CompileFor(t.Context(), "m", c.wasm, testLimits(), runtime.Instances{Draft: c.says})
			require.NoError(t, err)
			o := module.Invoke(t.Context(), newCall("x", nil))
			want := map[messaging.Draft]runtime.Class{messaging.DraftB: runtime.OK, messaging.DraftC: runtime.GuestError}[c.want]
			require.Equal(t, want, o.Class, o.Reason())
		})
	}
	t.Run("AManifestThatIsWrongIsRefused", func(t *testing.T) {
		_, err := e.CompileFor(t.Context(), "m", longRequest, testLimits(), runtime.Instances{Draft: messaging.DraftB})
		var refused *runtime.ModuleError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, runtime.StageInterface, refused.Stage)
		require.ErrorContains(t, err, `"request" has the signature`)
	})
}
