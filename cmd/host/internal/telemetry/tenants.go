package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Tenant is what one tenant uses of the host, what it may use, and what it was refused: each by the name of the cap in the host
// config, in base units.
type Tenant struct {
	Name                string
	Used, Caps, Refused map[string]float64
}

// tenantCollector reads the numbers of the tenants.
type tenantCollector struct {
	tenants func() []Tenant
}

func usedDesc() *prometheus.Desc {
	return desc("tenant_used", "What a tenant uses, by cap: messages, bytes, topics, consumers, instances, value_bytes.", "tenant", "cap")
}

func capDesc() *prometheus.Desc {
	return desc("tenant_cap", "What the host config lets a tenant use, by cap; times are seconds. Nothing for a cap that isn't set.", "tenant", "cap")
}

func capRefusalsDesc() *prometheus.Desc {
	return desc("tenant_refusals_total",
		"What a cap of a tenant refused: publishes, topics and commits of values; of instances turns put off; of log_bytes_per_sec bytes of lines left out, whatever for.",
		"tenant", "cap")
}

// Describe implements prometheus.Collector.
func (c tenantCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- usedDesc()
	ch <- capDesc()
	ch <- capRefusalsDesc()
}

// Collect implements prometheus.Collector.
func (c tenantCollector) Collect(ch chan<- prometheus.Metric) {
	for _, t := range c.tenants() {
		for _, m := range []struct {
			desc   *prometheus.Desc
			kind   prometheus.ValueType
			values map[string]float64
		}{{usedDesc(), prometheus.GaugeValue, t.Used}, {capDesc(), prometheus.GaugeValue, t.Caps}, {capRefusalsDesc(), prometheus.CounterValue, t.Refused}} {
			for name, v := range m.values {
				ch <- prometheus.MustNewConstMetric(m.desc, m.kind, v, t.Name, name)
			}
		}
	}
}
