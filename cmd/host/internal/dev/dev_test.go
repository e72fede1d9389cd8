package dev

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// two are consumers whose modules are copies of their sources, made in folders of their own, and of what both share.
const two = `consumers:
  - {name: a, topic: a, module: a.wasm, build: [sh, -c, "echo a >> log.tmp; cat a/main common/lib > a.wasm"]}
  - {name: b, topic: b, module: b.wasm, build: [sh, -c, "echo b >> log.tmp; cat b/main > b.wasm"]}
`

func twoConsumers(t *testing.T) *trial {
	t.Helper()
	return newTrial(t, map[string]string{"consumers.yaml": two, "a/main": "a1", "b/main": "b1", "common/lib": ""})
}

// copied is one consumer whose module is a copy of its source.
const copied = "consumers:\n  - {name: a, topic: a, module: a.wasm, build: [cp, main, a.wasm]}\n"

func oneConsumer(t *testing.T) *trial {
	t.Helper()
	return newTrial(t, map[string]string{"consumers.yaml": copied, "main": "a1"})
}

func TestBegin(t *testing.T) {
	t.Run("BuildsAndDeploysEveryConsumer", func(t *testing.T) {
		tr := twoConsumers(t)
		require.NoError(t, tr.begin(t.Context()))
		require.Equal(t, []string{"a=a1", "b=b1"}, tr.newSwaps())
		said := tr.newWords()
		require.Contains(t, said, "a: building\n")
		require.Contains(t, said, "b: runs with module ")
		require.Contains(t, said, "watching 4 files in "+tr.dir+"; Ctrl-C stops\n")
	})
	t.Run("DeploysTheOthersIfOneCantBeBuilt", func(t *testing.T) {
		tr := twoConsumers(t)
		require.NoError(t, os.Remove(filepath.Join(tr.dir, "b", "main")))
		require.NoError(t, tr.begin(t.Context()))
		require.Equal(t, []string{"a=a1"}, tr.newSwaps())
		require.Contains(t, tr.newWords(), "b: the build failed (exit status 1): it runs when that is mended\n")
		tr.change("b/main", "b2")
		require.Equal(t, []string{"b=b2"}, tr.newSwaps())
	})
	t.Run("RunsOneCommandOfTwoConsumersOnce", func(t *testing.T) {
		tr := newTrial(t, map[string]string{"main": "m", "consumers.yaml": `consumers:
  - {name: a, topic: a, module: m.wasm, build: [sh, -c, "echo x >> log.tmp; cp main m.wasm"]}
  - {name: b, topic: b, module: m.wasm, build: [sh, -c, "echo x >> log.tmp; cp main m.wasm"]}
`})
		require.NoError(t, tr.begin(t.Context()))
		require.Equal(t, []string{"a=m", "b=m"}, tr.newSwaps())
		require.Contains(t, tr.newWords(), "a, b: building\n")
		tr.change("main", "n")
		require.Equal(t, []string{"a=n", "b=n"}, tr.newSwaps())
		require.Equal(t, "x\nx\n", tr.read("log.tmp"))
	})
	t.Run("RefusesMoreFilesThanAreWatched", func(t *testing.T) {
		tr := oneConsumer(t)
		scan := scanner{enter: func(string) {}, maxFolders: 1, maxFiles: 1}
		_, err := scan.scan(t.Context(), tr.sources.trees(), nil)
		require.ErrorContains(t, err, "there are more than 1 files to watch, at "+filepath.Join(tr.dir, "main"))
		tr.write("sub/x", "")
		scan.maxFiles = 9
		_, err = scan.scan(t.Context(), tr.sources.trees(), nil)
		require.ErrorContains(t, err, "there are more than 1 folders to watch, at "+filepath.Join(tr.dir, "sub"))
	})
}

