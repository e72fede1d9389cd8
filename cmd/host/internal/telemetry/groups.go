package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/longshore/longshore/substrate"
)

// groupCollector reads the counts of the consumer groups. Topics without groups cost it nothing, and there are
// limits.GroupsPerTopic of a topic at most.
type groupCollector struct {
	topics func() []substrate.Stats
	groups func(tenant, topic string) ([]substrate.Group, error)
	now    func() time.Time
}

// groupMetric is one number of a group.
type groupMetric struct {
	desc  *prometheus.Desc
	value func(g substrate.Group, now time.Time) float64
}

func groupMetrics() []groupMetric {
	gauge := func(name, help string, v func(substrate.Group) int64) groupMetric {
		return groupMetric{
			desc(name, help, "tenant", "topic", "group"),
			func(g substrate.Group, _ time.Time) float64 { return float64(v(g)) },
		}
	}
	return []groupMetric{
		gauge("group_lag_messages", "Messages that are owed to a group and not in flight.", func(g substrate.Group) int64 { return g.Lag }),
		gauge("group_in_flight_messages", "Messages that a group holds, or is to try again.", func(g substrate.Group) int64 { return g.InFlight }),
		gauge("group_dead_letters", "Dead letters of a group.", func(g substrate.Group) int64 { return g.DeadLetters }),
		{
			desc("group_oldest_unacknowledged_age_seconds", "Age of the oldest message that a group is not done with; 0 if there is none.",
				"tenant", "topic", "group"),
			func(g substrate.Group, now time.Time) float64 { return ageOf(g.Oldest, now) },
		},
	}
}

// Describe implements prometheus.Collector.
func (c *groupCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range groupMetrics() {
		ch <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *groupCollector) Collect(ch chan<- prometheus.Metric) {
	now, metrics := c.now(), groupMetrics()
	for _, s := range c.topics() {
		if s.Groups == 0 {
			continue
		}
		groups, err := c.groups(s.Tenant, s.Topic)
		if err != nil {
			continue // the log is closed
		}
		for _, g := range groups {
			for _, m := range metrics {
				ch <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, m.value(g, now), s.Tenant, s.Topic, g.Name)
			}
		}
	}
}
