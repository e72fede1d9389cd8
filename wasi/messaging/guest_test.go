package messaging

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/longshore/longshore/limits"
)

// A puppet is a real module in which every import is wrapped by an exported function of the same name, and whose
// handler, allocator and post-return are played by Go functions of the test. So a test is a guest written in Go that
// works with real memory and real calls, and can misbehave in any way.
type puppet struct {
	t       *testing.T
	ctx     context.Context // of the call at work
	role    role
	binding *Binding
	module  api.Module
	top     uint32 // of the bump allocator
	handle  func(message uint32) uint32
	// handleAll is given all parameters instead, if it is set.
	handleAll func(params []uint64) uint32
	realloc   func(old, oldSize, align, size uint32) uint32
	post      func(ptr uint32)
}

const puppetPages = 64

// The modules that tests import from, as a puppet's exports name them whatever its mangling.
const (
	importTypes        = ifaceTypes + "@" + draftVersion
	importProducer     = ifaceProducer + "@" + draftVersion
	importRequestReply = ifaceRequestReply + "@" + draftVersion
	importPublisher    = ifacePublisher + "@" + ownVersion
	importDelivery     = ifaceDelivery + "@" + ownVersion
)

// role says as what a puppet is built. The zero value is an incoming-handler of draft C in the legacy mangling.
type role struct {
	draft   Draft
	names   *mangling
	handler handler
}

func (r role) filled() role {
	if r.draft == "" {
		r.draft = DraftC
	}
	if r.names == nil {
		r.names = &legacy
	}
	if r.handler.name == "" {
		r.handler, _ = handlerOf("wasi:messaging/incoming-handler@0.2.0-draft")
	}
	return r
}

// newPuppet instantiates one; tests replace its functions.
func newPuppet(t *testing.T) *puppet {
	t.Helper()
	return newPuppetAs(t, role{})
}

func newPuppetAs(t *testing.T, as role) *puppet {
	t.Helper()
	ctx := t.Context()
	r := wazero.NewRuntime(ctx)
	t.Cleanup(func() { require.NoError(t, r.Close(context.WithoutCancel(ctx))) })
	as = as.filled()
	p := &puppet{t: t, role: as, top: 64 * 1024}
	p.realloc = func(_, _, align, size uint32) uint32 { return p.bump(align, size) }
	b := r.NewHostModuleBuilder("test")
	export := func(name, params, results string, f func(stack []uint64)) {
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, _ api.Module, s []uint64) {
			f(s)
		}), valueTypes(params), valueTypes(results)).Export(name)
	}
	export("handle", as.handler.params, "i", func(s []uint64) {
		if p.handleAll != nil {
			s[0] = uint64(p.handleAll(s))
			return
		}
		s[0] = uint64(p.handle(uint32(s[0])))
	})
	export("realloc", "iiii", "i", func(s []uint64) {
		s[0] = uint64(p.realloc(uint32(s[0]), uint32(s[1]), uint32(s[2]), uint32(s[3])))
	})
	export("post", "i", "", func(s []uint64) {
		if p.post != nil {
			p.post(uint32(s[0]))
		}
	})
	_, err := b.Instantiate(ctx)
	require.NoError(t, err)
	compiled, err := r.CompileModule(ctx, puppetWasm(as))
	require.NoError(t, err)
	p.binding, err = Bind(ctx, r, compiled, BindOptions{Served: []string{"test"}, Draft: as.draft})
	require.NoError(t, err)
	p.module, err = r.InstantiateModule(p.binding.Context(ctx), compiled, wazero.NewModuleConfig().WithName(""))
	require.NoError(t, err)
	return p
}

// run starts c and has the puppet's handler handle its message.
func (p *puppet) run(c *Call) (*GuestError, error) {
	_, refused, err := p.answer(c)
	return refused, err
}

// answer is run, with the answers.
func (p *puppet) answer(c *Call) ([]Answer, *GuestError, error) {
	p.ctx = c.Start(p.t.Context(), p.binding)
	return c.Handle(p.ctx, p.module)
}

// ok is the address of an ok result.
func (p *puppet) ok() uint32 { return p.bytes(4, make([]byte, 16)) }

func (p *puppet) bump(align, size uint32) uint32 {
	ptr := alignUp(p.top, align)
	p.top = ptr + size
	return ptr
}

// bytes stores b at the given alignment.
func (p *puppet) bytes(align uint32, b []byte) uint32 {
	ptr := p.bump(align, uint32(len(b)))
	require.True(p.t, p.module.Memory().Write(ptr, b))
	return ptr
}

// text stores s and returns the pair that passes a string.
func (p *puppet) text(s string) (ptr, n uint32) { return p.bytes(1, []byte(s)), uint32(len(s)) }

