//! A gateway that changes what it carries. Nothing of it can be approved, and nothing reaches the
//! terminal raw.

use countersign::client::ClientError;
use countersign::protocol::decision::Verdict;
use serde_json::{Value, json};

use super::people::{ClientScene, answers, ask, choice, command, pair, question};
use super::tamper::Tamper;

type Change = Box<dyn Fn(&mut Value) + Send + Sync>;

/// Changes the body of each item in an inbox.
async fn lying_inbox(node: &str, change: impl Fn(&mut Value) + Send + Sync + 'static) -> Tamper {
    Tamper::start(node, move |path, answer| {
        if path.contains("/inbox") {
            for item in answer["body"]["items"].as_array_mut().into_iter().flatten() {
                change(item);
            }
        }
    })
    .await
}

fn flip(text: &mut Value) {
    let old = text.as_str().unwrap();
    let first = if old.starts_with('A') { "B" } else { "A" };
    *text = format!("{first}{}", &old[1..]).into();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_that_was_changed_on_the_way_cannot_be_approved() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    let mut other = world.enforcer("other").await;
    pair(&mut other, &mut alice).await;
    let node = world.cluster.urls()[0].clone();
    let asked = ask(enforcer, question(command(&["git", "push"])), &alice).await;

    let cases: Vec<(&str, Change)> = vec![
        (
            "its hash",
            Box::new(|item| item["body"]["artifactHash"] = "0".repeat(64).into()),
        ),
        (
            "its type",
            Box::new(|item| item["body"]["artifactType"] = "plan.review".into()),
        ),
        (
            "its end",
            Box::new(|item| item["body"]["expiresAt"] = "2099-01-01T00:00:00Z".into()),
        ),
        (
            "its enforcer",
            Box::new(|item| item["body"]["enforcerId"] = "other".into()),
        ),
        (
            "a stranger",
            Box::new(|item| item["body"]["enforcerId"] = "stranger".into()),
        ),
        (
            "its id",
            Box::new(|item| {
                item["requestId"] = "01J2V8V3K6B2Z9X6G1V7Y2QK8H".into();
            }),
        ),
        (
            "its content",
            Box::new(|item| flip(&mut item["body"]["ciphertext"]["data"])),
        ),
        (
            "its nonce",
            Box::new(|item| flip(&mut item["body"]["ciphertext"]["nonce"])),
        ),
        (
            "its key",
            Box::new(|item| flip(&mut item["body"]["ciphertext"]["recipients"][0]["key"])),
        ),
        (
            "its recipients",
            Box::new(|item| item["body"]["ciphertext"]["recipients"] = json!([])),
        ),
        (
            "no ciphertext",
            Box::new(|item| {
                item["body"].as_object_mut().unwrap().remove("ciphertext");
            }),
        ),
        (
            "an open artifact instead",
            Box::new(|item| {
                let body = item["body"].as_object_mut().unwrap();
                body.remove("ciphertext");
                item["body"]["artifact"] = json!({
                    "artifactType": "command.review", "artifactHash": "0".repeat(64),
                    "expiresAt": "2099-01-01T00:00:00Z", "repoRef": "x",
                    "payload": { "kind": "command", "argv": ["true"] },
                });
            }),
        ),
    ];
    for (what, change) in cases {
        let liar = lying_inbox(&node, change).await;
        let deceived = world.through("laptop", vec![liar.url.clone()]);
        let mut items = deceived.find("").await.unwrap();
        assert_eq!(items.len(), 1, "{what}: it is shown");
        let item = items.remove(0);
        assert!(item.content.is_err(), "{what}: it does not open");
        let refused = deceived
            .decide(&item, &choice(Verdict::Approve))
            .await
            .unwrap_err();
        assert!(
            matches!(refused, ClientError::NotApprovable(_)),
            "{what}: {refused}"
        );
    }
    // The gateway's words beside it change nothing.
    let liar = lying_inbox(&node, |item| {
        item["body"]["enforcerLabel"] = "your bank".into();
        item["body"]["metadata"] = json!({ "x": 1 });
    })
    .await;
    let unmoved = world.through("laptop", vec![liar.url.clone()]);
    let item = unmoved.find("").await.unwrap().remove(0);
    assert_eq!(
        item.label.as_deref(),
        Some("build machine"),
        "as it was stored at pairing"
    );
    unmoved
        .decide(&item, &choice(Verdict::Approve))
        .await
        .unwrap();
    asked.end().await.1.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inbox_without_an_end_or_without_sense_is_given_up() {
    let world = ClientScene::start().await;
    world.approver("alice", "laptop").await;
    let node = world.cluster.urls()[0].clone();
    let plain = world.cluster.enforcer("plain").await;
    plain
        .submit("one", "alice", crate::support::sealed())
        .await
        .expect(202);
    for (what, change) in [
        ("no list", json!({ "items": 7 })),
        ("no Envelopes", json!({ "items": [{ "a": 1 }] })),
        (
            "an endless id",
            json!({ "items": [{ "requestId": "x".repeat(200) }] }),
        ),
    ] {
        let liar = Tamper::start(&node, move |path, answer| {
            if path.contains("/inbox") {
                let body = answer["body"].as_object_mut().unwrap();
                body.extend(change.as_object().unwrap().clone());
            }
        })
        .await;
        let deceived = world.through("laptop", vec![liar.url.clone()]);
        let refused = deceived.find("").await.unwrap_err();
        assert!(
            matches!(refused, ClientError::Answer(_)),
            "{what}: {refused}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inbox_that_repeats_its_page_is_given_up() {
    let world = ClientScene::start().await;
    world.approver("alice", "laptop").await;
    let item = json!({ "msgId": "m", "msgType": "approval.request", "requestId": "r", "body": {} });
    let page = json!({ "msgId": "p", "msgType": "inbox.page", "requestId": "x",
        "body": { "items": [item], "nextCursor": "again" } });
    let page = page.to_string();
    let length = page.len();
    let liar = answers(format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{page}"
    ));
    let deceived = world.through("laptop", vec![liar.await]);
    let refused = deceived.find("").await.unwrap_err();
    assert!(matches!(refused, ClientError::Answer(_)), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_the_gateway_is_shown_without_its_escape_sequences() {
    let world = ClientScene::start().await;
    world.approver("alice", "laptop").await;
    let node = world.cluster.urls()[0].clone();
    let liar = Tamper::start(&node, |path, answer| {
        if path.contains("/inbox") {
            *answer = json!({ "body": { "code": "PROTO_ERR_\u{1b}[2J", "message": "\u{1b}]0;x\u{7}\u{202e}",
                "details": { "expected": "\r\u{9b}31m" } } });
        }
    })
    .await;
    let deceived = world.through("laptop", vec![liar.url.clone()]);
    let refused = deceived.find("").await.unwrap_err().to_string();
    assert!(
        !refused.chars().any(|c| c.is_control() || c == '\u{202e}'),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_decision_than_the_one_that_was_sent_is_noticed() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    let asked = ask(enforcer, question(command(&["git", "push"])), &alice).await;
    let item = asked.item(&alice).await;
    let decided = alice
        .decide(&item, &choice(Verdict::Approve))
        .await
        .unwrap();
    let node = world.cluster.urls()[0].clone();
    let liar = Tamper::start(&node, |path, answer| {
        if path.starts_with("/v1/exchanges/") {
            answer["body"]["decision"]["decision"] = "reject".into();
        }
    })
    .await;
    let deceived = world.through("laptop", vec![liar.url.clone()]);
    let patience = std::time::Duration::from_secs(1);
    let noticed = deceived
        .delivered(&item, &decided, patience)
        .await
        .unwrap_err();
    assert!(matches!(noticed, ClientError::Answer(_)), "{noticed}");
}
