//! Exchanges of a state are found by an index: at once, however many others there are, and without
//! reading them.

use serde_json::Value;

use super::items;
use crate::support::{Client, Cluster};

const LISTING: &str = "/platform/v1/exchanges";
/// Delivered exchanges, half of them older than the others and half of them younger.
const MANY: i64 = 14_000;
/// Rows of a table that the pages may read, and what sweeps meanwhile do.
const MOST_READ: i64 = 500;

/// Many delivered exchanges, and in the middle some of each other state.
async fn fill(cluster: &Cluster) {
    let tenant = &cluster.tenant;
    cluster
        .database
        .run(&format!(
            "create temporary table made as
                 select gen_random_uuid() as id, 'r-' || n || '-' || s.state as request_id, s.state,
                        now() - interval '5 hours' + n * interval '1 s' as at,
                        now() + case when s.state = 'expired' then interval '-1 hour' else interval '1 day' end as ends
                   from generate_series(1, {MANY}) n
                  cross join lateral (
                      select 'delivered' as state
                      union all
                      select unnest(array['pendingApproval', 'decided', 'expired', 'withdrawn', 'cancelled'])
                       where n between {MANY} / 2 and {MANY} / 2 + 2) s;
             insert into exchanges (tenant_id, request_id, submission_id, operation_id, state, seq, enforcer_id, form,
                                    artifact_type, artifact_hash, accepted_at, expires_at, decision, decided_by, decided_at,
                                    delivered_at, ended_at)
             select '{tenant}', request_id, id, id, state, 1, 'build-bot', 'sealed', 'command.review', '', at, ends,
                    case when decided then 'approve' end, case when decided then 'alice' end, case when decided then at end,
                    case when state = 'delivered' then at end, case when state not in ('pendingApproval', 'decided') then at end
               from (select *, state in ('decided', 'delivered') as decided from made) m;
             insert into inbox_items (tenant_id, request_id, approver_id, message_id, created_at, expires_at, closed_at, closed_as)
             select '{tenant}', request_id, a.approver_id, gen_random_uuid(), at, ends,
                    case when state <> 'pendingApproval' then at end,
                    case when state in ('decided', 'delivered') then 'decided'
                         when state <> 'pendingApproval' then state end
                from made cross join (values ('alice'), ('bob')) as a (approver_id);
             insert into messages (tenant_id, recipient_kind, recipient, message_id, kind, request_id, seq, sender,
                                   created_at, acked_at)
             select '{tenant}', 'enforcer', 'build-bot', id, 'decision.deliver', request_id, 1, 'alice', at,
                    case when state = 'delivered' then at end
               from made where state in ('decided', 'delivered')"
        ))
        .await;
    cluster.database.run("vacuum analyze").await;
}

/// The states on the only page there is.
async fn page(client: &Client, state: &str) -> Vec<String> {
    let path = format!("{LISTING}?state={state}");
    let answer = client.get(&path).await.expect(200);
    assert_eq!(answer.json()["nextCursor"], Value::Null, "{state}");
    let states = items(&answer);
    let states = states.iter().map(|line| line["state"].as_str().unwrap());
    states.map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_few_of_a_state_are_found_at_once_among_many() {
    // On a slow machine retention would run meanwhile, too.
    let cluster = Cluster::with(1, |config| config.retention.every_seconds = 3_600).await;
    let admin = cluster.admin().await;
    fill(&cluster).await;
    // Newest first, whatever is asked for.
    let all = admin.get(&format!("{LISTING}?limit=3")).await.expect(200);
    let ids = items(&all);
    let ids: Vec<&str> = ids
        .iter()
        .map(|line| line["requestId"].as_str().unwrap())
        .collect();
    let expected = [MANY, MANY - 1, MANY - 2].map(|n| format!("r-{n}-delivered"));
    assert_eq!(ids, expected);
    cluster.database.run("select pg_stat_reset()").await;
    for state in [
        "pendingApproval",
        "decided",
        "expired",
        "withdrawn",
        "cancelled",
    ] {
        assert_eq!(page(&admin, state).await, [state, state, state]);
    }
    let database = cluster.stop().await;
    for table in ["exchanges", "inbox_items", "messages"] {
        let read = database.rows_read(table).await;
        println!("rows of {table} read: {read}");
        assert!(read <= MOST_READ, "{read} rows of {table} read");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn undelivered_ones_are_listed_also_where_they_are_very_many() {
    let cluster = Cluster::start(1).await;
    let admin = cluster.admin().await;
    fill(&cluster).await;
    // As if nothing had been delivered for long.
    cluster
        .database
        .run(
            "update exchanges set state = 'decided', delivered_at = null, ended_at = null where state = 'delivered';
             update messages set acked_at = null",
        )
        .await;
    let mut seen = 0;
    let mut query = "?state=decided&limit=200".to_owned();
    loop {
        let page = admin.get(&format!("{LISTING}{query}")).await.expect(200);
        seen += items(&page).len();
        match page.json()["nextCursor"].as_str() {
            Some(cursor) => query = format!("?state=decided&limit=200&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(i64::try_from(seen).unwrap(), MANY + 3);
}
