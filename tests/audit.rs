//! The audit: every action on tenants, credentials, keys, pairings and pending exchanges leaves a
//! row that says who, what, when and from where; what is refused or changes nothing leaves none.

use std::time::Duration;

use countersign::store::identity::credential::RoleName;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::exchanges::{DAY, parties, pending};
use crate::support::{
    Answer, Approver, Client, Cluster, Enforcer, compact, public_key, registration, request_id,
    signing_key, until,
};

const AUDIT: &str = "/platform/v1/audit";

/// The credential a key belongs to.
fn credential(client: &Client) -> String {
    client.key().split('_').nth(1).expect("an id").to_owned()
}

/// Everything in the audit of a tenant, as SQL users see it, from the test's own tenant and
/// credentials on.
async fn audit(cluster: &Cluster, tenant: &str) -> Vec<String> {
    let sql = format!(
        "select coalesce(string_agg(concat_ws(' ', action, subject, 'by', actor, coalesce('with ' || principal, '-'),
                         coalesce(address, '-'), node ~ '^node-[01]$'), '|' order by at, event_id), '')
           from audit_events where tenant_id = '{tenant}'"
    );
    let lines = cluster.database.text(&sql).await;
    lines.split('|').map(str::to_owned).collect()
}

/// The events added since `before`.
async fn added(cluster: &Cluster, before: usize) -> Vec<String> {
    audit(cluster, cluster.tenant.as_str())
        .await
        .split_off(before)
}

async fn length(cluster: &Cluster) -> usize {
    audit(cluster, cluster.tenant.as_str()).await.len()
}

fn text(answer: &Answer, member: &str) -> String {
    answer.json()[member].as_str().expect(member).to_owned()
}

