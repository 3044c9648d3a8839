//! How much one caller may take of a node: each kind of call by itself, per credential and id,
//! before its body is read.

use std::net::IpAddr;
use std::time::Duration;

use countersign::clock::Clock;
use countersign::config::Config;
use countersign::gateway::admission::KeyedSemaphore;
use countersign::gateway::limit::{BucketTable, RateLimit};
use countersign::store::identity::credential::RoleName;
use serde_json::{Value, json};

use crate::support::push::{Socket, Stream};
use crate::support::{
    Answer, Approver, Client, Cluster, Enforcer, compact, envelope, now, raw, request_id, sealed,
    with,
};

/// Few calls, and a bucket that fills slowly: what a test does in between does not matter.
fn strict(config: &mut Config) {
    let rates = &mut config.rates;
    rates.enabled = true;
    (rates.submissions, rates.submissions_burst) = (1, 5);
    (rates.decisions, rates.decisions_burst) = (1, 3);
    (rates.acks, rates.acks_burst) = (1, 4);
    (rates.reads, rates.reads_burst) = (1, 40);
    (rates.connects, rates.connects_burst) = (1, 2);
    (rates.body_kib, rates.body_kib_burst) = (1, 400);
}

async fn scene(change: impl Fn(&mut Config)) -> (Cluster, Enforcer, Approver) {
    let cluster = Cluster::with(1, change).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    (cluster, enforcer, approver)
}

async fn submit(enforcer: &Enforcer) -> Answer {
    enforcer.submit(&request_id(), "alice", sealed()).await
}

/// Calls until it is refused, and says how often it was not.
async fn taken(mut call: impl AsyncFnMut() -> Answer) -> (usize, Answer) {
    for count in 0..50 {
        let answer = call().await;
        if answer.status == 429 {
            return (count, answer);
        }
    }
    panic!("never refused");
}

