//! Pairing in the dialect: by the enforcer's code, and by one that an approver offers.

use countersign::store::identity::credential::RoleName;
use serde_json::{Value, json};

use super::{compat_approver, compat_enforcer, refused};
use crate::support::{Answer, Approver, Cluster, Enforcer, request_id, sealed};

const INITIATE: &str = "/v1/pairing/initiate";
const COMPLETE: &str = "/v1/pairing/complete";
const OFFER: &str = "/v1/pairing/pre-generate";
const CLAIM: &str = "/v1/pairing/claim";

async fn initiate(bot: &Enforcer) -> Value {
    let body = json!({
        "deviceId": "device-1", "enforcerId": bot.id, "enforcerLabel": "The build bot",
        "x25519PublicKey": "a-key", "gatewayUrl": "https://elsewhere.example",
    });
    bot.client.post(INITIATE, &body).await.expect(200).json()
}

async fn status(bot: &Enforcer, nonce: &Value) -> Answer {
    let path = format!("/v1/pairing/{}/status", nonce.as_str().unwrap());
    bot.client.get(&path).await
}

async fn complete(alice: &Approver, nonce: &Value, response: &str) -> Answer {
    let body = json!({ "pairingNonce": nonce, "responseJson": response });
    alice.client.post(COMPLETE, &body).await
}

async fn resolve(approver: &Approver, code: &Value) -> Answer {
    let path = format!("/v1/pairing/resolve/{}", code.as_str().unwrap());
    approver.client.get(&path).await
}

