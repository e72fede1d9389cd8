package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Version is what runs of one tenant. It is not changed after it was made.
type Version struct {
	Tenant string    `json:"tenant"`
	Number int       `json:"version"` // from 1
	At     time.Time `json:"at"`
	By     string    `json:"by"` // subject of whoever made it
	What   string    `json:"what"`
	// Whole says that it is part of a manifest for the whole host: the next such manifest takes its consumers away unless it
	// names them.
	Whole   bool    `json:"whole"`
	Entries []Entry `json:"consumers"` // in the order of the manifest
}

// Entry is one consumer of a Version.
type Entry struct {
	Name     string          `json:"name"`
	Since    int             `json:"since"`  // version in which it became what it is
	Module   string          `json:"module"` // SHA-256 of its module
	Manifest json.RawMessage `json:"entry"`  // as the manifest has it
	// Accepted is when it was deployed that a group which begins with the latest begins there.
	Accepted time.Time `json:"accepted"`
	// Percent of the messages that it gets, beside Base, which gets the others; 0 is all.
	Percent int    `json:"canary_percent,omitempty"`
	Base    *Entry `json:"canary_base,omitempty"`
}

// Digest names what a version runs, by its content.
func (v *Version) Digest() string {
	h := sha256.New()
	for i := range v.Entries {
		for e := &v.Entries[i]; e != nil; e = e.Base {
			_, _ = fmt.Fprintf(h, "%d\n%s\n%s\n%d\n", len(e.Manifest), e.Module, e.Manifest, e.Percent) // a hash takes everything
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// modules returns the digests of all modules of a version.
func (v *Version) modules() (out []string) {
	for i := range v.Entries {
		for e := &v.Entries[i]; e != nil; e = e.Base {
			out = append(out, e.Module)
		}
	}
	return out
}

// entry returns the entry of a name, or nil. v may be nil.
func (v *Version) entry(name string) *Entry {
	if v == nil {
		return nil
	}
	for i := range v.Entries {
		if v.Entries[i].Name == name {
			return &v.Entries[i]
		}
	}
	return nil
}

// number returns the number of a version; 0 of none.
func (v *Version) number() int {
	if v == nil {
		return 0
	}
	return v.Number
}

// newEntry makes an entry of what a manifest has. What only says where the module came from, or how to get there, is left out,
// so that the same consumer is the same entry wherever it was built and however it was deployed.
func newEntry(name, module string, manifest json.RawMessage, percent int) (Entry, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(manifest, &keys); err != nil {
		return Entry{}, fmt.Errorf("consumer %s: %w", name, err)
	}
	delete(keys, "build")
	delete(keys, "sha256")
	delete(keys, "canary")
	delete(keys, "tenant") // the version has it
	keys["module"] = json.RawMessage(`"module.wasm"`)
	text, err := json.Marshal(keys)
	if err != nil {
		return Entry{}, fmt.Errorf("consumer %s: %w", name, err)
	}
	return Entry{Name: name, Module: module, Manifest: text, Percent: percent}, nil
}

// resolvable returns the entry as a manifest of all tenants has it.
func (e *Entry) resolvable(tenant string) (json.RawMessage, error) {
	var keys map[string]any
	if err := json.Unmarshal(e.Manifest, &keys); err != nil {
		return nil, fmt.Errorf("consumer %s of tenant %s: %w", e.Name, tenant, err)
	}
	keys["tenant"] = tenant
	return json.Marshal(keys)
}

// same reports whether two entries, of which either may be nil, run the same in the same way.
func (e *Entry) same(other *Entry) bool {
	return e != nil && other != nil && e.Module == other.Module && string(e.Manifest) == string(other.Manifest)
}

// settle says how an entry that is to be deployed relates to what runs under its name, which may be nil.
func (e *Entry) settle(was *Entry, v *Version) {
	if was.same(e) {
		e.Since, e.Accepted = was.Since, was.Accepted
		if e.Base = was.Base; e.Percent == 0 || e.Base == nil { // promoted, or nothing to promote
			e.Percent, e.Base = 0, nil
		}
		return
	}
	e.Since, e.Accepted = v.Number, v.At
	if e.Base = nil; e.Percent == 0 || was == nil {
		e.Percent = 0
		return
	}
	e.Base = was
	if was.Base != nil {
		e.Base = was.Base // a canary that wasn't promoted is given up for the next one
	}
}

// decodeVersion reads a version and checks that it is the one that its place says.
func decodeVersion(data []byte, tenant string, number int) (*Version, error) {
	v := &Version{}
	if err := json.Unmarshal(data, v); err != nil {
		return nil, err
	}
	if v.Tenant != tenant || v.Number != number {
		return nil, errors.New("it is another version than its name says")
	}
	for _, digest := range v.modules() {
		if !isDigest(digest) {
			return nil, fmt.Errorf("%.80q is no module", digest)
		}
	}
	return v, nil
}

// isDigest reports whether s is a SHA-256 in lower-case hex.
func isDigest(s string) bool {
	sum, err := hex.DecodeString(s)
	return err == nil && len(sum) == sha256.Size && hex.EncodeToString(sum) == s
}
