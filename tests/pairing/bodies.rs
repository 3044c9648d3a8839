//! The bodies of pairing, member by member, and who may say what in them.

use countersign::store::identity::credential::RoleName;
use serde_json::{Value, json};

use super::{COMPLETE, INITIATE, PAIRINGS, REVOKE, initiate, pair, resolve, status};
use crate::support::{Client, Cluster, with, without};

/// Asserts that each of these bodies is refused at its pointer, in plain JSON.
async fn refusals(client: &Client, path: &str, bodies: Vec<(Value, String)>) {
    for (body, pointer) in bodies {
        let answer = client.post(path, &body).await;
        let answer = answer.refused_at(400, "VALIDATION", &pointer);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert!(answer.detail("expected").is_string(), "{answer:?}");
    }
}

/// The ways in which any body can be wrong: members of another type, one too many, and those left
/// out.
fn wrong(good: &Value, required: &[&str], strings: &[(&str, usize)]) -> Vec<(Value, String)> {
    let mut bodies = vec![
        (json!([]), String::new()),
        (json!("text"), String::new()),
        (with(good, "/surprise", json!(1)), "/surprise".to_owned()),
    ];
    for name in required {
        let pointer = format!("/{name}");
        bodies.push((without(good, &pointer), pointer));
    }
    for (name, max) in strings {
        let pointer = format!("/{name}");
        for bad in [json!(7), json!(null), json!({}), json!(["a"]), json!(true)] {
            bodies.push((with(good, &pointer, bad), pointer.clone()));
        }
        if *max > 0 {
            let long = json!("é".repeat(max + 1));
            bodies.push((with(good, &pointer, long), pointer));
        }
    }
    bodies
}

