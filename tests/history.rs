//! The interface for SQL users: the views, and an event for every transition.

mod plans;
mod questions;

use std::time::Duration;

use serde_json::json;

use crate::support::database::finish;
use crate::support::exchanges::{DAY, decided, delivered, parties, pending};
use crate::support::{Cluster, HASH, compact, until};

#[tokio::test(flavor = "multi_thread")]
async fn the_columns_that_were_promised_are_there() {
    let cluster = Cluster::start(1).await;
    let columns = async |table: &str| {
        let sql = format!(
            "select string_agg(column_name, ', ' order by ordinal_position) from information_schema.columns
              where table_name = '{table}'"
        );
        cluster.database.text(&sql).await
    };
    // The documented columns. More may follow, but these stay, in this order.
    assert!(columns("exchange_history").await.starts_with(
        "tenant_id, request_id, state, enforcer_id, approver_ids, artifact_type, artifact_hash, accepted_at, expires_at, \
         decided_at, decision, decided_by, signer_key_id, verified, delivered_at, ended_at, time_to_decision, seen_by, \
         end_reason, verification, submitted_principal, submitted_address, decided_principal, decided_address, \
         ended_principal, ended_address"
    ));
    assert!(columns("decision_latency").await.starts_with(
        "tenant_id, request_id, enforcer_id, artifact_type, decided_by, decision, accepted_at, seen_at, decided_at, \
         delivered_at, time_to_decision, decision_seconds, time_to_delivery, delivery_seconds, decided_principal, \
         decided_address"
    ));
    assert!(columns("pending_inbox").await.starts_with(
        "tenant_id, approver_id, request_id, enforcer_id, artifact_type, accepted_at, expires_at, acked_at, \
         submitted_principal, submitted_address"
    ));
    for column in
        "tenant_id request_id at from_state to_state actor node principal address".split(' ')
    {
        let events = columns("exchange_events").await;
        assert!(events.split(", ").any(|found| found == column), "{column}");
    }
    for column in "tenant_id at actor principal action subject address node detail".split(' ') {
        let audit = columns("audit_events").await;
        assert!(audit.split(", ").any(|found| found == column), "{column}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_tells_each_exchange_from_beginning_to_end() {
    let cluster = Cluster::start(2).await;
    let (enforcer, approver) = parties(&cluster).await;
    let line = async |request: &str| {
        let sql = format!(
            "select concat_ws(' ', tenant_id = '{}', state, enforcer_id, array_to_string(approver_ids, '+'), artifact_type,
                              artifact_hash = '{HASH}', expires_at > accepted_at, decision, decided_by, signer_key_id,
                              verified, decided_at > accepted_at, time_to_decision = decided_at - accepted_at,
                              delivered_at > decided_at, ended_at = delivered_at, 'end ' || (ended_at > accepted_at))
               from exchange_history where request_id = '{request}'",
            cluster.tenant
        );
        cluster.database.text(&sql).await
    };
    let request = pending(&enforcer, DAY).await;
    let asked = "build-bot alice command.review t t";
    assert_eq!(line(&request).await, format!("t pendingApproval {asked}"));
    let request = decided(&enforcer, &approver).await;
    assert_eq!(
        line(&request).await,
        format!("t decided {asked} reject alice key-1 f t t"),
        "decided, but not at its end"
    );
    let request = delivered(&enforcer, &approver).await;
    assert_eq!(
        line(&request).await,
        format!("t delivered {asked} reject alice key-1 f t t t t end true")
    );
    let request = pending(&enforcer, DAY).await;
    enforcer.withdraw(&request).await.expect(200);
    assert_eq!(
        line(&request).await,
        format!("t withdrawn {asked} end true")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_transition_is_an_event_with_its_actor_and_node() {
    let cluster = Cluster::start(2).await;
    let (enforcer, approver) = parties(&cluster).await;
    let admin = cluster.admin().await;
    let credential = admin.key().split('_').nth(1).expect("a credential's id");
    let events = async |request: &str| {
        let sql = format!(
            "select string_agg(coalesce(from_state, '-') || '>' || to_state || ' ' || actor, ', ' order by at)
               from exchange_events where request_id = '{request}' and tenant_id = '{}' and node in ('node-0', 'node-1')",
            cluster.tenant
        );
        cluster.database.text(&sql).await
    };
    let taken = "->pendingApproval enforcer:build-bot";
    let request = delivered(&enforcer, &approver).await;
    assert_eq!(
        events(&request).await,
        format!(
            "{taken}, pendingApproval>decided approver:alice, decided>delivered enforcer:build-bot"
        )
    );
    let request = pending(&enforcer, DAY).await;
    enforcer.withdraw(&request).await.expect(200);
    assert_eq!(
        events(&request).await,
        format!("{taken}, pendingApproval>withdrawn enforcer:build-bot")
    );
    let request = pending(&enforcer, DAY).await;
    let path = format!("/platform/v1/exchanges/{request}/cancel");
    admin.post(&path, &json!({})).await.expect(200);
    assert_eq!(
        events(&request).await,
        format!("{taken}, pendingApproval>cancelled admin:{credential}")
    );
    let request = pending(&enforcer, DAY).await;
    cluster.pass(DAY + Duration::from_secs(1));
    let swept = format!("{taken}, pendingApproval>expired gateway");
    until(
        "expiry is written down",
        Duration::from_secs(5),
        async || events(&request).await == swept,
    )
    .await;
    let on_time = format!(
        "select count(*) from exchange_events v join exchanges e using (tenant_id, request_id)
          where e.request_id = '{request}' and v.to_state = 'expired' and v.at = e.expires_at"
    );
    assert_eq!(
        cluster.database.number(&on_time).await,
        1,
        "at its time, not the sweep's"
    );
    let total = "select count(*) from exchange_events";
    assert_eq!(cluster.database.number(total).await, 9, "and nothing else");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_views_tell_the_true_state_before_and_after_the_sweep() {
    let cluster = Cluster::start(2).await;
    let (enforcer, _) = parties(&cluster).await;
    let request = pending(&enforcer, Duration::from_millis(1_500)).await;
    // A locked row is passed over by the sweep, so it stays as it was written.
    let mut lock = cluster.database.locking(&request).await;
    let inbox = "select count(*) from pending_inbox";
    assert_eq!(cluster.database.number(inbox).await, 1);
    let state = "select state from exchange_history";
    assert_eq!(cluster.database.text(state).await, "pendingApproval");
    until("its time is over", Duration::from_secs(5), async || {
        cluster.database.text(state).await == "expired"
    })
    .await;
    let whole = "select h::text from exchange_history h where ended_at = expires_at";
    let before = cluster.database.text(whole).await;
    assert_eq!(cluster.database.number(inbox).await, 0);
    let written = "select state from exchanges";
    assert_eq!(cluster.database.text(written).await, "pendingApproval");
    finish(&mut lock, "commit").await;
    until(
        "the sweep has been by",
        Duration::from_secs(5),
        async || cluster.database.text(written).await == "expired",
    )
    .await;
    assert_eq!(cluster.database.text(whole).await, before);
    assert_eq!(cluster.database.number(inbox).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pending_inbox_holds_what_waits_and_nothing_else() {
    let cluster = Cluster::start(2).await;
    let (enforcer, approver) = parties(&cluster).await;
    let request = pending(&enforcer, DAY).await;
    let line = "select coalesce(string_agg(concat_ws(' ', approver_id, enforcer_id, artifact_type, expires_at > accepted_at,
                       acked_at is not null), ','), 'empty') from pending_inbox";
    let waits = async || cluster.database.text(line).await;
    assert_eq!(waits().await, "alice build-bot command.review t f");
    let item = approver.inbox("").await.body("/items/0/msgId");
    approver
        .ack(&request, item.as_str().unwrap())
        .await
        .expect(200);
    assert_eq!(waits().await, "alice build-bot command.review t t");
    approver
        .decide(&request, compact("approve"))
        .await
        .expect(200);
    assert_eq!(waits().await, "empty");
    let request = pending(&enforcer, DAY).await;
    approver.remove(&request).await.expect(200);
    assert_eq!(waits().await, "empty");
}