fn claim(code: &Value, bot: &Enforcer) -> Value {
    json!({
        "pairingCode": code, "deviceId": "device-1", "enforcerId": bot.id, "enforcerLabel": "The build bot",
        "workspaceName": "widgets", "gatewayUrl": "https://elsewhere.example", "x25519PublicKey": "a-key",
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enforcer_of_the_dialect_pairs_and_the_answer_reaches_it_alone() {
    let cluster = Cluster::start(1).await;
    let bot = compat_enforcer(&cluster, "build-bot").await;
    let alice = compat_approver(&cluster, "alice").await;
    let begun = initiate(&bot).await;
    let nonce = &begun["pairingNonce"];
    assert_eq!(begun["deviceId"], "device-1");
    assert_eq!(
        (nonce, &begun["pairingCode"]),
        (&begun["nonce"], &begun["code"])
    );
    assert_eq!(
        status(&bot, nonce).await.expect(200).json()["state"],
        "Pending"
    );
    let resolved = resolve(&alice, &begun["code"]).await.expect(200);
    assert_eq!(resolved.json()["publicKey"], "a-key");
    assert!(!resolved.text.contains("elsewhere"), "{}", resolved.text);
    assert_eq!(
        status(&bot, nonce).await.expect(200).json()["state"],
        "Pending"
    );

    let response = "{\"approverId\": \"bob\", \"signerKeyId\":\"k\",  \"publicKey\":\"…\"}";
    let paired = complete(&alice, nonce, response).await.expect(200).json();
    assert_eq!(
        (&paired["status"], &paired["pairingNonce"]),
        (&json!("completed"), nonce)
    );
    let done = status(&bot, nonce).await.expect(200).json();
    assert_eq!(done["state"], "Completed");
    assert_eq!(done["responseJson"], response);
    assert_eq!(done["routingToken"], paired["routingToken"]);
    // The approver is the one that called, whatever the answer says; and no key was registered.
    assert_eq!(done["approverId"], "alice");
    let keys = alice.client.get("/platform/v1/approvers/alice/keys").await;
    assert_eq!(keys.expect(200).json(), json!({ "items": [] }));
    let keys = "select count(*) from signing_keys";
    assert_eq!(cluster.database.number(keys).await, 0);

    for other in [
        compat_enforcer(&cluster, "other-bot").await.client,
        compat_approver(&cluster, "bob").await.client,
        cluster.admin().await,
    ] {
        let path = format!("/v1/pairing/{}/status", nonce.as_str().unwrap());
        let answer = other.get(&path).await;
        assert_eq!(answer.status, 404);
        assert!(!answer.text.contains("signerKeyId"));
    }
    // A strict credential of the same enforcer sees no member of the dialect.
    let strict = cluster.enforcer("build-bot").await;
    let seen = status(&strict, nonce).await.expect(200).json();
    for member in ["state", "pairingNonce", "responseJson"] {
        assert_eq!(seen.get(member), None, "{seen}");
    }

    let revoke = json!({ "routingToken": paired["routingToken"] });
    bot.client
        .post("/v1/pairing/revoke", &revoke)
        .await
        .expect(200);
    let ended = status(&bot, nonce).await.expect(200).json();
    assert_eq!(
        (&ended["state"], ended.get("responseJson")),
        (&json!("Revoked"), None)
    );
    let mut sent = bot.submission(&request_id(), "alice", sealed());
    sent.as_object_mut().unwrap().remove("recipient");
    sent["body"]["metadata"] = revoke;
    let answer = bot.client.post("/v1/artifacts", &sent).await;
    refused(&answer, 403, "pairing_revoked");
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_without_an_approver_or_with_too_long_an_answer_are_refused() {
    let cluster = Cluster::start(1).await;
    let bot = compat_enforcer(&cluster, "build-bot").await;
    let nonce = initiate(&bot).await["pairingNonce"].clone();
    let key = cluster
        .compat_key(&cluster.tenant, RoleName::Approver, None)
        .await;
    let anyone = Approver {
        client: cluster.client(Some(&key)),
        id: "alice".to_owned(),
    };
    refused(
        &complete(&anyone, &nonce, r#"{"approverId":"alice"}"#).await,
        400,
        "validation",
    );
    let alice = compat_approver(&cluster, "alice").await;
    refused(
        &complete(&alice, &nonce, &"x".repeat(8_193)).await,
        400,
        "validation",
    );
    let named = json!({ "pairingNonce": nonce, "responseJson": "{}", "approverId": "bob" });
    refused(
        &alice.client.post(COMPLETE, &named).await,
        400,
        "validation",
    );
    // A strict approver does not speak the dialect.
    let strict = cluster.approver("alice").await;
    let answer = complete(&strict, &nonce, "{}").await;
    answer.refused(400, "VALIDATION");
    assert_eq!(
        status(&bot, &nonce).await.expect(200).json()["state"],
        "Pending"
    );
    complete(&alice, &nonce, &"x".repeat(8_192))
        .await
        .expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_different_keys_are_refused_and_strict_enforcers_send_no_member_of_the_dialect() {
    let cluster = Cluster::start(1).await;
    let bot = compat_enforcer(&cluster, "build-bot").await;
    let body = json!({ "enforcerId": "build-bot", "publicKey": "one", "x25519PublicKey": "two" });
    refused(&bot.client.post(INITIATE, &body).await, 400, "validation");
    let strict = cluster.enforcer("build-bot").await;
    for member in ["deviceId", "x25519PublicKey", "gatewayUrl"] {
        let body = json!({ "enforcerId": "build-bot", member: "x" });
        let answer = strict.client.post(INITIATE, &body).await;
        answer.refused_at(400, "VALIDATION", &format!("/{member}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offered_code_is_claimed_once_and_completed_by_its_approver_alone() {
    let cluster = Cluster::start(1).await;
    let bot = compat_enforcer(&cluster, "build-bot").await;
    let late = compat_enforcer(&cluster, "late-bot").await;
    let alice = compat_approver(&cluster, "alice").await;
    let bob = compat_approver(&cluster, "bob").await;
    let offered = alice
        .client
        .post(OFFER, &json!({}))
        .await
        .expect(200)
        .json();
    let (code, nonce) = (&offered["pairingCode"], &offered["pairingNonce"]);
    // Nobody has claimed it: there is nothing to resolve, to complete or to read.
    for answer in [
        resolve(&alice, code).await,
        complete(&alice, nonce, "{}").await,
        status(&bot, nonce).await,
    ] {
        refused(&answer, 404, "not_found");
    }
    let wrong = bot
        .client
        .post(CLAIM, &claim(&json!("0000-0000"), &bot))
        .await;
    refused(&wrong, 404, "not_found");
    let claimed = bot.client.post(CLAIM, &claim(code, &bot)).await.expect(200);
    let claimed = claimed.json();
    assert_eq!(
        claimed,
        json!({ "pairingNonce": nonce, "expiresAt": offered["expiresAt"] })
    );
    for one in [&bot, &late] {
        let answer = one.client.post(CLAIM, &claim(code, one)).await;
        refused(&answer, 409, "already_exists");
    }
    assert_eq!(
        status(&bot, nonce)
            .await
            .expect(200)
            .json()
            .get("routingToken"),
        None
    );
    refused(&status(&late, nonce).await, 404, "not_found");

    // Neither another approver nor one that may be anybody.
    let key = cluster.key(&cluster.tenant, RoleName::Approver, None).await;
    let anyone = cluster.client(Some(&key));
    refused(&resolve(&bob, code).await, 404, "not_found");
    refused(&complete(&bob, nonce, "{}").await, 404, "not_found");
    let path = format!("/v1/pairing/resolve/{}", code.as_str().unwrap());
    anyone.get(&path).await.refused(404, "NOT_FOUND");
    let as_bob = json!({ "nonce": nonce, "approverId": "bob" });
    anyone
        .post(COMPLETE, &as_bob)
        .await
        .refused(404, "NOT_FOUND");

    let resolved = resolve(&alice, code).await.expect(200);
    assert!(!resolved.text.contains("elsewhere"), "{}", resolved.text);
    assert_eq!(resolved.json()["enforcerLabel"], "The build bot");
    let paired = complete(&alice, nonce, "{}").await.expect(200).json();
    let done = status(&bot, nonce).await.expect(200).json();
    assert_eq!(done["routingToken"], paired["routingToken"]);
    refused(&complete(&alice, nonce, "{}").await, 409, "invalid_state");
}

#[tokio::test(flavor = "multi_thread")]
async fn offers_need_a_bound_approver_and_end_after_half_an_hour() {
    let cluster = Cluster::start(1).await;
    let bot = compat_enforcer(&cluster, "build-bot").await;
    let alice = compat_approver(&cluster, "alice").await;
    let key = cluster
        .compat_key(&cluster.tenant, RoleName::Approver, None)
        .await;
    let anyone = cluster.client(Some(&key));
    refused(&anyone.post(OFFER, &json!({})).await, 403, "forbidden");
    let offered = alice
        .client
        .post(OFFER, &json!({}))
        .await
        .expect(200)
        .json();
    let as_other = json!({ "pairingCode": offered["pairingCode"], "enforcerId": "other-bot" });
    refused(&bot.client.post(CLAIM, &as_other).await, 403, "forbidden");
    // The code of an enforcer is no offer.
    let begun = initiate(&bot).await;
    let answer = bot.client.post(CLAIM, &claim(&begun["code"], &bot)).await;
    refused(&answer, 404, "not_found");
    cluster.pass(std::time::Duration::from_secs(1_801));
    let answer = bot
        .client
        .post(CLAIM, &claim(&offered["pairingCode"], &bot))
        .await;
    refused(&answer, 404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guesser_over_its_limit_learns_nothing_even_with_the_right_code() {
    let cluster = Cluster::start(1).await;
    let bot = compat_enforcer(&cluster, "build-bot").await;
    let alice = compat_approver(&cluster, "alice").await;
    let offered = alice
        .client
        .post(OFFER, &json!({}))
        .await
        .expect(200)
        .json();
    for index in 0..10 {
        let code = json!(format!("{index:04}-ZZZZ"));
        refused(
            &bot.client.post(CLAIM, &claim(&code, &bot)).await,
            404,
            "not_found",
        );
    }
    for code in [json!("0011-ZZZZ"), offered["pairingCode"].clone()] {
        refused(
            &bot.client.post(CLAIM, &claim(&code, &bot)).await,
            429,
            "rate_limited",
        );
    }
    let claimed = "select count(*) from pairing_sessions where enforcer_id is not null";
    assert_eq!(cluster.database.number(claimed).await, 0);
}
