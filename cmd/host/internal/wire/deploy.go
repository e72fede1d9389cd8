package wire

import "time"

// Apply asks for a manifest to become what runs. The host reads no files for it: modules are uploaded before.
type Apply struct {
	File     string            `json:"file,omitempty" maxLength:"255" doc:"what faults call the manifest"`
	Manifest string            `json:"manifest" doc:"the manifest, as YAML"`
	Modules  map[string]string `json:"modules" doc:"SHA-256 of each module, by its path in the manifest"`
	DryRun   bool              `json:"dry_run,omitempty" doc:"check and compile everything, change nothing"`
}

// Rollback asks for an earlier version to run again, as a new version.
type Rollback struct {
	Version int `json:"version,omitempty" minimum:"0" doc:"0 is the last one that ran something else"`
}

// Promote asks for canaries to get all messages.
type Promote struct {
	Consumer string `json:"consumer,omitempty" doc:"whose; none is all"`
}

// Deployed says what a deployment came to, or would come to.
type Deployed struct {
	Tag      string    `json:"-"` // names what runs; it travels as the header ETag
	Versions []Version `json:"versions" doc:"what runs now, of each tenant that it is about"`
	Changes  []Change  `json:"changes"`
}

// Version is a version of a tenant's consumers.
type Version struct {
	Tenant    string             `json:"tenant"`
	Version   int                `json:"version"`
	Digest    string             `json:"digest" doc:"of all that it runs"`
	At        time.Time          `json:"at"`
	By        string             `json:"by"`
	What      string             `json:"what"`
	Runs      bool               `json:"runs"`
	Consumers []DeployedConsumer `json:"consumers"`
}

// DeployedConsumer is a consumer of a version.
type DeployedConsumer struct {
	Name   string `json:"name"`
	Module string `json:"module" doc:"SHA-256"`
	Since  int    `json:"since" doc:"version in which it became what it is; receipts carry it"`
	// CanaryPercent of the messages are this version's, and the others those of the one before it; 0 is all.
	CanaryPercent int `json:"canary_percent,omitempty"`
}

// VersionList is the history of a tenant, newest first.
type VersionList struct {
	Tag      string    `json:"-"` // names what runs; it travels as the header ETag
	Versions []Version `json:"versions"`
}

// Kinds of changes.
const (
	ChangeAdded   = "added"
	ChangeChanged = "changed"
	ChangeRemoved = "removed"
)

// Change is what becomes of one consumer.
type Change struct {
	Tenant       string        `json:"tenant"`
	Consumer     string        `json:"consumer"`
	Kind         string        `json:"kind" enum:"added,changed,removed"`
	ModuleBefore string        `json:"module_before,omitempty"`
	ModuleAfter  string        `json:"module_after,omitempty"`
	Fields       []FieldChange `json:"fields,omitempty"`
}

// FieldChange is one key of a manifest's entry that has another value. Values are JSON; "" is none.
type FieldChange struct {
	Path   string `json:"path"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// ModuleContentType is the media type of a module.
const ModuleContentType = "application/wasm"

// Modules names modules by their SHA-256.
type Modules struct {
	SHA256 []string `json:"sha256" maxItems:"1000"`
}
