package wire

// Rehearse asks what a manifest would make of messages that are there, without deploying it. Modules are uploaded before, as for
// an Apply. Without From and Since the messages are the dead letters of the consumer's lane.
type Rehearse struct {
	Consumer string            `json:"consumer" minLength:"1" doc:"name of the consumer"`
	File     string            `json:"file,omitempty" maxLength:"255" doc:"what faults call the manifest"`
	Manifest string            `json:"manifest" doc:"the manifest, as YAML"`
	Modules  map[string]string `json:"modules" doc:"SHA-256 of the consumer's module, by its path in the manifest"`
	From     uint64            `json:"from,omitempty" doc:"position from which on messages of the topic are read that are stored, whether they are done or not"`
	Since    string            `json:"since,omitempty" doc:"likewise, time from which on they were published, as 2030-01-31T12:00:00Z"`
	Reason   string            `json:"reason,omitempty" doc:"of dead letters: text that the reason contains"`
	Max      int               `json:"max,omitempty" minimum:"0" maximum:"1000" doc:"at most so many messages; 0 is 100"`
}

// Rehearsed says what would become of messages. Nothing was published, settled, written or charged.
type Rehearsed struct {
	Tenant   string             `json:"tenant"`
	Consumer string             `json:"consumer"`
	Topic    string             `json:"topic"`
	Lane     string             `json:"lane,omitempty"`
	Before   *RehearsedVersion  `json:"before,omitempty" doc:"what runs; none if nothing runs under that name on that topic"`
	After    RehearsedVersion   `json:"after" doc:"what was rehearsed"`
	Messages []RehearsedMessage `json:"messages" nullable:"false"`
	Summary  RehearsalSummary   `json:"summary"`
}

// RehearsedVersion is a version of the consumer.
type RehearsedVersion struct {
	Module  string `json:"module" doc:"SHA-256"`
	Version string `json:"version"`
}

// Changes of a message from one version to the other.
const (
	SameEnd      = "same"
	OtherVerdict = "verdict"
	OtherOutputs = "outputs"
)

// RehearsedMessage is what would become of a message.
type RehearsedMessage struct {
	Position   uint64         `json:"position"`
	ID         string         `json:"id"`
	DeadReason string         `json:"dead_reason,omitempty" doc:"of a dead letter: what it died of"`
	Before     *RehearsedSide `json:"before,omitempty"`
	After      RehearsedSide  `json:"after"`
	Change     string         `json:"change,omitempty" enum:"same,verdict,outputs" doc:"none if there is nothing to compare with"`
	Differs    []string       `json:"differs,omitempty" nullable:"false" doc:"in what: verdict, reason, outputs (how many), topic, content-type, metadata, payload, options, replies, values"`
	Better     bool           `json:"better,omitempty" doc:"it would end better: handled rather than passed over, passed over rather than not done, not done rather than dead"`
	Worse      bool           `json:"worse,omitempty" doc:"it would end worse"`
}

// RehearsedSide is what would become of a message in one version.
type RehearsedSide struct {
	Verdict string `json:"verdict" enum:"ack,retry,release,bury"`
	Reason  string `json:"reason,omitempty"`
	Handled bool   `json:"handled" doc:"acknowledged because the guest handled it"`
	Pauses  bool   `json:"pauses,omitempty" doc:"the consumer would pause itself"`
	Cause   string `json:"cause,omitempty" doc:"what happened, in the host's words"`
	Guest   string `json:"guest_error,omitempty" doc:"text of the guest's own error"`

	Outputs []RehearsedOutput `json:"outputs" nullable:"false" doc:"what would be published with the acknowledgement, in order"`
	Replies []RehearsedOutput `json:"replies,omitempty" nullable:"false"`
	Values  []RehearsedValue  `json:"values,omitempty" nullable:"false" doc:"what would be written"`
	Refused int               `json:"requests_refused,omitempty" doc:"requests of the guest, which a rehearsal doesn't send"`

	Batch           int   `json:"batch,omitempty" doc:"messages of the call, if more than one; each has an equal part of its fuel, time and host calls"`
	Fuel            int64 `json:"fuel"`
	WallNS          int64 `json:"wall_ns"`
	PeakMemoryBytes int64 `json:"peak_memory_bytes"`
	HostCalls       int64 `json:"host_calls"`
}

// RehearsedOutput is a message that would be published.
type RehearsedOutput struct {
	Topic         string          `json:"topic,omitempty"`
	ContentType   string          `json:"content_type,omitempty"`
	Metadata      []Pair          `json:"metadata,omitempty" nullable:"false"`
	Options       *MessageOptions `json:"options,omitempty"`
	PayloadBytes  int             `json:"payload_bytes"`
	PayloadSHA256 string          `json:"payload_sha256"`
	PayloadBase64 []byte          `json:"payload_base64" doc:"its first 256 bytes"`
}

// RehearsedValue is a value that would be written.
type RehearsedValue struct {
	Bucket string `json:"bucket"`
	Key    string `json:"key"`
	Delete bool   `json:"delete,omitempty"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
}

// Why a rehearsal ended.
const (
	EndedAll    = "all"
	EndedMax    = "max"
	EndedBytes  = "bytes"
	EndedTime   = "time"
	EndedReport = "report"
)

// RehearsalSummary counts messages. Of ratios, there are none if no message counts for them.
type RehearsalSummary struct {
	Messages       int    `json:"messages"`
	Same           int    `json:"same"`
	VerdictChanged int    `json:"verdict_changed"`
	OutputsChanged int    `json:"outputs_changed" doc:"though the verdict is the same"`
	Better         int    `json:"better"`
	Worse          int    `json:"worse"`
	HandledBefore  int    `json:"handled_before"`
	HandledAfter   int    `json:"handled_after"`
	Unreadable     uint64 `json:"unreadable" doc:"left out, because their records do not check"`
	Ended          string `json:"ended" enum:"all,max,bytes,time,report" doc:"after all messages, or at a bound: their number, their payloads, the time, or the size of this answer"`

	FuelMessages int      `json:"fuel_messages" doc:"handled by both versions"`
	FuelRatio    *float64 `json:"fuel_ratio,omitempty" doc:"fuel after by fuel before: geometric mean of those"`
	FuelWorst    *float64 `json:"fuel_worst,omitempty" doc:"the largest of those ratios"`
	FuelWorstID  string   `json:"fuel_worst_id,omitempty" doc:"message of that"`
}
