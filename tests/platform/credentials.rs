//! Credentials, as an administrator makes them.

use serde_json::json;

use super::{CREDENTIALS, items};
use crate::support::{Cluster, in_time, with};

const THUMBPRINT: &str = "AA:00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE";

#[tokio::test(flavor = "multi_thread")]
async fn an_api_key_is_shown_once_and_kept_nowhere() {
    let cluster = Cluster::start(1).await;
    let admin = cluster.admin().await;
    let expires = in_time(3_600);
    let requests = [
        json!({ "role": "enforcer" }),
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
    let certificate =
        json!({ "role": "enforcer", "kind": "certificate", "thumbprint": THUMBPRINT });
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
            with(&good, "/kind", json!("certificate")),
            "/thumbprint",
            "VALIDATION",
        ),
        (
            with(&good, "/thumbprint", json!(THUMBPRINT)),
            "/thumbprint",
            "VALIDATION",
        ),
        (
            with(&certificate, "/thumbprint", json!("AA:00")),
            "/thumbprint",
            "VALIDATION",
        ),
        (
            with(&certificate, "/thumbprint", json!(7)),
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

    let made = admin
        .post(CREDENTIALS, &certificate)
        .await
        .expect(201)
        .json();
    assert_eq!(
        made,
        json!({ "credentialId": made["credentialId"] }),
        "there is no key to show"
    );
    let plain = THUMBPRINT.replace(':', "").to_lowercase();
    let again = with(&certificate, "/thumbprint", json!(plain));
    let answer = admin.post(CREDENTIALS, &again).await;
    answer.refused_at(409, "ALREADY_EXISTS", "/thumbprint");
    let stored = "select encode(thumbprint, 'hex') from credentials where kind = 'certificate'";
    assert_eq!(cluster.database.text(stored).await, plain);
}
