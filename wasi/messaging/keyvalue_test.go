package messaging

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// shelf is a Store with one bucket, "stock", that lists two keys at a time.
type shelf map[string]string

func (s shelf) Open(bucket string) *StoreError {
	switch bucket {
	case "stock":
		return nil
	case "secret":
		return &StoreError{Case: StoreAccessDenied}
	}
	return &StoreError{Case: NoSuchStore}
}

func (s shelf) Get(_, key string) ([]byte, bool, *StoreError) {
	if key == "broken" {
		return nil, false, &StoreError{Case: StoreOther, Text: "it is broken"}
	}
	v, found := s[key]
	return []byte(v), found, nil
}

func (s shelf) Set(_, key string, value []byte) *StoreError {
	s[key] = string(value)
	return nil
}

func (s shelf) Delete(_, key string) *StoreError {
	delete(s, key)
	return nil
}

func (s shelf) List(_ context.Context, _, after string) (keys []string, more bool, err *StoreError) {
	for _, key := range slices.Sorted(maps.Keys(s)) {
		switch {
		case key <= after:
		case len(keys) == 2:
			return keys, true, nil
		default:
			keys = append(keys, key)
		}
	}
	return keys, false, nil
}

const importStore = "wasi:keyvalue/store@0.2.0-draft"

// stored calls a function of the store whose result has its payload at an offset. It returns where that is, or the error.
func (p *puppet) stored(payload uint32, name string, args ...uint32) (at uint32, failure string) {
	return p.storedIn(importStore, payload, name, args...)
}

func (p *puppet) storedIn(module string, payload uint32, name string, args ...uint32) (at uint32, failure string) {
	ret := p.bump(8, 40)
	p.call(module, name, append(args, ret)...)
	at = ret + payload
	if p.word(ret)&0xff == 0 {
		return at, ""
	}
	err := StoreError{Case: StoreCase(p.word(at) & 0xff)}
	if err.Case == StoreOther {
		err.Text = p.list(at + 4)
	}
	return 0, err.Error()
}

func (p *puppet) openBucket(name string) (handle uint32, failure string) {
	ptr, n := p.text(name)
	at, failure := p.stored(4, "open", ptr, n)
	if failure != "" {
		return 0, failure
	}
	return p.word(at), ""
}

// get returns a value, or "none", or the error.
func (p *puppet) get(bucket uint32, key string) string {
	ptr, n := p.text(key)
	at, failure := p.stored(4, "[method]bucket.get", bucket, ptr, n)
	switch {
	case failure != "":
		return failure
	case p.word(at)&0xff == 0:
		return "none"
	}
	return "some " + p.list(at+4)
}

func (p *puppet) set(bucket uint32, key, value string) string {
	k, kn := p.text(key)
	v, vn := p.text(value)
	_, failure := p.stored(4, "[method]bucket.set", bucket, k, kn, v, vn)
	return failure
}

// texts reads a list of strings.
func (p *puppet) texts(at uint32) (all []string) {
	for i := range p.word(at + 4) {
		all = append(all, p.list(p.word(at)+8*i))
	}
	return all
}

