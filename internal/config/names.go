package config

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/longshore/longshore/limits"
)

// Texts with a form of their own. Each type describes itself to the schema; its title is what a fault says would be right.
type (
	tenantName   string
	topicName    string
	consumerName string
	groupName    string
	clientName   string
	bucketName   string
	featureName  string
	grant        string
	textPath     string
	modulePath   string
	digest       string
	word         string
	guestFailure string
	issuerName   string
	configValue  string
	canaryShare  string
)

// topicPattern is segments of [A-Za-z0-9._-] joined by '/', none of them empty, "." or "..".
const topicPattern = segmentPattern + `(/` + segmentPattern + `)*`

// segmentPattern is one segment of a topic's name.
const segmentPattern = `([A-Za-z0-9_-]|\.[A-Za-z0-9_-]|\.\.[A-Za-z0-9._-])[A-Za-z0-9._-]*`

func text(pattern string, maxBytes uint64, title string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: pattern, MaxLength: &maxBytes, Title: title}
}

// JSONSchema describes a tenant's name.
func (tenantName) JSONSchema() *jsonschema.Schema {
	return text(`^[a-z0-9-]+$`, limits.TenantBytes, "a tenant's name: 1 to 63 of a-z, 0-9 and -")
}

// JSONSchema describes a topic's name.
func (topicName) JSONSchema() *jsonschema.Schema {
	return text(`^`+topicPattern+`$`, limits.TopicBytes,
		"a topic's name: parts of A-Z, a-z, 0-9, ., _ and - joined by /, at most 200 bytes")
}

// JSONSchema describes a consumer's name.
func (consumerName) JSONSchema() *jsonschema.Schema {
	return text(`^[a-z0-9][a-z0-9-]*$`, limits.TenantBytes, "a consumer's name: 1 to 63 of a-z, 0-9 and -")
}

// JSONSchema describes the name of a consumer group.
func (groupName) JSONSchema() *jsonschema.Schema {
	return text(`^`+segmentPattern+`$`, limits.GroupBytes, "a group's name: 1 to 64 of A-Z, a-z, 0-9, ., _ and -, and not . or ..")
}

// JSONSchema describes a feature that messages may require.
func (featureName) JSONSchema() *jsonschema.Schema {
	return text(`^[A-Za-z0-9._/-]+$`, limits.FeatureBytes, "a feature: 1 to 64 of A-Z, a-z, 0-9, and ._/-")
}

// JSONSchema describes the name of a messaging client.
func (clientName) JSONSchema() *jsonschema.Schema {
	return text(`^[A-Za-z0-9._/-]+$`, limits.KeyBytes, "a client's name: A-Z, a-z, 0-9, ., _, / and -")
}

// JSONSchema describes the name of a bucket.
func (bucketName) JSONSchema() *jsonschema.Schema {
	return text(`^`+segmentPattern+`$`, limits.BucketBytes, "a bucket's name: 1 to 64 of A-Z, a-z, 0-9, ., _ and -, and not . or ..")
}

// JSONSchema describes a grant to publish.
func (grant) JSONSchema() *jsonschema.Schema {
	return text(`^(\*|`+topicPattern+`(/\*)?)$`, limits.TopicBytes, "a topic, a prefix such as orders/*, or *")
}

// JSONSchema describes a path of the host's file system.
func (textPath) JSONSchema() *jsonschema.Schema {
	return text(`^[^\x00-\x1f\x7f]+$`, 4096, "a path")
}

// JSONSchema describes a path inside the manifest's folder. That it doesn't leave the folder is checked beyond the schema.
func (modulePath) JSONSchema() *jsonschema.Schema {
	return text(`^[^\x00-\x1f\x7f\\:]+$`, 1024, "a path relative to the manifest, inside its folder, with / between its parts")
}

// JSONSchema describes a SHA-256.
func (digest) JSONSchema() *jsonschema.Schema {
	return text(`^[0-9a-f]{64}$`, 64, "64 hex digits in lower case")
}

// JSONSchema describes a word of a command.
func (word) JSONSchema() *jsonschema.Schema {
	return text(`^[^\x00]+$`, 4096, "a word")
}

// JSONSchema describes the issuer of signed contexts.
func (issuerName) JSONSchema() *jsonschema.Schema {
	return text(`^[A-Za-z0-9._/:-]+$`, limits.KeyBytes, "a name of A-Z, a-z, 0-9, ., _, :, / and -")
}

// JSONSchema describes a kind of error that a guest returns.
func (guestFailure) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Enum: []any{"timeout", "connection", "permission-denied", "other"}}
}

// JSONSchema describes a value that a guest reads.
func (configValue) JSONSchema() *jsonschema.Schema {
	return text(`^[^\x00]*$`, 4096, "a text of at most 4096 characters; quote a number or a word such as true")
}

// JSONSchema describes a share of messages.
func (canaryShare) JSONSchema() *jsonschema.Schema {
	return text(`^[1-9][0-9]?%$`, 3, "a share of 1% to 99%")
}

// percent returns the number; 0 of none.
func (s canaryShare) percent() int {
	n, err := strconv.Atoi(strings.TrimSuffix(string(s), "%"))
	if err != nil {
		return 0
	}
	return n
}

// in returns the path relative to a folder, unless it is empty or absolute.
func (p textPath) in(folder string) textPath {
	if p == "" || filepath.IsAbs(string(p)) {
		return p
	}
	return textPath(filepath.Join(folder, string(p)))
}
