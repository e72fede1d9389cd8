package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/longshore/longshore/internal/filter"
)

// Plan is a resolved manifest: every consumer's values are set, checked, and within the host's ceilings. It is not
// changed after it was loaded; share it freely.
type Plan struct {
	File      string // of the manifest, as the caller named it
	Consumers []Consumer
}

// Consumer is one resolved entry of the manifest.
type Consumer struct {
	Name   string // (Tenant, Name) is unique in the plan
	Tenant string
	Topic  string
	Group  string // of consumers; "" is the topic's default lane. (Tenant, Topic, Group) is unique in the plan
	Start  *Start // of the group, when it is made; nil is earliest
	// Ordering says which messages are handled one at a time, in their order: "none", "key" or "topic".
	Ordering  string
	Module    Module
	Build     []string // the command that makes the module, word by word, to run in Module.Dir; nil if none
	Instances Instances
	Draft     string // of wasi:messaging that the module was made for: "draft-b" or "draft-c"; "" is what the module tells

	Delivery // limits, concurrency, attempts, lease, retries

	ContextRequired bool        // a message without a signed context is dead-lettered
	Publish         []string    // grants: topics, prefixes ending in "/*", or "*"
	Immediate       bool        // what the guest publishes doesn't wait for the acknowledgement
	Clients         []string    // client names that the guest may connect besides "default"
	Buckets         []string    // of the tenant, whose values the guest may read and write
	Config          [][2]string // key and value that the guest reads, sorted by key
	Batch           Batch
	Breaker         Breaker
	CanaryPercent   int      // of the messages, that a change of it gets beside the version before; 0 is all
	Events          Events   // topics of the tenant
	Filter          string   // expression over a message; "" takes all
	Features        []string // that messages may require
	NonRetryable    []string // guest error cases that are not retried

	// Entry is what the manifest says, as JSON: the entry with all its keys and nothing resolved.
	Entry json.RawMessage

	at     func(key string) Fault // the place of a key of the entry, for faults found later
	module Fault                  // that of its module
}

// Fault returns a fault at the place of a key of the entry, such as "tenant", or of the entry if it has no such key.
func (c *Consumer) Fault(key, problem, fix string) Fault {
	fault := c.at(key)
	fault.Problem, fault.Fix = problem, fix
	return fault
}

// LoadManifest reads the manifest at path and resolves it under the host's defaults and ceilings. A module need not be
// built yet, but one that is there must be a file inside the manifest's folder. The error is Faults if what the manifest
// says is wrong, else that of reading it.
func LoadManifest(path string, h *Host) (*Plan, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	schema, err := compile(ManifestSchema())
	if err != nil {
		return nil, err
	}
	return schema.parseManifest(path, data, h, (*Consumer).checkModule)
}

// ParseManifest is LoadManifest for a file already read. It doesn't look at the modules.
func ParseManifest(file string, data []byte, h *Host) (*Plan, error) {
	schema, err := compile(ManifestSchema())
	if err != nil {
		return nil, err
	}
	return schema.parseManifest(file, data, h, func(*Consumer) (problem, fix string) { return "", "" })
}

func (s *schema) parseManifest(file string, data []byte, h *Host, look func(*Consumer) (problem, fix string)) (*Plan, error) {
	d := parseDocument(file, data)
	if d.root == nil && d.sound("") {
		d.addAt(place{}, "", "the file is empty", "want consumers:")
	}
	var f manifestFile
	if err := s.check(d, &f); err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, fmt.Errorf("find the manifest's folder: %w", err)
	}
	p := &planner{sources: &sources{documents: []*document{d}}, host: h, folder: folder, look: look}
	plan := &Plan{File: file, Consumers: p.resolve(f.Consumers)}
	if err := p.err(); err != nil {
		return nil, err
	}
	return plan, nil
}

// planner resolves the entries of one manifest.
type planner struct {
	*sources
	host   *Host
	folder string
	look   func(*Consumer) (problem, fix string) // at what the module's path leads to
}

func (p *planner) resolve(files []*consumerFile) []Consumer {
	consumers := make([]Consumer, 0, len(files))
	names, lanes, perTenant := map[[2]string]int{}, map[[3]string]named{}, map[string]int64{}
	for i, f := range files {
		if f == nil {
			continue
		}
		path := fmt.Sprintf("consumers[%d]", i)
		c := p.consumer(path, f)
		consumers = append(consumers, c)
		p.checkCount(path, c.Tenant, perTenant[c.Tenant])
		perTenant[c.Tenant]++
		name := [2]string{c.Tenant, c.Name}
		if first, twice := names[name]; twice && p.sound(path+".name") {
			p.add(path+".name", fmt.Sprintf("%s is also the name of consumers[%d]", quoted(c.Name), first), "want a name of its own")
		} else if !twice {
			names[name] = i
		}
		if !p.sound(path+".topic") || !p.sound(path+".tenant") || !p.sound(path+".group") {
			continue
		}
		lane := [3]string{c.Tenant, c.Topic, c.Group}
		if first, twice := lanes[lane]; twice {
			p.addSharedLane(path, c, first)
		} else {
			lanes[lane] = named{i, c}
		}
	}
	return consumers
}