// words stores little-endian words.
func (p *puppet) words(w ...uint32) uint32 {
	var b []byte
	for _, v := range w {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return p.bytes(4, b)
}

// word reads a little-endian word.
func (p *puppet) word(ptr uint32) uint32 {
	v, ok := p.module.Memory().ReadUint32Le(ptr)
	require.True(p.t, ok)
	return v
}

// read copies memory.
func (p *puppet) read(ptr, n uint32) string {
	b, ok := p.module.Memory().Read(ptr, n)
	require.True(p.t, ok)
	return string(b)
}

// list reads the list or string whose pointer and length are at ptr.
func (p *puppet) list(ptr uint32) string { return p.read(p.word(ptr), p.word(ptr+4)) }

// call calls an import and returns its result, or 0. It panics with what ended it, as a guest's frames would let it
// through.
func (p *puppet) call(module, name string, args ...uint32) uint32 {
	return uint32(p.call64(module, name, args...))
}

// call64 is call for a result of 64 bits.
func (p *puppet) call64(module, name string, args ...uint32) uint64 {
	stack := make([]uint64, max(len(args), 1))
	for i, a := range args {
		stack[i] = uint64(a)
	}
	f := p.module.ExportedFunction(module + "#" + name)
	if err := f.CallWithStack(p.ctx, stack); err != nil {
		panic(err)
	}
	if len(f.Definition().ResultTypes()) == 0 {
		return 0
	}
	return stack[0]
}

// types calls a function of the types interface.
func (p *puppet) types(name string, args ...uint32) uint32 { return p.call(importTypes, name, args...) }

// connect returns a client.
func (p *puppet) connect() uint32 {
	ptr, n := p.text("default")
	ret := p.bump(4, 16)
	p.types("[static]client.connect", ptr, n, ret)
	require.Zero(p.t, p.word(ret), "connect")
	return p.word(ret + 4)
}

// newMessage returns a message with data.
func (p *puppet) newMessage(data string) uint32 {
	ptr, n := p.text(data)
	return p.types("[constructor]message", ptr, n)
}

// send sends a message and returns the case of the error and its text, or -1.
func (p *puppet) send(client uint32, topic string, message uint32) (errorCase int, text string) {
	ptr, n := p.text(topic)
	ret := p.bump(4, 16)
	p.call(importProducer, "send", client, ptr, n, message, ret)
	if p.word(ret)&0xff == 0 {
		return -1, ""
	}
	errorCase = int(p.word(ret+4) & 0xff)
	if errorCase == int(ErrorTimeout) {
		return errorCase, ""
	}
	return errorCase, p.list(ret + 8)
}

// testCall is a call with default limits that admits everything.
func testCall(change func(o *CallOptions)) *Call {
	o := CallOptions{
		Message: Message{Topic: "in", Data: []byte("data")},
		Limits:  limits.DefaultGuest(),
		Admit: func(topic string, _ Message) (Admission, *PublishError) {
			return Admission{ID: "id-" + topic, Token: "token-" + topic}, nil
		},
	}
	o.Limits.CallDuration = time.Minute
	if change != nil {
		change(&o)
	}
	return NewCall(o)
}

// puppetWasm assembles the module.
func puppetWasm(as role) []byte {
	as = as.filled()
	type imported struct {
		module, name, export string
		params, results      string
	}
	var imports []imported
	for _, i := range interfaces() {
		if i.draft != "" && i.draft != as.draft {
			continue
		}
		version := strings.Replace(i.versions[0], "*", "0", 1)
		for _, f := range i.funcs {
			imports = append(imports, imported{
				as.names.module(i.name, version), as.names.importName(f.name), legacy.module(i.name, version) + "#" + f.name,
				f.params, f.results,
			})
		}
	}
	handle := as.names.export(as.handler.iface, as.handler.version, as.handler.name)
	imports = append(imports,
		imported{"test", "handle", handle, as.handler.params, "i"},
		imported{"test", "realloc", as.names.realloc, "iiii", "i"},
		imported{"test", "post", as.names.post(handle), "i", ""})
	var types, imps, funcs, exports, bodies [][]byte
	n := len(imports)
	for i, f := range imports {
		index := leb(uint32(i))
		types = append(types, join([]byte{0x60}, letterTypes(f.params), letterTypes(f.results)))
		imps = append(imps, join(name(f.module), name(f.name), []byte{0}, index))
		funcs = append(funcs, index)
		exports = append(exports, join(name(f.export), []byte{0}, leb(uint32(n+i))))
		body := []byte{0} // no locals
		for p := range f.params {
			body = append(body, 0x20, byte(p)) // local.get
		}
		body = append(join(body, []byte{0x10}, index), 0x0b) // call, end
		bodies = append(bodies, join(leb(uint32(len(body))), body))
	}
	exports = append(exports, join(name(as.names.memory), []byte{2, 0}))
	memory := join([]byte{0}, leb(puppetPages))
	return join([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, types), section(2, imps), section(3, funcs), section(5, [][]byte{memory}), section(7, exports),
		section(10, bodies))
}

func join(parts ...[]byte) (b []byte) {
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

func leb(n uint32) []byte  { return binary.AppendUvarint(nil, uint64(n)) }
func name(s string) []byte { return join(leb(uint32(len(s))), []byte(s)) }
func letterTypes(letters string) []byte {
	return join(leb(uint32(len(letters))), valueTypes(letters))
}

func section(id byte, items [][]byte) []byte {
	body := join(append([][]byte{leb(uint32(len(items)))}, items...)...)
	return join([]byte{id}, leb(uint32(len(body))), body)
}
