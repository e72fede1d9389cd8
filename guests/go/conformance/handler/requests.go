package main

import longshore "github.com/longshore/longshore/guests/go"

// request requests the message of a topic, and sends the replies to out, as they came.
func request(topic string, m *longshore.Message) error {
	var o *longshore.RequestOptions
	if len(m.Data) > 0 {
		o = &longshore.RequestOptions{TimeoutMillis: 1500, Replies: 3}
	}
	replies, err := longshore.Request(topic, m, o)
	if err != nil {
		return report("report", err.Error())
	}
	for _, r := range replies {
		if err := longshore.Send("out", r); err != nil {
			return err
		}
	}
	if d := replies[0].Delivery(); d != nil {
		return report("report", d.ID+" of "+d.Claims.Subject)
	}
	return nil
}

// reply replies to the message with itself, twice, and says what the host said.
func reply(m *longshore.Message) error {
	for range 2 {
		if err := longshore.Reply(m, m); err != nil {
			return report("report", err.Error())
		}
	}
	return nil
}