// named is an entry with its index.
type named struct {
	index int
	Consumer
}

// addSharedLane reports a consumer that takes the messages of another, and what they say differently of the lane.
func (p *planner) addSharedLane(path string, c Consumer, first named) {
	whose, right := quoted(c.Topic), "want one consumer a topic, or each other with a group of its own"
	if c.Group != "" {
		whose, right = fmt.Sprintf("group %s of %s", quoted(c.Group), whose), "want one consumer a group"
	}
	p.add(p.nearer(path+".group", path+".topic"), fmt.Sprintf("consumers[%d] already takes the messages of %s", first.index, whose), right)
	ordering := path + ".ordering"
	if c.Ordering != first.Ordering && p.sound(ordering) && p.sound(fmt.Sprintf("consumers[%d].ordering", first.index)) {
		p.add(ordering, fmt.Sprintf("it is %s, and %s of consumers[%d]", c.Ordering, first.Ordering, first.index), "want the same: both share what is ordered")
	}
}

// checkLane reports what an entry says of its lane that can't be.
func (p *planner) checkLane(path string, c Consumer) {
	group, start := path+".group", path+".start"
	if c.Group == defaultLane && p.sound(group) {
		p.add(group, quoted(c.Group)+" is what commands call the lane of consumers without a group", "want another name, or none")
	}
	if c.Group == "" && c.Start != nil && p.sound(group) {
		p.add(start, "it is of a group, and there is none", "want a group beside it")
	}
	if c.Group == "" && p.sound(group) && p.sound(path+".topic") && p.host.lane(c.Tenant, c.Topic) == laneOff {
		p.add(path+".topic", fmt.Sprintf("the host config turns the default lane of %s off", quoted(c.Topic)), "want a group")
	}
}

// checkFilter reports an expression that can't be used.
func (p *planner) checkFilter(path, source string) {
	if source == "" || !p.sound(path) {
		return
	}
	if _, err := filter.Compile(source); err != nil {
		p.add(path, err.Error(), "want an expression that is true or false, such as metadata.region == \"eu\"")
	}
}

// publishImmediate is the publish_mode that is not the default.
const publishImmediate = "immediate"

// defaultLane is how commands write the lane that has no name.
const defaultLane = "default"

// consumer resolves one entry and reports what is wrong with it by itself.
func (p *planner) consumer(path string, f *consumerFile) Consumer {
	c := Consumer{
		Name:            string(f.Name),
		Tenant:          tenantOf(f.Tenant),
		Topic:           string(f.Topic),
		Group:           string(f.Group),
		Start:           (*Start)(f.Start),
		Ordering:        or(f.Ordering, "none"),
		Module:          Module{Dir: p.folder, Path: string(f.Module), SHA256: string(f.SHA256)},
		Build:           texts(f.Build),
		Instances:       p.instances(path, f),
		Draft:           f.WIT,
		Delivery:        resolve(p.sources, path, &f.deliveryFile, p.host.Defaults, p.host.Ceilings.most),
		ContextRequired: f.Context != "optional",
		Publish:         texts(f.Publish),
		Immediate:       f.PublishMode == publishImmediate,
		Clients:         texts(f.Clients),
		Buckets:         texts(f.Buckets),
		Filter:          f.Filter,
		Features:        texts(f.Features),
		Config:          sortedPairs(f.Config),
		NonRetryable:    texts(f.NonRetryable),
	}
	c.Batch = p.batch(path, f, c.Delivery)
	if f.Canary != nil {
		c.CanaryPercent = f.Canary.Share.percent()
	}
	c.Breaker = p.breaker(path+".breaker", f.Breaker)
	c.Events = p.events(path+".events", f)
	p.checkFilter(path+".filter", c.Filter)
	checkPairs(p.sources, path, c.Delivery)
	p.checkLane(path, c)
	d := p.documents[0]
	c.at = func(key string) Fault { return d.placeOf(path, key) }
	c.Entry = d.entry(path)
	module := path + ".module"
	if !p.sound(module) {
		return c
	}
	c.module = d.placeOf(path, "module")
	problem, fix := c.Module.checkPath()
	if problem == "" {
		problem, fix = p.look(&c)
	}
	if problem != "" {
		p.add(module, problem, fix)
	}
	return c
}

// sortedPairs returns a mapping in the order of its keys; nil for none.
func sortedPairs(given map[string]configValue) [][2]string {
	var out [][2]string
	for _, key := range slices.Sorted(maps.Keys(given)) {
		out = append(out, [2]string{key, string(given[key])})
	}
	return out
}

// texts returns plain strings; nil for none.
func texts[T ~string](given []T) []string {
	var out []string
	for _, text := range given {
		out = append(out, string(text))
	}
	return out
}
