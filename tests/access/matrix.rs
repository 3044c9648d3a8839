//! Every route against every way of not being allowed: a credential that has expired or was
//! revoked, one that is bound to another id, and another tenant's. Made from the list of routes, so
//! that a new one is in it or fails.

use std::collections::BTreeSet;
use std::time::Duration;

use countersign::gateway::identity::administration::CredentialRequest;
use countersign::protocol::credential::{CredentialKind, CredentialProfile};
use countersign::protocol::id::TenantId;
use countersign::protocol::timestamp::Timestamp;
use countersign::store::identity::credential::RoleName;
use serde_json::{Value, json};

use super::routes::{ROUTES, Role, Route};
use super::unauthenticated;
use crate::support::{
    Answer, Client, Cluster, envelope, in_time, now, public_key, request_id, sealed, signing_key,
    until,
};

fn name(role: Role) -> Option<RoleName> {
    match role {
        Role::Enforcer | Role::CompatEnforcer => Some(RoleName::Enforcer),
        Role::Approver | Role::CompatApprover => Some(RoleName::Approver),
        Role::Admin => Some(RoleName::Admin),
        Role::Operator => None,
    }
}

/// A credential's id and its key.
async fn credential(
    cluster: &Cluster,
    tenant: &TenantId,
    role: RoleName,
    bound: Option<&str>,
    ends: Option<i64>,
) -> (String, String) {
    let request = CredentialRequest {
        role,
        bound_id: bound.map(str::to_owned),
        unbound: bound.is_none() && role != RoleName::Admin,
        kind: CredentialKind::ApiKey,
        profile: CredentialProfile::Strict,
        expires_at: ends.map(|ahead| Timestamp::parse(&in_time(ahead)).unwrap()),
    };
    let administration = &cluster.administration;
    let made = administration.create_credential(tenant, request).await;
    let made = made.expect("a credential");
    (made.id.to_string(), made.api_key.expect("a key"))
}