/// Begins and completes a pairing; its code, nonce and token.
async fn pair(enforcer: &Enforcer, approver: &Approver) -> [String; 3] {
    let begin = json!({ "enforcerId": enforcer.id });
    let begun = enforcer.client.post("/v1/pairing/initiate", &begin).await;
    let begun = begun.expect(200);
    let nonce = text(&begun, "nonce");
    let complete = json!({ "nonce": nonce, "approverId": approver.id });
    let done = approver
        .client
        .post("/v1/pairing/complete", &complete)
        .await;
    [
        text(&begun, "code"),
        nonce,
        text(&done.expect(200), "routingToken"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_and_credentials_leave_a_row_for_each_action_that_took_effect() {
    let cluster = Cluster::start(2).await;
    let operator = cluster.operator();
    let made = operator
        .post("/platform/v1/tenants", &json!({ "name": "acme" }))
        .await;
    let tenant = text(&made.expect(201), "tenantId");
    let body = json!({ "role": "admin", "tenantId": tenant });
    let made = operator.post("/platform/v1/credentials", &body).await;
    let admin = cluster.client(made.expect(201).json()["apiKey"].as_str());
    let chief = credential(&admin);
    let body = json!({ "role": "enforcer", "boundId": "bot" });
    let made = admin.post("/platform/v1/credentials", &body).await;
    let worker = text(&made.expect(201), "credentialId");
    let mut expected = vec![
        format!("tenant.created {tenant} by operator - 127.0.0.1 t"),
        format!("credential.created {chief} by operator - 127.0.0.1 t"),
        format!("credential.created {worker} by admin:{chief} with {chief} 127.0.0.1 t"),
    ];
    assert_eq!(audit(&cluster, &tenant).await, expected);

    // Refused: nothing.
    let unknown = json!({ "role": "admin", "tenantId": "nobody" });
    let refused = operator.post("/platform/v1/credentials", &unknown).await;
    refused.refused(404, "NOT_FOUND");
    let odd = json!({ "role": "admin", "boundId": "x" });
    let refused = admin.post("/platform/v1/credentials", &odd).await;
    refused.refused(400, "VALIDATION");
    let path = |id: &str| format!("/platform/v1/credentials/{id}");
    operator
        .delete(&path(&worker))
        .await
        .refused(404, "NOT_FOUND");
    assert_eq!(audit(&cluster, &tenant).await, expected);

    // Twenty at once revoke it; one did.
    let path = path(&worker);
    let at_once = join_all((0..20).map(|_| admin.delete(&path))).await;
    for answer in at_once {
        answer.expect(204);
    }
    expected.push(format!(
        "credential.revoked {worker} by admin:{chief} with {chief} 127.0.0.1 t"
    ));
    assert_eq!(audit(&cluster, &tenant).await, expected);
    let path = format!("/platform/v1/tenants/{tenant}");
    let at_once = join_all((0..20).map(|_| operator.delete(&path))).await;
    for answer in at_once {
        answer.expect(204);
    }
    expected.push(format!(
        "tenant.disabled {tenant} by operator - 127.0.0.1 t"
    ));
    assert_eq!(audit(&cluster, &tenant).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_keys_leave_a_row_when_they_change() {
    let cluster = Cluster::start(2).await;
    let (alice, admin) = (cluster.approver("alice").await, cluster.admin().await);
    let (hers, chief) = (credential(&alice.client), credential(&admin));
    let before = length(&cluster).await;
    let path = |key: &str| format!("/platform/v1/approvers/alice/keys/{key}");
    let body = |number| json!({ "publicKey": public_key(&signing_key(number)) });
    let proven = |id, number| registration(&cluster.tenant, "alice", id, &signing_key(number));
    let limited =
        json!({ "publicKey": public_key(&signing_key(2)), "notAfter": "2099-01-01T00:00:00Z" });
    alice
        .client
        .put(&path("k1"), &proven("k1", 1))
        .await
        .expect(200);
    // The same again, and what is refused, change nothing.
    alice
        .client
        .put(&path("k1"), &proven("k1", 1))
        .await
        .expect(200);
    alice
        .client
        .put(&path("k2"), &proven("k2", 2))
        .await
        .refused(403, "FORBIDDEN");
    admin
        .put(&path("k1"), &body(2))
        .await
        .refused(409, "ALREADY_EXISTS");
    let put = format!("by admin:{chief} with {chief} 127.0.0.1 t");
    let mut expected = vec![format!(
        "key.registered alice/k1 by approver:alice with {hers} 127.0.0.1 t"
    )];
    assert_eq!(added(&cluster, before).await, expected);
    // A new period of validity is a change, once.
    admin.put(&path("k2"), &body(2)).await.expect(200);
    admin.put(&path("k2"), &body(2)).await.expect(200);
    admin.put(&path("k2"), &limited).await.expect(200);
    admin.put(&path("k2"), &limited).await.expect(200);
    expected.push(format!("key.registered alice/k2 {put}"));
    expected.push(format!("key.registered alice/k2 {put}"));
    assert_eq!(added(&cluster, before).await, expected);
    for _ in 0..2 {
        alice.client.delete(&path("k1")).await.expect(204);
        admin.delete(&path("k2")).await.expect(204);
    }
    admin.delete(&path("k3")).await.refused(404, "NOT_FOUND");
    admin
        .put(&path("k2"), &body(2))
        .await
        .refused(409, "ALREADY_EXISTS");
    expected.push(format!(
        "key.revoked alice/k1 by approver:alice with {hers} 127.0.0.1 t"
    ));
    expected.push(format!("key.revoked alice/k2 {put}"));
    assert_eq!(added(&cluster, before).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn pairings_leave_their_steps_and_never_what_is_secret() {
    let cluster = Cluster::start(2).await;
    let (bot, alice) = parties(&cluster).await;
    let (its, hers) = (credential(&bot.client), credential(&alice.client));
    let any = cluster.any_enforcer().await;
    let before = length(&cluster).await;
    let [code, nonce, token] = pair(&bot, &alice).await;
    let again = json!({ "nonce": nonce, "approverId": "alice" });
    let refused = alice.client.post("/v1/pairing/complete", &again).await;
    refused.refused(409, "INVALID_STATE");
    let revoke = async |client: &Client, token: &str| {
        let body = json!({ "routingToken": token });
        client.post("/v1/pairing/revoke", &body).await
    };
    revoke(&alice.client, "unknown")
        .await
        .refused(404, "NOT_FOUND");
    for _ in 0..3 {
        revoke(&alice.client, &token).await.expect(200);
    }
    let [.., second] = pair(&bot, &alice).await;
    // A credential for any enforcer acts as the one whose token it is.
    revoke(&any, &second).await.expect(200);
    let by_bot = format!("by enforcer:build-bot with {its} 127.0.0.1 t");
    let by_alice = format!("by approver:alice with {hers} 127.0.0.1 t");
    let by_any = format!(
        "by enforcer:build-bot with {} 127.0.0.1 t",
        credential(&any)
    );
    assert_eq!(
        added(&cluster, before).await,
        [
            format!("pairing.initiated build-bot {by_bot}"),
            format!("pairing.completed build-bot/alice {by_alice}"),
            format!("pairing.revoked build-bot/alice {by_alice}"),
            format!("pairing.initiated build-bot {by_bot}"),
            format!("pairing.completed build-bot/alice {by_alice}"),
            format!("pairing.revoked build-bot/alice {by_any}"),
        ]
    );
    let rows = "select string_agg(a::text, chr(10)) from audit_events a";
    let rows = cluster.database.text(rows).await;
    let bare = code.replace('-', "");
    let secret_of = |client: &Client| client.key().splitn(3, '_').nth(2).unwrap().to_owned();
    for secret in [
        &code,
        &bare,
        &nonce,
        &token,
        &second,
        &secret_of(&bot.client),
        &secret_of(&alice.client),
    ] {
        assert!(!rows.contains(secret.as_str()), "{secret} in {rows}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_leaves_a_row_and_a_withdrawal_none() {
    let cluster = Cluster::start(2).await;
    let (bot, alice) = parties(&cluster).await;
    let admin = cluster.admin().await;
    let chief = credential(&admin);
    let before = length(&cluster).await;
    let cancel = async |request: &str| {
        let path = format!("/platform/v1/exchanges/{request}/cancel");
        admin.post(&path, &json!({ "reason": "no" })).await
    };
    let request = pending(&bot, DAY).await;
    cancel(&request).await.expect(200);
    cancel(&request).await.refused(409, "INVALID_STATE");
    cancel(&request_id()).await.refused(404, "NOT_FOUND");
    let other = pending(&bot, DAY).await;
    bot.withdraw(&other).await.expect(200);
    let third = pending(&bot, DAY).await;
    alice.decide(&third, compact("approve")).await.expect(200);
    cancel(&third).await.refused(409, "ALREADY_DECIDED");
    assert_eq!(
        added(&cluster, before).await,
        [format!(
            "exchange.cancelled {request} by admin:{chief} with {chief} 127.0.0.1 t"
        )]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_pages_through_its_own_tenants_audit_oldest_first() {
    let cluster = Cluster::start(2).await;
    let admin = cluster.admin().await;
    for number in 0..7 {
        let body = json!({ "role": "enforcer", "boundId": format!("bot-{number}") });
        admin
            .post("/platform/v1/credentials", &body)
            .await
            .expect(201);
    }
    let whole = admin.get(AUDIT).await.expect(200);
    assert_eq!(whole.header("content-type"), Some("application/json"));
    let whole = whole.json();
    assert_eq!(whole["nextCursor"], Value::Null);
    let items = whole["items"].as_array().unwrap();
    assert_eq!(items.len(), 9, "tenant, administrator, seven enforcers");
    assert_eq!(
        items[0],
        json!({
            "at": items[0]["at"], "actor": "command line", "action": "tenant.created",
            "subject": cluster.tenant.as_str(),
        })
    );
    let chief = credential(&admin);
    assert_eq!(
        items[2],
        json!({
            "at": items[2]["at"], "actor": format!("admin:{chief}"), "action": "credential.created",
            "subject": items[2]["subject"], "detail": "enforcer bot-0", "address": "127.0.0.1", "principal": chief,
        })
    );
    let mut paged = Vec::new();
    let mut path = format!("{AUDIT}?limit=2");
    loop {
        let page = admin.get(&path).await.expect(200).json();
        paged.extend(page["items"].as_array().unwrap().clone());
        match page["nextCursor"].as_str() {
            Some(cursor) => path = format!("{AUDIT}?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(&paged, items);

    // Another tenant's administrator sees its own, and a cursor of ours means nothing there.
    let there = cluster.administration.create_tenant("b").await.unwrap();
    let key = cluster.key(&there, RoleName::Admin, None).await;
    let stranger = cluster.client(Some(&key));
    let seen = stranger.get(AUDIT).await.expect(200).json();
    let subjects: Vec<_> = seen["items"].as_array().unwrap().iter().collect();
    assert_eq!(subjects.len(), 2);
    assert_eq!(subjects[0]["subject"], there.as_str());
    let foreign = path.replace("limit=2&", "");
    stranger.get(&foreign).await.refused(400, "VALIDATION");
    admin
        .get(&format!("{AUDIT}?cursor=x"))
        .await
        .refused(400, "VALIDATION");
    admin
        .get(&format!("{AUDIT}?limit=0"))
        .await
        .refused(400, "VALIDATION");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_is_kept_for_its_time_and_no_longer() {
    let cluster = Cluster::with(2, |config| {
        config.retention.audit_seconds = 3_600;
        config.retention.every_seconds = 1;
    })
    .await;
    let (bot, _) = parties(&cluster).await;
    assert_eq!(length(&cluster).await, 3, "a tenant and two credentials");
    cluster.pass(Duration::from_secs(3_000));
    let body = json!({ "enforcerId": "build-bot" });
    let begun = bot.client.post("/v1/pairing/initiate", &body).await;
    begun.expect(200);
    assert_eq!(length(&cluster).await, 4);
    cluster.pass(Duration::from_secs(1_000));
    let expected = "pairing.initiated build-bot by enforcer:build-bot";
    until("the old is gone", Duration::from_secs(10), async || {
        let left = audit(&cluster, cluster.tenant.as_str()).await;
        left.len() == 1 && left[0].starts_with(expected)
    })
    .await;
}
