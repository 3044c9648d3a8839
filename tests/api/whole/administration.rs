//! Tenants, credentials, and what needs no credential at all.

use reqwest::Method;
use serde_json::json;

use super::{ApiScene, Everyone};
use crate::support::in_time;

#[tokio::test(flavor = "multi_thread")]
async fn administration_and_what_needs_no_credential() {
    let scene = ApiScene::new().await;
    let Everyone {
        admin,
        operator,
        nobody,
        ..
    } = &scene.everyone;
    let tenant = scene
        .post(operator, "/platform/v1/tenants", &json!({ "name": "t" }))
        .await
        .expect(201)
        .json();
    scene
        .post(operator, "/platform/v1/tenants", &json!({ "name": "" }))
        .await
        .expect(400);
    scene
        .get(operator, "/platform/v1/tenants")
        .await
        .expect(200);
    for (client, body, status) in [
        (
            operator,
            json!({ "role": "admin", "tenantId": tenant["tenantId"] }),
            201,
        ),
        (
            operator,
            json!({ "role": "admin", "tenantId": "none" }),
            404,
        ),
        (operator, json!({ "role": "admin" }), 400),
        (
            operator,
            json!({ "role": "enforcer", "tenantId": tenant["tenantId"] }),
            403,
        ),
        (
            admin,
            json!({ "role": "enforcer", "boundId": "e", "expiresAt": in_time(3_600) }),
            201,
        ),
        (
            admin,
            json!({ "role": "approver", "unbound": true, "kind": "certificate" }),
            201,
        ),
        (
            admin,
            json!({ "role": "approver", "unbound": true, "kind": "certificate", "thumbprint": "ab".repeat(32) }),
            400,
        ),
        (
            admin,
            json!({ "role": "approver", "expiresAt": "soon" }),
            400,
        ),
    ] {
        let answer = scene.post(client, "/platform/v1/credentials", &body).await;
        assert_eq!(answer.status, status, "{body} {answer:?}");
    }
    let certificate = json!({ "role": "approver", "boundId": "dora", "kind": "certificate" });
    let made = scene.post(admin, "/platform/v1/credentials", &certificate);
    let made = made.await.expect(201).json();
    let id = made["credentialId"].as_str().unwrap();
    let path = format!("/platform/v1/credentials/{id}/code");
    for (client, status) in [(admin, 201), (operator, 404), (nobody, 401)] {
        let call = scene.contract.call(client, Method::POST, &path, None);
        call.await.expect(status);
    }
    let bind = json!({ "code": made["code"] });
    scene
        .post(nobody, "/platform/v1/certificates", &bind)
        .await
        .expect(401);
    for (client, body) in [
        (admin, json!({ "role": "enforcer", "boundId": "gone" })),
        (
            operator,
            json!({ "role": "admin", "tenantId": tenant["tenantId"] }),
        ),
    ] {
        let made = scene.post(client, "/platform/v1/credentials", &body).await;
        let made = made.expect(201).json();
        let path = "/platform/v1/credentials";
        let list = scene.get(client, path).await.expect(200).json();
        let is_made = |one: &serde_json::Value| one["credentialId"] == made["credentialId"];
        assert!(list["items"].as_array().unwrap().iter().any(is_made));
        let path = format!("{path}/{}", made["credentialId"].as_str().unwrap());
        scene
            .contract
            .call(client, Method::DELETE, &path, None)
            .await
            .expect(204);
    }
    let path = format!(
        "/platform/v1/tenants/{}",
        tenant["tenantId"].as_str().unwrap()
    );
    scene
        .contract
        .call(operator, Method::DELETE, &path, None)
        .await
        .expect(204);
    scene
        .get(operator, "/platform/v1/tenants")
        .await
        .expect(200);
    scene.get(admin, "/platform/v1/audit").await.expect(200);
    scene.get(admin, "/v1/whoami").await.expect(200);
    for path in [
        "/v1/status",
        "/v1/page",
        "/livez",
        "/readyz",
        "/openapi.json",
        "/asyncapi.json",
        "/docs",
        "/",
    ] {
        scene.get(nobody, path).await.expect(200);
    }
}
