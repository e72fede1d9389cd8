package config

import "github.com/invopop/jsonschema"

// hostFile is longshore.yaml as it is written. Its types, names and texts make the JSON Schema.
type hostFile struct {
	Data     textPath      `json:"data,omitempty" jsonschema_description:"The data folder. A relative path is relative to this file."`
	Keys     textPath      `json:"keys,omitempty" jsonschema_description:"The folder of the signing keys. Default: keys in the data folder."`
	Issuer   issuerName    `json:"issuer,omitempty" jsonschema_description:"Who signs the contexts of messages: a name of the host or, where hosts verify each other's, of the fleet. Default: longshore."`
	Seal     string        `json:"seal,omitempty" jsonschema:"enum=hmac,enum=jws" jsonschema_description:"How messages are sealed: hmac is fast, jws is a signature that hosts with public keys alone verify. Default: hmac."`
	Trust    []textPath    `json:"trust,omitempty" jsonschema:"maxItems=64,title=a list of files" jsonschema_description:"Key sets of other hosts of the fleet, as they serve them at /.well-known/jwks.json."`
	Listen   listenFile    `json:"listen,omitempty" jsonschema_description:"Where the host is reached."`
	Storage  storageFile   `json:"storage,omitempty" jsonschema_description:"How much of the disk is left free."`
	Log      logFile       `json:"log,omitempty" jsonschema_description:"How the host logs."`
	Grace    *duration     `json:"grace,omitempty" jsonschema_description:"What running deliveries get to finish when the host stops."`
	Defaults deliveryFile  `json:"defaults,omitempty" jsonschema_description:"What a consumer gets that its manifest doesn't say."`
	Ceilings deliveryFile  `json:"ceilings,omitempty" jsonschema_description:"The most that a manifest may ask for."`
	Tenants  []*tenantFile `json:"tenants,omitempty" jsonschema:"maxItems=10000,title=a list of tenants" jsonschema_description:"Who may do what in a tenant with a bearer token, and what a tenant may take at most. A tenant need not be listed."`
	Shares   []*shareFile  `json:"shares,omitempty" jsonschema:"maxItems=10000,title=a list of shares" jsonschema_description:"What tenants get of the workers when they compete for them. A tenant need not be listed."`
	Topics   []*topicFile  `json:"topics,omitempty" jsonschema:"maxItems=10000,title=a list of topics" jsonschema_description:"Policy by topic. A topic need not be listed."`
}

type listenFile struct {
	HTTP  string   `json:"http,omitempty" jsonschema:"title=host:port such as 127.0.0.1:7878,pattern=^.*:[0-9]+$" jsonschema_description:"Address of the data listener."`
	Admin textPath `json:"admin,omitempty" jsonschema_description:"Path of the admin Unix socket. Default: admin.sock in the data folder."`

	AdminHTTP string `json:"admin_http,omitempty" jsonschema:"title=host:port such as 127.0.0.1:7879,pattern=^.*:[0-9]+$" jsonschema_description:"Address of the admin interface for bearers of tokens, who see their own tenant. Default: none."`
}

type storageFile struct {
	Low     *size `json:"low,omitempty" jsonschema_description:"Free space of the disk below which publishes are refused."`
	Reserve *size `json:"reserve,omitempty" jsonschema_description:"Free space below which nothing is done but what gives space back."`
}

type logFile struct {
	Level  string `json:"level,omitempty" jsonschema:"enum=debug,enum=info,enum=warn,enum=error" jsonschema_description:"The least severity that is logged."`
	Format string `json:"format,omitempty" jsonschema:"enum=json,enum=console" jsonschema_description:"json for machines, console for people."`
}

type shareFile struct {
	Tenant       tenantName `json:"tenant" jsonschema_description:"Whose share it is."`
	Weight       *int64     `json:"weight,omitempty" jsonschema_description:"How much execution it gets in proportion to the other tenants. Default: 1."`
	FloorPercent *int64     `json:"floor_percent,omitempty" jsonschema_description:"How much of all recent execution comes to it before any weight counts. Default: 0."`
}

