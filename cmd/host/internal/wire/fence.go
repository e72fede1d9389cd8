package wire

import "time"

// Fence is the highest token that a lane accepted for a fence key.
type Fence struct {
	Key    string    `json:"key"`
	Token  uint64    `json:"token"`
	Raised time.Time `json:"raised" doc:"when it was raised, or last found equal, to within a minute"`
}

// FenceList is a page of fence marks by key. Next, if not "", is the after of the next page.
type FenceList struct {
	Fences []Fence `json:"fences" nullable:"false"`
	Next   string  `json:"next,omitempty"`
}

// FenceReset asks to forget the mark of Key, or all marks of the lane: one of the two is given.
type FenceReset struct {
	Lane string `json:"lane,omitempty" minLength:"1" doc:"lane; the default lane if it is not given"`
	Key  string `json:"key,omitempty" minLength:"1" doc:"fence key"`
	All  bool   `json:"all,omitempty" doc:"all marks of the lane"`
}
