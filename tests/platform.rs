//! The platform endpoints: tenants and credentials, as operator and administrators manage them.

mod exchanges;
mod keys;

use serde_json::{Value, json};

use crate::support::{Answer, Cluster, in_time, with};

const TENANTS: &str = "/platform/v1/tenants";
const CREDENTIALS: &str = "/platform/v1/credentials";
const THUMBPRINT: &str = "AA:00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE";

fn items(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.header("content-type"), Some("application/json"));
    answer.json()["items"].as_array().expect("items").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_makes_lists_and_disables_tenants() {
    let cluster = Cluster::start(1).await;
    let operator = cluster.operator();
    let made = operator
        .post(TENANTS, &json!({ "name": "Acme GmbH & Söhne" }))
        .await
        .expect(201);
    assert_eq!(made.header("content-type"), Some("application/json"));
    let id = made.json()["tenantId"].as_str().unwrap().to_owned();
    assert_eq!(
        made.json(),
        json!({ "tenantId": id, "name": "Acme GmbH & Söhne" })
    );
    let refusals = [
        (json!({}), "/name"),
        (json!({ "name": "" }), "/name"),
        (json!({ "name": "x".repeat(129) }), "/name"),
        (json!({ "name": 7 }), "/name"),
        (json!({ "name": null }), "/name"),
        (json!({ "name": "n", "surprise": 1 }), "/surprise"),
        (json!([]), ""),
    ];
    for (body, pointer) in refusals {
        let answer = operator.post(TENANTS, &body).await;
        let answer = answer.refused_at(400, "VALIDATION", pointer);
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    let listed = items(&operator.get(TENANTS).await.expect(200));
    assert_eq!(listed.len(), 2, "the tests' own and this one");
    assert_eq!(
        listed[1],
        json!({ "tenantId": id, "name": "Acme GmbH & Söhne", "createdAt": listed[1]["createdAt"] })
    );

    let body = json!({ "role": "admin", "tenantId": id });
    let key = operator.post(CREDENTIALS, &body).await.expect(201).json()["apiKey"].clone();
    cluster
        .client(key.as_str())
        .get(CREDENTIALS)
        .await
        .expect(200);
    let path = format!("{TENANTS}/{id}");
    let gone = operator.delete(&path).await.expect(204);
    assert_eq!(gone.text, "");
    let listed = items(&operator.get(TENANTS).await.expect(200));
    assert!(listed[1]["disabledAt"].is_string() && listed[0].get("disabledAt").is_none());
    let since = listed[1]["disabledAt"].clone();
    operator.delete(&path).await.expect(204);
    let listed = items(&operator.get(TENANTS).await.expect(200));
    assert_eq!(listed[1]["disabledAt"], since, "once is enough");
    operator
        .delete(&format!("{TENANTS}/unknown"))
        .await
        .refused(404, "NOT_FOUND");
    operator
        .post(CREDENTIALS, &body)
        .await
        .refused(404, "NOT_FOUND");
}

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

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_manages_administrators_and_administrators_their_own_tenant() {
    let cluster = Cluster::start(1).await;
    let (admin, operator) = (cluster.admin().await, cluster.operator());
    let elsewhere = cluster
        .administration
        .create_tenant("elsewhere")
        .await
        .unwrap();
    let elsewhere = elsewhere.as_str();
    let answer = operator
        .post(CREDENTIALS, &json!({ "role": "admin" }))
        .await;
    answer.refused_at(400, "VALIDATION", "/tenantId");
    for role in ["enforcer", "approver"] {
        let body = json!({ "role": role, "tenantId": elsewhere });
        let answer = operator.post(CREDENTIALS, &body).await;
        answer.refused_at(403, "FORBIDDEN", "/role");
    }
    let body = json!({ "role": "admin", "tenantId": "unknown" });
    operator
        .post(CREDENTIALS, &body)
        .await
        .refused(404, "NOT_FOUND");
    for tenant in [elsewhere, "unknown"] {
        let body = json!({ "role": "admin", "tenantId": tenant });
        let answer = admin.post(CREDENTIALS, &body).await;
        answer.refused_at(403, "FORBIDDEN", "/tenantId");
    }
    let body = json!({ "role": "admin", "tenantId": elsewhere });
    let theirs = operator.post(CREDENTIALS, &body).await.expect(201).json();
    let their_admin = cluster.client(theirs["apiKey"].as_str());
    let made = their_admin
        .post(CREDENTIALS, &json!({ "role": "enforcer" }))
        .await
        .expect(201);
    let their_enforcer = made.json()["credentialId"].as_str().unwrap().to_owned();

    let seen = |answer: Answer| -> Vec<(Value, Value)> {
        let lines = items(&answer.expect(200));
        lines
            .iter()
            .map(|line| (line["tenantId"].clone(), line["role"].clone()))
            .collect()
    };
    let here = json!(cluster.tenant.as_str());
    assert_eq!(
        seen(operator.get(CREDENTIALS).await),
        [
            (here.clone(), json!("admin")),
            (json!(elsewhere), json!("admin"))
        ]
    );
    assert_eq!(seen(admin.get(CREDENTIALS).await), [(here, json!("admin"))]);
    assert_eq!(
        seen(their_admin.get(CREDENTIALS).await),
        [
            (json!(elsewhere), json!("admin")),
            (json!(elsewhere), json!("enforcer"))
        ]
    );

    let revoke = |id: &str| format!("{CREDENTIALS}/{id}");
    operator
        .delete(&revoke(&their_enforcer))
        .await
        .refused(404, "NOT_FOUND");
    admin
        .delete(&revoke(&their_enforcer))
        .await
        .refused(404, "NOT_FOUND");
    their_admin
        .delete(&revoke(&their_enforcer))
        .await
        .expect(204);
    operator
        .delete(&revoke(theirs["credentialId"].as_str().unwrap()))
        .await
        .expect(204);
    let revoked = "select count(*) from credentials where revoked_at is not null";
    assert_eq!(cluster.database.number(revoked).await, 2);
}
