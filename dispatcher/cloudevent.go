package dispatcher

import (
	"bytes"
	"encoding/json"
	"net/url"
	"time"
)

// The form of an event: CloudEvents 1.0, structured, in JSON. docs/events.md describes it.
//
//	{"specversion": "1.0", "id": "<of the event's own message>", "source": "/tenants/acme/consumers/intake",
//	 "type": "longshore.delivery.death", "subject": "<id of the message>", "time": "…", "datacontenttype": "application/json",
//	 "data": {…}}
const (
	eventContentType = "application/cloudevents+json"
	eventTypePrefix  = "longshore.delivery."
)

type eventEnvelope struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject"`
	Time            string    `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Data            eventData `json:"data"`
}

// eventData has nothing of a guest's or of a message's payload.
type eventData struct {
	Tenant   string        `json:"tenant"`
	Topic    string        `json:"topic"`
	Message  string        `json:"message"`
	Consumer string        `json:"consumer"`
	Group    string        `json:"group,omitempty"`
	Attempt  int           `json:"attempt"`
	Verdict  string        `json:"verdict,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Module   string        `json:"module,omitempty"`
	Version  string        `json:"version,omitempty"`
	Fuel     int64         `json:"fuel"`
	Wall     time.Duration `json:"wall_ns"`
}

// cloudEvent returns the event of a kind with an id that tells what a receipt says.
func cloudEvent(k EventKind, id string, r Receipt) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(eventEnvelope{ // texts and numbers, which can't fail
		SpecVersion: "1.0", ID: id, Type: eventTypePrefix + string(k), Subject: r.Message,
		Source: "/tenants/" + url.PathEscape(r.Tenant) + "/consumers/" + url.PathEscape(r.Consumer),
		Time:   r.At.UTC().Format(time.RFC3339Nano), DataContentType: "application/json",
		Data: eventData{
			Tenant: r.Tenant, Topic: r.Topic, Message: r.Message, Consumer: r.Consumer, Group: r.Lane, Attempt: r.Attempt,
			Verdict: r.Verdict, Reason: r.Reason, Module: r.Module, Version: r.Version, Fuel: r.Fuel, Wall: r.Wall,
		},
	})
	return bytes.TrimSpace(b.Bytes())
}
