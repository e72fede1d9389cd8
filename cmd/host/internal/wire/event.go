package wire

// EventsContentType marks an answer that is a stream of Events, each a JSON object in a line of its own.
const EventsContentType = "application/x-ndjson"

// Event is a message that a tail or a replay tells of; or, without one, what there is to say instead.
type Event struct {
	Position uint64   `json:"position,omitempty" doc:"not there if the message is delayed and has none yet"`
	Delayed  bool     `json:"delayed,omitempty" doc:"published with a delay"`
	Message  *Message `json:"message,omitempty"`
	Dropped  uint64   `json:"dropped,omitempty" doc:"events that the tail lost before this one, because its reader was too slow"`
	Damaged  uint64   `json:"damaged,omitempty" doc:"at the end of a replay: messages that were left out because their records do not check"`
	Gap      *Gap     `json:"gap,omitempty" doc:"positions at which nothing of the topic is stored, or ever was, although they were asked for"`
}

// Gap is a range of positions.
type Gap struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to" doc:"not in the range: reading goes on there"`
}
