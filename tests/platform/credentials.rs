//! Credentials, as an administrator makes them.

use serde_json::json;

use super::{CREDENTIALS, items};
use crate::support::{Cluster, in_time, with};

#[tokio::test(flavor = "multi_thread")]
async fn an_api_key_is_shown_once_and_kept_nowhere() {
    let cluster = Cluster::start(1).await;
    let admin = cluster.admin().await;
    let expires = in_time(3_600);
    let requests = [
        json!({ "role": "enforcer", "unbound": true }),
        json!({ "role": "enforcer", "boundId": "build-bot", "kind": "apiKey" }),
        json!({ "role": "approver", "boundId": "alice", "expiresAt": expires }),
        json!({ "role": "admin", "tenantId": cluster.tenant.as_str() }),
    ];
    let mut keys = Vec::new();
    for body in &requests {
        let made = admin.post(CREDENTIALS, body).await.expect(201).json();
        let (id, key) = (
            made["credentialId"].as_str().unwrap(),
            made["apiKey"].as_str().unwrap(),
        );
        assert_eq!(made, json!({ "credentialId": id, "apiKey": key }));
        let secret = key
            .strip_prefix(&format!("csk_{id}_"))
            .expect("csk_<id>_<secret>");
        assert_eq!(secret.len(), 43, "256 bits in base64url");
        keys.push((id.to_owned(), key.to_owned(), secret.to_owned()));
    }
    let listed = admin.get(CREDENTIALS).await.expect(200);
    let everything = cluster.database.everything().await;
    for (id, _, secret) in &keys {
        assert!(listed.text.contains(id) && everything.contains(id));
        assert!(!listed.text.contains(secret) && !everything.contains(secret));
    }
    let listed = items(&listed);
    assert_eq!(listed.len(), 5, "the administrator's own too");
    let line = |index: usize| {
        listed
            .iter()
            .find(|line| line["credentialId"] == keys[index].0)
            .unwrap()
    };
    assert_eq!(
        *line(2),
        json!({
            "credentialId": keys[2].0,
            "tenantId": cluster.tenant.as_str(),
            "kind": "apiKey",
            "role": "approver",
            "boundId": "alice",
            "createdAt": line(2)["createdAt"],
            "expiresAt": crate::support::printed(&json!(expires)),
        })
    );
    assert!(line(0).get("boundId").is_none() && line(0).get("expiresAt").is_none());

    for (key, path) in [
        (&keys[0].1, "/platform/v1/exchanges?enforcerId=any"),
        (&keys[1].1, "/platform/v1/exchanges?enforcerId=build-bot"),
        (&keys[2].1, "/v1/approvers/alice/inbox"),
        (&keys[3].1, CREDENTIALS),
    ] {
        cluster.client(Some(key)).get(path).await.expect(200);
    }
    let path = format!("{CREDENTIALS}/{}", keys[0].0);
    assert_eq!(admin.delete(&path).await.expect(204).text, "");
    let listed = items(&admin.get(CREDENTIALS).await.expect(200));
    let line = listed
        .iter()
        .find(|line| line["credentialId"] == keys[0].0)
        .unwrap();
    assert!(line["revokedAt"].is_string(), "{line}");
    admin
        .delete(&format!("{CREDENTIALS}/unknown"))
        .await
        .refused(404, "NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_rule_of_a_credential_names_the_member_that_breaks_it() {
    let cluster = Cluster::start(1).await;
    let admin = cluster.admin().await;
    let before = cluster.database.counts().await;
    let good = json!({ "role": "approver", "boundId": "alice" });
    let certificate = with(&good, "/kind", json!("certificate"));
    let thumbprint = json!("ab".repeat(32));
    let refusals = [
        (json!({}), "/role", "VALIDATION"),
        (
            with(&good, "/role", json!("operator")),
            "/role",
            "VALIDATION",
        ),
        (with(&good, "/role", json!("Admin")), "/role", "VALIDATION"),
        (
            with(&good, "/role", json!(["admin"])),
            "/role",
            "VALIDATION",
        ),
        (
            with(&good, "/role", json!("admin")),
            "/boundId",
            "VALIDATION",
        ),
        (json!({ "role": "approver" }), "/boundId", "VALIDATION"),
        (
            json!({ "role": "enforcer", "unbound": false }),
            "/boundId",
            "VALIDATION",
        ),
        (
            with(&good, "/unbound", json!(true)),
            "/unbound",
            "VALIDATION",
        ),
        (
            with(&good, "/unbound", json!("no")),
            "/unbound",
            "VALIDATION",
        ),
        (
            json!({ "role": "admin", "unbound": true }),
            "/unbound",
            "VALIDATION",
        ),
        (with(&good, "/boundId", json!("")), "/boundId", "VALIDATION"),
        (
            with(&good, "/boundId", json!("x".repeat(129))),
            "/boundId",
            "VALIDATION",
        ),
        (
            with(&good, "/boundId", json!("a\tb")),
            "/boundId",
            "VALIDATION",
        ),
        (
            with(&good, "/boundId", json!(null)),
            "/boundId",
            "VALIDATION",
        ),
        (with(&good, "/kind", json!("jwt")), "/kind", "VALIDATION"),
        (
            with(&good, "/thumbprint", thumbprint.clone()),
            "/thumbprint",
            "VALIDATION",
        ),
        (
            with(&certificate, "/thumbprint", thumbprint),
            "/thumbprint",
            "VALIDATION",
        ),
        (
            with(&good, "/expiresAt", json!("tomorrow")),
            "/expiresAt",
            "TIMESTAMP",
        ),
        (
            with(&good, "/expiresAt", json!(in_time(-1))),
            "/expiresAt",
            "VALIDATION",
        ),
        (
            with(&good, "/tenantId", json!("")),
            "/tenantId",
            "VALIDATION",
        ),
        (
            with(&good, "/secret", json!("of my own")),
            "/secret",
            "VALIDATION",
        ),
    ];
    for (body, pointer, code) in refusals {
        let answer = admin.post(CREDENTIALS, &body).await;
        let answer = answer.refused_at(400, code, pointer);
        assert!(answer.detail("expected").is_string());
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    assert_eq!(cluster.database.counts().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_for_a_certificate_is_shown_once_and_kept_nowhere() {
    let cluster = Cluster::start(1).await;
    let admin = cluster.admin().await;
    let body = json!({ "role": "approver", "boundId": "alice", "kind": "certificate" });
    let made = admin.post(CREDENTIALS, &body).await.expect(201).json();
    let id = made["credentialId"].as_str().unwrap();
    let path = format!("{CREDENTIALS}/{id}/code");
    let issued = admin.post(&path, &json!({})).await.expect(201).json();
    assert_ne!(made["code"], issued["code"]);
    let listed = admin.get(CREDENTIALS).await.expect(200);
    let everything = cluster.database.everything().await;
    for shown in [&made, &issued] {
        let (code, until) = (&shown["code"], &shown["codeExpiresAt"]);
        let expected = json!({ "credentialId": id, "code": code, "codeExpiresAt": until });
        assert_eq!(*shown, expected, "there is no key to show");
        let secret = code.as_str().unwrap().strip_prefix(&format!("csc_{id}_"));
        let secret = secret.expect("csc_<id>_<secret>");
        assert_eq!(secret.len(), 43, "256 bits in base64url");
        assert!(!listed.text.contains(secret) && !everything.contains(secret));
        // It is no key.
        let used = cluster.client(code.as_str()).get(CREDENTIALS).await;
        used.refused(401, "UNAUTHENTICATED");
    }
    let lines = items(&listed);
    let line = lines.iter().find(|line| line["credentialId"] == id);
    let line = line.unwrap();
    assert_eq!(line["kind"], "certificate");
    assert!(
        line.get("thumbprint").is_none() && line.get("boundAt").is_none(),
        "{line}"
    );

    let bound = cluster
        .administration
        .bind_certificate(issued["code"].as_str().unwrap(), &[0xab; 32]);
    bound.await.unwrap();
    let lines = items(&admin.get(CREDENTIALS).await.expect(200));
    let line = lines.iter().find(|line| line["credentialId"] == id);
    let line = line.unwrap();
    assert_eq!(line["thumbprint"], "ab".repeat(32));
    assert!(line["boundAt"].is_string(), "{line}");

    // There is no code for a key, nor for what is revoked or of others.
    let key = admin.post(CREDENTIALS, &json!({ "role": "admin" })).await;
    let key = key.expect(201).json()["credentialId"].clone();
    let refused = async |id: &str| {
        let path = format!("{CREDENTIALS}/{id}/code");
        let answer = admin.post(&path, &json!({})).await;
        answer.refused(404, "NOT_FOUND");
    };
    refused(key.as_str().unwrap()).await;
    admin
        .delete(&format!("{CREDENTIALS}/{id}"))
        .await
        .expect(204);
    refused(id).await;
    refused("unknown").await;
}
