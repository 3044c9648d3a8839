//! Every metric of a node: name, labels, buckets and help. `docs/telemetry.md` lists the same for
//! operators, and a test compares the two.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{self, Meter};
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use time::OffsetDateTime;

use super::instrument::{
    Counter, Gauge, Histogram, MetricDefinition, MetricFamily, MetricKind, MetricSeries,
    ObservedGauge, UpDownCounter, as_f64,
};
use super::process;
use super::provider::TelemetryProvider;
use crate::clock::Clock;
use crate::config;
use crate::protocol::error::Code;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::notification::NotificationKind;

/// From half a millisecond to half a minute: calls, statements, pushes.
const LATENCY: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];
/// From a second to a week: people's decisions.
const DECISION: &[f64] = &[
    1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 86_400.0, 604_800.0,
];
/// From a hundredth of a second to ten minutes: delays.
const LAG: &[f64] = &[0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 600.0];
const ROWS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

macro_rules! table {
    ($($field:ident: $type:ty = $name:literal [$($label:literal),*] $(in $bounds:ident)?, $help:literal;)+) => {
        pub struct Metrics {
            provider: TelemetryProvider,
            $(#[doc = $help] pub $field: $type),+
        }

        pub const DEFINITIONS: &[MetricDefinition] =
            &[$(table!(@definition $type, $name, [$($label),*], [$($bounds)?], $help)),+];

        impl Metrics {
            fn of(provider: TelemetryProvider) -> Self {
                let meter = provider.meter();
                Self {
                    provider,
                    $($field: <$type as MetricKind>::new(&meter, const {
                        &table!(@definition $type, $name, [$($label),*], [$($bounds)?], $help)
                    })),+
                }
            }
        }
    };
    (@definition $type:ty, $name:literal, [$($label:literal),*], [$($bounds:ident)?], $help:literal) => {
        MetricDefinition {
            name: $name,
            kind: <$type as MetricKind>::KIND,
            labels: &[$($label),*],
            bounds: table!(@bounds $($bounds)?),
            help: $help,
        }
    };
    (@bounds) => { &[] };
    (@bounds $bounds:ident) => { $bounds };
}

table! {
    requests: RequestMetrics = "countersign_http_request_duration_seconds" ["method", "route", "status"] in LATENCY,
        "Time from a request's headers to its answer's, by route and class of status.";
    frames: MetricFamily<Histogram, 2> = "countersign_frame_duration_seconds" ["type", "outcome"] in LATENCY,
        "Time from a WebSocket frame to the answer to it, by type of message.";
    refusals: MetricFamily<Counter, 1> = "countersign_refusals_total" ["code"],
        "Calls and frames refused, by error code.";
    unauthenticated: MetricFamily<Counter, 1> = "countersign_authentication_failures_total" ["reason"],
        "Calls without a valid credential, by what was wrong with it.";
    throttled: MetricFamily<Counter, 1> = "countersign_rate_limited_total" ["kind"],
        "Calls and frames over their rate limit, by kind of call.";
    connections: UpDownCounter = "countersign_connections" [],
        "Connections that clients have open.";
    turned_away: MetricFamily<Counter, 1> = "countersign_connections_refused_total" ["reason"],
        "Connections closed as soon as they were accepted.";
    cut: MetricFamily<Counter, 1> = "countersign_connections_closed_total" ["reason"],
        "Connections that the node closed, by what it no longer waited for.";
    tls_refused: Gauge = "countersign_tls_files_refused" [],
        "Whether the TLS files are no good, so that the node goes on with older ones, or a revocation list is past its next update (1), or neither (0).";
    body_memory: ObservedGauge<0> = "countersign_body_memory_bytes" [],
        "Memory that bodies, answers and pages of channels take.";
    body_memory_limit: ObservedGauge<0> = "countersign_body_memory_limit_bytes" [],
        "Most memory that bodies, answers and pages of channels may take.";
    memory_refused: MetricFamily<Counter, 1> = "countersign_memory_refused_total" ["share"],
        "Bodies, answers and pages that got no memory, by whose share was used up.";

    transitions: MetricFamily<Counter, 2> = "countersign_exchange_transitions_total" ["from", "to"],
        "Changes of state that this node wrote.";
    pending: Gauge = "countersign_exchanges_pending" [],
        "Exchanges that wait for a decision, in the whole cluster; counted up to 1000.";
    overdue: Gauge = "countersign_exchanges_overdue" [],
        "Exchanges past their time that no node has closed yet, in the whole cluster; counted up to 1000.";
    decision_latency: Histogram = "countersign_decision_latency_seconds" [] in DECISION,
        "Time from an exchange's acceptance to its decision, by the database's clock.";
    push_latency: MetricFamily<Histogram, 2> = "countersign_push_latency_seconds" ["type", "transport"] in LATENCY,
        "Time from a message's commit to its first being written to a channel that was open.";
    sent: MetricFamily<Counter, 2> = "countersign_messages_sent_total" ["type", "transport"],
        "Messages written to channels, repeats included.";
    channels: MetricFamily<UpDownCounter, 2> = "countersign_channels" ["transport", "role"],
        "Channels open on this node.";
    closed: MetricFamily<Counter, 1> = "countersign_channels_closed_total" ["reason"],
        "Channels that the gateway ended.";
    notifications: MetricFamily<Counter, 2> = "countersign_notifications_total" ["kind", "outcome"],
        "Notifications of approvers that were sent, by what came of it.";
    notification_delay: MetricFamily<Histogram, 1> = "countersign_notification_delay_seconds" ["kind"] in LAG,
        "Time from the oldest request that a notification is about to its delivery, by the database's clock.";
    waits: ObservedGauge<0> = "countersign_waits" [],
        "Waits under way on this node.";

    wake_healthy: ObservedGauge<0> = "countersign_wake_healthy" [],
        "Whether hints from other nodes arrive, or none are wanted (1); or the node polls because they do not (0).";
    canary: Histogram = "countersign_wake_canary_seconds" [] in LATENCY,
        "Time a canary takes through PostgreSQL and back.";
    hints_sent: Counter = "countersign_wake_notifications_sent_total" [],
        "Notifications sent to the other nodes, canaries included.";
    hints_heard: Counter = "countersign_wake_notifications_received_total" [],
        "Notifications heard, the node's own included.";
    copies: MetricFamily<Counter, 1> = "countersign_wake_copies_total" ["outcome"],
        "Copies of messages for channels of this node: kept for them; refused as too old or not needed any more; or unreadable.";
    missed: MetricFamily<Counter, 1> = "countersign_wake_missed_total" ["waiter"],
        "Messages over a second old that only the fallback poll found.";

    batch_rows: MetricFamily<Histogram, 1> = "countersign_batch_rows" ["statement"] in ROWS,
        "Rows that shared one statement.";
    batch_time: MetricFamily<Histogram, 1> = "countersign_batch_duration_seconds" ["statement"] in LATENCY,
        "Time a batch took, its wait for a connection included.";
    batch_trouble: MetricFamily<Counter, 2> = "countersign_batch_trouble_total" ["statement", "outcome"],
        "Batches that did not go through at once: tried again, or given up.";
    busy_rows: MetricFamily<Counter, 1> = "countersign_busy_rows_total" ["statement"],
        "Rows that another transaction had locked, each time they were tried.";
    pool_connections: ObservedGauge<2> = "countersign_pool_connections" ["pool", "state"],
        "Connections to PostgreSQL that are open.";
    pool_limit: ObservedGauge<1> = "countersign_pool_limit" ["pool"],
        "Most connections a pool may open.";
    pool_waiting: ObservedGauge<1> = "countersign_pool_waiting" ["pool"],
        "Calls that wait for a connection.";
    pool_acquire: MetricFamily<Histogram, 1> = "countersign_pool_acquire_seconds" ["pool"] in LATENCY,
        "Time until a connection was there, or was not.";

    sweep_time: MetricFamily<Histogram, 2> = "countersign_sweep_duration_seconds" ["sweep", "outcome"] in LATENCY,
        "Time a sweep took.";
    sweep_lag: MetricFamily<Histogram, 1> = "countersign_sweep_lag_seconds" ["sweep"] in LAG,
        "How late expiry was written down, decisions and outcomes were logged, and messages were offered again.";
    heartbeat_age: ObservedGauge<0> = "countersign_heartbeat_age_seconds" [],
        "Time since the node's lease was last renewed; its channels are taken for dead after 15 s.";
    clock_offset: Gauge = "countersign_clock_offset_seconds" [],
        "How far the database's clock is ahead of this node's.";

    exports: MetricFamily<Counter, 2> = "countersign_otlp_exports_total" ["signal", "outcome"],
        "Requests to the collector.";
    spans_dropped: Counter = "countersign_otlp_spans_dropped_total" [],
        "Spans that were not exported: too many at once, or a collector that was away.";

    build_info: MetricFamily<Gauge, 1> = "countersign_build_info" ["version"],
        "1, labelled with the version that runs.";
    started: Gauge = "countersign_start_time_seconds" [],
        "When the node was started, in seconds since 1970.";
    resident: ObservedGauge<0> = "countersign_resident_memory_bytes" [],
        "Memory of the process that is resident.";
    descriptors: ObservedGauge<0> = "countersign_open_descriptors" [],
        "File descriptors that the process has open.";
    descriptor_limit: ObservedGauge<0> = "countersign_descriptor_limit" [],
        "Most file descriptors that the process may have open.";
}

/// Types of frames that clients send; any other is `other`.
const FRAMES: [&str; 5] = [
    "artifact.submit",
    "decision.submit",
    "ack.submit",
    "prompt.ack",
    "hello",
];
/// Methods that routes take; any other is `other`.
const METHODS: [&str; 6] = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"];
/// The route of every path that matches no route.
pub const UNMATCHED: &str = "unmatched";

pub fn frame_label(msg_type: Option<&str>) -> &'static str {
    let known = FRAMES.into_iter().find(|known| Some(*known) == msg_type);
    known.unwrap_or("other")
}

