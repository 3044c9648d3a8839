//! Spans and metrics as a collector is sent them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use reqwest::Method;
use serde_json::json;
use tokio::net::TcpListener;

use crate::support::collector::{Collector, Told, hex, text};
use crate::support::exchanges::{delivered, parties};
use crate::support::push::{Socket, Stream};
use crate::support::scrape::scrape;
use crate::support::{Cluster, compact, request_id, sealed, until};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";
const PATIENCE: Duration = Duration::from_secs(20);

fn traceparent() -> String {
    format!("00-{TRACE}-{PARENT}-01")
}

/// Nodes that export to a collector.
async fn traced(nodes: usize, endpoint: &str, ratio: f64) -> Cluster {
    Cluster::with(nodes, |config| {
        endpoint.clone_into(&mut config.telemetry.otlp_endpoint);
        config.telemetry.export_seconds = 1;
        config.telemetry.sample_ratio = ratio;
    })
    .await
}

#[track_caller]
fn one<'a>(spans: &'a [Told], name: &str) -> &'a Told {
    let found: Vec<_> = spans.iter().filter(|told| told.span.name == name).collect();
    assert_eq!(found.len(), 1, "{name} in {spans:?}");
    found[0]
}

#[tokio::test(flavor = "multi_thread")]
async fn one_trace_shows_an_exchange_from_agent_to_human_and_back_across_nodes() {
    let collector = Collector::start().await;
    let cluster = traced(2, &collector.endpoint, 1.0).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let approver = cluster.approver("alice").await;
    let url = |node: usize| &cluster.nodes[node].url;
    let mut inbox = Stream::connect(url(1), "approvers", "alice", approver.client.key(), None)
        .await
        .unwrap();
    let mut outcome = Socket::connect(url(0), "enforcer", "build-bot", enforcer.client.key())
        .await
        .unwrap();

    let request = request_id();
    let submission = enforcer.submission(&request, "alice", sealed());
    let client = enforcer.client.on(0);
    let call = client.call(Method::POST, "/v1/artifacts").json(&submission);
    call.header("traceparent", &traceparent())
        .send()
        .await
        .expect(202);
    let (_, asked) = inbox.expect().await;
    let carried = asked["trace"]["traceparent"].as_str().unwrap().to_owned();
    // Neither the human nor the agent's ack says anything of a trace.
    approver
        .on(1)
        .decide(&request, compact("approve"))
        .await
        .expect(200);
    let told = outcome.expect_type("decision.deliver").await;
    assert_eq!(told["trace"]["traceparent"], carried.as_str());
    let message = told["msgId"].as_str().unwrap();
    enforcer.on(1).ack(&request, message).await.expect(200);

    until("the whole trace is exported", PATIENCE, async || {
        collector.trace(TRACE).len() >= 5
    })
    .await;
    let spans = collector.trace(TRACE);
    assert_eq!(spans.len(), 5, "{spans:?}");
    let submitted = one(&spans, "POST /v1/artifacts");
    assert_eq!(
        hex(&submitted.span.parent_span_id),
        PARENT,
        "the agent's span"
    );
    assert_eq!(submitted.node, "node-0");
    let own = hex(&submitted.span.span_id);
    assert_eq!(
        carried,
        format!("00-{TRACE}-{own}-01"),
        "what travels is the submission's span"
    );
    for (name, node) in [
        ("send approval.request", "node-1"),
        ("POST /v1/decisions", "node-1"),
        ("send decision.deliver", "node-0"),
        ("POST /v1/acks", "node-1"),
    ] {
        let told = one(&spans, name);
        assert_eq!(hex(&told.span.parent_span_id), own, "{name}");
        assert_eq!(told.node, node, "{name}");
        assert!(
            told.span.start_time_unix_nano <= told.span.end_time_unix_nano,
            "{name}"
        );
    }
    let attributes = &submitted.span.attributes;
    assert_eq!(
        text(attributes, "http.response.status_code").as_deref(),
        Some("202")
    );
    assert_eq!(
        text(attributes, "http.route").as_deref(),
        Some("/v1/artifacts")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_have_spans_too_and_another_trace_is_linked() {
    let collector = Collector::start().await;
    let cluster = traced(1, &collector.endpoint, 1.0).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let approver = cluster.approver("alice").await;
    let url = &cluster.nodes[0].url;
    let mut socket = Socket::connect(url, "enforcer", "build-bot", enforcer.client.key())
        .await
        .unwrap();
    let request = request_id();
    let mut submission = enforcer.submission(&request, "alice", sealed());
    submission["trace"] = json!({ "traceparent": traceparent() });
    socket.send(&submission).await;
    assert_eq!(socket.expect().await["msgType"], "artifact.accepted");
    let elsewhere = "11111111111111111111111111111111";
    let decision = approver.decision(&request, compact("approve"));
    let call = approver
        .client
        .call(Method::POST, "/v1/decisions")
        .json(&decision);
    let from = format!("00-{elsewhere}-2222222222222222-01");
    call.header("traceparent", &from).send().await.expect(200);
    until("both traces are exported", PATIENCE, async || {
        collector.trace(TRACE).len() >= 2 && !collector.trace(elsewhere).is_empty()
    })
    .await;
    let spans = collector.trace(TRACE);
    assert_eq!(
        hex(&one(&spans, "artifact.submit").span.parent_span_id),
        PARENT
    );
    assert_eq!(
        hex(&one(&spans, "send decision.deliver").span.parent_span_id),
        PARENT
    );
    let spans = collector.trace(elsewhere);
    let links = &one(&spans, "POST /v1/decisions").span.links;
    assert_eq!(links.len(), 1);
    assert_eq!(hex(&links[0].trace_id), TRACE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_that_fails_has_a_failed_span_and_one_that_is_refused_has_not() {
    let collector = Collector::start().await;
    let cluster = traced(1, &collector.endpoint, 1.0).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let url = &cluster.nodes[0].url;
    let mut socket = Socket::connect(url, "enforcer", "build-bot", enforcer.client.key())
        .await
        .unwrap();
    let refused = "11111111111111111111111111111111";
    let mut submission = enforcer.submission(&request_id(), "alice", json!({}));
    submission["trace"] = json!({ "traceparent": format!("00-{refused}-2222222222222222-01") });
    socket.send(&submission).await;
    assert_eq!(socket.expect().await["body"]["retryable"], false);
    cluster
        .database
        .run("alter table exchanges rename to exchanges_away")
        .await;
    let mut submission = enforcer.submission(&request_id(), "alice", sealed());
    submission["trace"] = json!({ "traceparent": traceparent() });
    socket.send(&submission).await;
    assert_eq!(socket.expect().await["msgType"], "error");
    until("both spans are exported", PATIENCE, async || {
        !collector.trace(TRACE).is_empty() && !collector.trace(refused).is_empty()
    })
    .await;
    let failed = |trace: &str| {
        let spans = collector.trace(trace);
        let status = one(&spans, "artifact.submit").span.status.clone();
        status.is_some_and(|status| status.code() == StatusCode::Error)
    };
    assert!(failed(TRACE), "the gateway's fault");
    assert!(!failed(refused), "the caller's");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_decides_what_of_its_own_is_recorded_and_the_ratio_the_rest() {
    let collector = Collector::start().await;
    let cluster = traced(1, &collector.endpoint, 0.0).await;
    let enforcer = cluster.enforcer("build-bot").await;
    enforcer
        .submit(&request_id(), "alice", sealed())
        .await
        .expect(202);
    let unsampled = format!("00-{TRACE}-{PARENT}-00");
    for parent in [unsampled, traceparent().replace(TRACE, &"3".repeat(32))] {
        let body = enforcer.submission(&request_id(), "alice", sealed());
        let call = enforcer
            .client
            .call(Method::POST, "/v1/artifacts")
            .json(&body);
        call.header("traceparent", &parent).send().await.expect(202);
    }
    until("the sampled call is exported", PATIENCE, async || {
        !collector.spans().is_empty()
    })
    .await;
    let traces: Vec<_> = collector
        .spans()
        .iter()
        .map(|told| hex(&told.span.trace_id))
        .collect();
    assert_eq!(traces, ["3".repeat(32)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_collector_gets_the_metrics_that_a_scrape_shows() {
    let collector = Collector::start().await;
    let cluster = Cluster::with(1, |config| {
        config
            .telemetry
            .otlp_endpoint
            .clone_from(&collector.endpoint);
        config.telemetry.otlp_headers = "x-tenant=our%20team, authorization=Bearer abc".into();
        config.telemetry.export_seconds = 1;
    })
    .await;
    let enforcer = cluster.enforcer("build-bot").await;
    for _ in 0..3 {
        enforcer
            .submit(&request_id(), "alice", sealed())
            .await
            .expect(202);
    }
    let exported = |name: &str| -> Option<Data> {
        let metrics = collector.metrics("node-0")?;
        let scope = &metrics.resource_metrics.first()?.scope_metrics.first()?;
        let found = scope.metrics.iter().find(|metric| metric.name == name)?;
        found.data.clone()
    };
    let transitions = async || -> Option<i64> {
        let Data::Sum(sum) = exported("countersign_exchange_transitions_total")? else {
            panic!("a counter is a sum")
        };
        assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
        let point = sum
            .data_points
            .into_iter()
            .find(|point| text(&point.attributes, "to").as_deref() == Some("pendingApproval"))?;
        match point.value? {
            Value::AsInt(count) => Some(count),
            other @ Value::AsDouble(_) => panic!("a count is whole: {other:?}"),
        }
    };
    until("the submissions are exported", PATIENCE, async || {
        transitions().await == Some(3)
    })
    .await;
    let Some(Data::Histogram(spread)) = exported("countersign_batch_rows") else {
        panic!("a histogram is one")
    };
    assert_eq!(spread.aggregation_temporality, 2);
    let mut points = spread.data_points.iter();
    let submitted =
        points.find(|one| text(&one.attributes, "statement").as_deref() == Some("submit"));
    let submitted = submitted.expect("the submissions' batches");
    assert_eq!(submitted.count, 3);
    assert_eq!(submitted.sum, Some(3.0), "one row each");
    assert_eq!(submitted.explicit_bounds[..3], [1.0, 2.0, 4.0]);
    assert_eq!(
        submitted.bucket_counts[..2],
        [3, 0],
        "a bound is in its bucket"
    );
    assert_eq!(
        submitted.bucket_counts.len(),
        submitted.explicit_bounds.len() + 1
    );
    assert_eq!(submitted.bucket_counts.iter().sum::<u64>(), submitted.count);
    let Some(Data::Gauge(limit)) = exported("countersign_pool_limit") else {
        panic!("a gauge is one")
    };
    let mut points = limit.data_points.iter();
    let requests = points.find(|one| text(&one.attributes, "pool").as_deref() == Some("requests"));
    assert_eq!(
        requests.and_then(|one| one.value),
        Some(Value::AsDouble(8.0))
    );
    let metrics = collector.metrics("node-0").unwrap();
    let described: BTreeMap<_, _> = metrics.resource_metrics[0].scope_metrics[0]
        .metrics
        .iter()
        .map(|metric| (metric.name.clone(), metric.description.clone()))
        .collect();
    assert_eq!(described, scrape(&cluster.nodes[0].metrics).await.helps);
    let sent = collector.sent();
    assert_eq!(sent[0].headers["x-tenant"], "our team");
    assert_eq!(sent[0].headers["authorization"], "Bearer abc");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_at_the_end_is_still_exported() {
    let collector = Collector::start().await;
    let mut cluster = Cluster::with(1, |config| {
        config
            .telemetry
            .otlp_endpoint
            .clone_from(&collector.endpoint);
        config.telemetry.export_seconds = 3_600;
    })
    .await;
    let enforcer = cluster.enforcer("build-bot").await;
    enforcer
        .submit(&request_id(), "alice", sealed())
        .await
        .expect(202);
    cluster.nodes.remove(0).stop().await;
    one(&collector.spans(), "POST /v1/artifacts");
    assert!(collector.metrics("node-0").is_some());
}

/// Whole exchanges, and how long they took.
async fn exchanges(cluster: &Cluster) -> Duration {
    let begun = Instant::now();
    let (enforcer, approver) = parties(cluster).await;
    for _ in 0..20 {
        delivered(&enforcer, &approver).await;
    }
    begun.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_or_silent_holds_up_nothing() {
    // Bound and never accepted: connections stand, and nobody answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = (
        format!("http://{}", silent.local_addr().unwrap()),
        Some(silent),
    );
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = (format!("http://{}", gone.local_addr().unwrap()), None);
    for (endpoint, _listener) in [silent, gone] {
        let mut cluster = traced(1, &endpoint, 1.0).await;
        assert!(exchanges(&cluster).await < Duration::from_secs(20));
        let metrics = cluster.nodes[0].metrics.clone();
        until("the failures are counted", PATIENCE, async || {
            let read = scrape(&metrics).await;
            let failed = [("signal", "traces"), ("outcome", "failed")];
            read.count("countersign_otlp_exports_total", &failed) >= 1.0
                && read.value("countersign_otlp_spans_dropped_total", &[]) >= 1.0
        })
        .await;
        let begun = Instant::now();
        cluster.nodes.remove(0).stop().await;
        assert!(
            begun.elapsed() < Duration::from_secs(8),
            "{:?}",
            begun.elapsed()
        );
    }
}
