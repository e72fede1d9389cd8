package config

import (
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/longshore/longshore/limits"
)

// TrialFlags are what a command line says of a consumer that is run without a manifest: texts, checked like those of an
// entry of the manifest. An empty or nil field is not given.
type TrialFlags struct {
	Tenant      string   // --tenant
	Topic       string   // --topic
	Publish     []string // --publish
	PublishMode string   // --publish-mode
	Clients     []string // --client
	Limits      map[string]Flag
}

// Flag is a flag by its name, with the dashes, and its text.
type Flag struct{ Name, Text string }

// Trial is a resolved consumer without a module: every value is set, checked, and within the host's ceilings.
type Trial struct {
	Tenant, Topic    string
	Publish, Clients []string // as those of a Consumer
	Immediate        bool     // likewise
	Guest            limits.Guest
}

// ParseTrial resolves flags under the host's defaults and ceilings. The error is Faults, as those of a manifest but for
// their places, which are the flags. The keys of f.Limits are those of LimitKeys.
func ParseTrial(f TrialFlags, h *Host) (*Trial, error) {
	schema, err := compile(ManifestSchema())
	if err != nil {
		return nil, err
	}
	d := f.document()
	var file manifestFile
	if err := schema.check(d, &file); err != nil {
		return nil, err
	}
	s, entry := &sources{documents: []*document{d}}, &consumerFile{}
	if len(file.Consumers) == 1 && file.Consumers[0] != nil {
		entry = file.Consumers[0]
	}
	t := &Trial{
		Tenant: tenantOf(entry.Tenant), Topic: string(entry.Topic), Publish: texts(entry.Publish), Clients: texts(entry.Clients),
		Immediate: entry.PublishMode == publishImmediate, Guest: resolve(s, trialPath, &entry.deliveryFile, h.Defaults, h.Ceilings.most).Guest,
	}
	if err := s.err(); err != nil {
		return nil, err
	}
	return t, nil
}

// trialPath is the place of the only entry in the document of a trial.
const trialPath = "consumers[0]"

// document returns the flags in the shape of a manifest.
func (f TrialFlags) document() *document {
	d := newDocument("flags")
	entry := map[string]any{"name": "trial", "module": "trial.wasm"}
	d.values[trialPath] = place{name: "--topic"} // all else that is required is there
	give := func(key, text, flag string) {
		if text != "" {
			entry[key] = text
			d.values[join(trialPath, key)] = place{name: flag}
		}
	}
	give("tenant", f.Tenant, "--tenant")
	give("topic", f.Topic, "--topic")
	give("publish_mode", f.PublishMode, "--publish-mode")
	d.giveList(entry, "publish", f.Publish, "--publish")
	d.giveList(entry, "clients", f.Clients, "--client")
	bounds := map[string]any{}
	for key, flag := range f.Limits {
		path := join(join(trialPath, "limits"), key)
		d.values[path] = place{name: flag.Name}
		bounds[key] = d.convertScalar(&yaml.Node{Kind: yaml.ScalarNode, Value: flag.Text}, path, d.values[path])
	}
	entry["limits"] = bounds
	d.root = map[string]any{"consumers": []any{entry}}
	return d
}

// giveList puts a list of an entry into it, each item of which is the text of a flag.
func (d *document) giveList(entry map[string]any, key string, items []string, flag string) {
	if len(items) == 0 {
		return
	}
	list := make([]any, len(items))
	for i, text := range items {
		list[i] = text
	}
	entry[key] = list
	d.values[join(trialPath, key)] = place{name: flag}
}

// LimitKey is one key of limits, in the words and forms of the files.
type LimitKey struct {
	Key     string // as call_time
	About   string // what it bounds
	Default string // if neither the manifest nor the host config says
	Ceiling string // the most that a manifest may ask for if the host config doesn't say
}

// LimitKeys returns the bounds of a call that a manifest can set, in its order.
func LimitKeys() []LimitKey {
	const under = "limits."
	otherwise, most := DefaultDelivery(), DefaultCeilings()
	var keys []LimitKey
	for _, b := range bounds() {
		if strings.HasPrefix(b.path, under) {
			keys = append(keys, LimitKey{
				Key: b.key(), About: aboutLimit(b.key()), Default: b.unit.format(b.get(&otherwise)), Ceiling: b.unit.format(b.get(&most)),
			})
		}
	}
	return keys
}

// aboutLimit returns what the schema says of a key of limits, as part of a sentence.
func aboutLimit(key string) string {
	file := reflect.TypeFor[limitsFile]()
	for i := range file.NumField() {
		tag := file.Field(i).Tag
		if name, _, _ := strings.Cut(tag.Get("json"), ","); name == key {
			text := strings.TrimSuffix(tag.Get("jsonschema_description"), ".")
			return strings.ToLower(text[:1]) + text[1:]
		}
	}
	return ""
}
