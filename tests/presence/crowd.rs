//! The cost of presence: its statements grow with time, not with channels, hellos or calls.

use std::time::{Duration, Instant};

use countersign::store::identity::credential::RoleName;
use futures_util::{StreamExt as _, stream};
use serde_json::json;

use super::channels;
use crate::support::database::finish;
use crate::support::push::Socket;
use crate::support::{Client, Cluster, crowd, envelope, now, request_id, until};

const NODES: usize = 2;

/// Notes in the database itself which transaction wrote which row; every statement is a transaction
/// of its own.
const COUNTING: &str = "
    create table counted (what text not null, transaction xid8 not null);
    create function count_row() returns trigger language plpgsql as
        $$ begin insert into counted values (tg_table_name, pg_current_xact_id()); return null; end $$;
    create trigger counted after insert or update on enforcers for each row execute function count_row();
    create trigger counted after update on channels for each row execute function count_row();";

/// Statements that wrote to a table.
async fn statements(cluster: &Cluster, table: &str) -> i64 {
    let sql = format!("select count(distinct transaction) from counted where what = '{table}'");
    cluster.database.number(&sql).await
}

/// How many of the crowd have this status.
async fn having(admin: &Client, status: &str) -> usize {
    let list = admin.get("/v1/presence/enforcers").await.expect(200).json();
    let list = list.as_array().unwrap();
    list.iter()
        .filter(|record| record["status"] == status)
        .count()
}

#[tokio::test(flavor = "multi_thread")]
async fn many_channels_and_many_calls_cost_a_handful_of_statements() {
    let crowd = crowd(400).await;
    let bots = crowd.size;
    let cluster = Cluster::with(NODES, |config| {
        config.presence.write_seconds = 5;
        config.database.lock_timeout_ms = 10_000;
        config.database.statement_timeout_ms = 15_000;
    })
    .await;
    let admin = cluster.admin().await;
    let key = cluster.key(&cluster.tenant, RoleName::Enforcer, None).await;
    let key = &key;
    cluster.database.run(COUNTING).await;
    let mut sockets: Vec<Socket> = stream::iter(0..bots)
        .map(|n| {
            let url = cluster.nodes[n % NODES].url.clone();
            async move {
                let socket = Socket::connect(&url, "enforcer", &format!("bot-{n}"), key).await;
                socket.unwrap()
            }
        })
        .buffered(32)
        .collect()
        .await;
    assert_eq!(having(&admin, "online").await, bots);
    assert_eq!(statements(&cluster, "enforcers").await, 0);

    // A storm of hellos, while the database is slow for a moment.
    let mut lock = cluster.database.connect().await;
    finish(&mut lock, "begin; lock table enforcers in exclusive mode").await;
    for (n, socket) in sockets.iter_mut().enumerate() {
        let hello = json!({ "msgType": "hello", "enforcerLabel": format!("Bot {n}") });
        socket.send(&hello).await;
    }
    // Both workers of either node hold one; what comes meanwhile gathers.
    cluster.database.blocked(4).await;
    finish(&mut lock, "commit").await;
    let labels = "select count(*) from enforcers where label is not null";
    let all = i64::try_from(bots).unwrap();
    until(
        "all hellos are taken",
        Duration::from_secs(20),
        async || cluster.database.number(labels).await == all,
    )
    .await;
    let hellos = statements(&cluster, "enforcers").await;
    println!("{bots} hellos: {hellos} statements");
    assert!(hellos < all / 5, "{hellos} statements");

    // Thousands of calls over channels that stay open.
    cluster.database.run("truncate counted").await;
    let (started, mut calls) = (Instant::now(), 0);
    while started.elapsed() < Duration::from_secs(15) {
        for (n, socket) in sockets.iter_mut().enumerate() {
            let ack = json!({ "msgId": request_id(), "status": "received", "ackAt": now() });
            let sender = json!({ "enforcerId": format!("bot-{n}") });
            let ack = envelope("ack.submit", &request_id(), sender, ack);
            socket.send(&ack).await;
            calls += 1;
        }
        for socket in &mut sockets {
            let answer = socket.expect().await;
            assert_eq!(answer["body"]["code"], "PROTO_ERR_NOT_FOUND");
        }
    }
    let called = "select count(*) from enforcers where called_at is not null";
    until("all calls show", Duration::from_secs(30), async || {
        cluster.database.number(called).await == all
    })
    .await;
    let elapsed = started.elapsed().as_secs_f64();
    let writes = statements(&cluster, "enforcers").await;
    println!("{calls} calls in {elapsed:.0} s: {writes} statements");
    // Each node writes at most every 3.2 s, for any number of callers and calls.
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let most = NODES as f64 * (elapsed / 3.2 + 2.0);
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let written = writes as f64;
    assert!(written <= most, "{writes} statements in {elapsed} s");
    assert_eq!(statements(&cluster, "channels").await, 0);

    // Gone all at once: every one of them is offline, and none is taken for one that called since.
    cluster.database.run("truncate counted").await;
    drop(sockets);
    channels(&cluster, 0).await;
    assert_eq!(having(&admin, "offline").await, bots);
    let closings = statements(&cluster, "enforcers").await;
    println!("{bots} closings: {closings} statements");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_would_be_too_long_holds_those_that_were_seen_last() {
    let cluster = Cluster::with(1, |config| config.presence.list_max = 3).await;
    let admin = cluster.admin().await;
    let seen = format!(
        "insert into enforcers (tenant_id, enforcer_id, transport, seen_at)
         select '{}', 'bot-' || n, 'poll', clock_timestamp() - n * interval '1 hour' from generate_series(1, 5) n",
        cluster.tenant
    );
    cluster.database.run(&seen).await;
    let key = cluster.key(&cluster.tenant, RoleName::Enforcer, None).await;
    let url = &cluster.nodes[0].url;
    let _live = Socket::connect(url, "enforcer", "bot-9", &key)
        .await
        .unwrap();
    let list = admin.get("/v1/presence/enforcers").await.expect(200).json();
    let ids: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|record| record["enforcerDeviceId"].as_str())
        .collect();
    assert_eq!(ids, ["bot-1", "bot-2", "bot-9"]);
    admin.get("/v1/presence/enforcers/bot-5").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_reads_what_it_shows_and_one_enforcer_reads_one() {
    let cluster = Cluster::with(1, |config| config.presence.list_max = 10).await;
    let admin = cluster.admin().await;
    let many = format!(
        "insert into enforcers (tenant_id, enforcer_id, transport, seen_at)
         select '{}', 'bot-' || n, 'poll', clock_timestamp() - n * interval '1 minute' from generate_series(1, 3000) n",
        cluster.tenant
    );
    cluster.database.run(&many).await;
    cluster.database.run("vacuum analyze").await;
    cluster.database.run("select pg_stat_reset()").await;
    let list = admin.get("/v1/presence/enforcers").await.expect(200).json();
    assert_eq!(list.as_array().unwrap().len(), 10);
    let one = "/v1/presence/enforcers/bot-2999";
    admin.get(one).await.expect(200);
    let read = cluster.stop().await.rows_read("enforcers").await;
    println!("rows read: {read}");
    assert!((11..=200).contains(&read), "{read} rows read");
}
