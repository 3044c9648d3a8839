//! Logs of requests: one line each, which names the trace it belongs to.

use std::fs::File;

use reqwest::Method;
use serde_json::Value;

use crate::support::process::{Process, countersign};
use crate::support::{Client, Cluster};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// A node's log, in this format, of two calls, the first of which has a trace.
async fn logged(format: &str) -> String {
    let cluster = Cluster::start(1).await;
    let directory = tempfile::tempdir().unwrap();
    let (ready, log) = (directory.path().join("ready"), directory.path().join("log"));
    let secret = crate::support::cluster::CLUSTER_SECRET;
    let mut process = Process::start(
        countersign()
            .args(["--database-url", &cluster.database.url])
            .args(["serve", "--listen", "127.0.0.1:0", "--ready-file"])
            .arg(&ready)
            .env("COUNTERSIGN_SECURITY__CLUSTER_SECRET", secret)
            .env("COUNTERSIGN_LOG__FORMAT", format)
            .env("COUNTERSIGN_LOG__FILTER", "info,countersign=debug")
            .stderr(File::create(&log).unwrap()),
    );
    let client = Client::new(vec![process.await_file(&ready)], None);
    let call = client.call(Method::GET, "/v1/exchanges/some-id?secret=yes");
    let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
    call.header("traceparent", &parent).send().await.expect(401);
    client.get("/v1/status").await.expect(200);
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(
        !text.contains("some-id") && !text.contains("secret=yes"),
        "{text}"
    );
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_logged_with_its_route_and_its_trace() {
    let text = logged("json").await;
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let served: Vec<_> = lines.filter(|line| line["message"] == "served").collect();
    assert_eq!(served.len(), 2, "{text}");
    assert_eq!(served[0]["route"], "/v1/exchanges/{requestId}");
    assert_eq!(served[0]["method"], "GET");
    assert_eq!(served[0]["status"], 401);
    assert_eq!(served[0]["trace_id"], TRACE);
    assert_eq!(served[0]["span_id"], "b7ad6b7169203331");
    assert_eq!(served[1].get("trace_id"), None, "there is none");
}

#[tokio::test(flavor = "multi_thread")]
async fn people_get_a_line_of_words_without_colours_in_a_file() {
    let text = logged("pretty").await;
    let served: Vec<_> = text
        .lines()
        .filter(|line| line.contains("DEBUG served "))
        .collect();
    assert_eq!(served.len(), 2, "{text}");
    for part in [
        "method=\"GET\"",
        "route=\"/v1/exchanges/{requestId}\"",
        "status=401",
        &format!("trace_id=\"{TRACE}\""),
    ] {
        assert!(served[0].contains(part), "{part} in {}", served[0]);
    }
    assert!(!served[1].contains("trace_id"), "{}", served[1]);
    assert!(!text.contains('\u{1b}'), "{text}");
}
