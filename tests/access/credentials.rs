//! The identities that one credential may act as, and when it ends.

use std::time::Duration;

use countersign::store::identity::credential::RoleName;
use reqwest::Method;
use serde_json::{Value, json};

use super::unauthenticated;
use crate::support::{Answer, Cluster, compact, envelope, in_time, now, request_id, sealed, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_bound_to_one_id_acts_as_no_other() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let other = cluster.enforcer("other-bot").await;
    let bob = cluster.approver("bob").await;
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    let forbidden = |answer: Answer, member: &str, name: &str| {
        let answer = answer.refused(403, "FORBIDDEN");
        assert_eq!(answer.detail(member), name, "{answer:?}");
    };
    let before = cluster.database.counts().await;

    for (method, path) in [
        (Method::GET, "/v1/approvers/alice/inbox".to_owned()),
        (Method::GET, "/v1/approvers/alice/inbox/expired".to_owned()),
        (
            Method::DELETE,
            format!("/v1/approvers/alice/inbox/{request}"),
        ),
        (Method::GET, "/platform/v1/approvers/alice/keys".to_owned()),
        (
            Method::PUT,
            "/platform/v1/approvers/alice/keys/k".to_owned(),
        ),
        (
            Method::DELETE,
            "/platform/v1/approvers/alice/keys/k".to_owned(),
        ),
    ] {
        // Without a body: the path is judged before it.
        forbidden(
            bob.client.call(method, &path).send().await,
            "parameter",
            "approverId",
        );
    }
    let listing = other
        .client
        .get("/platform/v1/exchanges?enforcerId=build-bot")
        .await;
    forbidden(listing, "parameter", "enforcerId");

    let as_bot = json!({ "enforcerId": "build-bot" });
    let as_alice = json!({ "approverId": "alice" });
    let ack = json!({ "msgId": request_id(), "status": "received", "ackAt": now() });
    let pointer = ("/sender/enforcerId", "/sender/approverId");
    let paths = [
        ("/v1/artifacts", "artifact.submit", sealed()),
        ("/v1/acks", "ack.submit", ack.clone()),
        ("/v1/exchanges/{}/withdraw", "exchange.withdrawn", json!({})),
    ];
    for (path, kind, body) in paths {
        let message = envelope(kind, &request, as_bot.clone(), body);
        let answer = other
            .client
            .post(&path.replace("{}", &request), &message)
            .await;
        forbidden(answer, "pointer", pointer.0);
    }
    let paths = [
        ("/v1/decisions", "decision.submit", compact("approve")),
        ("/v1/acks", "ack.submit", ack),
        ("/v1/exchanges/{}/refresh", "refresh.request", json!({})),
        ("/v1/requests/{}/refresh", "refresh.request", json!({})),
    ];
    for (path, kind, body) in paths {
        let message = envelope(kind, &request, as_alice.clone(), body);
        let answer = bob
            .client
            .post(&path.replace("{}", &request), &message)
            .await;
        forbidden(answer, "pointer", pointer.1);
    }
    assert_eq!(cluster.database.counts().await, before);

    // Those an exchange does not concern do not learn that it exists.
    for client in [&other.client, &bob.client] {
        let answer = client.get(&format!("/v1/exchanges/{request}")).await;
        answer.refused(404, "NOT_FOUND");
    }
    let wait = format!("/v1/exchanges/{request}/wait?timeout=1");
    other.client.get(&wait).await.refused(404, "NOT_FOUND");

    // An unbound credential acts as any id of its role.
    let any = cluster.key(&cluster.tenant, RoleName::Approver, None).await;
    let any = cluster.client(Some(&any));
    any.get("/v1/approvers/alice/inbox").await.expect(200);
    any.get("/v1/approvers/bob/inbox").await.expect(200);
    let message = envelope("decision.submit", &request, as_alice, compact("approve"));
    any.post("/v1/decisions", &message).await.expect(200);
    let who = "select decided_by from exchanges";
    assert_eq!(cluster.database.text(who).await, "alice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_ends_with_its_time_its_revocation_or_its_tenant() {
    let cluster = Cluster::start(3).await;
    let (admin, operator) = (cluster.admin().await, cluster.operator());
    let listing = "/v1/approvers/alice/inbox";
    let make = async |extra: Value| {
        let mut body = extra;
        body["role"] = json!("approver");
        body["boundId"] = json!("alice");
        let made = admin
            .post("/platform/v1/credentials", &body)
            .await
            .expect(201)
            .json();
        let key = made["apiKey"].as_str().unwrap().to_owned();
        (made["credentialId"].as_str().unwrap().to_owned(), key)
    };
    let (_, timed) = make(json!({ "expiresAt": in_time(600) })).await;
    let (id, revoked) = make(json!({})).await;
    let (_, untouched) = make(json!({})).await;
    // Every node knows each of them before anything changes.
    for key in [&timed, &revoked, &untouched] {
        for node in 0..3 {
            cluster
                .client(Some(key))
                .on(node)
                .get(listing)
                .await
                .expect(200);
        }
    }
    let stops = async |key: &str, why: &str| {
        let all = cluster.client(Some(key));
        let nodes = [all.on(0), all.on(1), all.on(2)];
        let refused = async || {
            let answers = nodes.iter().map(|node| node.get(listing));
            let answers = futures_util::future::join_all(answers).await;
            answers.iter().all(|answer| answer.status == 401)
        };
        until(why, Duration::from_secs(5), refused).await;
        unauthenticated(all.get(listing).await, listing);
    };
    admin
        .delete(&format!("/platform/v1/credentials/{id}"))
        .await
        .expect(204);
    stops(&revoked, "a revocation works on every node").await;
    cluster.pass(Duration::from_secs(601));
    unauthenticated(cluster.client(Some(&timed)).get(listing).await, listing);
    for node in 0..3 {
        cluster
            .client(Some(&untouched))
            .on(node)
            .get(listing)
            .await
            .expect(200);
    }
    let tenant = format!("/platform/v1/tenants/{}", cluster.tenant);
    operator.delete(&tenant).await.expect(204);
    stops(&untouched, "a disabled tenant's credentials stop").await;
    stops(admin.key(), "its administrators too").await;
    operator.get("/platform/v1/tenants").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_names_an_id_of_another_role_is_refused() {
    let cluster = Cluster::start(1).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let request = request_id();
    let mut submission = enforcer.submission(&request, "alice", sealed());
    submission["sender"]["approverId"] = json!("alice");
    let posing = enforcer.client.post("/v1/artifacts", &submission).await;
    posing.refused_at(403, "FORBIDDEN", "/sender/approverId");
    let mut decision = approver.decision(&request, compact("approve"));
    decision["sender"]["enforcerId"] = json!("build-bot");
    let posing = approver.client.post("/v1/decisions", &decision).await;
    posing.refused_at(403, "FORBIDDEN", "/sender/enforcerId");
    let sender = json!({ "approverId": "alice" });
    let refresh = envelope("refresh.request", &request, sender, json!({}));
    let path = format!("/v1/exchanges/{request}/refresh");
    let posing = cluster.admin().await.post(&path, &refresh).await;
    posing.refused_at(403, "FORBIDDEN", "/sender/approverId");
    assert_eq!(
        cluster
            .database
            .number("select count(*) from exchanges")
            .await,
        0
    );
}
