package config

import (
	"fmt"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/longshore/longshore/limits"
)

// Instances says in which instance of its module a consumer's message runs.
type Instances struct {
	// Reuse lets an instance keep what one message left in it for the next, for so many messages, until that age.
	Reuse       bool
	MaxMessages int64         // limits.ReuseMessages unless set
	MaxAge      time.Duration // limits.ReuseAge unless set
	WarmUp      string        // exported function that is run once after initialisation; "" for the SDK's, if there is one
}

// Bounds of an instance that is reused.
const (
	maxReuseMessages = 1_000_000_000
	maxReuseAge      = 24 * time.Hour
)

// exportName is the name of a module's export.
type exportName string

// JSONSchema describes the name of an export.
func (exportName) JSONSchema() *jsonschema.Schema {
	return text(`^[^\x00-\x1f\x7f]+$`, limits.KeyBytes, "the name of an exported function")
}

// reuseFile is what bounds an instance that is reused.
type reuseFile struct {
	Messages *int64    `json:"messages,omitempty" jsonschema_description:"Messages of one instance. Default: 1000."`
	Age      *duration `json:"age,omitempty" jsonschema_description:"Age up to which an instance is given another message. Default: 10m."`
}

// JSONSchemaExtend puts the bounds of the number into the schema.
func (reuseFile) JSONSchemaExtend(s *jsonschema.Schema) {
	extendInteger(s, "messages", 1, maxReuseMessages)
}

// instances resolves what an entry says of its instances.
func (p *planner) instances(path string, f *consumerFile) Instances {
	i := Instances{
		Reuse: f.Instance == "reuse", MaxMessages: limits.ReuseMessages, MaxAge: limits.ReuseAge, WarmUp: string(f.WarmUp),
	}
	if f.Reuse == nil {
		return i
	}
	if !i.Reuse && p.sound(path+".instance") {
		p.add(path+".reuse", "it bounds instances that are reused, and these are not", "want instance: reuse beside it")
	}
	if f.Reuse.Messages != nil {
		i.MaxMessages = *f.Reuse.Messages
	}
	if f.Reuse.Age != nil {
		i.MaxAge = time.Duration(*f.Reuse.Age)
		if i.MaxAge < time.Millisecond || i.MaxAge > maxReuseAge {
			p.add(path+".reuse.age", FormatDuration(i.MaxAge)+" is out of bounds",
				fmt.Sprintf("want %s to %s", FormatDuration(time.Millisecond), FormatDuration(maxReuseAge)))
		}
	}
	return i
}
