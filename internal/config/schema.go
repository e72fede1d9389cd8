package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	generator "github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/longshore/longshore/limits"
)

// HostSchema returns the JSON Schema (2020-12) of the host config, as text for editors.
func HostSchema() ([]byte, error) { return generate(hostFile{}, "Longshore host config") }

// ManifestSchema returns the JSON Schema (2020-12) of the manifest, as text for editors. The host's ceilings, which also
// bound what a manifest may say, are not in it.
func ManifestSchema() ([]byte, error) { return generate(manifestFile{}, "Longshore manifest") }

// generate makes the schema of a file's Go type.
func generate(file any, title string) ([]byte, error) {
	reflector := generator.Reflector{
		Anonymous:      true, // an id would be an address, and the schema has none
		ExpandedStruct: true,
		Namer:          func(t reflect.Type) string { return strings.TrimSuffix(t.Name(), "File") },
	}
	s := reflector.Reflect(file)
	s.Title = title
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	return append(out, '\n'), nil
}

// extendBounds puts the hard bounds of the whole numbers under a path into the schema of their struct.
func extendBounds(s *generator.Schema, under string) {
	for _, b := range bounds() {
		if strings.TrimSuffix(parent(b.path), ".") == under && b.unit == unitCount {
			extendInteger(s, b.key(), b.min, b.max)
		}
	}
}

func extendInteger(s *generator.Schema, key string, least, most int64) {
	property, ok := s.Properties.Get(key)
	if !ok {
		return
	}
	property.Minimum = json.Number(strconv.FormatInt(least, 10))
	property.Maximum = json.Number(strconv.FormatInt(most, 10))
	property.Title = fmt.Sprintf("a whole number from %d to %d", least, most)
}

// JSONSchemaExtend puts the bounds of a topic's policy into the schema.
func (topicFile) JSONSchemaExtend(s *generator.Schema) {
	extendInteger(s, "max_depth", 1, limits.PolicyMaxDepthCount)
	extendInteger(s, "max_rate_per_sec", 1, limits.PolicyMaxRatePerSec)
	extendInteger(s, "max_unflushed", 0, limits.PolicyMaxUnflushed)
	extendInteger(s, "max_priority", 0, limits.PriorityCeiling)
}

// JSONSchemaExtend puts the bounds of a share into the schema.
func (shareFile) JSONSchemaExtend(s *generator.Schema) {
	extendInteger(s, "weight", 1, limits.FairWeight)
	extendInteger(s, "floor_percent", 0, 100)
}

// JSONSchemaExtend puts the bounds of a batch into the schema.
func (batchFile) JSONSchemaExtend(s *generator.Schema) {
	extendInteger(s, "max", 1, limits.CallMessages)
}

// JSONSchemaExtend puts the bounds of a breaker into the schema.
func (breakerFile) JSONSchemaExtend(s *generator.Schema) {
	extendInteger(s, "percent", 1, 100)
	extendInteger(s, "calls", 1, 1_000_000)
}

// schema is a generated schema, ready to check documents.
type schema struct {
	compiled *validator.Schema
	tree     any // the schema itself, for what it says would be right
}

// compile makes a schema ready. It fails only if the Go types make no valid schema.
func compile(text []byte, err error) (*schema, error) {
	if err != nil {
		return nil, err
	}
	tree, err := validator.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	compiler := validator.NewCompiler()
	compiler.RegisterFormat(&validator.Format{Name: formatDuration, Validate: checkDuration})
	compiler.RegisterFormat(&validator.Format{Name: formatBytes, Validate: checkSize})
	compiler.RegisterFormat(&validator.Format{Name: formatInstant, Validate: checkInstant})
	compiler.AssertFormat()
	const name = "schema.json"
	if err := compiler.AddResource(name, tree); err != nil {
		return nil, fmt.Errorf("take the schema: %w", err)
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("compile the schema: %w", err)
	}
	return &schema{compiled: compiled, tree: tree}, nil
}

// at returns the part of the schema that a fault's location names: the pointer after #.
func (s *schema) at(location string) map[string]any {
	_, pointer, _ := strings.Cut(location, "#")
	at := s.tree
	for _, token := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		if token != "" {
			at = child(at, token)
		}
	}
	part, _ := at.(map[string]any)
	return part
}

// property returns what the schema says of a key of a mapping, following one reference.
func (s *schema) property(of map[string]any, key string) map[string]any {
	properties, _ := of["properties"].(map[string]any)
	part, _ := properties[key].(map[string]any)
	if reference, ok := part["$ref"].(string); ok && part["title"] == nil {
		return s.at(reference)
	}
	return part
}
