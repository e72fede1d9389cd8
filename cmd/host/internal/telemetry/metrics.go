package telemetry

import (
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/substrate"
)

const namespace = "longshore"

// Metrics are the host's metrics. It is a dispatcher.Observer; what the log and the consumers know is read when the
// metrics are asked for. It is safe for concurrent use.
//
// Labels are tenants, topics, consumer groups, consumers and words of the host's own, never ids or text of guests.
type Metrics struct {
	registry   *prometheus.Registry
	deliveries *prometheus.CounterVec
	canaries   *prometheus.CounterVec
	buried     *prometheus.CounterVec
	skipped    *prometheus.CounterVec
	fuel       *prometheus.CounterVec
	wall       *prometheus.HistogramVec
	events     *prometheus.CounterVec
	unsent     *prometheus.CounterVec
}

// NewMetrics returns metrics of a host of the given build.
func NewMetrics(b Build) *Metrics {
	consumer := []string{"tenant", "consumer"}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "deliveries_total", Help: "Deliveries that ended, by verdict.",
		}, append(consumer, "verdict")),
		canaries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "canary_deliveries_total", Help: "Those of the deliveries that a canary ended, by verdict.",
		}, append(consumer, "verdict")),
		buried: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "messages_buried_total", Help: "Messages that became dead letters, by reason; those that expired have no consumer.",
		}, append(consumer, "reason")),
		skipped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "messages_skipped_total", Help: "Messages acknowledged without an effect, by reason.",
		}, append(consumer, "reason")),
		fuel: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "fuel_total", Help: "Guest instructions run.",
		}, consumer),
		wall: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "guest_call_duration_seconds", Help: "Wall time of guest calls.",
			Buckets: prometheus.ExponentialBuckets(0.000_05, 4, 10), // 50 µs to 13 s
		}, consumer),
	}
	m.events = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Name: "events_published_total", Help: "Lifecycle events published, by what they tell of.",
	}, append(consumer, "event"))
	m.unsent = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Name: "events_failed_total", Help: "Lifecycle events that could not be published, by reason.",
	}, append(consumer, "event", "reason"))
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "Which binary this is; always 1.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "go": b.Go},
	})
	info.Set(1)
	m.registry.MustRegister(m.deliveries, m.canaries, m.buried, m.skipped, m.fuel, m.wall, m.events, m.unsent, info, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Watch adds what a log and its consumers know. It is called once.
func (m *Metrics) Watch(log *substrate.Log, consumers func() []dispatcher.ConsumerStatus) {
	m.registry.MustRegister(&topicCollector{topics: log.Topics, now: time.Now},
		&groupCollector{topics: log.Topics, groups: log.Groups, now: time.Now},
		consumerCollector{consumers}, journalCollector{log.JournalStats})
}

// Forget drops the series of a tenant that is gone.
func (m *Metrics) Forget(tenant string) {
	of := prometheus.Labels{"tenant": tenant}
	for _, v := range []interface{ DeletePartialMatch(prometheus.Labels) int }{m.deliveries, m.buried, m.skipped, m.fuel, m.wall} {
		v.DeletePartialMatch(of)
	}
}

// WatchTenants adds what tenants use. It is called once.
func (m *Metrics) WatchTenants(tenants func() []Tenant) {
	m.registry.MustRegister(tenantCollector{tenants})
}

// Handler serves the metrics in Prometheus' text format.
func (m *Metrics) Handler(log *zap.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorLog: zap.NewStdLog(log), ErrorHandling: promhttp.ContinueOnError})
}

// OnDelivery counts one outcome.
func (m *Metrics) OnDelivery(r dispatcher.Receipt) {
	m.deliveries.WithLabelValues(r.Tenant, r.Consumer, r.Verdict).Inc()
	if r.Canary {
		m.canaries.WithLabelValues(r.Tenant, r.Consumer, r.Verdict).Inc()
	}
	m.fuel.WithLabelValues(r.Tenant, r.Consumer).Add(float64(max(0, r.Fuel)))
	if r.Wall > 0 {
		m.wall.WithLabelValues(r.Tenant, r.Consumer).Observe(r.Wall.Seconds())
	}
	if r.Verdict == substrate.Ack.String() && r.Reason != "" {
		m.skipped.WithLabelValues(r.Tenant, r.Consumer, reasonLabel(r.Reason)).Inc()
	}
	if r.Verdict == substrate.Bury.String() {
		m.buried.WithLabelValues(r.Tenant, r.Consumer, reasonLabel(r.Reason)).Inc()
	}
}

// OnEvent counts one event.
func (m *Metrics) OnEvent(e dispatcher.EventOutcome) {
	if e.Failure != "" {
		m.unsent.WithLabelValues(e.Tenant, e.Consumer, string(e.Kind), e.Failure).Inc()
		return
	}
	m.events.WithLabelValues(e.Tenant, e.Consumer, string(e.Kind)).Inc()
}

// onExpired counts one message that expired.
func (m *Metrics) onExpired(d *substrate.DeadLetter) {
	m.buried.WithLabelValues(d.Tenant, "", reasonLabel(d.Reason)).Inc()
}

// reasonLabel is the class of a reason without its number: "exit 3" is "exit", and there are 2³² of those.
func reasonLabel(reason string) string {
	if strings.HasPrefix(reason, "exit ") {
		return "exit"
	}
	return reason
}