func TestFollow(t *testing.T) {
	t.Run("BuildsAndSwapsOnlyWhatChanged", func(t *testing.T) {
		tr := twoConsumers(t)
		tr.start()
		tr.change("b/main", "b2")
		require.Equal(t, []string{"b=b2"}, tr.newSwaps())
		require.Equal(t, "a\nb\nb\n", tr.read("log.tmp"))
		said := tr.newWords()
		require.Contains(t, said, "b/main changed\nb: building\nb: runs with module ")
		require.NotContains(t, said, "a:")
	})
	t.Run("BuildsAllForWhatIsNamedByNone", func(t *testing.T) {
		tr := twoConsumers(t)
		tr.start()
		tr.change("shared", "x")
		require.Equal(t, "a\nb\na\nb\n", tr.read("log.tmp"))
		require.Empty(t, tr.newSwaps(), "the modules are as they were")
		require.Contains(t, tr.newWords(), "a: the module is as it was\n")
	})
	t.Run("DoesNothingIfTheContentIsTheSame", func(t *testing.T) {
		tr := twoConsumers(t)
		tr.start()
		tr.change("a/main", "a1")
		require.Equal(t, "a\nb\n", tr.read("log.tmp"))
		require.Empty(t, tr.newWords())
	})
	t.Run("KeepsTheVersionBeforeIfABuildFails", func(t *testing.T) {
		tr := newTrial(t, map[string]string{"main": "ok", "consumers.yaml": `consumers:
  - {name: a, topic: a, module: a.wasm, build: [sh, -c, "cat main > a.wasm; grep -q ok main || { printf 'main:1: \\033[31mno\\tok\\n' >&2; exit 3; }"]}
`})
		tr.start()
		tr.change("main", "half")
		require.Empty(t, tr.newSwaps(), "what a failing build left is not deployed")
		require.Equal(t, "main changed\na: building\nmain:1: \\u001b[31mno\tok\n"+
			"a: the build failed (exit status 3): the version before keeps running\n", tr.newWords())
		tr.change("main", "ok 2")
		require.Equal(t, []string{"a=ok 2"}, tr.newSwaps())
	})
	t.Run("KeepsTheVersionBeforeIfTheModuleIsRefused", func(t *testing.T) {
		tr := twoConsumers(t)
		tr.start()
		tr.change("a/main", "bad")
		require.Equal(t, []string{"a refused"}, tr.newSwaps())
		require.Contains(t, tr.newWords(), "the host can't run it\na: the version before keeps running\n")
		tr.change("b/main", "b2")
		require.Equal(t, []string{"b=b2"}, tr.newSwaps(), "what was refused is not tried again")
		tr.change("a/main", "a2")
		require.Equal(t, []string{"a=a2"}, tr.newSwaps())
	})
	t.Run("SwapsAModuleThatNoCommandBuilds", func(t *testing.T) {
		tr := newTrial(t, map[string]string{"m.wasm": "m1", "consumers.yaml": "consumers:\n  - {name: a, topic: a, module: m.wasm}\n"})
		tr.start()
		tr.change("m.wasm", "m2")
		require.Equal(t, []string{"a=m2"}, tr.newSwaps())
		require.NoError(t, os.Remove(filepath.Join(tr.dir, "m.wasm")))
		tr.follow(t.Context())
		tr.change("other", "x")
		require.Empty(t, tr.newSwaps())
		said := tr.newWords()
		require.Equal(t, 1, strings.Count(said, "m.wasm\" is not there"), said)
		require.Contains(t, said, "a: the version before keeps running\n")
	})
	t.Run("DoesNotMindThatABuiltModuleIsDeleted", func(t *testing.T) {
		tr := twoConsumers(t)
		tr.start()
		require.NoError(t, os.Remove(filepath.Join(tr.dir, "a.wasm")))
		tr.follow(t.Context())
		tr.change("b/main", "b2")
		require.Equal(t, []string{"b=b2"}, tr.newSwaps())
		require.NotContains(t, tr.newWords(), "a.wasm")
		require.Contains(t, tr.current, "a")
		tr.change("a/main", "a2")
		require.Equal(t, []string{"a=a2"}, tr.newSwaps())
	})
	t.Run("EndsABuildThatHangs", func(t *testing.T) {
		tr := newTrial(t, map[string]string{"main": "fast", "consumers.yaml": `consumers:
  - {name: a, topic: a, module: a.wasm, build: [sh, -c, "grep -q fast main || sleep 600; cp main a.wasm"]}
`})
		tr.start()
		tr.BuildTime = 50 * time.Millisecond
		tr.change("main", "slow")
		require.Contains(t, tr.newWords(), "a: the build failed (the build was stopped: it took longer than 50ms): the version before keeps running\n")
		require.Empty(t, tr.newSwaps())
	})
	t.Run("StopsInTheMiddleOfABuild", func(t *testing.T) {
		tr := newTrial(t, map[string]string{"consumers.yaml": `consumers:
  - {name: a, topic: a, module: a.wasm, build: [sh, -c, "echo begun; sleep 600"]}
`})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- tr.begin(ctx) }()
		require.Eventually(t, func() bool { return strings.Contains(tr.session.Talk.w.(*buffer).String(), "begun\n") }, 10*time.Second, time.Millisecond)
		cancel()
		require.NoError(t, <-done)
		require.Equal(t, "a: building\nbegun\n", tr.newWords())
	})
}

