package rollout

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// changes says what a version changes of the one before it, which may be nil: what it adds and changes in the order of the
// manifest, then what it removes.
func changes(before, after *Version) (out []wire.Change) {
	for i := range after.Entries {
		e := &after.Entries[i]
		was := before.entry(e.Name)
		c := wire.Change{Tenant: after.Tenant, Consumer: e.Name, ModuleAfter: e.Module}
		switch {
		case was == nil:
			c.Kind = wire.ChangeAdded
		case was.same(e) && was.Percent == e.Percent:
			continue
		default:
			c.Kind, c.ModuleBefore = wire.ChangeChanged, was.Module
			c.Fields = fields(was.Manifest, e.Manifest)
		}
		if before, after := shareOf(was), shareOf(e); before != after {
			c.Fields = append(c.Fields, wire.FieldChange{Path: "canary.share", Before: before, After: after})
		}
		out = append(out, c)
	}
	if before == nil {
		return out
	}
	for i := range before.Entries {
		if e := &before.Entries[i]; after.entry(e.Name) == nil {
			out = append(out, wire.Change{Tenant: after.Tenant, Consumer: e.Name, Kind: wire.ChangeRemoved, ModuleBefore: e.Module})
		}
	}
	return out
}

// shareOf returns the share of messages that an entry, which may be nil, gets as a canary; "" if it is none.
func shareOf(e *Entry) string {
	if e == nil || e.Percent == 0 {
		return ""
	}
	return strconv.Itoa(e.Percent) + "%"
}

// fields compares two entries key by key.
func fields(before, after json.RawMessage) (out []wire.FieldChange) {
	was, is := map[string]string{}, map[string]string{}
	flatten(was, "", before)
	flatten(is, "", after)
	paths := map[string]bool{}
	for path := range was {
		paths[path] = true
	}
	for path := range is {
		paths[path] = true
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if was[path] != is[path] {
			out = append(out, wire.FieldChange{Path: path, Before: was[path], After: is[path]})
		}
	}
	return out
}

// flatten puts the values of a mapping into a map by their paths, as limits.fuel. Lists are values.
func flatten(into map[string]string, path string, value json.RawMessage) {
	var keys map[string]json.RawMessage
	if json.Unmarshal(value, &keys) != nil || keys == nil {
		var text bytes.Buffer
		if json.Compact(&text, value) == nil {
			into[path] = text.String()
		}
		return
	}
	for key, v := range keys {
		if path != "" {
			key = path + "." + key
		}
		flatten(into, key, v)
	}
}
