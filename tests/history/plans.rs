//! The cost of a question does not grow with unrelated rows: a tenant and a time are found by an
//! index, through the views and behind row-level security.

use serde_json::Value;

use super::questions::questions;
use crate::support::database::Database;
use crate::support::roles::Roles;

/// Three hundred days of ten tenants.
const MANY: &str = "
    insert into tenants (tenant_id, name) select 'tenant-' || n, 'many' from generate_series(0, 9) n;
    create temporary table past as
    select 'tenant-' || n % 10 as tenant_id, 'request-' || n as request_id, clock_timestamp() - n * interval '432 s' as at,
           case n % 4 when 0 then 'pendingApproval' when 1 then 'decided' when 2 then 'delivered' else 'expired' end as state
      from generate_series(60000, 1, -1) n;
    insert into exchanges (tenant_id, request_id, submission_id, operation_id, state, seq, enforcer_id, form, artifact_type,
                           artifact_hash, accepted_at, expires_at, decision, decided_by, signer_key_id, verified, decided_at,
                           delivered_at)
    select tenant_id, request_id, gen_random_uuid(), gen_random_uuid(), state, 1, 'build-bot', 'sealed', 'command.review', 'h',
           at, at + interval '1 day', case when decided then 'approve' end, case when decided then 'alice' end,
           case when decided then 'k' end, decided, case when decided then at + interval '1 s' end,
           case when state = 'delivered' then at + interval '2 s' end
      from (select *, state in ('decided', 'delivered') as decided from past) p;
    insert into inbox_items (tenant_id, request_id, approver_id, message_id, created_at, expires_at, closed_at, closed_as)
    select tenant_id, request_id, 'alice', gen_random_uuid(), at, at + interval '1 day',
           case when state <> 'pendingApproval' then at end,
           case state when 'expired' then 'expired' when 'pendingApproval' then null else 'decided' end
      from past;
    insert into exchange_events (tenant_id, request_id, at, event_id, to_state, actor, node)
    select tenant_id, request_id, at, gen_random_uuid(), 'pendingApproval', 'enforcer:build-bot', 'node-1' from past;
    insert into audit_events (tenant_id, at, event_id, actor, action, subject, node)
    select tenant_id, at, gen_random_uuid(), 'operator', 'credential.created', request_id, 'node-1' from past;
    analyze exchanges, inbox_items, exchange_events, audit_events;";

/// Every node of a plan.
fn nodes<'a>(plan: &'a Value, found: &mut Vec<&'a Value>) {
    found.push(plan);
    for child in plan["Plans"].as_array().into_iter().flatten() {
        nodes(child, found);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_question_reads_what_it_is_not_about() {
    let database = Database::create().await;
    database.run(MANY).await;
    let roles = Roles::make(&database, "tenant-3,tenant-4").await;
    let mut reader = roles.connect("reader").await;
    for (heading, sql) in questions() {
        let sql = sql
            .replace(":'tenant'", "'tenant-3'")
            .replace(":'request'", "'request-3'");
        let explain = format!("explain (analyze, timing off, format json) {sql}");
        let plan: Value = sqlx::query_scalar(sqlx::AssertSqlSafe(explain))
            .fetch_one(&mut reader)
            .await
            .unwrap_or_else(|error| panic!("{heading}: {error}"));
        let mut found = Vec::new();
        nodes(&plan[0]["Plan"], &mut found);
        let scans: Vec<&&Value> = found
            .iter()
            .filter(|node| node["Relation Name"].is_string())
            .collect();
        assert!(!scans.is_empty(), "{heading}");
        for scan in scans {
            assert_ne!(scan["Node Type"], "Seq Scan", "{heading}: {plan:#}");
            // A tenant has 6,000 exchanges: thirty days of them are 600, forty-five 900, ninety
            // 1,800.
            let count = |member: &str| scan[member].as_f64().unwrap_or_default();
            let once = count("Actual Rows") + count("Rows Removed by Filter");
            assert!(once <= 2_000.0, "{heading} reads {once}: {plan:#}");
        }
    }
    drop(reader);
    roles.remove().await;
}