type topicFile struct {
	Tenant            *tenantName `json:"tenant,omitempty" jsonschema_description:"Whose topic it is. Default: default."`
	Topic             topicName   `json:"topic" jsonschema_description:"The topic's name."`
	Anonymous         bool        `json:"anonymous,omitempty" jsonschema:"title=true or false" jsonschema_description:"Let HTTP producers without a token publish to it, as its tenant."`
	MaxDepth          *int64      `json:"max_depth,omitempty" jsonschema_description:"Messages that may wait in it; a publish beyond is refused."`
	MaxRatePerSec     *int64      `json:"max_rate_per_sec,omitempty" jsonschema_description:"Messages a second that it takes; a publish beyond is refused."`
	MaxMessageBytes   *size       `json:"max_message_bytes,omitempty" jsonschema_description:"The largest payload that it takes."`
	MaxPriority       *int64      `json:"max_priority,omitempty" jsonschema_description:"The highest priority that a message may have."`
	IdempotencyWindow *duration   `json:"idempotency_window,omitempty" jsonschema_description:"How long an idempotency key counts from its first use. 0s lets none count."`
	Retention         *duration   `json:"retention,omitempty" jsonschema_description:"Age from which messages are taken from consumer groups that have not met them."`
	RetentionBytes    *size       `json:"retention_bytes,omitempty" jsonschema_description:"Payloads that consumer groups may keep stored between them."`
	Keep              *duration   `json:"keep,omitempty" jsonschema_description:"How long a message stays after all are done with it, for replay."`
	MaxAge            *duration   `json:"max_age,omitempty" jsonschema_description:"How old a message with a signed context may be when it is delivered. An older one is a dead letter. Default: any age."`
	DefaultLane       string      `json:"default_lane,omitempty" jsonschema:"enum=auto,enum=on,enum=off" jsonschema_description:"When messages are owed to the consumer without a group: auto is while there are no groups, and ever after one took some."`
	Paused            *bool       `json:"paused,omitempty" jsonschema:"title=true or false" jsonschema_description:"Whether the topic delivers nothing, as of the host's start. Not set: as it was."`
	MaxUnflushed      *int64      `json:"max_unflushed,omitempty" jsonschema_description:"Publishes and acknowledgements answered before they are on disk. A crash of the machine may lose them, one of the process not. Default: 0, none."`
}

// manifestFile is consumers.yaml as it is written. Its types, names and texts make the JSON Schema.
type manifestFile struct {
	Consumers []*consumerFile `json:"consumers" jsonschema:"maxItems=1000,title=a list of consumers" jsonschema_description:"The consumers, each run on the messages of one topic."`
}