pub fn method_label(method: &str) -> &'static str {
    let known = METHODS.into_iter().find(|known| *known == method);
    known.unwrap_or("other")
}

/// The duration of requests. The routes are `http`'s, so its series are not bound: each call names
/// its labels.
pub struct RequestMetrics(metrics::Histogram<f64>);

impl RequestMetrics {
    /// Records a request. `route` is a template, so that no path becomes a label.
    pub fn took(&self, method: &'static str, route: &str, status: u16, time: Duration) {
        let labels = Self::labels(method, route, status);
        self.0.record(time.as_secs_f64(), &labels);
    }

    fn labels(method: &'static str, route: &str, status: u16) -> [KeyValue; 3] {
        let class = match status {
            ..200 => "1xx",
            200..300 => "2xx",
            300..400 => "3xx",
            400..500 => "4xx",
            500.. => "5xx",
        };
        [
            KeyValue::new("method", method),
            KeyValue::new("route", route.to_owned()),
            KeyValue::new("status", class),
        ]
    }
}

impl MetricKind for RequestMetrics {
    const KIND: &'static str = <Histogram as MetricSeries>::KIND;

    fn new(meter: &Meter, definition: &'static MetricDefinition) -> Self {
        let instrument = Histogram::instrument(meter, definition);
        // Binding creates a series, at zero, so that the metric is listed from the start.
        let _bound = instrument.bind(&Self::labels("GET", UNMATCHED, 404));
        Self(instrument)
    }
}

