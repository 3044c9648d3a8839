//! Escaping the rate limits under a credential for any id, by naming another id each time.

use countersign::config::Config;
use countersign::store::identity::credential::RoleName;
use serde_json::json;

use crate::support::push::{Socket, Stream};
use crate::support::{Cluster, envelope, request_id, sealed};

fn strict(config: &mut Config) {
    let rates = &mut config.rates;
    rates.enabled = true;
    (rates.reads, rates.reads_burst) = (1, 3);
    (rates.decisions, rates.decisions_burst) = (1, 3);
    (rates.submissions, rates.submissions_burst) = (1, 3);
    (rates.connects, rates.connects_burst) = (1, 1);
}

/// How many of these calls, each under an id of its own, are admitted before one is not.
async fn admitted(mut call: impl AsyncFnMut(usize) -> u16) -> usize {
    for number in 0..400 {
        if call(number).await == 429 {
            return number;
        }
    }
    panic!("never refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_and_channels_with_another_id_each_time_are_limited_as_a_whole() {
    let cluster = Cluster::with(1, strict).await;
    let key = cluster.key(&cluster.tenant, RoleName::Approver, None).await;
    let any = cluster.client(Some(&key));
    // Twenty times what one id may do at once, and what is added meanwhile.
    let expected = 60..=300;
    let reads = async |n| any.get(&format!("/v1/approvers/a-{n}/inbox")).await.status;
    let count = admitted(reads).await;
    assert!(expected.contains(&count), "reads: {count}");
    let keys = async |n| {
        let path = format!("/v1/approvers/b-{n}/inbox/unknown");
        any.delete(&path).await.status
    };
    let count = admitted(keys).await;
    assert!(expected.contains(&count), "decisions: {count}");
    let url = &cluster.nodes[0].url;
    let streams = async |n| {
        let id = format!("c-{n}");
        let opened = Stream::connect(url, "approvers", &id, &key, None).await;
        opened.err().unwrap_or(200)
    };
    let count = admitted(streams).await;
    assert!((20..=200).contains(&count), "channels: {count}");
    // A bound one next to it is not concerned.
    let alice = cluster.approver("alice").await;
    alice.inbox("").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_id_over_its_limit_does_not_use_up_that_of_the_others() {
    let cluster = Cluster::with(1, strict).await;
    let key = cluster.key(&cluster.tenant, RoleName::Approver, None).await;
    let any = cluster.client(Some(&key));
    let mut refused = 0;
    for _ in 0..200 {
        let answer = any.get("/v1/approvers/alice/inbox").await;
        refused += usize::from(answer.status == 429);
    }
    assert!(refused > 100, "{refused}");
    any.get("/v1/approvers/bob/inbox").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_that_name_another_id_each_time_are_limited_as_a_whole() {
    let cluster = Cluster::with(1, |config| {
        strict(config);
        config.rates.reads = 0;
    })
    .await;
    let key = cluster.key(&cluster.tenant, RoleName::Enforcer, None).await;
    let url = &cluster.nodes[0].url;
    let mut socket = Socket::connect(url, "enforcer", "build-bot", &key)
        .await
        .unwrap();
    let frames = async |n: usize| {
        let sender = json!({ "enforcerId": format!("bot-{n}") });
        let mut frame = envelope("artifact.submit", &request_id(), sender, sealed());
        frame["recipient"] = json!({ "approverId": format!("a-{n}") });
        socket.send(&frame).await;
        let answer = socket.expect().await;
        match answer["body"]["code"].as_str() {
            Some("PROTO_ERR_RATE_LIMITED") => 429,
            _ => 202,
        }
    };
    let count = admitted(frames).await;
    assert!((60..=300).contains(&count), "{count}");
}
