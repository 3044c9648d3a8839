//! The profile itself: who has it, and the calls that only the dialect has.

use std::time::Duration;

use countersign::store::identity::credential::RoleName;
use serde_json::json;

use super::{compat_approver, compat_enforcer, parts, refused};
use crate::pairing::pair;
use crate::support::{Cluster, request_id, sealed, until};

const CREDENTIALS: &str = "/platform/v1/credentials";

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_strict_unless_created_otherwise_and_the_audit_says_so() {
    let cluster = Cluster::start(1).await;
    let admin = cluster.admin().await;
    let make = async |profile: Option<&str>| {
        let mut body = json!({ "role": "enforcer", "boundId": "build-bot" });
        if let Some(profile) = profile {
            body["profile"] = json!(profile);
        }
        admin.post(CREDENTIALS, &body).await
    };
    let mut ids = Vec::new();
    for profile in [None, Some("strict"), Some("compat")] {
        let made = make(profile).await.expect(201).json();
        ids.push(made["credentialId"].as_str().unwrap().to_owned());
    }
    make(Some("lenient"))
        .await
        .refused_at(400, "VALIDATION", "/profile");
    let body = json!({ "role": "admin", "profile": "compat" });
    let answer = admin.post(CREDENTIALS, &body).await;
    answer.refused_at(400, "VALIDATION", "/profile");
    let listed = admin.get(CREDENTIALS).await.expect(200).json();
    let listed = listed["items"].as_array().unwrap();
    let profile = |id: &String| {
        let line = listed
            .iter()
            .find(|line| line["credentialId"] == id.as_str());
        line.unwrap().get("profile").cloned()
    };
    let profiles: Vec<_> = ids.iter().map(profile).collect();
    assert_eq!(profiles, [None, None, Some(json!("compat"))]);
    let detail = async |id: &str| {
        let row = format!("select detail from audit_events where subject = '{id}'");
        cluster.database.text(&row).await
    };
    assert_eq!(detail(&ids[0]).await, "enforcer build-bot");
    assert_eq!(detail(&ids[2]).await, "enforcer build-bot (compat)");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_calls_of_the_dialect_are_for_its_profile_alone() {
    let cluster = Cluster::start(1).await;
    let bot = compat_enforcer(&cluster, "build-bot").await;
    let alice = compat_approver(&cluster, "alice").await;
    let (strict_bot, strict_alice) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    for path in ["/v1/consent/status", "/v1/policy/dnd/effective"] {
        bot.client.get(path).await.expect(200);
        strict_bot.client.get(path).await.refused(403, "FORBIDDEN");
        refused(&alice.client.get(path).await, 403, "forbidden");
    }
    for path in ["/v1/presence/heartbeat", "/v1/pairing/claim"] {
        let body = json!({ "enforcerId": "build-bot", "pairingCode": "0000-0000" });
        strict_bot
            .client
            .post(path, &body)
            .await
            .refused(403, "FORBIDDEN");
        refused(&alice.client.post(path, &body).await, 403, "forbidden");
    }
    let offer = "/v1/pairing/pre-generate";
    strict_alice
        .client
        .post(offer, &json!({}))
        .await
        .refused(403, "FORBIDDEN");
    refused(&bot.client.post(offer, &json!({})).await, 403, "forbidden");

    let nobody = cluster.client(None);
    let echo = nobody.get("/echo").await.expect(200).json();
    assert_eq!(
        (&echo["timezone"], &echo["offsetMinutes"]),
        (&json!("UTC"), &json!(0))
    );
    assert!(
        echo["utc"].is_string() && echo["local"].is_string(),
        "{echo}"
    );
    let found = nobody.get("/v1/integrations/discovery").await.expect(200);
    assert_eq!(found.json(), json!({ "auth": { "patSupported": true } }));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_policy_is_served_whatever_is_asked() {
    let cluster = Cluster::start(1).await;
    let bot = compat_enforcer(&cluster, "build-bot").await;
    for query in [
        "",
        "?enforcerId=build-bot&workspaceId=w",
        "?enforcerId=other&workspaceId=w&sessionId=s",
    ] {
        let path = format!("/v1/policy/dnd/effective{query}");
        let answer = bot.client.get(&path).await.expect(200).json();
        assert_eq!(answer["msgType"], "dnd.policy.effective");
        assert_eq!(answer["body"], json!([]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_leaves_the_label_of_the_pairing_as_it_is() {
    let cluster = Cluster::with(1, |config| config.presence.write_seconds = 1).await;
    let bot = compat_enforcer(&cluster, "build-bot").await;
    let alice = cluster.approver("alice").await;
    pair(&bot, &alice).await;
    let labels = "update pairings set enforcer_label = 'agreed'";
    cluster.database.run(labels).await;
    let heartbeat = "/v1/presence/heartbeat";
    let body =
        json!({ "enforcerId": "build-bot", "enforcerLabel": "Another", "workspaceName": "w" });
    bot.client.post(heartbeat, &body).await.expect(200);
    let other = json!({ "enforcerId": "other-bot" });
    refused(&bot.client.post(heartbeat, &other).await, 403, "forbidden");
    bot.submit(&request_id(), "alice", sealed())
        .await
        .expect(202);
    let inbox = alice.inbox("").await.expect(200);
    assert_eq!(inbox.body("/items/0/body/enforcerLabel"), "agreed");
    let path = "/v1/presence/enforcers/build-bot";
    until("it was seen", Duration::from_secs(10), async || {
        alice.client.get(path).await.status == 200
    })
    .await;
    let seen = alice.client.get(path).await;
    let seen = seen.expect(200).json();
    assert_eq!(
        (&seen["status"], &seen["enforcerLabel"]),
        (&json!("online"), &json!("agreed"))
    );
    assert!(!seen.to_string().contains("Another"), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_spelled_by_the_dialect_of_the_caller() {
    let cluster = Cluster::start(1).await;
    let bot = compat_enforcer(&cluster, "build-bot").await;
    let strict = cluster.enforcer("build-bot").await;
    let unaddressed = |request: &str| {
        let mut sent = bot.submission(request, "alice", sealed());
        sent.as_object_mut().unwrap().remove("recipient");
        sent
    };
    let request = request_id();
    let answer = bot
        .client
        .post("/v1/artifacts", &unaddressed(&request))
        .await;
    refused(&answer, 422, "no_approver");
    let answer = strict
        .client
        .post("/v1/artifacts", &unaddressed(&request))
        .await;
    answer.refused(422, "NO_APPROVER");
    let path = "/v1/pairing/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8/status";
    let answer = bot.client.get(path).await;
    refused(&answer, 404, "not_found");
    assert_eq!(answer.code(), "NOT_FOUND", "the usual member stays");
    let answer = strict.client.get(path).await.refused(404, "NOT_FOUND");
    assert_eq!(answer.json().get("error"), None);
    // An unknown caller has no dialect.
    let nobody = cluster.client(None);
    let answer = nobody.get(path).await.refused(401, "UNAUTHENTICATED");
    assert_eq!(answer.json().get("error"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_credential_of_the_profile_opens_nothing() {
    let cluster = Cluster::start(1).await;
    let admin = cluster.admin().await;
    let key = cluster
        .compat_key(&cluster.tenant, RoleName::Enforcer, Some("build-bot"))
        .await;
    let (id, secret) = parts(&key);
    admin
        .delete(&format!("{CREDENTIALS}/{id}"))
        .await
        .expect(204);
    let nobody = cluster.client(None);
    for headers in [
        vec![("x-pat", key.as_str())],
        vec![("x-client-id", id), ("x-client-secret", secret)],
    ] {
        let call = nobody.call(reqwest::Method::GET, "/v1/consent/status");
        let call = headers
            .iter()
            .fold(call, |call, (name, value)| call.header(name, value));
        call.send().await.refused(401, "UNAUTHENTICATED");
    }
}
