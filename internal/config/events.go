package config

// Events are the topics that are told what becomes of a consumer's messages; "" is none.
type Events struct {
	Pickup  string // an attempt begins
	Success string // the message was handled
	Death   string // it became a dead letter
}

// events returns where an entry wants its events, and reports what can't be.
func (p *planner) events(path string, f *consumerFile) Events {
	if f.Events == nil {
		return Events{}
	}
	for _, e := range []struct {
		key   string
		topic topicName
	}{{"pickup", f.Events.Pickup}, {"success", f.Events.Success}, {"death", f.Events.Death}} {
		if at := path + "." + e.key; e.topic != "" && e.topic == f.Topic && p.sound(at) {
			p.add(at, quoted(string(e.topic))+" is the topic that it consumes", "want another topic")
		}
	}
	return Events{Pickup: string(f.Events.Pickup), Success: string(f.Events.Success), Death: string(f.Events.Death)}
}
