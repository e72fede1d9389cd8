package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	corpus "github.com/longshore/longshore/internal/hostile"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
)

// failing is a compiler that fails at once: who has it needs no compiler.
func failing() []string { return []string{"/bin/false"} }

// cachingEngine makes an engine with a folder and a compiler, which is closed with the test.
func cachingEngine(tb testing.TB, dir string, compiler []string) *runtime.Engine {
	tb.Helper()
	e, err := runtime.New(tb.Context(), runtime.Options{CacheDir: dir, Compiler: compiler})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, e.Close(context.WithoutCancel(tb.Context()))) })
	return e
}

// works compiles a small module and calls it.
func works(t *testing.T, e *runtime.Engine) {
	t.Helper()
	m, err := e.Compile(t.Context(), "small", wasmModule{handler: []byte(opConst(0))}.assemble(), testLimits())
	require.NoError(t, err)
	require.Equal(t, runtime.OK, m.Invoke(t.Context(), newCall("", nil)).Class)
}

// files lists what is in a folder and its folders.
func files(t *testing.T, pattern ...string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(pattern...))
	require.NoError(t, err)
	return names
}

func TestCodeCache(t *testing.T) {
	fresh := func(t *testing.T) string {
		t.Helper()
		return filepath.Join(t.TempDir(), "cache")
	}
	filled := func(t *testing.T) string {
		t.Helper()
		dir := fresh(t)
		works(t, cachingEngine(t, dir, compilerCommand()))
		return dir
	}
	t.Run("TheFolderIsPrivate", func(t *testing.T) {
		dir := filled(t)
		for _, name := range []string{dir, filepath.Join(dir, "notes"), files(t, dir, "wazero-*")[0]} {
			info, err := os.Stat(name)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), name)
		}
		require.Empty(t, files(t, dir, "new-*"))
	})
	t.Run("AFolderThatOthersMayWriteToIsRefused", func(t *testing.T) {
		dir := filled(t)
		require.NoError(t, os.Chmod(dir, 0o770))
		_, err := runtime.New(t.Context(), runtime.Options{CacheDir: dir})
		require.ErrorContains(t, err, "others may write")
	})
	t.Run("CodeIsCompiledOnce", func(t *testing.T) {
		works(t, cachingEngine(t, filled(t), failing()))
	})
	t.Run("AnEngineWithoutACompilerFillsItToo", func(t *testing.T) {
		dir := fresh(t)
		works(t, cachingEngine(t, dir, nil))
		works(t, cachingEngine(t, dir, failing()))
	})
	t.Run("DamagedCodeIsNeverLoaded", func(t *testing.T) {
		dir := filled(t)
		code := files(t, dir, "wazero-*", "*")
		require.Len(t, code, 1)
		b, err := os.ReadFile(code[0])
		require.NoError(t, err)
		for at := range b {
			b[at] ^= 0x10
			require.NoError(t, os.WriteFile(code[0], b, 0o600))
			b[at] ^= 0x10
			if at%97 == 0 || at < 64 {
				e := cachingEngine(t, dir, failing())
				_, err = e.Compile(t.Context(), "small", wasmModule{handler: []byte(opConst(0))}.assemble(), testLimits())
				require.ErrorContains(t, err, "the compiler failed", "byte %d", at)
			}
		}
		works(t, cachingEngine(t, dir, compilerCommand())) // compiled again
		works(t, cachingEngine(t, dir, failing()))
	})
	t.Run("ALostNoteCostsACompilation", func(t *testing.T) {
		dir := filled(t)
		require.NoError(t, os.WriteFile(files(t, dir, "notes", "*")[0], []byte("torn"), 0o600))
		works(t, cachingEngine(t, dir, compilerCommand()))
	})
	t.Run("ANoteThatPointsOutsideIsNotFollowed", func(t *testing.T) {
		dir := filled(t)
		outside := filepath.Join(t.TempDir(), "precious")
		require.NoError(t, os.WriteFile(outside, nil, 0o600))
		require.NoError(t, os.WriteFile(files(t, dir, "notes", "*")[0], []byte("0  "+outside+"\n"), 0o600))
		works(t, cachingEngine(t, dir, compilerCommand()))
		require.FileExists(t, outside)
	})
	t.Run("WhatIsUnfinishedGoesAtTheNextStart", func(t *testing.T) {
		dir := filled(t)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "new-1", "wazero-x"), 0o700))
		stray := filepath.Join(filepath.Dir(files(t, dir, "wazero-*", "*")[0]), "stray")
		require.NoError(t, os.WriteFile(stray, nil, 0o600))
		cachingEngine(t, dir, failing())
		require.Empty(t, files(t, dir, "new-*"))
		require.NoFileExists(t, stray)
	})
	t.Run("TheOldestCodeGoesWhenThereIsTooMuch", func(t *testing.T) {
		dir := filled(t)
		code := files(t, dir, "wazero-*", "*")[0]
		other := code + "0"
		require.NoError(t, os.WriteFile(other, nil, 0o600))
		require.NoError(t, os.Truncate(other, limits.CodeCacheBytes)) // a hole
		name, err := filepath.Rel(dir, other)
		require.NoError(t, err)
		note := filepath.Join(dir, "notes", "other")
		require.NoError(t, os.WriteFile(note, []byte("0  "+name+"\n"), 0o600))
		yesterday := time.Now().Add(-24 * time.Hour)
		require.NoError(t, os.Chtimes(note, yesterday, yesterday))
		works(t, cachingEngine(t, dir, failing()))
		require.NoFileExists(t, note)
		require.NoFileExists(t, other)
	})
	t.Run("AlsoWhileAnEngineFillsTheFolder", func(t *testing.T) {
		dir := filled(t)
		e := cachingEngine(t, dir, compilerCommand())
		code := files(t, dir, "wazero-*", "*")[0]
		require.NoError(t, os.Truncate(code, limits.CodeCacheBytes)) // a hole; its note isn't true any more
		yesterday := time.Now().Add(-24 * time.Hour)
		require.NoError(t, os.Chtimes(files(t, dir, "notes", "*")[0], yesterday, yesterday))
		another := wasmModule{handler: []byte(opConst(0)), extra: "another"}.assemble()
		_, err := e.Compile(t.Context(), "another", another, testLimits())
		require.NoError(t, err)
		require.NoFileExists(t, code)
		require.Len(t, files(t, dir, "wazero-*", "*"), 1)
	})
	t.Run("ACompilerNeedsAFolder", func(t *testing.T) {
		_, err := runtime.New(t.Context(), runtime.Options{Compiler: failing()})
		require.ErrorContains(t, err, "needs a folder")
	})
}

