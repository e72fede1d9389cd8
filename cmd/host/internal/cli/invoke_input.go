package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
)

// otherNames are flags that mean a key of limits besides the one that is called like it.
func otherNames() map[string]string { return map[string]string{"call_time": "timeout"} }

// flagOf returns the name of a flag for a key.
func flagOf(key string) string { return strings.ReplaceAll(key, "_", "-") }

// addLimitFlags adds a flag for each key of a manifest's limits.
func addLimitFlags(cmd *cobra.Command) {
	for _, k := range config.LimitKeys() {
		about := fmt.Sprintf("%s (default: %s; at most %s)", k.About, k.Default, k.Ceiling)
		if other, ok := otherNames()[k.Key]; ok {
			about += "; --" + other + " is the same"
			cmd.Flags().String(other, "", about)
			_ = cmd.Flags().MarkHidden(other) // fails for flags that aren't there
		}
		cmd.Flags().String(flagOf(k.Key), "", about)
	}
}

// takeLimits notes which limits were given.
func (f *invokeFlags) takeLimits(cmd *cobra.Command) error {
	f.trial.Limits = map[string]config.Flag{}
	for _, k := range config.LimitKeys() {
		for _, name := range []string{flagOf(k.Key), otherNames()[k.Key]} {
			flag := cmd.Flags().Lookup(name)
			if flag == nil || !flag.Changed {
				continue
			}
			if first, twice := f.trial.Limits[k.Key]; twice {
				return usage(fmt.Errorf("%s and --%s are the same; give one of them", first.Name, name))
			}
			f.trial.Limits[k.Key] = config.Flag{Name: "--" + name, Text: flag.Value.String()}
		}
	}
	return nil
}

// trialMessage makes the message that the flags describe.
func (c *command) trialMessage(ctx context.Context, t *config.Trial, f invokeFlags) (substrate.Message, error) {
	pairs, err := parsePairs(f.metadata)
	if err != nil {
		return substrate.Message{}, err
	}
	m := substrate.Message{Tenant: t.Tenant, Topic: t.Topic, ContentType: f.contentType}
	for _, p := range append(pairs, wire.Pair{Key: "--content-type", Value: f.contentType}) {
		if !utf8.ValidString(p.Key) || !utf8.ValidString(p.Value) {
			return substrate.Message{}, usage(fmt.Errorf("%q: not UTF-8", p.Key+"="+p.Value))
		}
	}
	for _, p := range pairs {
		m.Metadata = append(m.Metadata, substrate.Pair(p))
	}
	payloads, err := untilDone(ctx, func() ([][]byte, error) { return c.payloads(f.payload) })
	if err != nil {
		return substrate.Message{}, err
	}
	m.Payload = payloads[0]
	if err := substrate.ValidMessage(m); err != nil {
		return substrate.Message{}, usage(fmt.Errorf("the message: %w", err))
	}
	return m, nil
}

// errStopped says that the command was told to stop before it was done.
var errStopped = errors.New("stopped before it was done")

// untilDone returns what read does, or errStopped once ctx ends. A read that waits for a terminal or a pipe can't be
// interrupted: it is left behind, and ends with the process, which has nothing else to do then.
func untilDone[T any](ctx context.Context, read func() (T, error)) (value T, err error) {
	done := make(chan struct{})
	var got T
	var failed error
	go func() {
		defer close(done)
		got, failed = read()
	}()
	select {
	case <-done:
		return got, failed
	case <-ctx.Done():
		return value, errStopped
	}
}

// readTrialModule reads a module, no further than one may be long.
func readTrialModule(name string) (wasm []byte, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, usage(err)
	}
	if !info.Mode().IsRegular() { // before opening it: to open a pipe would block
		return nil, usage(fmt.Errorf("%s is no regular file; want a WebAssembly module", name))
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, usage(err)
	}
	defer func() { _ = file.Close() }() // opened to read only
	wasm, err = io.ReadAll(io.LimitReader(file, limits.GuestModuleBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the module: %w", err)
	}
	if err := limits.Check("module bytes", max(info.Size(), int64(len(wasm))), limits.GuestModuleBytes); err != nil {
		return nil, &refusedModule{name, &runtime.ModuleError{Module: name, Stage: runtime.StageDecode, Err: err}}
	}
	return wasm, nil
}
