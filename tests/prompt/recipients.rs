//! Whom a prompt reaches: the enforcer named, the one whose session it is, or the one its metadata
//! names; and who may prompt an enforcer that is paired.

use serde_json::{Value, json};

use super::{path, prompt, scene, sealed_in, send};
use crate::support::framing::Framing;
use crate::support::{Client, Cluster};

/// Reports a session, as its enforcer would.
async fn session(cluster: &Cluster, enforcer: &str, id: &str) {
    let enforcer = cluster.enforcer(enforcer).await;
    let start = json!({
        "sessionId": id, "eventType": "session.start", "createdAt": crate::support::now(), "agentHost": "h",
    });
    let answer = enforcer.client.post("/v1/session/event", &start).await;
    answer.expect(202);
}

async fn recipient(cluster: &Cluster, prompt: &Value) -> String {
    let id = prompt["requestId"].as_str().unwrap();
    let sql = format!("select enforcer_id from prompts where request_id = '{id}'");
    cluster.database.text(&sql).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_that_names_an_enforcer_counts() {
    let (cluster, _enforcer, approver) = scene(1).await;
    session(&cluster, "session-bot", "s-1").await;
    let cases = [
        (
            Some("build-bot"),
            Some("s-1"),
            Some("meta-bot"),
            "build-bot",
        ),
        (None, Some("s-1"), Some("meta-bot"), "session-bot"),
        (None, Some("unknown"), Some("meta-bot"), "meta-bot"),
        (None, None, Some("meta-bot"), "meta-bot"),
        (None, Some("s-1"), None, "session-bot"),
    ];
    for framing in [Framing::Core, Framing::Wire] {
        for (named, session, metadata, expected) in cases {
            let mut prompt = prompt();
            if let Some(session) = session {
                prompt["sessionId"] = json!(session);
            }
            if let Some(id) = metadata {
                prompt["metadata"] = json!({ "enforcerId": id });
            }
            let prompt = sealed_in(prompt);
            let message = framing.wrap(
                "prompt.send",
                ("MA", "alice"),
                named.map(|id| ("HE", id)),
                &prompt,
            );
            approver
                .client
                .post("/v1/prompt", &message)
                .await
                .expect(202);
            assert_eq!(recipient(&cluster, &prompt).await, expected, "{framing:?}");
        }
    }
    let nobody = approver.client.post("/v1/prompt", &prompt()).await;
    nobody.refused_at(422, "NO_RECIPIENT", "");
    let mut lost = prompt();
    lost["sessionId"] = json!("unknown");
    let message = Framing::Wire.wrap("prompt.send", ("MA", "alice"), None, &sealed_in(lost));
    let nobody = approver.client.post("/v1/prompt", &message).await;
    nobody.refused_at(422, "NO_RECIPIENT", "/recipient/enforcerId");
    let mut odd = prompt();
    odd["metadata"] = json!({ "enforcerId": 7 });
    let odd = approver.client.post("/v1/prompt", &sealed_in(odd)).await;
    odd.refused_at(400, "VALIDATION", "/metadata/enforcerId");
}

async fn pair(cluster: &Cluster, enforcer: &str, approver: &str, revoked: &str) {
    let tenant = &cluster.tenant;
    let sql = format!(
        "insert into pairings (tenant_id, enforcer_id, approver_id, nonce, token_hash, paired_at, revoked_at)
         values ('{tenant}', '{enforcer}', '{approver}', '{enforcer}{approver}', '\\x00', now(), {revoked})"
    );
    cluster.database.run(&sql).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_it_is_paired_only_its_own_approvers_and_administrators_prompt_an_enforcer() {
    let (cluster, _enforcer, alice) = scene(1).await;
    let bob = cluster.approver("bob").await;
    pair(&cluster, "build-bot", "bob", "now()").await;
    send(&alice, &prompt()).await.expect(202);
    pair(&cluster, "build-bot", "carol", "null").await;
    for stranger in [&alice, &bob] {
        send(stranger, &prompt()).await.refused(403, "FORBIDDEN");
    }
    let carol = cluster.approver("carol").await;
    send(&carol, &prompt()).await.expect(202);
    let admin: Client = cluster.admin().await;
    let mut from_above = prompt();
    from_above["metadata"] = json!({ "enforcerId": "build-bot" });
    let from_above = sealed_in(from_above);
    admin.post("/v1/prompt", &from_above).await.expect(202);
    admin.get(&path(&from_above)).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_must_be_one_the_credential_may_be() {
    let (cluster, _enforcer, approver) = scene(1).await;
    let role = countersign::store::identity::credential::RoleName::Approver;
    let key = cluster.key(&cluster.tenant, role, None).await;
    let unbound = cluster.client(Some(&key));
    let mut prompt = prompt();
    prompt["metadata"] = json!({ "enforcerId": "build-bot" });
    let prompt = sealed_in(prompt);
    let answer = unbound.post("/v1/prompt", &prompt).await;
    answer.refused_at(400, "VALIDATION", "");
    let as_alice = Framing::Wire.wrap("prompt.send", ("MA", "alice"), None, &prompt);
    unbound.post("/v1/prompt", &as_alice).await.expect(202);
    for (framing, pointer) in [
        (Framing::Wire, "/sender/approverId"),
        (Framing::Core, "/sender/deviceId"),
    ] {
        let as_bob = framing.wrap("prompt.send", ("MA", "bob"), None, &prompt);
        let answer = approver.client.post("/v1/prompt", &as_bob).await;
        answer.refused_at(403, "FORBIDDEN", pointer);
    }
    let as_enforcer = Framing::Core.wrap("prompt.send", ("HE", "build-bot"), None, &prompt);
    let answer = approver.client.post("/v1/prompt", &as_enforcer).await;
    answer.refused_at(403, "FORBIDDEN", "/sender/deviceId");
}
