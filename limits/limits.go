// Package limits holds every bound of Longshore in one place: its default, its unit (in its name or its comment), and
// the error for exceeding it.
//
// The host config sets ceilings, the manifest and the topic policies ask for less; see internal/config. Packages take
// the bounds they need from here, so that the table in the README and the code can't drift apart. Sizes are bytes and
// durations are time.Duration unless a name says otherwise.
package limits

import (
	"fmt"
	"time"
)

// Sizes in bytes.
const (
	KiB = 1 << 10
	MiB = 1 << 20
	GiB = 1 << 30
)

// Bounds of one delivery, per guest call. They are the defaults of Guest.
const (
	FuelPerDelivery  = 100_000_000 // instructions, see runtime/internal/meter
	CallDuration     = time.Second
	GuestMemoryBytes = 64 * MiB
	TableElements    = 100_000
	CallDepthFrames  = 1_000
	OutboxMessages   = 256
	OutboxBytes      = 1 * MiB
	HostCalls        = 100_000
	LogBytes         = 16 * KiB
	ResultBytes      = 1 * MiB
	HandlesPerCall   = 4_096    // live resource handles of one guest call
	HeldBytes        = 32 * MiB // payloads and metadata that the host holds for one guest call
	RequestReplies   = 64       // that one request may expect
	ReplyBytes       = 2 * MiB  // payloads and metadata of all replies to one request
	GuestModuleBytes = 64 * MiB
	InitFuel         = 1_000_000_000 // instructions of a module's initialisation, once at deploy
	InitDuration     = 10 * time.Second
	ReasonBytes      = 256
	TrialRuns        = 100_000 // calls of one longshore invoke
)

// Bounds of the instances that a module's messages run in.
const (
	IdleInstances = 256              // of all modules, above which none is kept; each module keeps one a processor
	ReservedBytes = 1 << 40          // of address space, for the memories of all instances; at most half of what the process may map
	InstanceTrim  = 10 * time.Second // idle, after which an instance gives back the memory that its messages wrote
	InstanceIdle  = time.Minute      // idle, after which an instance is thrown away
	InstanceSweep = 5 * time.Second  // between two looks for such
	ReuseMessages = 1_000            // of one instance that keeps its state
	ReuseAge      = 10 * time.Minute // of such an instance
)

// Bounds of deploying.
const (
	PlanVersions = 16        // that are kept of a tenant's consumers, the one that runs included
	UploadBytes  = 512 * MiB // of a tenant's modules that no version names yet, above which the oldest go
)

// Bounds of a rehearsal, which runs messages on a new version and keeps nothing of that.
const (
	RehearsalMessages     = 1_000    // of one
	RehearsalFewMessages  = 100      // if it isn't said how many
	RehearsalBytes        = 64 * MiB // of their payloads
	RehearsalDuration     = 5 * time.Minute
	RehearsalReportBytes  = 16 * MiB // of what is told of them, after which no more are run
	RehearsalPayloadBytes = 256      // that are told of a payload
	Rehearsals            = 4        // at once, of all tenants; one of each
)

// Bounds of compiling one module, in a process of its own, and of what is kept of that.
const (
	CompileBytes     = 3 * GiB // of address space, beyond what the process has at its start
	CompileHeapBytes = 2 * GiB // above which its garbage collector does all that it can
	CompileCPU       = time.Minute
	CompileDuration  = 3 * time.Minute // on a machine that has other work
	CodeCacheBytes   = 1 * GiB         // of compiled code that is kept
)

