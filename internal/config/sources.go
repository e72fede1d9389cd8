package config

import (
	"fmt"
	"strings"

	"github.com/caarlos0/env/v11"
)

// environmentPrefix begins the name of every variable that is a setting.
const environmentPrefix = "LONGSHORE_"

// sources are the documents that one config is made of, weakest first: a later one's value wins.
type sources struct{ documents []*document }

// owner returns the document that gives the value at path, or else the weakest: its absence is the file's fault.
func (s *sources) owner(path string) *document {
	for i := len(s.documents) - 1; i > 0; i-- {
		if _, ok := s.documents[i].values[path]; ok {
			return s.documents[i]
		}
	}
	return s.documents[0]
}

// add reports a fault of the value at path, in the document that gave it.
func (s *sources) add(path, problem, fix string) { s.owner(path).add(path, problem, fix) }

// sound reports whether no document has a fault at path, or at what it lies in.
func (s *sources) sound(path string) bool {
	for _, d := range s.documents {
		if !d.sound(path) {
			return false
		}
	}
	return true
}

// nearer returns the first path if some document has a value there, else the second.
func (s *sources) nearer(first, second string) string {
	for _, d := range s.documents {
		if _, ok := d.values[first]; ok {
			return first
		}
	}
	for _, d := range s.documents {
		if _, ok := d.values[second]; ok {
			return second
		}
	}
	return first
}

// err returns all faults as an error, or nil.
func (s *sources) err() error {
	var all Faults
	for _, d := range s.documents {
		all = append(all, d.faults...)
	}
	return all.err()
}

// override decodes the settings of the environment, and then those of the flags, over the file's.
func (s *sources) override(schema *schema, f *hostFile, o Overrides) error {
	var environment Settings
	options := env.Options{Environment: o.Environment, Prefix: environmentPrefix}
	if options.Environment == nil {
		options.Environment = map[string]string{} // else the process's own would be read
	}
	if err := env.ParseWithOptions(&environment, options); err != nil {
		return fmt.Errorf("read the environment: %w", err)
	}
	for _, layer := range []*document{
		environment.document("environment", func(variable, _ string) string { return environmentPrefix + variable }),
		o.Flags.document("flags", func(_, flag string) string { return "--" + flag }),
	} {
		if err := schema.check(layer, f); err != nil {
			return err
		}
		s.documents = append(s.documents, layer)
	}
	return nil
}

// document returns the settings in the shape of the host config. name chooses what the reader knows a setting by.
func (settings Settings) document(file string, name func(variable, flag string) string) *document {
	listen, log, root := map[string]any{}, map[string]any{}, map[string]any{}
	d := newDocument(file)
	for _, setting := range []struct {
		in                          map[string]any
		path, value, variable, flag string
	}{
		{root, "data", settings.Data, "DATA", "data-dir"},
		{root, "keys", settings.Keys, "KEYS", "keys"},
		{listen, "listen.http", settings.ListenHTTP, "LISTEN_HTTP", "http"},
		{listen, "listen.admin", settings.ListenAdmin, "LISTEN_ADMIN", "socket"},
		{log, "log.level", settings.LogLevel, "LOG_LEVEL", "log-level"},
		{log, "log.format", settings.LogFormat, "LOG_FORMAT", "log-format"},
		{root, "grace", settings.Grace, "GRACE", "grace"},
	} {
		if setting.value != "" {
			setting.in[setting.path[strings.LastIndexByte(setting.path, '.')+1:]] = setting.value
			d.values[setting.path] = place{name: name(setting.variable, setting.flag)}
		}
	}
	root["listen"], root["log"] = listen, log
	d.root = root
	return d
}