func TestKeyvalue(t *testing.T) {
	run := func(t *testing.T, as role, s Store, guest func(p *puppet)) error {
		t.Helper()
		p := newPuppetAs(t, as)
		p.handle = func(uint32) uint32 { guest(p); return p.ok() }
		_, err := p.run(testCall(func(o *CallOptions) { o.Store = s }))
		return err
	}
	t.Run("ValuesAreReadAndWritten", func(t *testing.T) {
		for _, names := range []*mangling{&legacy, &standard32} {
			s := shelf{"apples": "3", "empty": ""}
			require.NoError(t, run(t, role{names: names}, s, func(p *puppet) {
				b, failure := p.openBucket("stock")
				require.Empty(t, failure)
				require.Equal(t, "some 3", p.get(b, "apples"))
				require.Equal(t, "some ", p.get(b, "empty"))
				require.Equal(t, "none", p.get(b, "pears"))
				require.Empty(t, p.set(b, "pears", "4\x00\xff"))
				require.Equal(t, "some 4\x00\xff", p.get(b, "pears"))
				k, n := p.text("apples")
				_, failure = p.stored(4, "[method]bucket.delete", b, k, n)
				require.Empty(t, failure)
				at, _ := p.stored(4, "[method]bucket.exists", b, k, n)
				require.Zero(t, p.word(at)&0xff)
				k, n = p.text("pears")
				at, _ = p.stored(4, "[method]bucket.exists", b, k, n)
				require.EqualValues(t, 1, p.word(at)&0xff)
				p.call(importStore, "[resource-drop]bucket", b)
			}))
			require.Equal(t, shelf{"empty": "", "pears": "4\x00\xff"}, s)
		}
	})
	t.Run("ErrorsAreTold", func(t *testing.T) {
		require.NoError(t, run(t, role{}, shelf{}, func(p *puppet) {
			_, failure := p.openBucket("secret")
			require.Equal(t, "access-denied", failure)
			_, failure = p.openBucket("none")
			require.Equal(t, "no-such-store", failure)
			b, _ := p.openBucket("stock")
			require.Equal(t, "other: it is broken", p.get(b, "broken"))
		}))
	})
	t.Run("WithoutAStoreAllIsDenied", func(t *testing.T) {
		require.NoError(t, run(t, role{}, nil, func(p *puppet) {
			_, failure := p.openBucket("stock")
			require.Equal(t, "access-denied", failure)
		}))
	})
	t.Run("KeysComeInPages", func(t *testing.T) {
		require.NoError(t, run(t, role{}, shelf{"a": "", "b": "", "c": "", "d": "", "e": ""}, func(p *puppet) {
			b, _ := p.openBucket("stock")
			list := p.module.ExportedFunction(importStore + "#[method]bucket.list-keys")
			page := func(some, cursor uint64) (keys []string, next uint64, failure string) {
				ret := p.bump(8, 40)
				require.NoError(t, list.CallWithStack(p.ctx, []uint64{uint64(b), some, cursor, uint64(ret)}))
				at := ret + 8
				if p.word(ret)&0xff != 0 {
					return nil, 0, p.list(at + 4)
				}
				if p.word(at+8)&0xff == 1 {
					next = uint64(p.word(at+16)) | uint64(p.word(at+20))<<32
				}
				return p.texts(at), next, ""
			}
			one, next, _ := page(0, 0)
			require.Equal(t, []string{"a", "b"}, one)
			two, after, _ := page(1, next)
			require.Equal(t, []string{"c", "d"}, two)
			three, end, _ := page(1, after)
			require.Equal(t, []string{"e"}, three)
			require.Zero(t, end)
			again, _, _ := page(1, next)
			require.Equal(t, two, again)
			for _, cursor := range []uint64{0, 9, 1 << 63} {
				_, _, failure := page(1, cursor)
				require.Contains(t, failure, fmt.Sprint(cursor))
			}
		}))
	})
	t.Run("KeysComeInPagesInDraft2", func(t *testing.T) {
		require.NoError(t, run(t, role{}, shelf{"a": "", "b": "", "c": ""}, func(p *puppet) {
			module := "wasi:keyvalue/store@0.2.0-draft2"
			ptr, n := p.text("stock")
			at, _ := p.storedIn(module, 4, "open", ptr, n)
			b := p.word(at)
			at, failure := p.storedIn(module, 4, "[method]bucket.list-keys", b, 0, 0, 0)
			require.Empty(t, failure)
			require.Equal(t, []string{"a", "b"}, p.texts(at))
			require.EqualValues(t, 1, p.word(at+8)&0xff)
			at, _ = p.storedIn(module, 4, "[method]bucket.list-keys", b, 1, p.word(at+12), p.word(at+16))
			require.Equal(t, []string{"c"}, p.texts(at))
			require.Zero(t, p.word(at+8)&0xff)
			ptr, n = p.text(strings.Repeat("k", limits.StoredKeyBytes+1))
			_, failure = p.storedIn(module, 4, "[method]bucket.list-keys", b, 1, ptr, n)
			require.Contains(t, failure, "stored key bytes")
		}))
	})
	t.Run("OperationsAndValuesAreBounded", func(t *testing.T) {
		s := shelf{}
		require.NoError(t, run(t, role{}, s, func(p *puppet) {
			b, _ := p.openBucket("stock")
			v := p.bump(1, limits.StoredValueBytes+1)
			k, kn := p.text("k")
			_, failure := p.stored(4, "[method]bucket.set", b, k, kn, v, limits.StoredValueBytes+1)
			require.Contains(t, failure, "stored value bytes")
			_, failure = p.stored(4, "[method]bucket.set", b, k, kn, v, limits.StoredValueBytes)
			require.Empty(t, failure)
			for range limits.StoreOperations - 3 {
				require.Equal(t, "none", p.get(b, "x"))
			}
			require.Contains(t, p.get(b, "x"), "store operations")
		}))
		require.Len(t, s["k"], limits.StoredValueBytes)
	})
	t.Run("WhatIsNoBucketBreaksTheABI", func(t *testing.T) {
		for name, guest := range map[string]func(p *puppet){
			"Client": func(p *puppet) { p.get(p.connect(), "k") },
			"Dropped": func(p *puppet) {
				b, _ := p.openBucket("stock")
				p.call(importStore, "[resource-drop]bucket", b)
				p.get(b, "k")
			},
			"Case":   func(p *puppet) { b, _ := p.openBucket("stock"); p.stored(8, "[method]bucket.list-keys", b, 2, 0) },
			"Memory": func(p *puppet) { b, _ := p.openBucket("stock"); p.stored(4, "[method]bucket.get", b, 1<<31, 9) },
			"UTF8":   func(p *puppet) { b, _ := p.openBucket("stock"); p.get(b, "\xff") },
		} {
			abi := new(ABIError)
			require.ErrorAs(t, run(t, role{}, shelf{}, guest), &abi, name)
		}
	})
}
