package wire

import "time"

// A start of a group, in all types below, is "earliest", "latest", a position as "4711", or a time as "2030-01-31T12:00:00Z".

// Group describes a consumer group.
type Group struct {
	Name          string     `json:"name"`
	Start         string     `json:"start" doc:"as it was made"`
	Ordering      string     `json:"ordering" enum:"none,key,topic"`
	Paused        bool       `json:"paused" doc:"by itself; a topic that is paused delivers nothing either"`
	Cursor        uint64     `json:"cursor" doc:"it has met all messages at positions below"`
	Lag           int64      `json:"lag" doc:"messages that are owed to it and not in flight"`
	InFlight      int64      `json:"in_flight" doc:"under a lease, or waiting for a retry"`
	Leased        int64      `json:"leased"`
	DeadLetters   int64      `json:"dead_letters"`
	Skipped       uint64     `json:"skipped" doc:"messages that retention took from it before it had them"`
	OldestUnacked *time.Time `json:"oldest_unacked,omitempty"`
}

// GroupList answers a listing of groups, by name.
type GroupList struct {
	Groups []Group `json:"groups" nullable:"false"`
}

// NewGroup asks to make a group. One that exists stays as it is.
type NewGroup struct {
	Name     string `json:"name" minLength:"1" maxLength:"64"`
	Start    string `json:"start,omitempty" minLength:"1" doc:"earliest, latest, a position as 4711, or a time as 2030-01-31T12:00:00Z; earliest if it is not given"`
	Ordering string `json:"ordering,omitempty" enum:"none,key,topic" doc:"none if it is not given"`
}

// GroupMade answers a NewGroup.
type GroupMade struct {
	Made  bool  `json:"made" doc:"false: there was one before, and it is as it was"`
	Group Group `json:"group"`
}

// GroupReset asks to move a group's cursor.
type GroupReset struct {
	Start string `json:"start" minLength:"1" doc:"earliest, latest, a position as 4711, or a time as 2030-01-31T12:00:00Z"`
}

// GroupDeleted says what a deleted group had.
type GroupDeleted struct {
	Deleted     bool  `json:"deleted" doc:"false: there was none"`
	Lag         int64 `json:"lag"`
	InFlight    int64 `json:"in_flight"`
	DeadLetters int64 `json:"dead_letters"`
}
