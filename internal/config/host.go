package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/longshore/longshore/limits"
)

// Host is the resolved host config: every value is set, checked, and within its bounds. It is not changed after it was
// loaded; share it freely.
type Host struct {
	Data     string        // the data folder: absolute, or relative to the working directory
	Keys     string        // the folder of the signing keys; Data/keys unless set
	Issuer   string        // of signed contexts
	Seal     string        // SealHMAC or SealJWS
	Trust    []string      // files of public keys of other hosts
	Listen   Listen        // where the host is reached
	Storage  Storage       // how much of the disk is left free
	Log      Log           // the host's own log
	Grace    time.Duration // what running deliveries get when the host stops
	Defaults Delivery      // what a consumer gets that doesn't say
	Ceilings Delivery      // what a consumer may ask for at most
	Tenants  []Tenant      // in the order of the file; Name is unique
	Shares   []Share       // of the workers, in the order of the file; Tenant is unique
	Topics   []Topic       // policy by topic, in the order of the file; (Tenant, Topic) is unique
}

// Storage says how much of the disk is left free, in bytes: below Low publishes are refused, below Reserve nothing is done
// but what gives space back.
type Storage struct{ Low, Reserve int64 }

// Listen says where the host is reached.
type Listen struct {
	HTTP  string // host:port of the data listener
	Admin string // path of the admin Unix socket; Data/admin.sock unless set
	// AdminHTTP is host:port of the admin interface for bearers of tokens; "" is none.
	AdminHTTP string
}

// How messages are sealed.
const (
	SealHMAC = "hmac"
	SealJWS  = "jws"
)

// Log says how the host logs.
type Log struct {
	Level  string // debug, info, warn or error
	Format string // json or console
}

// Delivery is how a consumer's messages are run. As Host.Ceilings it is the largest that each may be.
type Delivery struct {
	Guest       limits.Guest  // of one call
	Concurrency int           // messages claimed and not yet settled
	MaxAttempts int           // runs of one message before it is dead-lettered
	Lease       time.Duration // longer than Guest.CallDuration
	Retry       Retry
}

// Retry is the delay before attempt n+1: Base × 2ⁿ⁻¹, at most Cap.
type Retry struct{ Base, Cap time.Duration }

// AnonymousTenant returns the tenant as which an HTTP producer without a token publishes to topic if it names none, and
// whether it may: exactly one tenant must have opened a topic of that name.
func (h *Host) AnonymousTenant(topic string) (tenant string, ok bool) {
	for _, t := range h.Topics {
		if t.Topic != topic || !t.Anonymous {
			continue
		}
		if ok {
			return "", false
		}
		tenant, ok = t.Tenant, true
	}
	return tenant, ok
}

// AnonymousAllowed reports whether an HTTP producer without a token may publish to a tenant's topic.
func (h *Host) AnonymousAllowed(tenant, topic string) bool {
	return slices.ContainsFunc(h.Topics, func(t Topic) bool {
		return t.Anonymous && t.Tenant == tenant && t.Topic == topic
	})
}

// Overrides are the settings that win over the host config's file.
type Overrides struct {
	Flags       Settings          // win over everything
	Environment map[string]string // all variables by name; LONGSHORE_… of Settings are used
}

// Settings are the host config's scalars as flags or the environment give them: text, checked like the file's. An empty
// one is not set. A relative path is relative to the working directory, while one of the file is to the file's folder.
type Settings struct {
	Data        string `env:"DATA"`         // --data-dir
	Keys        string `env:"KEYS"`         // --keys
	ListenHTTP  string `env:"LISTEN_HTTP"`  // --http
	ListenAdmin string `env:"LISTEN_ADMIN"` // --socket
	LogLevel    string `env:"LOG_LEVEL"`    // --log-level
	LogFormat   string `env:"LOG_FORMAT"`   // --log-format
	Grace       string `env:"GRACE"`        // --grace
}

// DefaultHost returns the host config of an empty file: data in longshore-data, the data listener on loopback.
func DefaultHost() *Host {
	h := &Host{
		Data:     "longshore-data",
		Issuer:   "longshore",
		Seal:     SealHMAC,
		Listen:   Listen{HTTP: "127.0.0.1:7878"},
		Storage:  Storage{Low: limits.StorageLowBytes, Reserve: limits.StorageReserveBytes},
		Log:      Log{Level: "info", Format: "json"},
		Grace:    limits.GraceDuration,
		Defaults: DefaultDelivery(),
		Ceilings: DefaultCeilings(),
	}
	h.derive()
	return h
}

// derive sets the paths that follow from the data folder.
func (h *Host) derive() {
	if h.Keys == "" {
		h.Keys = filepath.Join(h.Data, "keys")
	}
	if h.Listen.Admin == "" {
		h.Listen.Admin = filepath.Join(h.Data, "admin.sock")
	}
}

// LoadHost reads the host config at path, or none if path is empty, under the environment and the flags. Its error is
// Faults if what they say is wrong, else that of reading the file.
func LoadHost(path string, o Overrides) (*Host, error) {
	if path == "" {
		return ParseHost("host config", nil, o)
	}
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the host config: %w", err)
	}
	return ParseHost(path, data, o)
}

// ParseHost is LoadHost for a file already read. Relative paths in it are relative to the folder of file. Where it says
// nothing the defaults hold, so that an empty one is valid.
func ParseHost(file string, data []byte, o Overrides) (*Host, error) {
	schema, err := compile(HostSchema())
	if err != nil {
		return nil, err
	}
	return schema.parseHost(file, data, o)
}

func (s *schema) parseHost(file string, data []byte, o Overrides) (*Host, error) {
	d := parseDocument(file, data)
	if d.root == nil && d.sound("") {
		d.root = map[string]any{}
	}
	var f hostFile
	if err := s.check(d, &f); err != nil {
		return nil, err
	}
	f.anchor(filepath.Dir(file))
	all := &sources{documents: []*document{d}}
	if err := all.override(s, &f, o); err != nil {
		return nil, err
	}
	h := f.resolve(all)
	if err := all.err(); err != nil {
		return nil, err
	}
	return h, nil
}
