package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/longshore/longshore/dispatcher"
)

// requestCollector reads what became of the requests of guests.
type requestCollector struct {
	requests func() dispatcher.RequestStats
}

func waitingDesc() *prometheus.Desc {
	return desc("waiting_requests", "Guests that wait for replies.")
}

func requestsDesc() *prometheus.Desc {
	return desc("requests_total", "Requests of guests: answered, or unanswered when their time was over.", "outcome")
}

func repliesDesc() *prometheus.Desc {
	return desc("replies_lost_total",
		"Replies that reached nobody: dropped, because nobody waits for them any more, or refused, because the message was no request.", "outcome")
}

// Describe implements prometheus.Collector.
func (c requestCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- waitingDesc()
	ch <- requestsDesc()
	ch <- repliesDesc()
}

// Collect implements prometheus.Collector.
func (c requestCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.requests()
	ch <- prometheus.MustNewConstMetric(waitingDesc(), prometheus.GaugeValue, float64(s.Waiting))
	for _, m := range []struct {
		desc    *prometheus.Desc
		outcome string
		n       uint64
	}{
		{requestsDesc(), "answered", s.Answered},
		{requestsDesc(), "unanswered", s.Unanswered},
		{repliesDesc(), "dropped", s.Dropped},
		{repliesDesc(), "refused", s.Refused},
	} {
		ch <- prometheus.MustNewConstMetric(m.desc, prometheus.CounterValue, float64(m.n), m.outcome)
	}
}

// WatchRequests adds what became of the requests of guests. It is called once.
func (m *Metrics) WatchRequests(requests func() dispatcher.RequestStats) {
	m.registry.MustRegister(requestCollector{requests})
}