/// The routes that a role may call, each as a call of this key.
async fn call(cluster: &Cluster, key: &str, route: &Route, about: &str) -> Answer {
    let client = cluster.client(Some(key));
    client
        .call(route.method(), &route.path_for(about))
        .send()
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_that_has_ended_opens_no_route() {
    let cluster = Cluster::start(1).await;
    let admin = cluster.admin().await;
    let mut ended = Vec::new();
    for role in [Role::Enforcer, Role::Approver, Role::Admin] {
        let named = name(role).unwrap();
        let (_, ending) = credential(&cluster, &cluster.tenant, named, None, Some(30)).await;
        let (id, revoked) = credential(&cluster, &cluster.tenant, named, None, None).await;
        // Both were good, and may be remembered as such.
        let plain = ROUTES.iter().find(|route| {
            route.method == "GET" && route.roles.contains(&role) && !route.path.contains("/sse/")
        });
        let plain = plain.unwrap();
        for key in [&ending, &revoked] {
            assert_ne!(call(&cluster, key, plain, "r").await.status, 401);
        }
        let path = format!("/platform/v1/credentials/{id}");
        admin.delete(&path).await.expect(204);
        until("it is revoked", Duration::from_secs(6), async || {
            call(&cluster, &revoked, plain, "r").await.status == 401
        })
        .await;
        ended.push((role, [ending, revoked]));
    }
    cluster.pass(Duration::from_secs(31));
    for (role, keys) in &ended {
        for route in ROUTES.iter().filter(|route| route.roles.contains(role)) {
            for key in keys {
                let answer = call(&cluster, key, route, "r").await;
                unauthenticated(answer, &route.path_for("r"));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_names_an_id_is_for_those_who_may_act_as_it() {
    let cluster = Cluster::start(1).await;
    let mut seen = 0;
    for (role, parameter) in [
        (Role::Enforcer, "{enforcerId}"),
        (Role::Approver, "{approverId}"),
        (Role::Enforcer, "id=build-bot"),
    ] {
        let (_, other) = credential(
            &cluster,
            &cluster.tenant,
            name(role).unwrap(),
            Some("other"),
            None,
        )
        .await;
        for route in ROUTES
            .iter()
            .filter(|route| route.path.contains(parameter) && route.roles.contains(&role))
        {
            let answer = call(&cluster, &other, route, "r").await;
            answer.refused(403, "FORBIDDEN");
            seen += 1;
        }
    }
    assert!(seen >= 8, "{seen}");
}

/// An answer without what differs from one to the next: its own ids and times, and what it was
/// asked about.
fn shape(answer: &Answer, about: &str) -> (u16, Vec<String>, Value) {
    let text = answer.text.replace(about, "ABOUT");
    let mut json: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    if let Some(envelope) = json.as_object_mut() {
        for own in ["msgId", "createdAt"] {
            envelope.remove(own);
        }
        if envelope.get("requestId").is_some_and(|id| *id != "ABOUT") {
            envelope.remove("requestId");
        }
    }
    let names = answer.headers.keys().map(ToString::to_string).collect();
    (answer.status, names, json)
}

/// Something of each kind that a path can name, all of them this tenant's.
async fn belongings(cluster: &Cluster) -> Vec<String> {
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    let begun = json!({ "enforcerId": "build-bot" });
    let begun = enforcer.client.post("/v1/pairing/initiate", &begun).await;
    let begun = begun.expect(200).json();
    let event = json!({ "sessionId": "their-session", "eventType": "session.status", "state": "idle", "updatedAt": now() });
    let reported = enforcer.client.post("/v1/session/event", &event).await;
    reported.expect(202);
    let prompt = json!({
        "requestId": request_id(), "artifactType": "prompt.send", "createdAt": now(), "target": "tool",
        "ciphertext": { "alg": "a", "data": "d" }, "promptHashAlg": "SHA-256", "promptHash": crate::support::HASH,
        "metadata": { "enforcerId": "build-bot" },
    });
    approver
        .client
        .post("/v1/prompt", &prompt)
        .await
        .expect(202);
    let (id, _) = credential(cluster, &cluster.tenant, RoleName::Admin, None, None).await;
    let invitation = json!({ "role": "approver", "boundId": "dora" });
    let admin = cluster.admin().await;
    let invited = admin.post("/platform/v1/invitations", &invitation).await;
    let invited = invited.expect(201).json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    vec![
        text(&invited["invitationId"]),
        request,
        text(&begun["nonce"]),
        text(&begun["code"]),
        "their-session".to_owned(),
        text(&prompt["requestId"]),
        id,
        cluster.tenant.to_string(),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_tenant_has_answers_as_what_nobody_has_on_every_route() {
    let cluster = Cluster::start(1).await;
    let belongings = belongings(&cluster).await;
    let before = rows(&cluster).await;
    let (mut compared, mut with_body) = (0, BTreeSet::new());
    for role in [Role::Enforcer, Role::Approver, Role::Admin] {
        let tenant = cluster.administration.create_tenant("other").await.unwrap();
        let (_, key) = credential(&cluster, &tenant, name(role).unwrap(), None, None).await;
        let stranger: Client = cluster.client(Some(&key));
        for route in ROUTES.iter().filter(|route| {
            route.roles.contains(&role) && route.path.contains('{') && !route.path.contains("/sse/")
        }) {
            // Each has an unknown beside it: the stranger may make something of its own under
            // either name.
            for (n, theirs) in belongings.iter().enumerate() {
                let unknown = format!("{n:016x}");
                // As an id of whichever kind the path takes: each is of one kind alone, and unknown
                // as any other.
                let asked = async |about: &str| {
                    let path = route
                        .path
                        .split('/')
                        .map(|part| if part.starts_with('{') { about } else { part })
                        .collect::<Vec<_>>()
                        .join("/");
                    let call = stranger.call(route.method(), &path);
                    match body(route, role, about) {
                        Some(body) => call.json(&body).send().await,
                        None => call.send().await,
                    }
                };
                let (one, other) = (asked(theirs).await, asked(&unknown).await);
                let about = format!("{} {} for {theirs}", route.method, route.path);
                assert_eq!(shape(&one, theirs), shape(&other, &unknown), "{about}");
                if body(route, role, theirs).is_some() {
                    with_body.insert((one.status, route.path));
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "{compared}");
    let expected = [
        (
            200,
            "/platform/v1/approvers/{approverId}/keys/{signerKeyId}",
        ),
        // A credential for any approver registers no key.
        (
            403,
            "/platform/v1/approvers/{approverId}/keys/{signerKeyId}",
        ),
        (404, "/platform/v1/exchanges/{requestId}/cancel"),
        (404, "/v1/exchanges/{requestId}/refresh"),
        (404, "/v1/exchanges/{requestId}/withdraw"),
        (404, "/v1/requests/{requestId}/refresh"),
    ];
    assert_eq!(with_body, BTreeSet::from(expected), "judged, not misread");
    assert_eq!(rows(&cluster).await, before, "nothing was done to it");
}

/// The body that a call about this takes from a role, if it takes one.
fn body(route: &Route, role: Role, about: &str) -> Option<Value> {
    let sender = match role {
        Role::Enforcer | Role::CompatEnforcer => json!({ "enforcerId": "build-bot" }),
        Role::Approver | Role::CompatApprover => json!({ "approverId": "alice" }),
        Role::Admin | Role::Operator => json!({}),
    };
    let end = route.path.rsplit('/').next().unwrap_or_default();
    match (route.method, end) {
        ("POST", "withdraw") => Some(envelope("exchange.withdrawn", about, sender, json!({}))),
        ("POST", "refresh") => Some(envelope("refresh.request", about, sender, json!({}))),
        ("POST", "cancel") => Some(json!({ "reason": "because" })),
        ("PUT", "{signerKeyId}") => Some(json!({ "publicKey": public_key(&signing_key(1)) })),
        _ => None,
    }
}

/// Every row of the tenant that all this is about.
async fn rows(cluster: &Cluster) -> BTreeSet<String> {
    let everything = cluster.database.everything().await;
    let first = format!("({},", cluster.tenant);
    let theirs = everything.lines().filter(|line| line.starts_with(&first));
    let rows: BTreeSet<_> = theirs.map(str::to_owned).collect();
    assert!(rows.len() > 5, "{rows:?}");
    rows
}
