//! Trace contexts: read as W3C writes them, and carried from a submission to its delivery whether
//! or not spans are made.

use countersign::protocol::trace::TraceContext;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::push::Socket;
use crate::support::{Cluster, compact, request_id, sealed};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn a_context_is_read_as_w3c_writes_it_or_not_at_all() {
    let known = TraceContext::parse(PARENT, Some("vendor=1")).expect("a context");
    assert_eq!(known.traceparent(), PARENT);
    assert_eq!(known.state.as_deref(), Some("vendor=1"));
    let unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    assert!(!TraceContext::parse(unsampled, None).unwrap().sampled);
    // A later version may say more.
    let later = "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-ever";
    assert_eq!(
        TraceContext::parse(later, None).unwrap().traceparent(),
        PARENT
    );
    for wrong in [
        "",
        "00",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333x-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
        "00-0af7651916cd43dd8448eb211c8031é-b7ad6b7169203331-01",
    ] {
        assert_eq!(TraceContext::parse(wrong, None), None, "{wrong}");
    }
    let long = "x".repeat(513);
    for state in ["", long.as_str(), "a=\u{1}"] {
        assert_eq!(
            TraceContext::parse(PARENT, Some(state)).unwrap().state,
            None
        );
    }
}

#[test]
fn a_context_is_added_to_a_trace_without_touching_the_rest() {
    let context = TraceContext::parse(PARENT, Some("a=\"b\"")).unwrap();
    let added = format!("\"traceparent\":\"{PARENT}\",\"tracestate\":\"a=\\\"b\\\"\"");
    let carried = |trace: Option<&str>| context.carried_by(trace.map(str::to_owned));
    assert_eq!(carried(None), format!("{{{added}}}"));
    assert_eq!(carried(Some("{ }")), format!("{{{added} }}"));
    assert_eq!(
        carried(Some("{ \"n\" : 1.50 }")),
        format!("{{{added}, \"n\" : 1.50 }}")
    );
    for own in [
        "{\"traceparent\": \"00-x\"}",
        "{\"tracestate\":null}",
        "{\"traceparent\":7}",
    ] {
        assert_eq!(carried(Some(own)), own);
    }
    for carrying in [
        carried(None),
        carried(Some("{ }")),
        carried(Some("{\"n\":1}")),
    ] {
        assert_eq!(
            TraceContext::of_trace(&carrying).as_ref(),
            Some(&context),
            "{carrying}"
        );
    }
}

/// A submission over REST with these headers, pushed, decided and delivered; returns both traces as
/// they arrived.
async fn exchanged(
    headers: &[(&str, &str)],
    trace: Option<Value>,
    decided: Option<Value>,
) -> [Value; 2] {
    let cluster = Cluster::start(2).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let approver = cluster.approver("alice").await;
    let url = |node: usize| &cluster.nodes[node].url;
    let mut inbox = Socket::connect(url(1), "approver", "alice", approver.client.key())
        .await
        .unwrap();
    let mut outcome = Socket::connect(url(1), "enforcer", "build-bot", enforcer.client.key())
        .await
        .unwrap();
    let request = request_id();
    let mut submission = enforcer.submission(&request, "alice", sealed());
    if let Some(trace) = trace {
        submission["trace"] = trace;
    }
    let client = enforcer.client.on(0);
    let mut call = client.call(Method::POST, "/v1/artifacts");
    for (name, value) in headers {
        call = call.header(name, value);
    }
    call.json(&submission).send().await.expect(202);
    let asked = inbox.expect_type("approval.request").await;
    let mut decision = approver.decision(&request, compact("approve"));
    if let Some(trace) = decided {
        decision["trace"] = trace;
    }
    approver
        .client
        .on(0)
        .post("/v1/decisions", &decision)
        .await
        .expect(200);
    let told = outcome.expect_type("decision.deliver").await;
    let waited = enforcer.wait(&request, 5).await.expect(200).json();
    assert_eq!(
        waited["trace"], told["trace"],
        "fetched or pushed, it is the same"
    );
    // Beside what the gateway says of the decision's signature.
    let mut told = told["trace"].clone();
    let members = told.as_object_mut().unwrap();
    assert_eq!(members.remove("verified"), Some(json!(false)));
    assert_eq!(members.remove("verification"), Some(json!("none")));
    let told = if members.is_empty() {
        Value::Null
    } else {
        told
    };
    [asked["trace"].clone(), told]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_from_headers_goes_with_the_exchange_to_its_delivery() {
    let headers = [("traceparent", PARENT), ("tracestate", "vendor=1")];
    let expected = json!({ "traceparent": PARENT, "tracestate": "vendor=1" });
    assert_eq!(
        exchanged(&headers, None, None).await,
        [expected.clone(), expected]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_says_in_its_envelope_is_not_touched() {
    let other = "00-11111111111111111111111111111111-2222222222222222-01";
    let (own, decided) = (
        json!({ "traceparent": other, "n": 1 }),
        json!({ "who": "alice" }),
    );
    let [asked, told] =
        exchanged(&[("traceparent", PARENT)], Some(own.clone()), Some(decided)).await;
    assert_eq!(asked, own);
    assert_eq!(told, json!({ "traceparent": other, "who": "alice" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_context_nothing_is_added() {
    let [asked, told] = exchanged(
        &[("traceparent", "00-nonsense"), ("tracestate", "a=1")],
        None,
        None,
    )
    .await;
    assert_eq!([asked, told], [Value::Null, Value::Null]);
}
