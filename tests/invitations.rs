//! Invitations: a link that gives a credential, once; and joining by one.

mod codes;
mod commands;

use std::time::Duration;

use countersign::store::identity::credential::RoleName;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Client, Cluster, in_time, printed, until};

const INVITATIONS: &str = "/platform/v1/invitations";

/// The code in a link.
fn code(made: &Value) -> String {
    let link = made["link"].as_str().expect("a link");
    link.rsplit_once("/#/join/").expect("a code").1.to_owned()
}

async fn invited(client: &Client, body: Value) -> Value {
    client.post(INVITATIONS, &body).await.expect(201).json()
}

async fn join(cluster: &Cluster, code: &str) -> Answer {
    let nobody = cluster.client(None);
    nobody.post("/v1/join", &json!({ "code": code })).await
}

fn alice() -> Value {
    json!({ "role": "approver", "boundId": "alice" })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_gives_the_credential_that_it_is_for() {
    let cluster = Cluster::start(2).await;
    let admin = cluster.admin().await;
    let body = json!({
        "role": "approver", "boundId": "alice", "name": "Alice, on call", "expiresAt": in_time(3_600),
    });
    let made = admin
        .on(0)
        .post(INVITATIONS, &body)
        .await
        .expect(201)
        .json();
    let host = admin.url(0);
    let expected = json!({
        "invitationId": made["invitationId"], "link": format!("{host}/#/join/{}", code(&made)),
        "expiresAt": printed(&body["expiresAt"]), "tenantId": cluster.tenant.as_str(), "role": "approver",
        "boundId": "alice", "name": "Alice, on call",
    });
    assert_eq!(made, expected);
    assert_eq!(code(&made).len(), 43);

    let listed = admin.get(INVITATIONS).await.expect(200);
    assert!(!listed.text.contains(&code(&made)), "shown once");
    let line = &listed.json()["items"][0];
    let chief = admin.key().split('_').nth(1).unwrap();
    let expected = json!({
        "invitationId": made["invitationId"], "tenantId": cluster.tenant.as_str(), "role": "approver", "boundId": "alice",
        "name": "Alice, on call", "createdAt": line["createdAt"], "createdBy": format!("admin:{chief}"),
        "expiresAt": made["expiresAt"],
    });
    assert_eq!(*line, expected);

    // On another node, with no credential, or with any other.
    let nobody = cluster.client(Some("csk_some_key"));
    let joined = nobody
        .on(1)
        .post("/v1/join", &json!({ "code": code(&made) }))
        .await;
    let joined = joined.expect(201);
    assert_eq!(joined.header("cache-control"), Some("no-store"));
    let joined = joined.json();
    let expected = json!({
        "tenantId": cluster.tenant.as_str(), "role": "approver", "boundId": "alice",
        "credentialId": joined["credentialId"], "apiKey": joined["apiKey"],
        "invitationId": made["invitationId"],
    });
    assert_eq!(joined, expected);
    let hers = cluster.client(joined["apiKey"].as_str());
    hers.get("/v1/approvers/alice/inbox").await.expect(200);
    hers.get("/v1/approvers/bob/inbox")
        .await
        .refused(403, "FORBIDDEN");
    let listed = admin.get(INVITATIONS).await.expect(200).json();
    assert_eq!(listed["items"][0]["credentialId"], joined["credentialId"]);
    assert!(listed["items"][0]["usedAt"].is_string());
    // It is a credential like any other.
    let path = format!(
        "/platform/v1/credentials/{}",
        joined["credentialId"].as_str().unwrap()
    );
    admin.delete(&path).await.expect(204);
    until("it is revoked", Duration::from_secs(6), async || {
        hers.get("/v1/approvers/alice/inbox").await.status == 401
    })
    .await;

    for (body, bound) in [
        (
            json!({ "role": "enforcer", "boundId": "build-bot" }),
            Some("build-bot"),
        ),
        (json!({ "role": "admin" }), None),
    ] {
        let made = invited(&admin, body.clone()).await;
        let joined = join(&cluster, &code(&made)).await.expect(201).json();
        assert_eq!(
            (&joined["role"], joined.get("boundId")),
            (&body["role"], bound.map(|id| json!(id)).as_ref())
        );
        let client = cluster.client(joined["apiKey"].as_str());
        client.get("/platform/v1/exchanges").await.expect(200);
    }
    assert!(!cluster.database.everything().await.contains(&code(&made)));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_make_a_credential_may_invite_to_it() {
    let cluster = Cluster::start(1).await;
    let (admin, operator) = (cluster.admin().await, cluster.operator());
    let other = cluster.administration.create_tenant("other").await.unwrap();
    let there = cluster.client(Some(&cluster.key(&other, RoleName::Admin, None).await));
    let tenant = cluster.tenant.as_str();
    for (client, body, status, pointer) in [
        (
            &admin,
            json!({ "role": "admin", "tenantId": other.as_str() }),
            403,
            "/tenantId",
        ),
        (&operator, json!({ "role": "admin" }), 400, "/tenantId"),
        (
            &operator,
            json!({ "role": "approver", "boundId": "a", "tenantId": tenant }),
            403,
            "/role",
        ),
    ] {
        let answer = client.post(INVITATIONS, &body).await.expect(status);
        assert_eq!(answer.detail("pointer"), pointer);
    }
    let unknown = json!({ "role": "admin", "tenantId": "nobody" });
    operator
        .post(INVITATIONS, &unknown)
        .await
        .refused(404, "NOT_FOUND");
    let mine = invited(
        &admin,
        json!({ "role": "approver", "boundId": "alice", "tenantId": tenant }),
    )
    .await;
    let chief = invited(&operator, json!({ "role": "admin", "tenantId": tenant })).await;
    let theirs = invited(&there, alice()).await;
    let seen = async |client: &Client| {
        let items = client.get(INVITATIONS).await.expect(200).json()["items"].clone();
        let ids = items
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line["invitationId"].clone());
        ids.collect::<Vec<_>>()
    };
    let id = |made: &Value| made["invitationId"].clone();
    assert_eq!(seen(&admin).await, [id(&mine), id(&chief)]);
    assert_eq!(seen(&operator).await, [id(&chief)]);
    assert_eq!(seen(&there).await, [id(&theirs)]);
    let path = |made: &Value| format!("{INVITATIONS}/{}", made["invitationId"].as_str().unwrap());
    admin.delete(&path(&theirs)).await.refused(404, "NOT_FOUND");
    operator
        .delete(&path(&mine))
        .await
        .refused(404, "NOT_FOUND");
    operator.delete(&path(&chief)).await.expect(204);
    join(&cluster, &code(&chief))
        .await
        .refused(404, "NOT_FOUND");
    let joined = join(&cluster, &code(&theirs)).await.expect(201).json();
    assert_eq!(joined["tenantId"], other.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_invitation_names_the_member() {
    let cluster = Cluster::start(1).await;
    let admin = cluster.admin().await;
    let before = cluster.database.counts().await;
    let with = |name: &str, value: Value| {
        let mut body = alice();
        body[name] = value;
        body
    };
    for (body, code, pointer) in [
        (json!([]), "VALIDATION", ""),
        (json!({ "boundId": "a" }), "VALIDATION", "/role"),
        (json!({ "role": "operator" }), "VALIDATION", "/role"),
        (json!({ "role": "approver" }), "VALIDATION", "/boundId"),
        (json!({ "role": "enforcer" }), "VALIDATION", "/boundId"),
        (
            json!({ "role": "admin", "boundId": "a" }),
            "VALIDATION",
            "/boundId",
        ),
        (with("boundId", json!("a\nb")), "VALIDATION", "/boundId"),
        (
            with("boundId", json!("a".repeat(129))),
            "VALIDATION",
            "/boundId",
        ),
        (with("unbound", json!(true)), "VALIDATION", "/unbound"),
        (with("name", json!("x".repeat(129))), "VALIDATION", "/name"),
        (with("name", json!("a\u{202e}b")), "VALIDATION", "/name"),
        (with("expiresAt", json!("soon")), "TIMESTAMP", "/expiresAt"),
        (
            with("expiresAt", json!(in_time(-1))),
            "TIMESTAMP",
            "/expiresAt",
        ),
        (
            with("expiresAt", json!(in_time(7 * 24 * 3_600 + 60))),
            "TIMESTAMP",
            "/expiresAt",
        ),
    ] {
        let answer = admin.post(INVITATIONS, &body).await;
        answer.refused_at(400, code, pointer);
    }
    let nobody = cluster.client(None);
    for (body, pointer) in [
        (json!({}), "/code"),
        (json!({ "code": 7 }), "/code"),
        (json!({ "code": "x", "role": "admin" }), "/role"),
    ] {
        let answer = nobody.post("/v1/join", &body).await;
        answer.refused_at(400, "VALIDATION", pointer);
    }
    assert_eq!(cluster.database.counts().await, before);
    let made = invited(
        &admin,
        with("expiresAt", json!(in_time(7 * 24 * 3_600 - 60))),
    )
    .await;
    join(&cluster, &code(&made)).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_link_leads_to_the_page_as_configured_or_to_the_node_and_never_to_the_host_of_a_call() {
    let cluster = Cluster::with(1, |config| {
        config.page.url = "https://approve.example.com/page/".into();
    })
    .await;
    let made = invited(&cluster.admin().await, alice()).await;
    let link = made["link"].as_str().unwrap();
    assert!(
        link.starts_with("https://approve.example.com/page/#/join/"),
        "{link}"
    );
    let cluster = Cluster::start(1).await;
    let admin = cluster.admin().await;
    let expected = format!("{}/#/join/", cluster.nodes[0].url);
    for host in ["evil.example.com", "evil.example.com:8443"] {
        let call = admin.call(Method::POST, INVITATIONS).header("host", host);
        let made = call.json(&alice()).send().await.expect(201).json();
        let link = made["link"].as_str().unwrap();
        assert!(link.starts_with(&expected), "{link}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_invitations_hold_each_once() {
    let cluster = Cluster::start(1).await;
    let admin = cluster.admin().await;
    let mut made = Vec::new();
    for n in 0..5 {
        let body = json!({ "role": "approver", "boundId": format!("a{n}") });
        made.push(invited(&admin, body).await["invitationId"].clone());
    }
    let (mut seen, mut query) = (Vec::new(), "?limit=2".to_owned());
    loop {
        let page = admin
            .get(&format!("{INVITATIONS}{query}"))
            .await
            .expect(200)
            .json();
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        seen.extend(items.iter().map(|line| line["invitationId"].clone()));
        match page["nextCursor"].as_str() {
            Some(cursor) => query = format!("?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(seen, made);
    let foreign = admin
        .get("/platform/v1/credentials?limit=1")
        .await
        .expect(200)
        .json();
    if let Some(cursor) = foreign["nextCursor"].as_str() {
        let answer = admin.get(&format!("{INVITATIONS}?cursor={cursor}")).await;
        answer.refused(400, "VALIDATION");
    }
}
