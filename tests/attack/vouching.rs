//! How far the gateway vouches for a decision is the gateway's to say, beside the signed body; and
//! keys are for those who have to do with their owner.

use countersign::protocol::decision::Verify;
use serde_json::{Value, json};

use crate::support::push::{Socket, Stream};
use crate::support::{
    Answer, Approver, Cluster, Enforcer, HASH, compact, full, public_key, request_id, sealed,
    signed, signing_key,
};

const KEYS: &str = "/platform/v1/approvers/alice/keys";

async fn register(cluster: &Cluster, approver: &str) {
    let path = format!("/platform/v1/approvers/{approver}/keys/key-1");
    let body = json!({ "publicKey": public_key(&signing_key(1)) });
    cluster.admin().await.put(&path, &body).await.expect(200);
}

async fn ask(enforcer: &Enforcer) -> String {
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    request
}

/// The body as it stands in an answer's text.
fn body_of(answer: &Answer) -> &str {
    let (_, body) = answer.text.split_once("\"body\":").expect("a body");
    body.strip_suffix('}').expect("the end of the envelope")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approver_cannot_vouch_for_itself() {
    let cluster = Cluster::start(1).await;
    let (bot, alice) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let url = &cluster.nodes[0].url;
    let mut pushed = Stream::connect(url, "enforcers", "build-bot", bot.client.key(), None)
        .await
        .unwrap();
    let texts = [
        r#"{"verified":true,"verification":"registered","note":1.50,"hops":[1, 2]}"#,
        r#"{ "note":1.50, "verificatio\u006e":"registered","hops":[1, 2], "verified" : true }"#,
        r#"{"note":1.50,"hops":[1, 2]}"#,
        r#"{"verified":{"verified":true},"note":1.50,"hops":[1, 2]}"#,
    ];
    for trace in texts {
        let request = ask(&bot).await;
        let body = compact("approve").to_string();
        let envelope = alice.decision(&request, json!("BODY")).to_string();
        let envelope = envelope.replacen("\"BODY\"", &body, 1);
        let envelope = format!(
            "{},\"trace\":{trace}}}",
            envelope.strip_suffix('}').unwrap()
        );
        let call = alice.client.call(reqwest::Method::POST, "/v1/decisions");
        call.text(&envelope).send().await.expect(200);
        let waited = bot.wait(&request, 5).await.expect(200);
        let expected =
            json!({ "verified": false, "verification": "none", "note": 1.5, "hops": [1, 2] });
        assert_eq!(waited.json()["trace"], expected, "{trace}");
        assert!(waited.text.contains("\"note\":1.50"), "{}", waited.text);
        assert_eq!(
            waited.text.matches("verified").count(),
            1,
            "{}",
            waited.text
        );
        assert_eq!(body_of(&waited), body);
        let (_, event) = pushed.expect().await;
        assert_eq!(event["trace"], expected, "{trace}");
        let status = bot.status(&request).await.expect(200);
        let own = json!({ "verified": false, "verification": "none" });
        assert_eq!(status.json()["trace"], own);
        assert!(status.text.contains(&body), "{}", status.text);
        let message = waited.json()["msgId"].clone();
        bot.ack(&request, message.as_str().unwrap())
            .await
            .expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_gateway_found_travels_beside_the_signed_body() {
    for (verify, with_key, expected) in [
        (Verify::Registered, true, "registered"),
        (Verify::Registered, false, "none"),
        (Verify::Required, true, "registered"),
        (Verify::Off, true, "off"),
        (Verify::Off, false, "off"),
    ] {
        let cluster = Cluster::with(2, |config| config.decisions.verify = verify).await;
        let (bot, alice) = (
            cluster.enforcer("build-bot").await,
            cluster.approver("alice").await,
        );
        if with_key {
            register(&cluster, "alice").await;
        }
        let url = &cluster.nodes[1].url;
        let key = bot.client.key();
        let mut socket = Socket::connect(url, "enforcer", "build-bot", key)
            .await
            .unwrap();
        let request = ask(&bot).await;
        let before = bot.status(&request).await.expect(200).json();
        assert_eq!(before.get("trace"), None, "nothing to vouch for yet");
        let body = signed(full(&request, HASH), &signing_key(1));
        alice.decide(&request, body.clone()).await.expect(200);
        let trace = json!({ "verified": expected == "registered", "verification": expected });
        let waited = bot.wait(&request, 5).await.expect(200);
        assert_eq!(waited.json()["trace"], trace);
        assert_eq!(body_of(&waited), body.to_string());
        let pushed = socket.expect_type("decision.deliver").await;
        assert_eq!((&pushed["trace"], &pushed["body"]), (&trace, &body));
        let status = bot.status(&request).await.expect(200);
        assert_eq!(status.json()["trace"], trace);
        assert_eq!(status.body("/decision"), body);
        let shown = "select verification from exchange_history";
        assert_eq!(cluster.database.text(shown).await, expected);
        let said = cluster.client(None).get("/v1/status").await.expect(200);
        assert_eq!(said.json()["decisions"]["verify"], verify.as_str());
        // It says what was found then, whatever was changed since. Decisions of earlier versions
        // say only whether they verified.
        let earlier = "update exchanges set verification = null";
        cluster.database.run(earlier).await;
        let word = if expected == "registered" {
            expected
        } else {
            "none"
        };
        let status = bot.status(&request).await.expect(200).json();
        assert_eq!(status["trace"]["verification"], word);
        let waited = bot.wait(&request, 5).await.expect(200).json();
        assert_eq!(waited["trace"]["verification"], word);
        drop(socket);
        let mut socket = Socket::connect(url, "enforcer", "build-bot", key)
            .await
            .unwrap();
        let pushed = socket.expect_type("decision.deliver").await;
        assert_eq!(pushed["trace"]["verification"], word);
        let shown = "select verification from exchange_history";
        assert_eq!(cluster.database.text(shown).await, word);
    }
}

/// The keys that an enforcer is shown.
async fn keys(enforcer: &Enforcer) -> Vec<Value> {
    let keys = enforcer.client.get(KEYS).await.expect(200).json();
    keys["items"].as_array().unwrap().clone()
}

async fn pair(enforcer: &Enforcer, approver: &Approver) -> String {
    let begin = json!({ "enforcerId": enforcer.id });
    let begun = enforcer.client.post("/v1/pairing/initiate", &begin).await;
    let nonce = begun.expect(200).json()["nonce"].clone();
    let complete = json!({ "nonce": nonce, "approverId": approver.id });
    let done = approver
        .client
        .post("/v1/pairing/complete", &complete)
        .await;
    let token = done.expect(200).json()["routingToken"].clone();
    token.as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_reads_nobodys_keys() {
    let cluster = Cluster::start(2).await;
    let alice = cluster.approver("alice").await;
    register(&cluster, "alice").await;
    let (asking, paired, stranger) = (
        cluster.enforcer("asking-bot").await,
        cluster.enforcer("paired-bot").await,
        cluster.enforcer("stranger").await,
    );
    let other = cluster.approver("bob").await;
    other.client.get(KEYS).await.refused(403, "FORBIDDEN");
    for enforcer in [&asking, &paired, &stranger] {
        let unknown = enforcer.client.get(&KEYS.replace("alice", "nobody")).await;
        let unknown = unknown.refused(404, "NOT_FOUND");
        let hidden = enforcer.client.get(KEYS).await.refused(404, "NOT_FOUND");
        assert_eq!(hidden.text, unknown.text);
    }
    // It asks her, and is told nothing about anyone else.
    let request = ask(&asking).await;
    let shown = keys(&asking).await;
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0]["signerKeyId"], "key-1");
    assert_eq!(shown[0]["publicKey"], public_key(&signing_key(1)));
    let others = asking.client.get(&KEYS.replace("alice", "bob")).await;
    others.refused(404, "NOT_FOUND");
    // Also once it is decided and delivered: the decision may be verified later.
    let body = signed(full(&request, HASH), &signing_key(1));
    alice.decide(&request, body).await.expect(200);
    let message = asking.wait(&request, 5).await.expect(200).json()["msgId"].clone();
    let acked = asking.ack(&request, message.as_str().unwrap()).await;
    acked.expect(200);
    assert_eq!(keys(&asking).await, shown);
    // A pairing is enough, for as long as it lasts.
    let token = pair(&paired, &alice).await;
    assert_eq!(keys(&paired).await, shown);
    let revoke = json!({ "routingToken": token });
    let revoked = alice.client.post("/v1/pairing/revoke", &revoke).await;
    revoked.expect(200);
    paired.client.get(KEYS).await.refused(404, "NOT_FOUND");
    stranger.client.get(KEYS).await.refused(404, "NOT_FOUND");
    // Reading is all: nobody but her and administrators writes.
    let path = format!("{KEYS}/key-2");
    let body = json!({ "publicKey": public_key(&signing_key(2)) });
    let put = asking.client.put(&path, &body).await;
    put.refused(403, "FORBIDDEN");
    asking.client.delete(&path).await.refused(403, "FORBIDDEN");
    // A credential for any enforcer may be the one that asked.
    let any = cluster.any_enforcer().await;
    any.get(KEYS).await.expect(200);
    let unknown = any.get(&KEYS.replace("alice", "nobody")).await;
    unknown.refused(404, "NOT_FOUND");
    // A revoked key is shown as such.
    cluster
        .admin()
        .await
        .delete(&format!("{KEYS}/key-1"))
        .await
        .expect(204);
    let shown = keys(&asking).await;
    assert!(shown[0]["revokedAt"].is_string(), "{shown:?}");
}
