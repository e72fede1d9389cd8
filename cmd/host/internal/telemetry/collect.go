package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/substrate"
)

// desc describes a metric that is read from elsewhere when it is asked for.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
}

// topicCollector reads the counts of the topics.
type topicCollector struct {
	topics func() []substrate.Stats
	now    func() time.Time
}

// topicMetric is one number of a topic.
type topicMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(s substrate.Stats, now time.Time) float64
}

func topicMetrics() []topicMetric {
	counter := func(name, help string, v func(substrate.Stats) uint64) topicMetric {
		return topicMetric{
			desc(name, help, "tenant", "topic"), prometheus.CounterValue,
			func(s substrate.Stats, _ time.Time) float64 { return float64(v(s)) },
		}
	}
	gauge := func(name, help string, v func(substrate.Stats) int64) topicMetric {
		return topicMetric{
			desc(name, help, "tenant", "topic"), prometheus.GaugeValue,
			func(s substrate.Stats, _ time.Time) float64 { return float64(v(s)) },
		}
	}
	return []topicMetric{
		counter("messages_published_total", "Messages published.", func(s substrate.Stats) uint64 { return s.Published }),
		counter("messages_acked_total", "Messages done.", func(s substrate.Stats) uint64 { return s.Acked }),
		counter("messages_dead_lettered_total", "Messages that became dead letters.", func(s substrate.Stats) uint64 { return s.Buried }),
		counter("messages_redriven_total", "Dead letters made ready again.", func(s substrate.Stats) uint64 { return s.Redriven }),
		counter("messages_discarded_total", "Dead letters deleted.", func(s substrate.Stats) uint64 { return s.Discarded }),
		gauge("backlog_messages", "Messages not yet done.", substrate.Stats.Backlog),
		gauge("delayed_messages", "Messages that wait for a retry, or to become visible.", func(s substrate.Stats) int64 { return s.Delayed }),
		gauge("leased_messages", "Messages that a consumer holds.", func(s substrate.Stats) int64 { return s.Leased }),
		gauge("unflushed", "Publishes and acknowledgements that are not on disk yet.", func(s substrate.Stats) int64 { return s.Unflushed }),
		gauge("quarantined_records", "Records that do not check.", func(s substrate.Stats) int64 { return s.Quarantined }),
		gauge("skipped_messages", "Messages that could not be quarantined since the host started.", func(s substrate.Stats) int64 { return s.Skipped }),
		gauge("dead_letters", "Dead letters.", func(s substrate.Stats) int64 { return s.DeadLetters }),
		{
			desc("oldest_unacknowledged_age_seconds", "Age of the oldest message not yet done; 0 if there is none.", "tenant", "topic"),
			prometheus.GaugeValue, oldestAge,
		},
	}
}

func oldestAge(s substrate.Stats, now time.Time) float64 { return ageOf(s.Oldest, now) }

// ageOf returns how long ago a time was, in seconds; 0 for the zero time.
func ageOf(at, now time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(0, now.Sub(at).Seconds())
}

// Describe implements prometheus.Collector.
func (c *topicCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range topicMetrics() {
		ch <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *topicCollector) Collect(ch chan<- prometheus.Metric) {
	now, stats := c.now(), c.topics()
	for _, m := range topicMetrics() {
		for _, s := range stats {
			ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(s, now), s.Tenant, s.Topic)
		}
	}
}

// consumerCollector reads the states of the consumers.
type consumerCollector struct {
	consumers func() []dispatcher.ConsumerStatus
}

func inFlightDesc() *prometheus.Desc {
	return desc("in_flight_messages", "Messages claimed and not yet settled.", "tenant", "consumer")
}

func stateDesc() *prometheus.Desc {
	return desc("consumer_state", "1 for the state that a consumer is in.", "tenant", "consumer", "state")
}

// Describe implements prometheus.Collector.
func (c consumerCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- inFlightDesc()
	ch <- stateDesc()
}

// Collect implements prometheus.Collector.
func (c consumerCollector) Collect(ch chan<- prometheus.Metric) {
	inFlight, state := inFlightDesc(), stateDesc()
	for _, s := range c.consumers() {
		ch <- prometheus.MustNewConstMetric(inFlight, prometheus.GaugeValue, float64(s.InFlight), s.Tenant, s.Name)
		ch <- prometheus.MustNewConstMetric(state, prometheus.GaugeValue, 1, s.Tenant, s.Name, string(s.State))
	}
}

// journalCollector reads how often and how long the log waited for the disk.
type journalCollector struct {
	stats func() (flushes uint64, total time.Duration)
}

func flushDesc() *prometheus.Desc {
	return desc("journal_fsync_duration_seconds", "Time that the log waited for the disk to make a group of frames durable.")
}

// Describe implements prometheus.Collector.
func (c journalCollector) Describe(ch chan<- *prometheus.Desc) { ch <- flushDesc() }

// Collect implements prometheus.Collector.
func (c journalCollector) Collect(ch chan<- prometheus.Metric) {
	flushes, total := c.stats()
	ch <- prometheus.MustNewConstSummary(flushDesc(), flushes, total.Seconds(), nil)
}
