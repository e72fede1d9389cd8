package wire

import "time"

// QuarantineEntry describes a record that does not check.
type QuarantineEntry struct {
	ID       string    `json:"id" doc:"position- and its position, or hash- and the hash of its bytes"`
	Tenant   string    `json:"tenant"`
	Topic    string    `json:"topic"`
	Position uint64    `json:"position" doc:"0 if it is not known"`
	Reason   string    `json:"reason" enum:"corrupt-record,missing-record"`
	Error    string    `json:"error" doc:"what is wrong with it, in the log's own words"`
	Length   int       `json:"length" doc:"bytes of the record as it is stored; 0 if it can't be read"`
	Preview  string    `json:"preview" doc:"the first of them in hex"`
	At       time.Time `json:"at" doc:"when it was quarantined"`
}

// QuarantineList is a page of the quarantine. Next, if not "", is the after of the next page.
type QuarantineList struct {
	Entries []QuarantineEntry `json:"entries" nullable:"false"`
	Next    string            `json:"next,omitempty"`
}

// QuarantineDetail is an entry of the quarantine with the bytes of the record.
type QuarantineDetail struct {
	Entry QuarantineEntry `json:"entry"`
	Bytes string          `json:"bytes" doc:"the record as it is stored, in hex"`
}

// QuarantineFilter selects entries of the quarantine; all conditions that are set must hold, and one without any selects
// all. One that is sent but empty is refused.
type QuarantineFilter struct {
	ID        string `json:"id,omitempty" minLength:"1" doc:"id of an entry"`
	OlderThan string `json:"older_than,omitempty" minLength:"1" doc:"least time in quarantine, as 90s or 24h"`
	Limit     int    `json:"limit,omitempty" minimum:"0" doc:"at most so many; 0 is all"`
}
