//! Looking like somebody else: a label that changes after people have agreed on it, or that reads
//! otherwise than it is.

use serde_json::{Value, json};

use crate::presence::hello::say;
use crate::support::push::{Socket, Stream};
use crate::support::{Approver, Cluster, Enforcer, request_id, sealed};

const INITIATE: &str = "/v1/pairing/initiate";

/// Pairs the two under a label, or none.
async fn pair_as(enforcer: &Enforcer, approver: &Approver, label: Option<&str>) -> String {
    let mut body = json!({ "enforcerId": enforcer.id });
    if let Some(label) = label {
        body["enforcerLabel"] = json!(label);
    }
    let begun = enforcer.client.post(INITIATE, &body).await.expect(200);
    let complete = json!({ "nonce": begun.json()["nonce"], "approverId": approver.id });
    let paired = approver
        .client
        .post("/v1/pairing/complete", &complete)
        .await;
    let token = paired.expect(200).json()["routingToken"].clone();
    token.as_str().unwrap().to_owned()
}

async fn hello(cluster: &Cluster, enforcer: &Enforcer, label: &str) {
    let url = &cluster.nodes[0].url;
    let mut socket = Socket::connect(url, "enforcer", &enforcer.id, enforcer.client.key())
        .await
        .unwrap();
    assert_eq!(
        say(&mut socket, &json!({ "enforcerLabel": label })).await,
        None
    );
}

/// The label of a new request of this enforcer, in every place where the approver sees it.
async fn shown(cluster: &Cluster, enforcer: &Enforcer, approver: &Approver) -> Value {
    let request = request_id();
    enforcer
        .submit(&request, &approver.id, sealed())
        .await
        .expect(202);
    let inbox = approver
        .inbox("?limit=200")
        .await
        .expect(200)
        .body("/items");
    let items = inbox.as_array().unwrap().iter();
    let mut items = items.filter(|item| item["requestId"] == request.as_str());
    let item = items.next().expect("it is in the inbox").clone();
    let url = &cluster.nodes[0].url;
    let key = approver.client.key();
    let mut stream = Stream::connect(url, "approvers", &approver.id, key, None)
        .await
        .unwrap();
    // A second offer is read by another statement.
    let mut offered = 0;
    while offered < 2 {
        let (_, pushed) = stream.expect().await;
        if pushed["requestId"] == request.as_str() {
            assert_eq!(pushed["body"], item["body"], "offer {offered}");
            offered += 1;
        }
    }
    let path = format!("/v1/presence/enforcers/{}", enforcer.id);
    let record = approver.client.get(&path).await.expect(200).json();
    assert_eq!(record["enforcerLabel"], item["body"]["enforcerLabel"]);
    item["body"]["enforcerLabel"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn hello_does_not_change_the_label_that_two_agreed_on() {
    let cluster = Cluster::with(1, |config| config.push.reoffer_seconds = 1).await;
    let bot = cluster.enforcer("build-bot").await;
    let (alice, bob, carol) = (
        cluster.approver("alice").await,
        cluster.approver("bob").await,
        cluster.approver("carol").await,
    );
    hello(&cluster, &bot, "Before").await;
    let token = pair_as(&bot, &alice, Some("Test runner")).await;
    pair_as(&bot, &bob, None).await;
    hello(&cluster, &bot, "Production deployer").await;
    assert_eq!(shown(&cluster, &bot, &alice).await, "Test runner");
    // Paired under no label, it has none.
    assert_eq!(shown(&cluster, &bot, &bob).await, Value::Null);
    // To a stranger it is what it says.
    assert_eq!(shown(&cluster, &bot, &carol).await, "Production deployer");
    let admin = cluster.admin().await;
    let record = admin.get("/v1/presence/enforcers").await.expect(200).json();
    assert_eq!(
        record[0]["enforcerLabel"],
        Value::Null,
        "its last pairing's"
    );
    // A request that still waits after a revocation cannot be renamed either.
    let revoked = json!({ "routingToken": token });
    let revoked = alice.client.post("/v1/pairing/revoke", &revoked).await;
    revoked.expect(200);
    assert_eq!(shown(&cluster, &bot, &alice).await, "Test runner");
    pair_as(&bot, &alice, Some("Deployer")).await;
    assert_eq!(shown(&cluster, &bot, &alice).await, "Deployer");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_turns_its_text_around_is_refused() {
    let cluster = Cluster::start(1).await;
    let bot = cluster.enforcer("build-bot").await;
    let url = &cluster.nodes[0].url;
    let mut socket = Socket::connect(url, "enforcer", "build-bot", bot.client.key())
        .await
        .unwrap();
    let controls = [
        '\u{1}', '\n', '\r', '\t', '\u{1b}', '\u{7f}', '\u{85}', '\u{9f}', '\u{61c}', '\u{200e}',
        '\u{200f}', '\u{2028}', '\u{2029}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}',
        '\u{202e}', '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
    ];
    for member in ["enforcerLabel", "workspaceName"] {
        let pointer = format!("/{member}");
        for control in controls {
            let label = format!("reyolped{control} noitcudorp");
            let body = json!({ "enforcerId": "build-bot", (member): label });
            let refused = bot.client.post(INITIATE, &body).await;
            refused.refused_at(400, "VALIDATION", &pointer);
            let refused = say(&mut socket, &json!({ (member): label })).await;
            let refused = refused.expect("an error");
            assert_eq!(refused["body"]["details"]["pointer"], pointer.as_str());
        }
        // Letters that are written from right to left are as good as any, and so is an emoji of
        // several parts.
        for label in ["בילד בוט", "روبوت", "👩\u{200d}💻 bot", "Zürich"] {
            let body = json!({ "enforcerId": "build-bot", (member): label });
            bot.client.post(INITIATE, &body).await.expect(200);
            assert_eq!(say(&mut socket, &json!({ (member): label })).await, None);
        }
    }
}
