package messaging

import (
	"fmt"

	"github.com/longshore/longshore/limits"
)

// handles is the resource table of one call. Handle 0 never exists, so that a forgotten one is noticed.
type handles struct {
	entries []any // by handle; nil = free
	free    []uint32
}

// add gives v a handle. Too many live ones end the call with *limits.Error.
func (t *handles) add(v any) uint32 {
	if n := len(t.free); n > 0 {
		h := t.free[n-1]
		t.free = t.free[:n-1]
		t.entries[h] = v
		return h
	}
	if len(t.entries) == 0 {
		t.entries = make([]any, 1, 8)
	}
	if err := limits.Check(limits.NameHandles, int64(len(t.entries)), limits.HandlesPerCall); err != nil {
		panic(err)
	}
	t.entries = append(t.entries, v)
	return uint32(len(t.entries) - 1)
}

// remove frees a handle that lookup found.
func (t *handles) remove(h uint32) {
	t.entries[h] = nil
	t.free = append(t.free, h)
}

// lookup returns the resource that h stands for. A handle that is unknown or of another type breaks the ABI.
func lookup[T any](t *handles, h uint32) T {
	if int64(h) < int64(len(t.entries)) {
		if v, ok := t.entries[h].(T); ok {
			return v
		}
	}
	if v, ok := standing(h).(T); ok {
		return v
	}
	var want T
	panic(&ABIError{Problem: fmt.Sprintf("handle %d is not a %s of this call", h, resourceName(want))})
}

// client is the resource client.
type client struct{ disconnected bool }

// message is the resource message. held is what it counts for in Call.held.
type message struct {
	Message
	held int64
}

func resourceName(v any) string {
	switch v.(type) {
	case *client:
		return "client"
	case *message:
		return "message"
	case *bucket:
		return "bucket"
	case *requestOptions:
		return "request-options"
	case *pollable:
		return "pollable"
	case inputStream:
		return "input-stream"
	case outputStream:
		return "output-stream"
	}
	return "resource"
}
