package dev

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/rollout"
	"github.com/longshore/longshore/internal/config"
)

// trial is a session whose rounds the test drives, and a host that only notes what it is given. The host refuses modules
// that begin with "bad".
type trial struct {
	*session
	t       *testing.T
	dir     string
	said    *buffer
	current map[string]rollout.Source
	swaps   []string // name=module of each consumer that was deployed anew
}

// buffer is written while the test reads it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// newTrial writes files, by their path with slashes, and makes a session for the manifest among them.
func newTrial(t *testing.T, texts map[string]string) *trial {
	t.Helper()
	tr := &trial{t: t, dir: t.TempDir(), said: &buffer{}, current: map[string]rollout.Source{}}
	for name, text := range texts {
		tr.write(name, text)
	}
	load := func() (*config.Plan, error) {
		return config.LoadManifest(filepath.Join(tr.dir, "consumers.yaml"), config.DefaultHost())
	}
	plan, err := load()
	require.NoError(t, err)
	talk := NewTalk(tr.said)
	tr.session, err = newSession(Options{
		Plan: plan, Load: load, Deploy: tr.deploy, Talk: talk,
		Report:   func(err error) { talk.say("%v", err) },
		HostFile: filepath.Join(tr.dir, "longshore.yaml"), Ignored: []string{filepath.Join(tr.dir, "longshore-data")},
	})
	require.NoError(t, err)
	tr.watcher = newWatcher(func(err error) { t.Error(err) })
	t.Cleanup(tr.watcher.close)
	return tr
}

func (tr *trial) deploy(_ context.Context, versions []rollout.Source) ([]rollout.Outcome, error) {
	outcomes := make([]rollout.Outcome, len(versions))
	next := map[string]rollout.Source{}
	for i, v := range versions {
		name := v.Consumer.Name
		before, there := tr.current[name]
		switch {
		case v.Wasm == nil:
			v = before
		case bytes.HasPrefix(v.Wasm, []byte("bad")):
			outcomes[i].Refused = errors.New("the host can't run it")
			tr.swaps = append(tr.swaps, name+" refused")
			v = before
		case !there || !bytes.Equal(before.Wasm, v.Wasm) || before.Consumer.Topic != v.Consumer.Topic:
			outcomes[i].New = true
			tr.swaps = append(tr.swaps, name+"="+strings.TrimSpace(string(v.Wasm)))
		}
		if v.Wasm != nil {
			next[name], outcomes[i].Digest = v, "digest of "+string(v.Wasm)
		}
	}
	tr.current = next
	return outcomes, nil
}

// write writes a file, and its folder.
func (tr *trial) write(name, text string) {
	tr.t.Helper()
	file := filepath.Join(tr.dir, filepath.FromSlash(name))
	require.NoError(tr.t, os.MkdirAll(filepath.Dir(file), 0o750))
	require.NoError(tr.t, os.WriteFile(file, []byte(text), 0o600))
}

// read returns what a file holds.
func (tr *trial) read(name string) string {
	tr.t.Helper()
	raw, err := os.ReadFile(filepath.Join(tr.dir, filepath.FromSlash(name)))
	require.NoError(tr.t, err)
	return string(raw)
}

// newSwaps returns what was deployed since it was asked last.
func (tr *trial) newSwaps() []string {
	swaps := tr.swaps
	tr.swaps = nil
	return swaps
}

// newWords returns what was said since it was asked last.
func (tr *trial) newWords() string {
	tr.said.mu.Lock()
	defer tr.said.mu.Unlock()
	defer tr.said.b.Reset()
	return tr.said.b.String()
}

// start does the first round, and forgets what it said and deployed.
func (tr *trial) start() {
	tr.t.Helper()
	require.NoError(tr.t, tr.begin(tr.t.Context()))
	tr.newSwaps()
	tr.newWords()
}

// change writes a file and does the round that follows.
func (tr *trial) change(name, text string) {
	tr.t.Helper()
	tr.write(name, text)
	tr.follow(tr.t.Context())
}