#[tokio::test(flavor = "multi_thread")]
async fn every_member_is_checked_and_named_when_it_is_wrong() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    let good = json!({
        "enforcerId": "build-bot",
        "enforcerLabel": "é".repeat(1_024),
        "workspaceName": "é".repeat(1_024),
        "publicKey": "é".repeat(8_192),
    });
    let strings = [
        ("enforcerId", 128),
        ("enforcerLabel", 1_024),
        ("workspaceName", 1_024),
        ("publicKey", 8_192),
    ];
    let mut bodies = wrong(&good, &["enforcerId"], &strings);
    bodies.push((with(&good, "/enforcerId", json!("")), "/enforcerId".into()));
    bodies.push((
        with(&good, "/enforcerId", json!("a\nb")),
        "/enforcerId".into(),
    ));
    refusals(&enforcer.client, INITIATE, bodies).await;
    let none = "select count(*) from pairing_sessions";
    assert_eq!(cluster.database.number(none).await, 0);
    let begun = enforcer.client.post(INITIATE, &good).await.expect(200);

    let (code, nonce) = (begun.json()["code"].clone(), begun.json()["nonce"].clone());
    let shown = resolve(&alice, code.as_str().unwrap()).await.expect(200);
    for member in ["enforcerLabel", "workspaceName", "publicKey"] {
        assert_eq!(shown.json()[member], good[member]);
    }
    let good = json!({ "nonce": nonce, "approverId": "alice", "publicKey": "é".repeat(8_192) });
    let strings = [("nonce", 0), ("approverId", 128), ("publicKey", 8_192)];
    let mut bodies = wrong(&good, &["nonce", "approverId"], &strings);
    bodies.push((with(&good, "/approverId", json!("")), "/approverId".into()));
    refusals(&alice.client, COMPLETE, bodies).await;
    for nonsense in ["", "no nonce", &"x".repeat(43), &"x".repeat(5_000)] {
        let body = with(&good, "/nonce", json!(nonsense));
        let answer = alice.client.post(COMPLETE, &body).await;
        answer.refused(404, "NOT_FOUND");
    }
    let paired = alice.client.post(COMPLETE, &good).await.expect(200).json();

    let good = json!({ "routingToken": paired["routingToken"] });
    let bodies = wrong(&good, &["routingToken"], &[("routingToken", 0)]);
    refusals(&alice.client, REVOKE, bodies.clone()).await;
    refusals(&enforcer.client, REVOKE, bodies).await;
    enforcer.client.post(REVOKE, &good).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_pairs_as_someone_else() {
    let cluster = Cluster::start(2).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let (alice, mallory) = (
        cluster.approver("alice").await,
        cluster.approver("mallory").await,
    );
    let answer = enforcer
        .client
        .post(INITIATE, &json!({ "enforcerId": "deploy-bot" }))
        .await;
    answer.refused_at(403, "FORBIDDEN", "/enforcerId");
    let (_, nonce) = initiate(&enforcer).await;
    let body = json!({ "nonce": nonce, "approverId": "alice" });
    let answer = mallory.client.post(COMPLETE, &body).await;
    answer.refused_at(403, "FORBIDDEN", "/approverId");
    assert_eq!(super::word(&enforcer, &nonce).await, "pending");
    super::complete(&alice, &nonce).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_is_known_to_its_initiator_alone_and_a_pairing_to_its_sides() {
    let cluster = Cluster::start(2).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let other = cluster.enforcer("deploy-bot").await;
    let (alice, bob) = (
        cluster.approver("alice").await,
        cluster.approver("bob").await,
    );
    let admin = cluster.admin().await;
    let (_, nonce) = initiate(&enforcer).await;
    let strangers = [&other.client, &alice.client, &bob.client, &admin];
    for stranger in strangers {
        for path in [
            format!("/v1/pairing/status/{nonce}"),
            format!("/v1/pairing/{nonce}/status"),
        ] {
            stranger.get(&path).await.refused(404, "NOT_FOUND");
        }
    }
    status(&enforcer, &nonce).await.expect(200);
    let any = cluster.any_enforcer().await;
    let path = format!("/v1/pairing/status/{nonce}");
    any.get(&path).await.expect(200);

    let token = pair(&enforcer, &alice).await;
    let body = super::revocation(&token);
    for stranger in [&other.client, &bob.client, &admin] {
        stranger.post(REVOKE, &body).await.refused(404, "NOT_FOUND");
    }
    super::submit(&enforcer, &crate::support::request_id(), Some(&token))
        .await
        .expect(202);
    // A credential for any enforcer may act as this one.
    any.post(REVOKE, &body).await.expect(200);
    alice.client.post(REVOKE, &body).await.expect(200);
    enforcer.client.post(REVOKE, &body).await.expect(200);
    admin.get(PAIRINGS).await.refused(403, "FORBIDDEN");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tenant_finds_nothing() {
    let cluster = Cluster::start(2).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    let token = pair(&enforcer, &alice).await;
    let (code, nonce) = initiate(&enforcer).await;
    let there = cluster
        .administration
        .create_tenant("strangers")
        .await
        .unwrap();
    let bot = cluster.client(Some(&cluster.key(&there, RoleName::Enforcer, None).await));
    let ally = cluster.client(Some(&cluster.key(&there, RoleName::Approver, None).await));
    let resolved = ally.get(&format!("/v1/pairing/resolve/{code}")).await;
    let unknown = ally.get("/v1/pairing/resolve/0000-0000").await;
    assert_eq!((resolved.status, resolved.text), (404, unknown.text));
    let path = format!("/v1/pairing/status/{nonce}");
    bot.get(&path).await.refused(404, "NOT_FOUND");
    let body = json!({ "nonce": nonce, "approverId": "alice" });
    ally.post(COMPLETE, &body).await.refused(404, "NOT_FOUND");
    for client in [&bot, &ally] {
        let answer = client.post(REVOKE, &super::revocation(&token)).await;
        answer.refused(404, "NOT_FOUND");
        let listed = client.get(PAIRINGS).await.expect(200);
        assert_eq!(listed.json(), json!({ "items": [], "nextCursor": null }));
    }
    let message = super::unaddressed(&enforcer, "r", Some(&token));
    let answer = bot.post("/v1/artifacts", &message).await;
    answer.refused(422, "NO_APPROVER");
    super::submit(&enforcer, "r", Some(&token))
        .await
        .expect(202);
    super::complete(&alice, &nonce).await.expect(200);
}
