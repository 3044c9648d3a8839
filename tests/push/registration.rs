//! The rows of channels against the channels themselves: one that is missing is written again, one
//! of nobody is removed.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::{approver_socket, enforcer_socket, scene};
use crate::support::exchanges::decided;
use crate::support::{Cluster, until};

async fn channels(cluster: &Cluster, count: i64) {
    let open = "select count(*) from channels c join nodes n on n.node_id = c.node_id";
    until("the rows are right", Duration::from_secs(15), async || {
        cluster.database.number(open).await == count
    })
    .await;
}

/// As after a failover to a standby that lacked the latest.
#[tokio::test(flavor = "multi_thread")]
async fn a_channel_whose_row_is_gone_is_registered_again() {
    let (cluster, enforcer, approver) = scene(2).await;
    let mut older = enforcer_socket(&cluster, 0, &enforcer).await;
    let mut newer = enforcer_socket(&cluster, 1, &enforcer).await;
    let mut approving = approver_socket(&cluster, 0, &approver).await;
    for lost in [
        "delete from channels",
        "delete from nodes",
        "with gone as (delete from nodes) delete from channels",
    ] {
        cluster.database.run(lost).await;
        channels(&cluster, 3).await;
        let request = decided(&enforcer, &approver).await;
        let asked = approving.expect().await;
        assert_eq!(asked["requestId"], request.as_str(), "after {lost}");
        let delivered = newer.expect().await;
        assert_eq!(delivered["requestId"], request.as_str(), "after {lost}");
        let message = delivered["msgId"].as_str().unwrap();
        enforcer.ack(&request, message).await.expect(200);
    }
    let long = Duration::from_millis(500);
    assert!(newer.is_silent(long).await, "each came once");
    assert!(older.is_silent(long).await, "the newer is still the newer");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_while_a_row_was_gone_is_sent_when_it_is_back() {
    let (cluster, enforcer, approver) = scene(1).await;
    let mut socket = enforcer_socket(&cluster, 0, &enforcer).await;
    cluster.database.run("delete from channels").await;
    let request = decided(&enforcer, &approver).await;
    assert_eq!(socket.expect().await["requestId"], request.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_of_a_node_that_is_not_registered_are_removed() {
    let (cluster, enforcer, approver) = scene(1).await;
    let mut living = enforcer_socket(&cluster, 0, &enforcer).await;
    // Of two nodes that nobody knows, one before and one behind ours.
    let orphans = "insert into channels (tenant_id, kind, identity, channel_id, node_id, transport, opened_at)
                   select c.tenant_id, c.kind, c.identity, gen_random_uuid(), n.id::uuid, c.transport, now()
                     from channels c,
                          (values ('00000000-0000-7000-8000-000000000001'), ('ffffffff-0000-7000-8000-000000000001')) n (id)";
    cluster.database.run(orphans).await;
    let all = "select count(*) from channels";
    until("they are removed", Duration::from_secs(15), async || {
        cluster.database.number(all).await == 1
    })
    .await;
    decided(&enforcer, &approver).await;
    assert_eq!(living.expect().await["msgType"], "decision.deliver");
}

/// A statement of the program, by words of it.
fn statement(words: &str) -> String {
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join(".sqlx");
    let mut found = std::fs::read_dir(stored).unwrap().filter_map(|entry| {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let query = serde_json::from_str::<Value>(&text).unwrap()["query"]
            .as_str()?
            .to_owned();
        query.contains(words).then_some(query)
    });
    let query = found.next().expect("a statement");
    assert!(found.next().is_none(), "two statements: {words}");
    query
}

fn nodes<'a>(plan: &'a Value, found: &mut Vec<&'a Value>) {
    found.push(plan);
    for child in plan["Plans"].as_array().into_iter().flatten() {
        nodes(child, found);
    }
}

/// A node compares all its channels with their rows, every four seconds.
#[tokio::test(flavor = "multi_thread")]
async fn comparing_thousands_of_channels_takes_one_pass() {
    let cluster = Cluster::start(1).await;
    let mut connection = cluster.database.connect().await;
    let id = |n: i64| format!("00000000-0000-7000-8000-{n:012}");
    // As a node runs it: planned once, while there are no channels.
    let prepared = format!(
        "set plan_cache_mode = force_generic_plan; set enable_seqscan = off;
         prepare compare as {};
         explain execute compare ('{{}}', '{node}');
         insert into channels (tenant_id, kind, identity, channel_id, node_id, transport, opened_at)
         select 'tenant', 'approver', n::text, ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, '{node}', 'sse',
                now() - interval '1 minute'
           from generate_series(1, 6000) n",
        statement("full join (select c.tenant_id, c.kind, c.identity, c.channel_id, c.opened_at"),
        node = cluster.database.text("select node_id::text from nodes").await,
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(prepared))
        .execute(&mut connection)
        .await
        .unwrap();
    for analyzed in [false, true] {
        if analyzed {
            cluster.database.run("analyze channels").await;
        }
        // One live channel has no row, and one row has no channel.
        let live: Vec<String> = (2..=6_001).map(id).collect();
        let explain = format!(
            "explain (analyze, timing off, format json) execute compare ('{{{}}}', '{}')",
            live.join(","),
            cluster
                .database
                .text("select node_id::text from nodes")
                .await
        );
        let plan: Value = sqlx::query_scalar(sqlx::AssertSqlSafe(explain))
            .fetch_one(&mut connection)
            .await
            .unwrap();
        let plan = &plan[0]["Plan"];
        assert_eq!(plan["Actual Rows"], 2, "{plan:#}");
        let mut found = Vec::new();
        nodes(plan, &mut found);
        for node in found {
            assert_ne!(node["Node Type"], "Nested Loop", "{plan:#}");
            assert_eq!(node["Actual Loops"], 1, "{plan:#}");
            let filter = node["Filter"].as_str().unwrap_or_default();
            assert!(!filter.contains("ANY"), "a list for each row: {plan:#}");
        }
    }
}