impl Metrics {
    /// Metrics outside a node, read as Prometheus does.
    pub fn new(clock: &Clock) -> Self {
        Self::of_node(&config::Telemetry::default(), "", clock)
    }

    pub fn of_node(config: &config::Telemetry, node: &str, clock: &Clock) -> Self {
        let metrics = Self::of(TelemetryProvider::new(config, node, DEFINITIONS));
        metrics.start_at_zero();
        let now = clock.now().inner() - OffsetDateTime::UNIX_EPOCH;
        metrics.started.set(now.as_seconds_f64());
        metrics.build_info.of([env!("CARGO_PKG_VERSION")]).set(1.0);
        metrics
    }

    pub fn print(&self) -> Result<String, prometheus::Error> {
        self.provider.print()
    }

    pub fn collect(&self) -> ResourceMetrics {
        self.provider.collect()
    }

    /// Creates the series whose labels are known, so that their first increase is seen as one.
    fn start_at_zero(&self) {
        let process = [
            (&self.resident, process::resident_bytes as fn() -> _),
            (&self.descriptors, process::open_descriptors),
            (&self.descriptor_limit, process::max_descriptors),
        ];
        for (gauge, read) in process {
            gauge.observe([], move || Some(as_f64(read().unwrap_or_default())));
        }
        // One of many series, so that the metric is listed from the start.
        self.frames.of(["artifact.submit", "accepted"]);
        self.sweep_time.of(["expiry", "ok"]);
        for signal in ["metrics", "traces"] {
            for outcome in ["ok", "failed"] {
                self.exports.of([signal, outcome]);
            }
        }
        for code in Code::ALL {
            self.refusals.of([code.as_str()]);
        }
        let pending = ExchangeState::PendingApproval;
        for (from, to) in [
            ("none", pending),
            (pending.as_str(), ExchangeState::Decided),
            (ExchangeState::Decided.as_str(), ExchangeState::Delivered),
            (pending.as_str(), ExchangeState::Expired),
            (pending.as_str(), ExchangeState::Withdrawn),
            (pending.as_str(), ExchangeState::Cancelled),
        ] {
            self.transitions.of([from, to.as_str()]);
        }
        for transport in ["websocket", "sse"] {
            for role in ["enforcer", "approver"] {
                self.channels.of([transport, role]);
            }
            for kind in ["approval.request", "decision.deliver"] {
                self.push_latency.of([kind, transport]);
                self.sent.of([kind, transport]);
            }
        }
        for kind in NotificationKind::ALL.map(NotificationKind::as_str) {
            for outcome in ["delivered", "failed", "gone", "disabled"] {
                self.notifications.of([kind, outcome]);
            }
            self.notification_delay.of([kind]);
        }
        for sweep in ["expiry", "redelivery"] {
            self.sweep_lag.of([sweep]);
        }
        for (counter, values) in [
            (
                &self.unauthenticated,
                "missing malformed unknown secret revoked expired code token",
            ),
            (&self.copies, "kept refused unreadable"),
            (&self.missed, "approver enforcer exchange"),
            (&self.memory_refused, "node tenant identity"),
            (&self.turned_away, "full address proxy handshake"),
            (&self.cut, "idle headers unread full stopping"),
            (
                &self.closed,
                "drain credential replaced lease_lost slow silent unfinished full too_big",
            ),
            (
                &self.throttled,
                "submissions decisions acks reads connects body address tokens guesses",
            ),
        ] {
            for value in values.split(' ') {
                counter.of([value]);
            }
        }
    }
}
