package config

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
)

// ParseEntries is ParseManifest for entries as Consumer.Entry has them. name stands for the manifest in faults.
func ParseEntries(name string, entries []json.RawMessage, h *Host) (*Plan, error) {
	data, err := json.Marshal(map[string]any{"consumers": append([]json.RawMessage{}, entries...)})
	if err != nil {
		return nil, fmt.Errorf("%s: encode: %w", name, err)
	}
	return ParseManifest(name, data, h)
}

// Modules returns the entries of a manifest as far as they can be read without a host config: name, tenant, build, module and
// its place. It reports no faults: whoever resolves the manifest does.
func Modules(file string, data []byte) ([]Consumer, error) {
	schema, err := compile(ManifestSchema())
	if err != nil {
		return nil, err
	}
	d := parseDocument(file, data)
	var f manifestFile
	if err := schema.check(d, &f); err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, fmt.Errorf("find the manifest's folder: %w", err)
	}
	var out []Consumer
	for i, entry := range f.Consumers {
		path := fmt.Sprintf("consumers[%d]", i)
		if entry == nil || !d.sound(path+".module") {
			continue
		}
		out = append(out, Consumer{
			Name: string(entry.Name), Tenant: tenantOf(entry.Tenant), Build: texts(entry.Build),
			Module: Module{Dir: folder, Path: string(entry.Module), SHA256: string(entry.SHA256)},
			module: d.placeOf(path, "module"),
			at:     func(key string) Fault { return d.placeOf(path, key) },
		})
	}
	return out, nil
}

// placeOf returns the place of a key of an entry, or that of the entry if it has no such key.
func (d *document) placeOf(entry, key string) Fault {
	path := join(entry, key)
	at, there := d.values[path]
	if !there {
		path = entry
		at = d.values[path]
	}
	return Fault{File: d.file, Line: at.line, Col: at.col, Path: path}
}

// entry returns the value of an entry of consumers as JSON; nil if it isn't sound.
func (d *document) entry(path string) json.RawMessage {
	var i int
	if _, err := fmt.Sscanf(strings.TrimPrefix(path, "consumers"), "[%d]", &i); err != nil {
		return nil
	}
	root, _ := d.root.(map[string]any)
	list, _ := root["consumers"].([]any)
	if i >= len(list) {
		return nil
	}
	text, err := json.Marshal(list[i])
	if err != nil {
		return nil
	}
	return text
}
