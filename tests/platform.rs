//! The platform endpoints: tenants and credentials, as operator and administrators manage them.

mod credentials;
mod exchanges;
mod keys;
mod pages;
mod states;

use serde_json::{Value, json};

use crate::support::{Answer, Cluster};

const TENANTS: &str = "/platform/v1/tenants";
const CREDENTIALS: &str = "/platform/v1/credentials";

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
        .post(
            CREDENTIALS,
            &json!({ "role": "enforcer", "boundId": "bot" }),
        )
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
