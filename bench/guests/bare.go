package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/longshore/longshore/guests"
)

//go:embed testdata
var sources embed.FS

// bare runs testdata/bare.c with wazero as it comes.
type bare struct {
	runtime wazero.Runtime
	run     api.Function

	taken []taken
}

// taken is a message that the host took, and has until the guest is done.
type taken struct {
	topic string
	data  []byte
}

func newBare(ctx context.Context) (b *bare, err error) {
	wasm, err := build(ctx, "bare.c")
	if err != nil {
		return nil, err
	}
	b = &bare{runtime: wazero.NewRuntime(ctx)}
	i32 := api.ValueTypeI32
	take := api.GoModuleFunc(func(_ context.Context, m api.Module, stack []uint64) {
		topic, _ := m.Memory().Read(api.DecodeU32(stack[0]), api.DecodeU32(stack[1]))
		data, _ := m.Memory().Read(api.DecodeU32(stack[2]), api.DecodeU32(stack[3]))
		b.taken = append(b.taken, taken{string(topic), bytes.Clone(data)})
		m.Memory().WriteString(api.DecodeU32(stack[4]), id)
	})
	builder := b.runtime.NewHostModuleBuilder("bench").NewFunctionBuilder().
		WithGoModuleFunction(take, []api.ValueType{i32, i32, i32, i32, i32}, nil).Export("take")
	if _, err := builder.Instantiate(ctx); err != nil {
		return nil, errors.Join(err, b.runtime.Close(ctx))
	}
	m, err := b.runtime.Instantiate(ctx, wasm)
	if err != nil {
		return nil, errors.Join(err, b.runtime.Close(ctx))
	}
	b.run = m.ExportedFunction("run")
	return b, nil
}

// call has the guest hand over the messages of n batches, one by one.
func (b *bare) call(ctx context.Context, n int) error {
	b.taken = make([]taken, 0, n*perBatch)
	if _, err := b.run.Call(ctx, uint64(n)); err != nil {
		return err
	}
	if got := len(b.taken); got != n*perBatch {
		return fmt.Errorf("the host took %d messages: want %d", got, n*perBatch)
	}
	return nil
}

// build compiles a guest of testdata with clang, beside the SDK for C.
func build(ctx context.Context, name string) (wasm []byte, err error) {
	dir, err := os.MkdirTemp("", "longshore-bench")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := errors.Join(os.CopyFS(dir, sources), os.CopyFS(dir, guests.SDKs)); err != nil {
		return nil, err
	}
	out := filepath.Join(dir, "guest.wasm")
	cmd := exec.CommandContext(ctx, "clang", "--target=wasm32", "-O2", "-mbulk-memory", "-ffreestanding", "-nostdlib", "-I", "c", //nolint:gosec // the arguments are ours
		"-Wl,--no-entry,--strip-all,--stack-first", "-o", out, filepath.Join("testdata", name))
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building guests needs clang and wasm-ld: %w\n%s", err, text)
	}
	return os.ReadFile(out)
}