func TestOutputs(t *testing.T) {
	writes := func(t *testing.T, command string) *trial {
		t.Helper()
		return newTrial(t, map[string]string{"main": "m", "consumers.yaml": "consumers:\n  - {name: a, topic: a, module: a.wasm, build: [sh, -c, '" + command + "']}\n"})
	}
	t.Run("AFileThatEveryBuildWritesAnewIsBuiltForAFewTimesOnly", func(t *testing.T) {
		tr := writes(t, "echo x >> count; cp main a.wasm")
		require.NoError(t, tr.begin(t.Context()))
		require.Equal(t, limits.BuildsInARow, strings.Count(tr.read("count"), "x"))
		require.Contains(t, tr.newWords(), "count changed during 3 builds in a row: that is taken for what the build writes, until it changes while nothing is built\n")
		tr.change("main", "n")
		require.Equal(t, limits.BuildsInARow+1, strings.Count(tr.read("count"), "x"), "it is known by now")
		tr.change("count", "")
		require.Equal(t, limits.BuildsInARow, strings.Count(tr.read("count"), "x"), "a person changed it")
	})
	t.Run("FilesOfEverNewNamesEndTheRowToo", func(t *testing.T) {
		tr := writes(t, "mktemp part.XXXXXX; echo x >> log.tmp; cp main a.wasm")
		require.NoError(t, tr.begin(t.Context()))
		require.Equal(t, limits.BuildsInARow, strings.Count(tr.read("log.tmp"), "x"))
	})
	t.Run("WhatABuildWritesTheSameEachTimeIsBuiltForOnce", func(t *testing.T) {
		tr := writes(t, "echo x >> log.tmp; echo same > generated; cp main a.wasm")
		require.NoError(t, tr.begin(t.Context()))
		require.Equal(t, "x\nx\n", tr.read("log.tmp"))
		require.NotContains(t, tr.newWords(), "in a row")
	})
	t.Run("WhatAPersonChangesDuringABuildIsBuilt", func(t *testing.T) {
		tr := writes(t, "cp main a.wasm; test -e second.tmp || { touch second.tmp; echo n > main; }")
		require.NoError(t, tr.begin(t.Context()))
		require.Equal(t, []string{"a=m", "a=n"}, tr.newSwaps())
	})
	t.Run("ModulesAndFoldersOfOutputsAreNone", func(t *testing.T) {
		tr := writes(t, "echo x >> log.tmp; mkdir -p target node_modules/y .git longshore-data; date +%N | tee a.wasm target/x node_modules/y/z .git/index longshore-data/x main~")
		require.NoError(t, tr.begin(t.Context()))
		require.Equal(t, "x\n", tr.read("log.tmp"))
	})
}

func TestManifest(t *testing.T) {
	t.Run("AnEditIsApplied", func(t *testing.T) {
		tr := oneConsumer(t)
		tr.start()
		tr.change("consumers.yaml", strings.Replace(copied, "topic: a", "topic: other", 1))
		require.Equal(t, []string{"a=a1"}, tr.newSwaps())
		require.NotContains(t, tr.newWords(), "building", "it is built as before")
	})
	t.Run("AnEditIsAChanceForAModuleThatWasRefused", func(t *testing.T) {
		tr := oneConsumer(t)
		tr.start()
		tr.change("main", "bad")
		tr.change("consumers.yaml", strings.Replace(copied, "topic: a", "topic: a, limits: {memory: 1MiB}", 1))
		require.Equal(t, []string{"a refused", "a refused"}, tr.newSwaps())
	})
	t.Run("AnEntryThatIsNewIsBuiltAndOneThatIsGoneStops", func(t *testing.T) {
		tr := oneConsumer(t)
		tr.write("z.wasm", "of yesterday")
		tr.start()
		tr.change("consumers.yaml", "consumers:\n  - {name: z, topic: z, module: z.wasm, build: [cp, main, z.wasm]}\n")
		require.Equal(t, []string{"z=a1"}, tr.newSwaps())
		require.NotContains(t, tr.current, "a")
		said := tr.newWords()
		require.Contains(t, said, "a: the manifest doesn't name it any more: it stops\nz: building\n")
		require.Equal(t, 1, strings.Count(said, "building"), said)
		tr.follow(t.Context())
		require.Empty(t, tr.newWords(), "neither module is a source")
	})
	t.Run("AFaultyOneIsReportedAndThePlanStays", func(t *testing.T) {
		tr := oneConsumer(t)
		tr.start()
		tr.change("consumers.yaml", copied+"  - {name: z}\n")
		said := tr.newWords()
		require.Contains(t, said, "consumers.yaml:3:5: consumers[1]")
		require.Contains(t, said, "the manifest is not applied: what it said before holds\n")
		require.Contains(t, tr.current, "a")
		tr.change("main", "a2")
		require.Equal(t, []string{"a=a2"}, tr.newSwaps(), "the plan before is followed")
		require.NoError(t, os.Remove(filepath.Join(tr.dir, "consumers.yaml")))
		tr.follow(t.Context())
		require.Contains(t, tr.newWords(), "the manifest is not applied")
		tr.change("consumers.yaml", copied)
		require.Empty(t, tr.newSwaps())
	})
	t.Run("TheHostConfigIsReadAtTheStartOnly", func(t *testing.T) {
		tr := oneConsumer(t)
		tr.start()
		tr.change("longshore.yaml", "grace: 1s\n")
		require.Equal(t, "longshore.yaml changed: that counts when `longshore dev` is started again\n", tr.newWords())
	})
}