async fn unbound(cluster: &Cluster, role: RoleName) -> Client {
    let key = cluster.key(&cluster.tenant, role, None).await;
    cluster.client(Some(&key))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_submissions_is_throttled_and_keeps_nobody_else_waiting() {
    let (cluster, enforcer, approver) = scene(strict).await;
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    let (count, refused) = taken(async || submit(&enforcer).await).await;
    assert!((4..=6).contains(&count), "{count} and one before");
    let refused = refused.refused(429, "RATE_LIMITED");
    assert_eq!(refused.json()["body"]["retryable"], true);
    let after: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert_eq!(after, 1);
    assert_eq!(
        refused.header("ratelimit-policy"),
        Some("\"submissions\";q=5;w=5")
    );
    assert_eq!(refused.header("ratelimit"), Some("\"submissions\";r=0;t=1"));
    // Decisions, acks and reads go on, of the same enforcer and of others; so do others'
    // submissions.
    approver
        .decide(&request, compact("approve"))
        .await
        .expect(200);
    let delivered = enforcer.wait(&request, 5).await.expect(200).json();
    let message = delivered["msgId"].as_str().unwrap();
    enforcer.ack(&request, message).await.expect(200);
    let other = cluster.enforcer("other-bot").await;
    submit(&other).await.expect(202);
    // The same id under another credential has a bucket of its own: one leaked key cannot throttle
    // the rest.
    let again = cluster.enforcer("build-bot").await;
    submit(&again).await.expect(202);
    cluster.pass(Duration::from_secs(10));
    let (count, _) = taken(async || submit(&enforcer).await).await;
    assert!((5..=6).contains(&count), "{count} after a pause");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_call_has_a_limit_of_its_own() {
    let (cluster, enforcer, approver) = scene(strict).await;
    let (count, refused) = taken(async || approver.remove("unknown").await).await;
    assert!((3..=4).contains(&count), "decisions: {count}");
    assert!(refused.header("ratelimit").unwrap().contains("decisions"));
    let (count, refused) = taken(async || enforcer.ack("r", "m").await).await;
    assert!((4..=5).contains(&count), "acks: {count}");
    assert!(refused.header("ratelimit").unwrap().contains("acks"));
    let (count, _) = taken(async || approver.inbox("").await).await;
    assert!((40..=42).contains(&count), "reads: {count}");
    let admin = cluster.admin().await;
    let name = json!({ "role": "admin" });
    let (count, refused) =
        taken(async || admin.post("/platform/v1/credentials", &name).await).await;
    assert!((3..=4).contains(&count), "administration: {count}");
    assert_eq!(refused.header("content-type"), Some("application/json"));
    let event = json!({ "sessionId": "s", "eventType": "session.status", "state": "idle", "updatedAt": now() });
    let (count, _) = taken(async || enforcer.client.post("/v1/session/event", &event).await).await;
    assert!((5..=6).contains(&count), "session events: {count}");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_are_counted_by_their_size() {
    let (cluster, enforcer, _approver) = scene(strict).await;
    let large = || {
        let data = json!("A".repeat(150 << 10));
        with(&sealed(), "/ciphertext/data", data)
    };
    let submit_large =
        async |enforcer: &Enforcer| enforcer.submit(&request_id(), "alice", large()).await;
    submit_large(&enforcer).await.expect(202);
    submit_large(&enforcer).await.expect(202);
    let refused = submit_large(&enforcer).await.refused(429, "RATE_LIMITED");
    assert_eq!(
        refused.header("ratelimit-policy"),
        Some("\"body\";q=400;w=400")
    );
    // Small bodies still pass, and so do those of others.
    submit(&enforcer).await.expect(202);
    let other = cluster.enforcer("other-bot").await;
    submit_large(&other).await.expect(202);
    // Over a WebSocket they count in the same bucket.
    let url = &cluster.nodes[0].url;
    let socket = Socket::connect(url, "enforcer", "build-bot", enforcer.client.key()).await;
    let mut socket = socket.unwrap();
    let message = enforcer.submission(&request_id(), "alice", large());
    socket.send(&message).await;
    let answer = socket.expect().await;
    assert_eq!(answer["body"]["code"], "PROTO_ERR_RATE_LIMITED");
    cluster.pass(Duration::from_secs(400));
    submit_large(&enforcer).await.expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_may_be_opened_only_so_often() {
    let (cluster, enforcer, approver) = scene(strict).await;
    let url = &cluster.nodes[0].url;
    let mut channels = Vec::new();
    let refused = loop {
        match Socket::connect(url, "enforcer", "build-bot", enforcer.client.key()).await {
            Ok(socket) => channels.push(socket),
            Err(status) => break status,
        }
        assert!(channels.len() < 10, "never refused");
    };
    assert_eq!(refused, 429);
    assert!((2..=3).contains(&channels.len()));
    let key = approver.client.key();
    let mut streams = Vec::new();
    let refused = loop {
        match Stream::connect(url, "approvers", "alice", key, None).await {
            Ok(stream) => streams.push(stream),
            Err(status) => break status,
        }
        assert!(streams.len() < 10, "never refused");
    };
    assert_eq!(refused, 429);
    assert!((2..=3).contains(&streams.len()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_for_any_id_has_a_bucket_for_each() {
    let (cluster, _enforcer, _approver) = scene(strict).await;
    let any = unbound(&cluster, RoleName::Enforcer).await;
    let submit_as = async |id: &str| {
        let mut message = envelope(
            "artifact.submit",
            &request_id(),
            json!({ "enforcerId": id }),
            sealed(),
        );
        message["recipient"] = json!({ "approverId": "alice" });
        any.post("/v1/artifacts", &message).await
    };
    for id in ["one", "two"] {
        let (count, _) = taken(async || submit_as(id).await).await;
        assert!((5..=6).contains(&count), "{id}: {count}");
    }
    let any = unbound(&cluster, RoleName::Approver).await;
    for id in ["alice", "bob"] {
        let path = format!("/v1/approvers/{id}/inbox/unknown");
        let (count, _) = taken(async || any.delete(&path).await).await;
        assert!((3..=4).contains(&count), "{id}: {count}");
        let decide = async || {
            let sender = json!({ "approverId": id });
            let message = envelope("decision.submit", "r", sender, compact("approve"));
            any.post("/v1/decisions", &message).await
        };
        // A path that names the id and a body that does fill the same bucket.
        assert_eq!(decide().await.status, 429);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_throttled_call_is_refused_before_its_body_is_read() {
    let (cluster, enforcer, _approver) = scene(strict).await;
    taken(async || submit(&enforcer).await).await;
    let head = format!(
        "POST /v1/artifacts HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\nauthorization: Bearer {}",
        enforcer.client.key()
    );
    let answer = raw::send(&cluster.urls()[0], &head, b"").await;
    answer.refused(429, "RATE_LIMITED");
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_count_like_calls() {
    let (cluster, enforcer, _approver) = scene(strict).await;
    let url = &cluster.nodes[0].url;
    let any = cluster.key(&cluster.tenant, RoleName::Enforcer, None).await;
    for key in [enforcer.client.key(), any.as_str()] {
        let mut socket = Socket::connect(url, "enforcer", "build-bot", key)
            .await
            .unwrap();
        let mut outcomes: Vec<Value> = Vec::new();
        for _ in 0..8 {
            socket
                .send(&enforcer.submission(&request_id(), "alice", sealed()))
                .await;
            let answer = socket.expect().await;
            outcomes.push(answer["body"]["code"].clone());
        }
        let refused = outcomes
            .iter()
            .filter(|code| **code == "PROTO_ERR_RATE_LIMITED")
            .count();
        assert!((2..=3).contains(&refused), "{outcomes:?}");
        let mut ack = enforcer.submission("r", "alice", sealed());
        ack["msgType"] = json!("ack.submit");
        ack["body"] = json!({ "msgId": "m", "status": "received", "ackAt": now() });
        socket.send(&ack).await;
        let answer = socket.expect().await;
        assert_eq!(answer["body"]["code"], "PROTO_ERR_NOT_FOUND", "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_can_be_switched_off_one_by_one_and_all_at_once() {
    let (_cluster, enforcer, _approver) = scene(|config| {
        strict(config);
        config.rates.submissions = 0;
    })
    .await;
    for _ in 0..20 {
        submit(&enforcer).await.expect(202);
    }
    let (_cluster, enforcer, approver) = scene(|config| {
        strict(config);
        config.rates.enabled = false;
    })
    .await;
    for _ in 0..20 {
        submit(&enforcer).await.expect(202);
        approver.remove("unknown").await.refused(404, "NOT_FOUND");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_a_limit_before_anyone_is_known() {
    let cluster = Cluster::with(1, |config| {
        config.rates.enabled = true;
        (config.rates.address, config.rates.address_burst) = (1, 5);
        config.tls.mode = countersign::config::TlsMode::Upstream;
        config.tls.proxies = vec![IpAddr::from([127, 0, 0, 1]).into()];
    })
    .await;
    let nobody = cluster.client(None);
    let from = async |address: &str, path: &str| {
        nobody
            .call(reqwest::Method::GET, path)
            .header("x-forwarded-proto", "https")
            .header("x-forwarded-for", address)
            .header("authorization", "Bearer nonsense")
            .send()
            .await
    };
    for path in ["/v1/approvers/alice/inbox", "/v1/status"] {
        let address = if path == "/v1/status" {
            "192.0.2.7"
        } else {
            "192.0.2.8"
        };
        let (count, refused) = taken(async || from(address, path).await).await;
        assert!((5..=6).contains(&count), "{count}");
        assert!(refused.header("ratelimit").unwrap().contains("address"));
    }
    // Someone else, and the rest of one's own /64.
    let (count, _) = taken(async || from("2001:db8::1", "/v1/status").await).await;
    assert!((5..=6).contains(&count), "{count}");
    assert_eq!(from("2001:db8::2", "/v1/status").await.status, 429);
    from("2001:db8:0:1::2", "/v1/status").await.expect(200);
    for path in ["/livez", "/readyz"] {
        for _ in 0..10 {
            assert_ne!(from("192.0.2.7", path).await.status, 429, "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_counts_too() {
    let (cluster, _enforcer, _approver) = scene(strict).await;
    let any = unbound(&cluster, RoleName::Enforcer).await;
    let mut refused = None;
    for count in 0..200 {
        let answer = any.post("/v1/artifacts", &json!({})).await;
        if answer.status == 429 {
            refused = Some(count);
            break;
        }
        answer.refused(400, "VALIDATION");
    }
    // Twenty times what one id may do at once.
    assert!(
        refused.is_some_and(|count| (100..150).contains(&count)),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_not_call_at_all_is_told_that_and_not_to_wait() {
    let (_cluster, enforcer, approver) = scene(strict).await;
    taken(async || approver.inbox("").await).await;
    taken(async || approver.remove("unknown").await).await;
    for path in ["/v1/approvers/bob/inbox", "/platform/v1/approvers/bob/keys"] {
        approver.client.get(path).await.refused(403, "FORBIDDEN");
    }
    let removed = approver.client.delete("/v1/approvers/bob/inbox/x").await;
    removed.refused(403, "FORBIDDEN");
    // Its own still waits.
    approver.inbox("").await.refused(429, "RATE_LIMITED");
    let url = enforcer.client.url(0);
    let key = enforcer.client.key();
    let stream = async |id: &str| Stream::connect(url, "enforcers", id, key, None).await.err();
    let _open = [stream("build-bot").await, stream("build-bot").await];
    assert_eq!(stream("build-bot").await, Some(429));
    assert_eq!(stream("other-bot").await, Some(403));
}

#[test]
fn a_flood_of_new_callers_resets_no_busy_one() {
    let (rate, now) = (
        RateLimit {
            per_second: 1,
            burst: 5,
        },
        Clock::system().now(),
    );
    let buckets = BucketTable::new(1_000);
    let take = |caller: u64| buckets.take(&caller, rate, now).is_ok();
    let granted = |caller| (0..10).filter(|_| take(caller)).count();
    // One goes on calling during the flood, the other has called before it.
    let (calling, silent) = (0, 1);
    assert_eq!((granted(calling), granted(silent)), (5, 5));
    for caller in 2..100_000 {
        assert!(take(caller), "a new caller has a full bucket");
        if caller % 500 == 0 {
            assert!(!take(calling), "it was reset after {caller} others");
        }
    }
    assert!(!take(calling) && !take(silent));
}

#[tokio::test]
async fn a_key_has_permits_of_its_own_for_as_long_as_one_is_held() {
    let turns = KeyedSemaphore::new(1);
    let held = turns.of(&0).acquire_owned().await.unwrap();
    // However many others come and go.
    for other in 1..10_000 {
        assert!(turns.of(&other).try_acquire().is_ok());
    }
    assert!(turns.of(&0).try_acquire().is_err());
    drop(held);
    assert!(turns.of(&0).try_acquire().is_ok());
}
