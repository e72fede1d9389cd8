package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/internal/config"
)

// policyBound is one bound of a topic: how it is written, and where it is in what the host takes and answers.
type policyBound struct {
	name, about string
	set         func(c *wire.PolicyChange, text string) (want string) // "" if the text is right
	show        func(v *wire.PolicyView) (value, source string)       // value is "" for none
}

// flag returns the name of the bound's flag.
func (b policyBound) flag() string { return strings.ReplaceAll(b.name, "_", "-") }

// policyBounds are in the order in which they are shown.
func policyBounds() []policyBound {
	type (
		c = wire.PolicyChange
		v = wire.PolicyView
	)
	return []policyBound{
		countBound("max_depth", "messages that are not yet settled",
			func(c *c) **int64 { return &c.MaxDepth }, func(v *v) wire.PolicyValue { return v.MaxDepth }),
		countBound("max_rate_per_sec", "messages published in a second",
			func(c *c) **int64 { return &c.MaxRatePerSec }, func(v *v) wire.PolicyValue { return v.MaxRatePerSec }),
		sizeBound("max_message_bytes", "size of one payload, as 256KiB",
			func(c *c) **int64 { return &c.MaxMessageBytes }, func(v *v) wire.PolicyValue { return v.MaxMessageBytes }),
		countBound("max_unflushed", "publishes and acknowledgements answered before they are on disk:\n"+
			"a crash of the machine may lose them, one of the process not; 0 is none",
			func(c *c) **int64 { return &c.MaxUnflushed }, func(v *v) wire.PolicyValue { return v.MaxUnflushed }),
		countBound("max_priority", "the highest priority of a message",
			func(c *c) **int64 { return &c.MaxPriority }, func(v *v) wire.PolicyValue { return v.MaxPriority }),
		timeBound("idempotency_window", "how long an idempotency key counts, as 1h; 0s lets none count",
			func(c *c) **string { return &c.IdempotencyWindow }, func(v *v) wire.PolicyTime { return v.IdempotencyWindow }),
		timeBound("retention", "age from which messages are taken from groups that have not met them, as 72h",
			func(c *c) **string { return &c.Retention }, func(v *v) wire.PolicyTime { return v.Retention }),
		sizeBound("retention_bytes", "size of the payloads that groups may keep stored, as 10GiB",
			func(c *c) **int64 { return &c.RetentionBytes }, func(v *v) wire.PolicyValue { return v.RetentionBytes }),
		timeBound("keep", "how long a message stays after all are done with it, as 1h",
			func(c *c) **string { return &c.Keep }, func(v *v) wire.PolicyTime { return v.Keep }),
		timeBound("max_age", "how old a message with a signed context may be when it is delivered, as 48h",
			func(c *c) **string { return &c.MaxAge }, func(v *v) wire.PolicyTime { return v.MaxAge }),
	}
}

func numberBound(
	name, about, want string, parse func(string) (int64, error), format func(int64) string,
	field func(*wire.PolicyChange) **int64, value func(*wire.PolicyView) wire.PolicyValue,
) policyBound {
	return policyBound{
		name: name, about: about,
		set: func(c *wire.PolicyChange, text string) string {
			n, err := parse(text)
			if err != nil {
				return want
			}
			*field(c) = &n
			return ""
		},
		show: func(v *wire.PolicyView) (string, string) {
			is := value(v)
			if is.Value == nil {
				return "", is.Source
			}
			return format(*is.Value), is.Source
		},
	}
}

func countBound(name, about string, field func(*wire.PolicyChange) **int64, value func(*wire.PolicyView) wire.PolicyValue) policyBound {
	parse := func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }
	format := func(n int64) string { return strconv.FormatInt(n, 10) }
	return numberBound(name, about, "a whole number", parse, format, field, value)
}

func sizeBound(name, about string, field func(*wire.PolicyChange) **int64, value func(*wire.PolicyView) wire.PolicyValue) policyBound {
	return numberBound(name, about, "a size such as 64KiB, 10MiB or 1GiB", config.ParseSize, config.FormatSize, field, value)
}

func timeBound(name, about string, field func(*wire.PolicyChange) **string, value func(*wire.PolicyView) wire.PolicyTime) policyBound {
	return policyBound{
		name: name, about: about,
		set: func(c *wire.PolicyChange, text string) string {
			if _, err := time.ParseDuration(text); err != nil {
				return "a duration such as 90s, 15m or 24h"
			}
			*field(c) = &text
			return ""
		},
		show: func(v *wire.PolicyView) (string, string) {
			is := value(v)
			if is.Value == nil {
				return "", is.Source
			}
			return *is.Value, is.Source
		},
	}
}

// parseChange reads what is to be set, each as BOUND=VALUE.
func parseChange(given []string) (wire.PolicyChange, error) {
	var change wire.PolicyChange
	if len(given) == 0 {
		return change, fmt.Errorf("nothing to set; give what, as max_depth=1000. There are %s", boundNames())
	}
	bounds, seen := policyBounds(), map[string]bool{}
	for _, s := range given {
		name, text, ok := strings.Cut(s, "=")
		name = strings.ReplaceAll(name, "-", "_")
		i := slices.IndexFunc(bounds, func(b policyBound) bool { return b.name == name })
		switch {
		case !ok:
			return change, fmt.Errorf("%.60q: want BOUND=VALUE, as keep=1h", s)
		case i < 0:
			return change, fmt.Errorf("%.60q is no bound of a topic: there are %s", name, boundNames())
		case seen[name]:
			return change, fmt.Errorf("%s is given twice", name)
		}
		seen[name] = true
		if want := bounds[i].set(&change, text); want != "" {
			return change, fmt.Errorf("%s %.60q: want %s", name, text, want)
		}
	}
	return change, nil
}

func boundNames() string {
	var names []string
	for _, b := range policyBounds() {
		names = append(names, b.name)
	}
	return strings.Join(names, ", ")
}

// boundsHelp lists the bounds.
func boundsHelp() string {
	var out strings.Builder
	for _, b := range policyBounds() {
		fmt.Fprintf(&out, "  %-18s  %s\n", b.name, strings.ReplaceAll(b.about, "\n", "\n"+strings.Repeat(" ", 22)))
	}
	return out.String()
}