type consumerFile struct {
	Name     consumerName `json:"name" jsonschema_description:"What logs, metrics and commands call it. Unique in its tenant."`
	Tenant   *tenantName  `json:"tenant,omitempty" jsonschema_description:"Whose consumer it is. Default: default."`
	Topic    topicName    `json:"topic" jsonschema_description:"The topic whose messages it handles."`
	Group    groupName    `json:"group,omitempty" jsonschema_description:"The consumer group that it is: it gets every message of the topic from its start on, whatever others do with it. Default: none, it takes messages from the topic's default lane. One consumer a group, and one without."`
	Start    *startFile   `json:"start,omitempty" jsonschema_description:"Where the group begins. It counts when the group is made. Default: earliest."`
	Ordering string       `json:"ordering,omitempty" jsonschema:"enum=none,enum=key,enum=topic" jsonschema_description:"Which messages are handled one at a time, in their order: none, those of the same ordering key, or all of the topic. Default: none."`
	Module   modulePath   `json:"module" jsonschema_description:"The WebAssembly module: a path relative to the manifest and inside its folder."`
	SHA256   digest       `json:"sha256,omitempty" jsonschema_description:"What the module must hash to."`
	Build    []word       `json:"build,omitempty" jsonschema:"minItems=1,maxItems=256,title=a list of words such as [go\\, build]" jsonschema_description:"The command that makes the module, word by word, run in the manifest's folder without a shell. The host itself never runs it."`

	Instance string     `json:"instance,omitempty" jsonschema:"enum=clean,enum=reuse" jsonschema_description:"Whether a message finds what the one before it left in the module's memory. clean: never, reuse: as long as reuse says. Default: clean."`
	Reuse    *reuseFile `json:"reuse,omitempty" jsonschema_description:"What bounds an instance with instance: reuse."`
	WIT      string     `json:"wit,omitempty" jsonschema:"enum=draft-b,enum=draft-c" jsonschema_description:"Which draft of wasi:messaging its module was made for: draft-c is that of December 2024 and later, draft-b one of a few weeks before. Default: what the module tells."`
	WarmUp   exportName `json:"warm_up,omitempty" jsonschema_description:"An exported function without parameters that is run once after initialisation. What it leaves in memory is there in every message. Default: the one that the SDK exports, if there is one."`

	deliveryFile

	Context      string                 `json:"context,omitempty" jsonschema:"enum=required,enum=optional" jsonschema_description:"Whether a message must carry a signed context. One that is forged or doesn't match is never handled."`
	Publish      []grant                `json:"publish,omitempty" jsonschema:"maxItems=256,uniqueItems=true,title=a list of topics" jsonschema_description:"The topics that it may publish to: a name, all below a prefix as in orders/*, or * for all. Default: none."`
	PublishMode  string                 `json:"publish_mode,omitempty" jsonschema:"enum=outbox,enum=immediate" jsonschema_description:"When what it publishes is stored. outbox: with the acknowledgement, or not at all. immediate: at once, whatever becomes of the message, and again each time that it is handled. Default: outbox."`
	Clients      []clientName           `json:"clients,omitempty" jsonschema:"maxItems=64,uniqueItems=true,title=a list of names" jsonschema_description:"Names besides default that the guest may give when it opens a messaging client."`
	Buckets      []bucketName           `json:"buckets,omitempty" jsonschema:"maxItems=64,uniqueItems=true,title=a list of names" jsonschema_description:"Buckets of the tenant whose values it may read and write through wasi:keyvalue. Consumers that name the same bucket share it. Default: none."`
	Events       *eventsFile            `json:"events,omitempty" jsonschema_description:"Topics of its tenant that are told what becomes of its messages, as CloudEvents. Default: none."`
	Config       map[string]configValue `json:"config,omitempty" jsonschema:"maxProperties=64,title=a mapping of texts" jsonschema_description:"What the guest reads through wasi:config, by key. Nothing secret: manifests and logs are no place for that."`
	Batch        *batchFile             `json:"batch,omitempty" jsonschema_description:"How many messages the guest is handed in one call. Its module has to take several. Default: one."`
	Coalesce     string                 `json:"coalesce,omitempty" jsonschema:"enum=none,enum=latest" jsonschema_description:"Whether a batch has only the newest message of each ordering key. What becomes of it becomes of the older ones. Default: none."`
	Canary       *canaryFile            `json:"canary,omitempty" jsonschema_description:"Deploys a change of it as another version beside the one that runs, for a share of the messages, until it is promoted or rolled back. Default: a change replaces what ran."`
	Breaker      *breakerFile           `json:"breaker,omitempty" jsonschema_description:"When it holds itself because too many messages fail. Default: never."`
	Filter       string                 `json:"filter,omitempty" jsonschema:"maxLength=4096,title=an expression such as topic startsWith \"orders/\"" jsonschema_description:"An expression over topic, metadata and verified claims. What it doesn't take is acknowledged without running the guest. Default: all is taken."`
	Features     []featureName          `json:"features,omitempty" jsonschema:"maxItems=64,uniqueItems=true,title=a list of features" jsonschema_description:"What messages may require of it. A message that requires another is dead-lettered."`
	NonRetryable []guestFailure         `json:"non_retryable,omitempty" jsonschema:"maxItems=4,uniqueItems=true,title=a list of guest errors" jsonschema_description:"Guest errors that are dead-lettered at once."`
}

