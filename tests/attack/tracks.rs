//! History stays on record: a node that somebody has taken over cannot remove or rewrite it, and
//! the operator does nothing to a tenant that the tenant does not see.

use std::time::Duration;

use serde_json::json;
use sqlx::PgConnection;

use crate::support::database::Database;
use crate::support::exchanges::{delivered, parties};
use crate::support::roles::Roles;
use crate::support::{Cluster, until};

const EVENTS: &str = "select count(*) from exchange_events";
const AUDIT: &str = "select count(*) from audit_events";

/// Runs a statement; the code of its refusal, if it is refused.
async fn attempt(connection: &mut PgConnection, sql: &str) -> Result<(), String> {
    let done = sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
        .execute(connection)
        .await;
    match done {
        Ok(_) => Ok(()),
        Err(sqlx::Error::Database(error)) => Err(error.code().expect("a code").into_owned()),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_taken_over_cannot_remove_its_tracks() {
    let database = Database::create().await;
    let roles = Roles::make(&database, "*").await;
    roles.run_keeping("*", "1 day");
    let cluster = Cluster::on(database.clone(), 1, |config| roles.confine(config)).await;
    let (enforcer, approver) = parties(&cluster).await;
    let request = delivered(&enforcer, &approver).await;
    let tenant = &cluster.tenant;
    let before = (database.number(EVENTS).await, database.number(AUDIT).await);
    assert_eq!(before, (3, 3));

    // The powers of the node's own role, with all tenants in reach.
    let mut thief = roles.connect("application").await;
    let reach = "select set_config('countersign.tenants', '*', false)";
    attempt(&mut thief, reach).await.unwrap();
    let no_right = Err("42501".to_owned());
    for sql in [
        "delete from audit_events",
        "update audit_events set actor = 'nobody'",
        "truncate audit_events",
        "drop table audit_events",
        "alter table audit_events disable row level security",
        "delete from exchange_events",
        "update exchange_events set principal = 'nobody'",
        "truncate exchange_events",
        "update retention_floors set keep = '0'",
        "delete from retention_floors",
        "insert into retention_floors (history, keep) values ('other', '0')",
        "insert into retention_floors (history, keep) values ('audit_events', '0')
         on conflict (history) do update set keep = '0'",
        "alter function forget_audit_events(text, timestamptz, bigint) security invoker",
        "create or replace function forget_audit_events(of_tenant text, older_than timestamptz, most bigint)
             returns bigint language sql security definer as 'select 0::bigint'",
        "create function public.mine() returns integer language sql as 'select 1'",
    ] {
        assert_eq!(attempt(&mut thief, sql).await, no_right, "{sql}");
    }
    // The functions that forget keep what is too young, whatever they are told; and they work on
    // the real tables.
    let calls = [
        format!("select forget_audit_events('{tenant}', 'infinity', 1000)"),
        format!("select forget_audit_events('{tenant}', null, 1000)"),
        format!("select forget_exchange_events('{tenant}', array['{request}'])"),
        "set search_path = pg_temp, public;
         create temporary table retention_floors (history text, keep interval);
         insert into retention_floors values ('audit_events', '-1 day'), ('exchange_events', '-1 day')"
            .to_owned(),
        format!("select public.forget_audit_events('{tenant}', 'infinity', 1000)"),
        format!("select public.forget_exchange_events('{tenant}', array['{request}'])"),
    ];
    for sql in &calls {
        assert_eq!(attempt(&mut thief, sql).await, Ok(()), "{sql}");
        let after = (database.number(EVENTS).await, database.number(AUDIT).await);
        assert_eq!(after, before, "{sql}");
    }
    // A role that only reads has no use for them.
    let mut reader = roles.connect("reader").await;
    for sql in &calls[..3] {
        assert_eq!(attempt(&mut reader, sql).await, no_right, "{sql}");
    }
    drop((thief, reader));
    for node in cluster.nodes {
        node.stop().await;
    }
    roles.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_works_under_the_nodes_own_role_and_respects_the_floors() {
    let database = Database::create().await;
    let roles = Roles::make(&database, "").await;
    roles.run_keeping("", "1 day");
    let cluster = Cluster::on(database.clone(), 1, |config| {
        roles.confine(config);
        config.retention.exchange_seconds = 60;
        config.retention.audit_seconds = 60;
        config.retention.every_seconds = 1;
    })
    .await;
    let (enforcer, approver) = parties(&cluster).await;
    delivered(&enforcer, &approver).await;
    let exchanges = "select count(*) from exchanges";
    // An hour later all of it is past the configured time, and none is past the floor.
    cluster.pass(Duration::from_secs(3_600));
    cluster.sweeps("retention", 2).await;
    let kept = (
        database.number(exchanges).await,
        database.number(EVENTS).await,
        database.number(AUDIT).await,
    );
    assert_eq!(kept, (1, 3, 3));
    // Two days later it is.
    let aged = "update exchanges set accepted_at = accepted_at - interval '2 days', decided_at = decided_at - interval '2 days',
                       delivered_at = delivered_at - interval '2 days', ended_at = ended_at - interval '2 days';
                update exchange_events set at = at - interval '2 days';
                update audit_events set at = at - interval '2 days'";
    database.run(aged).await;
    until("all of it is gone", Duration::from_secs(20), async || {
        let left = [exchanges, EVENTS, AUDIT].map(|count| database.number(count));
        futures_util::future::join_all(left).await == [0, 0, 0]
    })
    .await;
    for node in cluster.nodes {
        node.stop().await;
    }
    roles.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_floor_in_months_or_years_is_the_same_for_an_exchange_and_its_history() {
    let database = Database::create().await;
    // 365 days and 6 hours; by the calendar 365 or 366 days.
    database
        .run(
            "insert into retention_floors (history, keep) values ('exchange_events', '1 year'), ('audit_events', '1 year');
             insert into exchange_events (tenant_id, request_id, at, event_id, to_state, actor, node)
             select 't', 'r', clock_timestamp() - v.age, gen_random_uuid(), 'decided', 'a', 'n'
               from (values (interval '365 days 5 hours'), ('365 days 7 hours')) as v (age);
             insert into audit_events (tenant_id, at, event_id, actor, action, subject, node)
             select tenant_id, at, event_id, 'a', 'b', 'c', 'd' from exchange_events;
             select forget_exchange_events('t', array['r']), forget_audit_events('t', 'infinity', 100)",
        )
        .await;
    for table in ["exchange_events", "audit_events"] {
        let ages = format!(
            "select string_agg((clock_timestamp() - at > interval '365 days 6 hours')::text, ' ') from {table}"
        );
        assert_eq!(database.text(&ages).await, "false", "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_makes_itself_administrator_is_seen_by_the_tenant() {
    let cluster = Cluster::start(2).await;
    let admin = cluster.admin().await;
    let tenant = cluster.tenant.as_str();
    let body = json!({ "role": "admin", "tenantId": tenant });
    let made = cluster
        .operator()
        .post("/platform/v1/credentials", &body)
        .await;
    let made = made.expect(201).json();
    // With it the operator could do anything; the tenant sees where it came from, and what it is.
    let audit = admin.get("/platform/v1/audit").await.expect(200).json();
    let items = audit["items"].as_array().unwrap();
    let last = items.last().unwrap();
    assert_eq!(
        *last,
        json!({
            "at": last["at"], "actor": "operator", "action": "credential.created", "subject": made["credentialId"],
            "detail": "admin", "address": "127.0.0.1",
        })
    );
    // And so of every credential: its role, and whom it may act as.
    let body = json!({ "role": "approver", "boundId": "alice" });
    let made = admin.post("/platform/v1/credentials", &body).await;
    made.expect(201);
    let audit = admin.get("/platform/v1/audit").await.expect(200).json();
    let last = audit["items"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["detail"], "approver alice");
}