// Bounds of delivery: leases, attempts, retries.
const (
	LeaseDuration       = 30 * time.Second
	MaxAttempts         = 5
	RetryBaseDuration   = 200 * time.Millisecond
	RetryCapDuration    = 5 * time.Minute
	RetryDoublings      = 16
	RetryJitterPercent  = 20
	GraceDuration       = 30 * time.Second
	InFlightMessages    = 4_096 // a consumer
	InFlightBytes       = 64 * MiB
	HostInFlightMsgs    = 16_384
	HostInFlightBytes   = 256 * MiB
	StorageRetryMin     = 50 * time.Millisecond
	StorageRetryMax     = time.Second
	StorageErrorsInARow = 10 // then a consumer is unhealthy
	ClaimMessages       = 64
	Concurrency         = 2 * ClaimMessages // in flight a consumer, by default: some run while others are claimed and settled
	ClaimCeilingMsgs    = 4_096             // one claim or settle
	RunningSlots        = 16_384            // deliveries that a handler works on at once; no fewer than HostInFlightMsgs
	BadABIMessages      = 3                 // different messages on which a module breaks the ABI; then it is the module's fault
	FairHalfLife        = time.Second       // in which half of what a tenant ran is forgotten, when the next worker is given away
	FairFuelPerSec      = 4_000_000_000     // instructions that count as a second of a worker
	FairWeight          = 1_000             // of a tenant
	CallMessages        = 64                // of one guest call
	CallBytes           = 16 * MiB          // payloads of one guest call that has several messages
	BatchWindow         = time.Second       // that a claim may wait to fill a batch
	BatchWindowDefault  = 20 * time.Millisecond
	BatchTimes          = 3           // of the time of one call, that all calls get by which a batch is told apart
	CoalescedKeys       = 16_384      // ordering keys of which a consumer remembers what it handled
	Skips               = 100         // of a message, in a row; then it is buried
	BreakerWindow       = time.Minute // in which a breaker counts
	BreakerCalls        = 20          // messages before a breaker says anything
	BreakerHoldMin      = 5 * time.Second
	BreakerHoldMax      = 5 * time.Minute
	FilterBytes         = 4 * KiB                // of the expression by which a consumer takes messages
	FilterNodes         = 256                    // operands and operators of it
	FilterPatternSteps  = 1_000                  // of a regular expression in it
	WaitingRequests     = 128                    // guests of a host that wait for replies; fewer than IdleInstances, because each keeps an instance
	TenantWaiting       = 32                     // of them of one tenant
	RequestMargin       = 100 * time.Millisecond // that waiting leaves of a call's time, but no more than a tenth of what is left of it
	GuestLogLinesPerSec = 200                    // a tenant; as many at once
	GuestLogLineBytes   = 1 * KiB
	SettleAtStop        = 5 * time.Second        // that settlements get after the grace period
	PauseAfter          = 2 * time.Millisecond   // of a guest's run, after which it is paused for a tenant that is owed more
	PausedGuests        = 16                     // that are, of all tenants
	PublishingGuests    = 32                     // that publish at once, and let others run meanwhile; more keep their worker
	RoomWait            = time.Millisecond       // that a claim waits for room for many messages, before it claims few
	IdleHands           = 256                    // goroutines that wait for the next delivery
	SettleTogether      = 32                     // messages of a consumer after which a commit waits for no others
	SettleTogetherBytes = 1 * MiB                // of their outboxes, likewise
	SettleWait          = 4 * time.Millisecond   // that what is done waits for others, at most: a commit and a claim for each 30 short calls, and not for 8
	SettleWaitCalls     = 500 * time.Microsecond // calls that last longer don't make commits wait
	ExpiredBatches      = 256                    // of messages that expired together, waiting to be told of; each has some hundred at most
)

// Bounds of the key-value store that guests share.
const (
	StoredKeyBytes     = 256
	StoredValueBytes   = 1 * MiB
	StoredCommitBytes  = 4 * MiB // keys and values that one guest call writes
	StoreOperations    = 1_000   // of one guest call, all functions and buckets together
	StorePageKeys      = 256     // of one list of a bucket's keys
	BucketBytes        = 64      // of a bucket's name
	BucketsPerTenant   = 256     // that hold something, or did since the host started
	StoreReruns        = 3       // of a message, because what it read changed before its commit
	StoreRecentWrites  = 65_536  // that the log remembers by the hash of their keys, to tell what changed
	StoreLooks         = 3       // at what a commit depends on, when memory doesn't tell whether it changed
	StorePendingBucket = 4_096   // keys of a bucket that the store has not got yet, when a list of its keys waits for it
)

// Bounds of a message and of what names it.
const (
	MessageBytes        = 1 * MiB
	MessageCeilingBytes = 32 * MiB
	MetadataPairs       = 64
	MetadataBytes       = 16 * KiB
	KeyBytes            = 256 // each key string: content type, ordering key, idempotency key
	TopicBytes          = 200
	TenantBytes         = 63
	TopicsPerTenant     = 10_000
	// TenantHeadroomPercent is by how much what a tenant's own handlers publish may exceed the caps on what it stores.
	TenantHeadroomPercent = 10
	EnvelopeBytes         = 16 * KiB
	ReceiptBytes          = 4 * KiB
	BatchMessages         = 65_536 // one publish
	Hops                  = 16
)

// Bounds of a signed context.
const (
	TokenBytes       = 8 * KiB
	TokenClaims      = 32
	TokenClaimsBytes = 2 * KiB
	TokenWindow      = 60 * time.Second
	TokenLeeway      = 60 * time.Second
	VerifiedTokens   = 10_000
	OperatorWhyBytes = 200
	OperatorBytes    = 768 // of an operator's record
)