func TestCompiler(t *testing.T) {
	small := wasmModule{handler: []byte(opConst(0))}.assemble()
	compile := func(t *testing.T, ctx context.Context, wasm []byte, command ...string) error {
		t.Helper()
		_, err := cachingEngine(t, filepath.Join(t.TempDir(), "cache"), command).Compile(ctx, "small", wasm, testLimits())
		return err
	}
	t.Run("WhatItRefusesIsTheModulesFault", func(t *testing.T) {
		err := compile(t, t.Context(), wasmModule{handler: []byte("\x42\x00")}.assemble(), compilerCommand()...)
		var refused *runtime.ModuleError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, runtime.StageCompile, refused.Stage)
		require.ErrorContains(t, err, "cannot use i64")
	})
	t.Run("ACompilerThatCannotStartIsNot", func(t *testing.T) {
		err := compile(t, t.Context(), small, filepath.Join(t.TempDir(), "missing"))
		var refused *runtime.ModuleError
		require.False(t, errors.As(err, &refused))
		require.ErrorContains(t, err, "run the compiler")
	})
	t.Run("OneThatLeavesNothingIsNot", func(t *testing.T) {
		err := compile(t, t.Context(), small, "/bin/true")
		var refused *runtime.ModuleError
		require.False(t, errors.As(err, &refused))
		require.ErrorContains(t, err, "0 files")
	})
	t.Run("OneThatIsKilledRefusesTheModule", func(t *testing.T) {
		err := compile(t, t.Context(), small, "/bin/sh", "-c", "printf 'a\\033[2Jb' >&2; kill -9 $$")
		var refused *runtime.ModuleError
		require.ErrorAs(t, err, &refused)
		require.ErrorContains(t, err, "signal: killed")
		require.NotContains(t, err.Error(), "\x1b")
	})
	t.Run("OneThatRunsOutOfMemoryNamesTheBound", func(t *testing.T) {
		err := compile(t, t.Context(), small, "/bin/sh", "-c", "echo 'fatal error: runtime: out of memory' >&2; exit 2")
		require.ErrorIs(t, err, &limits.Error{Name: limits.NameCompileMemory})
	})
	t.Run("ItMayUseSoMuch", func(t *testing.T) {
		bounds := map[string]struct {
			module, compiler string
			impatient        bool
			want             limits.Name
		}{
			"Memory":        {"half a megabyte of loads", withLittleMemory, false, limits.NameCompileMemory},
			"ProcessorTime": {"half a megabyte of loads", withLittleTime, false, limits.NameCompileTime},
			"Time":          {"half a megabyte of loads", asCompiler, true, limits.NameCompileTime},
		}
		for name, b := range bounds {
			t.Run(name, func(t *testing.T) {
				if raceEnabled {
					t.Skip("the race detector needs more than that")
				}
				m, ok := corpus.Find(b.module)
				require.True(t, ok)
				err := runtime.CompileSmall(t.Context(), t.TempDir(), m.Wasm(), []string{"/proc/self/exe", b.compiler}, b.impatient)
				require.ErrorIs(t, err, &limits.Error{Name: b.want})
			})
		}
	})
	t.Run("ItMayUseLessForSome", func(t *testing.T) {
		if raceEnabled {
			t.Skip("the race detector needs more than that")
		}
		m, ok := corpus.Find("functions of four thousand branches")
		require.True(t, ok)
		err := runtime.CompileFast(t.Context(), t.TempDir(), m.Wasm(), compilerCommand(), time.Second)
		var limit *limits.Error
		require.ErrorAs(t, err, &limit)
		require.Equal(t, limits.Error{Name: limits.NameCompileTime, Limit: 1000, Actual: 1001, Where: "the compiler"}, *limit)
	})
	t.Run("CancellingEndsIt", func(t *testing.T) {
		why := errors.New("the deployer gave up")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, why)
		defer cancel()
		require.ErrorIs(t, compile(t, ctx, small, "/bin/sh", "-c", "exec sleep 3600"), why)
	})
}

// The Go guest is deployed from its cached code. What that takes, and without a cache, is printed.
func TestCodeCacheOfTheGoGuest(t *testing.T) {
	wasm, err := goGuestWasm()
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "cache")
	deploy := func(e *runtime.Engine) int64 {
		started := time.Now()
		m, err := e.Compile(t.Context(), "guest", wasm, testLimits())
		took := time.Since(started).Milliseconds()
		require.NoError(t, err)
		require.Equal(t, runtime.OK, m.Invoke(t.Context(), newCall("echo hello", nil)).Class)
		return took
	}
	fmt.Println("figure deploy_in_process_ms", deploy(newEngine(t)))
	fmt.Println("figure deploy_cold_ms", deploy(cachingEngine(t, dir, compilerCommand())))
	fmt.Println("figure deploy_cached_ms", deploy(cachingEngine(t, dir, failing())))
}
