//! `/metrics` after traffic: the figures are the traffic's, and no caller decides how many series
//! there are.

use std::time::Duration;

use countersign::config::WakeMode;
use reqwest::Method;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::support::push::{Socket, Stream};
use crate::support::scrape::{Scrape, scrape, whole};
use crate::support::{Cluster, compact, get, http, request_id, sealed, sealed_for, until};

const REQUESTS: &str = "countersign_http_request_duration_seconds_count";
const TRANSITIONS: &str = "countersign_exchange_transitions_total";

/// The sum over the nodes of one sample.
async fn sum(cluster: &Cluster, name: &str, labels: &[(&str, &str)]) -> u64 {
    let mut sum = 0.0;
    for node in &cluster.nodes {
        sum += scrape(&node.metrics).await.count(name, labels);
    }
    whole(sum)
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_on_three_nodes_are_those_of_the_traffic() {
    let cluster = Cluster::start(3).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let approver = cluster.approver("alice").await;
    let url = |node: usize| &cluster.nodes[node].url;
    let mut stream = Stream::connect(url(1), "approvers", "alice", approver.client.key(), None)
        .await
        .unwrap();
    let mut socket = Socket::connect(url(2), "enforcer", "build-bot", enforcer.client.key())
        .await
        .unwrap();

    let requests: Vec<_> = (0..4).map(|_| request_id()).collect();
    for request in &requests {
        let submitted = enforcer.on(0).submit(request, "alice", sealed()).await;
        submitted.expect(202);
    }
    // A repeat is no transition.
    enforcer
        .on(0)
        .submit(&requests[0], "alice", sealed())
        .await
        .expect(202);
    for _ in &requests {
        stream.expect().await;
    }
    for request in &requests[..2] {
        approver
            .on(1)
            .decide(request, compact("approve"))
            .await
            .expect(200);
        let delivered = socket.expect_type("decision.deliver").await;
        let message = delivered["msgId"].as_str().unwrap();
        enforcer.on(2).ack(request, message).await.expect(200);
        enforcer.on(0).ack(request, message).await.expect(200);
    }
    approver
        .on(1)
        .decide(&requests[0], compact("reject"))
        .await
        .expect(409);
    enforcer.on(0).withdraw(&requests[2]).await.expect(200);

    let scrapes = [
        scrape(&cluster.nodes[0].metrics).await,
        scrape(&cluster.nodes[1].metrics).await,
        scrape(&cluster.nodes[2].metrics).await,
    ];
    let all = |name: &str, labels: &[(&str, &str)]| {
        scrapes.each_ref().map(|one| whole(one.count(name, labels)))
    };
    let route = |method, route, status| {
        all(
            REQUESTS,
            &[("method", method), ("route", route), ("status", status)],
        )
    };
    assert_eq!(route("POST", "/v1/artifacts", "2xx"), [5, 0, 0]);
    assert_eq!(route("POST", "/v1/decisions", "2xx"), [0, 2, 0]);
    assert_eq!(route("POST", "/v1/decisions", "4xx"), [0, 1, 0]);
    assert_eq!(route("POST", "/v1/acks", "2xx"), [2, 0, 2]);
    assert_eq!(
        route("POST", "/v1/exchanges/{requestId}/withdraw", "2xx"),
        [1, 0, 0]
    );
    assert_eq!(
        all("countersign_refusals_total", &[("code", "ALREADY_DECIDED")]),
        [0, 1, 0]
    );
    let transition = |from, to| all(TRANSITIONS, &[("from", from), ("to", to)]);
    assert_eq!(transition("none", "pendingApproval"), [4, 0, 0]);
    assert_eq!(transition("pendingApproval", "decided"), [0, 2, 0]);
    assert_eq!(transition("decided", "delivered"), [0, 0, 2]);
    assert_eq!(transition("pendingApproval", "withdrawn"), [1, 0, 0]);
    assert_eq!(
        all("countersign_decision_latency_seconds_count", &[]),
        [0, 2, 0]
    );
    let sse = [("type", "approval.request"), ("transport", "sse")];
    assert_eq!(
        all("countersign_push_latency_seconds_count", &sse),
        [0, 4, 0]
    );
    assert_eq!(all("countersign_messages_sent_total", &sse), [0, 4, 0]);
    let ws = [("type", "decision.deliver"), ("transport", "websocket")];
    assert_eq!(
        all("countersign_push_latency_seconds_count", &ws),
        [0, 0, 2]
    );
    let channels = |transport, role| {
        all(
            "countersign_channels",
            &[("transport", transport), ("role", role)],
        )
    };
    assert_eq!(channels("sse", "approver"), [0, 1, 0]);
    assert_eq!(channels("websocket", "enforcer"), [0, 0, 1]);
    let batches = |name: &str| all(name, &[("statement", "decide")]);
    assert_eq!(batches("countersign_batch_rows_sum"), [0, 3, 0]);
    assert_eq!(batches("countersign_batch_rows_count"), [0, 3, 0]);
    for one in &scrapes[1..] {
        assert!(
            one.value("countersign_connections", &[]) >= 1.0,
            "its channel's"
        );
    }
    for one in &scrapes {
        assert_sane(one);
    }

    drop((stream, socket));
    until(
        "the channels are off the books",
        Duration::from_secs(10),
        async || {
            sum(
                &cluster,
                "countersign_channels",
                &[("transport", "sse"), ("role", "approver")],
            )
            .await
                == 0
                && sum(
                    &cluster,
                    "countersign_channels",
                    &[("transport", "websocket"), ("role", "enforcer")],
                )
                .await
                    == 0
        },
    )
    .await;
}

/// Invariants of any healthy node.
fn assert_sane(scrape: &Scrape) {
    let gauge = |name: &str| scrape.value(name, &[]);
    assert!((gauge("countersign_wake_healthy") - 1.0).abs() < 0.1);
    assert!(gauge("countersign_heartbeat_age_seconds") < 10.0);
    assert!(
        gauge("countersign_clock_offset_seconds").abs() < 1.0,
        "one machine, one clock"
    );
    assert!(gauge("countersign_resident_memory_bytes") > 1e6);
    assert!(gauge("countersign_open_descriptors") > 5.0);
    assert!(gauge("countersign_wake_canary_seconds_count") >= 1.0);
    assert!(gauge("countersign_wake_notifications_received_total") >= 1.0);
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    assert!((scrape.value("countersign_build_info", &version) - 1.0).abs() < 0.1);
    assert!((scrape.value("countersign_pool_limit", &[("pool", "requests")]) - 8.0).abs() < 0.1);
    let open = |state| {
        let labels = [("pool", "requests"), ("state", state)];
        scrape.value("countersign_pool_connections", &labels)
    };
    assert!((1.0..=8.0).contains(&(open("idle") + open("used"))));
    let waiting = scrape.value("countersign_pool_waiting", &[("pool", "requests")]);
    assert_eq!(whole(waiting), 0, "nobody is in a hurry");
    assert!(
        scrape.value(
            "countersign_pool_acquire_seconds_count",
            &[("pool", "requests")]
        ) >= 1.0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn expiry_is_counted_with_its_lag_and_what_is_pending_is_counted() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    for life in [30, 30, 3_600] {
        let body = sealed_for(Duration::from_secs(life));
        enforcer
            .submit(&request_id(), "alice", body)
            .await
            .expect(202);
    }
    cluster.pass(Duration::from_secs(40));
    let expired = [("from", "pendingApproval"), ("to", "expired")];
    until("both have expired", Duration::from_secs(10), async || {
        sum(&cluster, TRANSITIONS, &expired).await == 2
    })
    .await;
    let read = scrape(&cluster.nodes[0].metrics).await;
    let lag = read.value("countersign_sweep_lag_seconds_sum", &[("sweep", "expiry")]);
    assert!(
        (20.0..60.0).contains(&lag),
        "two that are ten seconds late: {lag}"
    );
    until(
        "the census has been by",
        Duration::from_secs(30),
        async || sum(&cluster, "countersign_exchanges_pending", &[]).await == 1,
    )
    .await;
    assert_eq!(sum(&cluster, "countersign_exchanges_overdue", &[]).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_cannot_multiply_series() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let mut socket = {
        let url = &cluster.nodes[0].url;
        Socket::connect(url, "enforcer", "build-bot", enforcer.client.key())
            .await
            .unwrap()
    };
    let shake = async |socket: &mut Socket, round: usize| {
        for number in 0..20 {
            let word = format!("hostile-{round}-{number}");
            for path in [
                format!("/{word}"),
                format!("/v1/exchanges/{word}"),
                format!("/v1/exchanges/{word}/wait?timeout={word}"),
                format!("/v1/approvers/{word}/inbox?cursor={word}"),
            ] {
                enforcer.client.get(&path).await;
            }
            let method = Method::from_bytes(format!("M{round}X{number}").as_bytes()).unwrap();
            enforcer.client.call(method, "/v1/artifacts").send().await;
            socket
                .send(&json!({ "msgType": word, "msgId": word }))
                .await;
            assert_eq!(socket.expect().await["msgType"], "error");
        }
    };
    let series = async || -> Vec<String> {
        let answer = get(&cluster.nodes[0].metrics).await.unwrap();
        let text = answer.text().await.unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| line.rsplit_once(' ').unwrap().0.to_owned())
            .collect()
    };
    // The node adds series of its own as its background work first happens. A caller's would grow
    // with every round.
    let mut before = Vec::new();
    let mut after = Vec::new();
    for round in 0..20 {
        shake(&mut socket, round).await;
        (before, after) = (after, series().await);
        if before == after {
            break;
        }
    }
    assert_eq!(before, after);
    let after = after.join("\n");
    assert!(
        !after.contains("hostile") && !after.contains("M0X") && !after.contains("M1X"),
        "{after}"
    );
    assert!(after.contains(r#"route="unmatched""#) && after.contains(r#"type="other""#));
    assert!(after.contains(r#"method="other",route="/v1/artifacts""#));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_listener_shows_metrics_and_nothing_else() {
    let cluster = Cluster::start(1).await;
    let url = &cluster.nodes[0].metrics;
    let base = url.strip_suffix("/metrics").unwrap();
    let http = http().build().unwrap();
    for (method, path) in [
        (Method::GET, "/"),
        (Method::GET, "/v1/status"),
        (Method::GET, "/metrics/more"),
        (Method::POST, "/metrics"),
        (Method::DELETE, "/metrics"),
    ] {
        let answer = http
            .request(method, format!("{base}{path}"))
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 404, "{path}");
        assert_eq!(answer.text().await.unwrap(), "");
    }
    // A page on this machine that leads its own name to loopback reads none.
    for (host, status) in [
        ("evil.example.com", 421),
        ("127.0.0.1.evil.example.com:9464", 421),
        ("localhost:9464", 200),
        ("[::1]:9464", 200),
        ("127.0.0.1", 200),
    ] {
        let answer = http.get(url).header("host", host).send().await.unwrap();
        assert_eq!(answer.status(), status, "{host}");
    }
    // And the door of callers shows none.
    let answer = http
        .get(format!("{}/metrics", cluster.nodes[0].url))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn news_that_only_the_net_brings_count_as_missed() {
    let cluster = Cluster::with(2, |config| {
        config.wake.sweep_ms = 4_000;
        // The first node tells nobody.
        if config.node.id == "node-0" {
            config.wake.mode = WakeMode::Poll;
        }
    })
    .await;
    let enforcer = cluster.enforcer("build-bot").await;
    let approver = cluster.approver("alice").await;
    let url = &cluster.nodes[1].url;
    let mut stream = Stream::connect(url, "approvers", "alice", approver.client.key(), None)
        .await
        .unwrap();
    let missed = async || {
        sum(
            &cluster,
            "countersign_wake_missed_total",
            &[("waiter", "approver")],
        )
        .await
    };
    // Told by its own node, it is not missed.
    enforcer
        .on(1)
        .submit(&request_id(), "alice", sealed())
        .await
        .expect(202);
    stream.expect().await;
    assert_eq!(missed().await, 0);
    // The net may come by within the second that is not late.
    for _ in 0..5 {
        enforcer
            .on(0)
            .submit(&request_id(), "alice", sealed())
            .await
            .expect(202);
        stream.expect().await;
    }
    assert!((1..=5).contains(&missed().await), "{}", missed().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_counted_by_kind() {
    let cluster = Cluster::with(1, |config| {
        config.rates.enabled = true;
        config.rates.submissions = 1;
        config.rates.submissions_burst = 2;
        config.server.max_connections_per_address = 3;
    })
    .await;
    let enforcer = cluster.enforcer("build-bot").await;
    for _ in 0..2 {
        enforcer
            .submit(&request_id(), "alice", sealed())
            .await
            .expect(202);
    }
    enforcer
        .submit(&request_id(), "alice", sealed())
        .await
        .expect(429);
    assert_eq!(
        sum(
            &cluster,
            "countersign_rate_limited_total",
            &[("kind", "submissions")]
        )
        .await,
        1
    );
    assert_eq!(
        sum(
            &cluster,
            "countersign_refusals_total",
            &[("code", "RATE_LIMITED")]
        )
        .await,
        1
    );
    let address = cluster.nodes[0].url.strip_prefix("http://").unwrap();
    let mut held = Vec::new();
    for _ in 0..5 {
        held.push(TcpStream::connect(address).await.unwrap());
    }
    let refused = [("reason", "address")];
    until(
        "those without a seat are turned away",
        Duration::from_secs(10),
        async || sum(&cluster, "countersign_connections_refused_total", &refused).await >= 2,
    )
    .await;
    assert_eq!(sum(&cluster, "countersign_connections", &[]).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_the_node_closes_are_counted_by_reason() {
    let cluster = Cluster::with(1, |config| {
        config.server.header_timeout_seconds = 1;
        config.server.idle_timeout_seconds = 5;
    })
    .await;
    let address = cluster.nodes[0].url.strip_prefix("http://").unwrap();
    let ask = "GET /livez HTTP/1.1\r\nHost: test\r\n\r\n";
    let trickled = format!("{ask}GET");
    let last = ask.replace("Host", "Connection: close\r\nHost");
    let mut held = Vec::new();
    for said in ["", ask, "GET /livez HTT", &trickled, &last] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(said.as_bytes()).await.unwrap();
        held.push(stream);
    }
    for (reason, count) in [("idle", 3), ("headers", 1), ("unread", 0), ("stopping", 0)] {
        let labels = [("reason", reason)];
        let name = "countersign_connections_closed_total";
        until(reason, Duration::from_secs(20), async || {
            sum(&cluster, name, &labels).await == count
        })
        .await;
    }
}