// Bounds of bearer tokens and of the key sets of their issuers.
const (
	BearerSubjectBytes = 160 // of the token's sub
	KeySetBytes        = 1 * MiB
	KeySetKeys         = 100
	KeySetRefresh      = 10 * time.Minute // after which a key set is fetched again
	KeySetRetry        = 30 * time.Second // between two fetches of one key set, whatever kids tokens name
	KeySetStale        = 24 * time.Hour   // that a key set is used while it can't be fetched
	KeySetWait         = 5 * time.Second  // of one fetch
)

// Bounds of the log.
const (
	JournalSegments          = 4
	JournalSegmentBytes      = 64 * MiB
	JournalSegmentMinBytes   = 1 * MiB
	WriteBehindDelay         = 50 * time.Millisecond
	WriteBehindBytes         = 16 * MiB
	WriteBehindLagBytes      = 32 * MiB
	WriteBehindLagMessages   = 100_000 // messages waiting for the store
	WriteBehindLastBytes     = 4 * MiB // of what waits beside messages: one transaction of the store
	WindowMessages           = 512     // messages of a lane kept ready in memory
	WindowBytes              = 1 * MiB
	MintedIDs                = 1 << 20                // ids minted after one that is still to be published
	StorageLowBytes          = 1024 * MiB             // free space of the disk below which no message is taken
	StorageReserveBytes      = 512 * MiB              // and below which nothing is changed
	ReclaimBytes             = 64 * MiB               // deleted from the store, after which its space is given back
	EraseKeys                = 8_192                  // of a deleted tenant, that one batch of the store deletes
	ReclaimIdle              = time.Second            // that the store has nothing to do before that
	ReclaimPause             = 5 * time.Second        // between two tries while the disk is nearly full
	SweepRetry               = 100 * time.Millisecond // after a sweep that found the disk full
	IdempotencyWindow        = 10 * time.Minute
	IdempotencyKeys          = 1_000_000 // of a topic
	IdempotencyWindowCeiling = 7 * 24 * time.Hour
	PriorityCeiling          = 255
	RequiredFeatures         = 16 // of a message
	FeatureBytes             = 64
	GroupsPerTopic           = 256
	GroupBytes               = 64               // of a group's name
	SkippedSpans             = 64               // ranges that the default lane of a topic was not owed, ahead of its cursor
	FenceMarks               = 16_384           // fence keys of a lane
	FenceIdle                = 10 * time.Minute // after which a mark may go, once there are as many as that
	FenceSweep               = time.Second      // between two searches for such marks in a lane
	FencePage                = 1_000            // marks of one list
	ParkedMessages           = 2_097_152        // of a lane, behind messages of their ordering key
	RetentionDuration        = 24 * time.Hour
	RetentionBytesCeiling    = 1 << 50 // 1 PiB
	DeadAside                = 65_536  // dead letters behind the cursor of a group that is reset
	SweepPositions           = 1_024   // looked at by one step of the sweep
	SweepInterval            = time.Second
	OptionDuration           = 366 * 24 * time.Hour // of a delay or ttl
	AbandonWait              = time.Second          // for the database of a log that has failed
	LockWait                 = 5 * time.Second
	DeadLetterPage           = 1_000
	QuarantinePage           = 1_000                  // entries of one list
	QuarantineTries          = 5                      // to write an entry; then the message is skipped in its place
	QuarantinePause          = 100 * time.Millisecond // between two of them
	PreviewBytes             = 96                     // of a record that does not check
	InlinePayloadBytes       = 64 * KiB
	CommitGroupRequests      = 1_024
	CommitGroupBytes         = 8 * MiB
	RateBurstDuration        = time.Second
	PolicyMaxUnflushed       = 1_000_000
	FlushDelay               = 5 * time.Millisecond // of what a relaxed topic acknowledged before it is on disk
	PolicyMaxRatePerSec      = 1_000_000_000
	PolicyMaxDepthCount      = 1_000_000_000_000
	BackupRecordBytes        = 64 * MiB         // value of one record of a backup: more than any is
	BackupChunkBytes         = 1 * MiB          // gathered for one write of a backup
	RestoreBatchBytes        = 4 * MiB          // gathered for one transaction of a restore
	ReclaimBusyBytes         = 128 * MiB        // deleted from the store, after which it is tidied though it is busy
	CommitGroupWait          = time.Millisecond // that a group waits at most for those whom the last one answered
	ReplayPageMessages       = 256              // that a replay, or a tail that catches up, reads at once
	ReplayPageBytes          = 1 * MiB
	TailRingEvents           = 64      // of a topic that is tailed: what a tail may be behind before it loses some
	TailRingBytes            = 8 * MiB // of records in them; the last event stays, however large it is
	TailSubscribers          = 256     // open tails of a log
)