type eventsFile struct {
	Pickup  topicName `json:"pickup,omitempty" jsonschema_description:"Where it is told that an attempt begins. Default: nowhere."`
	Success topicName `json:"success,omitempty" jsonschema_description:"Where it is told that a message was handled. Default: nowhere."`
	Death   topicName `json:"death,omitempty" jsonschema_description:"Where it is told that a message became a dead letter, whoever buried it, or went into quarantine. Default: nowhere."`
}

type canaryFile struct {
	Share canaryShare `json:"share" jsonschema_description:"How many of the messages the new version gets."`
}

type breakerFile struct {
	Percent *int64    `json:"percent" jsonschema_description:"How many of a hundred messages have to fail."`
	Window  *duration `json:"window,omitempty" jsonschema_description:"In which messages are counted. Default: 1m."`
	Calls   *int64    `json:"calls,omitempty" jsonschema_description:"Messages that have to be handled in the window before it says anything. Default: 20."`
}

type batchFile struct {
	Max    *int64    `json:"max" jsonschema_description:"Messages of one call at most."`
	Window *duration `json:"window,omitempty" jsonschema_description:"How long a claim waits for more messages once there is one. Default: 20ms."`
}

// deliveryFile is what the manifest says for a consumer, and the host config for defaults and ceilings.
type deliveryFile struct {
	Limits      limitsFile `json:"limits,omitempty" jsonschema_description:"Bounds of one call of the guest."`
	Concurrency *int64     `json:"concurrency,omitempty" jsonschema_description:"Messages in flight: claimed and not yet settled."`
	MaxAttempts *int64     `json:"max_attempts,omitempty" jsonschema_description:"Runs of one message before it is dead-lettered."`
	Lease       *duration  `json:"lease,omitempty" jsonschema_description:"How long a message is held without a sign of life. Longer than the call time."`
	Retry       retryFile  `json:"retry,omitempty" jsonschema_description:"The delay before a message is tried again: base, doubled for each attempt, at most cap."`
}

type limitsFile struct {
	Fuel           *int64    `json:"fuel,omitempty" jsonschema_description:"Instructions."`
	CallTime       *duration `json:"call_time,omitempty" jsonschema_description:"Wall time."`
	Memory         *size     `json:"memory,omitempty" jsonschema_description:"Linear memory, in pages of 64KiB."`
	TableElements  *int64    `json:"table_elements,omitempty" jsonschema_description:"Elements of all tables together."`
	CallDepth      *int64    `json:"call_depth,omitempty" jsonschema_description:"Nested calls of functions."`
	OutboxMessages *int64    `json:"outbox_messages,omitempty" jsonschema_description:"Messages published."`
	OutboxBytes    *size     `json:"outbox_bytes,omitempty" jsonschema_description:"Bytes published: payloads, topics and metadata."`
	HostCalls      *int64    `json:"host_calls,omitempty" jsonschema_description:"Calls of host functions."`
	LogBytes       *size     `json:"log_bytes,omitempty" jsonschema_description:"Bytes written to stdout and stderr."`
	ResultBytes    *size     `json:"result_bytes,omitempty" jsonschema_description:"Bytes of the handler's result."`
}

type retryFile struct {
	Base *duration `json:"base,omitempty" jsonschema_description:"The delay after the first attempt."`
	Cap  *duration `json:"cap,omitempty" jsonschema_description:"The longest delay."`
}

// JSONSchemaExtend puts the hard bounds of whole numbers into the schema. The ceilings depend on the host config, so they
// are not in it.
func (limitsFile) JSONSchemaExtend(s *jsonschema.Schema) { extendBounds(s, "limits") }

// JSONSchemaExtend does the same for the numbers beside the limits, here and where deliveryFile is embedded.
func (deliveryFile) JSONSchemaExtend(s *jsonschema.Schema) { extendBounds(s, "") }