// Guest bounds one guest call. The zero value allows nothing: start from DefaultGuest.
type Guest struct {
	Fuel           int64         // instructions, as runtime/internal/meter counts them
	CallDuration   time.Duration // wall time of the call
	MemoryBytes    int64         // linear memory; rounded down to pages of 64 KiB
	TableElements  int64         // elements of all tables together
	CallDepth      int64         // nested calls of guest functions
	OutboxMessages int64         // messages published
	OutboxBytes    int64         // payload, topic and metadata bytes published
	HostCalls      int64         // calls of host functions
	LogBytes       int64         // bytes written to stdout and stderr
	ResultBytes    int64         // bytes of the handler's result
}

// DefaultGuest returns the defaults.
func DefaultGuest() Guest {
	return Guest{
		Fuel:           FuelPerDelivery,
		CallDuration:   CallDuration,
		MemoryBytes:    GuestMemoryBytes,
		TableElements:  TableElements,
		CallDepth:      CallDepthFrames,
		OutboxMessages: OutboxMessages,
		OutboxBytes:    OutboxBytes,
		HostCalls:      HostCalls,
		LogBytes:       LogBytes,
		ResultBytes:    ResultBytes,
	}
}

// Name names a bound, as the texts of errors and reasons print it.
type Name string

// Names of bounds that more than one package checks or reports.
const (
	NameFuel           Name = "fuel"
	NameCallDuration   Name = "call time"
	NameMemory         Name = "memory bytes"
	NameTableElements  Name = "table elements"
	NameCallDepth      Name = "call depth"
	NameOutboxMessages Name = "outbox messages"
	NameOutboxBytes    Name = "outbox bytes"
	NameHostCalls      Name = "host calls"
	NameLogBytes       Name = "log bytes"
	NameResultBytes    Name = "result bytes"
	NameHandles        Name = "handles"
	NameHeldBytes      Name = "held bytes"
	NameMessageBytes   Name = "message bytes"
	NameMetadataPairs  Name = "metadata pairs"
	NameMetadataBytes  Name = "metadata bytes"
	NameBatchMessages  Name = "batch messages"
	NameBatchBytes     Name = "batch bytes"
	NameTopicBytes     Name = "topic bytes"
	NameKeyBytes       Name = "key bytes"
	NameTopics         Name = "topics of a tenant"
	NameTenantMessages Name = "stored messages"
	NameTenantBytes    Name = "stored message bytes"
	NameTenantRate     Name = "messages published a second"
	NameTenantValues   Name = "stored value bytes of a tenant"
	NameGroups         Name = "groups of a topic"
	NameSkippedSpans   Name = "ranges that the default lane was not owed"
	NameFenceMarks     Name = "fence marks of a lane"
	NameHops           Name = "hops"
	NameStoredKey      Name = "stored key bytes"
	NameStoredValue    Name = "stored value bytes"
	NameStoredCommit   Name = "bytes of a call's stored keys and values"
	NameStoreOps       Name = "store operations"
	NameBuckets        Name = "buckets of a tenant"
	NameBackupRecord   Name = "backup record bytes"
	NameWaiting        Name = "requests that wait for replies"
	NameTenantWaiting  Name = "requests of a tenant that wait for replies"
	NameReplyBytes     Name = "bytes of replies"
	NameRunning        Name = "running deliveries"
	NameTokenBytes     Name = "token bytes" //nolint:gosec // the name of a bound
	NameTokenClaims    Name = "token claims"
	NameTails          Name = "open tails"
	NameModule         Name = "module bytes"
	NameRehearsals     Name = "rehearsals"
	NameCompileMemory  Name = "bytes of address space to compile"
	NameCompileTime    Name = "milliseconds to compile"
)

// Error says that a bound was exceeded. Match it with errors.As, or with errors.Is against another *Error, which
// compares names only.
type Error struct {
	Name   Name
	Limit  int64
	Actual int64  // what was asked for, in the unit of Limit; at least Limit+1
	Where  string // optional: the place, in the host's own words ("function 7")
}

// Error implements error.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %d is over the limit of %d", e.Name, e.Actual, e.Limit)
	if e.Where != "" {
		return e.Where + ": " + s
	}
	return s
}

// Is reports whether target is an *Error about the same bound.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Name == e.Name
}

// Check returns an *Error if actual is over limit, else nil.
func Check(name Name, actual, limit int64) error {
	if actual <= limit {
		return nil
	}
	return &Error{Name: name, Limit: limit, Actual: actual}
}
