//! An exchange's transitions stay on its page: updates that must write to every index of their
//! table cost several times more.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};

use crate::support::exchanges::{delivered, parties};
use crate::support::{Cluster, until};

const EXCHANGES: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn decisions_and_deliveries_are_heap_only_updates() {
    let cluster = Cluster::with(2, |config| config.rates.enabled = false).await;
    let (enforcer, approver) = parties(&cluster).await;
    stream::iter(0..EXCHANGES)
        .map(|_| delivered(&enforcer, &approver))
        .buffer_unordered(8)
        .collect::<Vec<_>>()
        .await;
    let updates = "select n_tup_upd from pg_stat_user_tables where relname = 'exchanges'";
    let expected = i64::try_from(2 * EXCHANGES).unwrap();
    until(
        "all updates are counted",
        Duration::from_secs(20),
        async || {
            // Another call, after which backends report.
            enforcer.status("nothing").await;
            cluster.database.number(updates).await >= expected
        },
    )
    .await;
    let hot = "select (100 * n_tup_hot_upd / n_tup_upd)::bigint from pg_stat_user_tables where relname = 'exchanges'";
    let hot = cluster.database.number(hot).await;
    println!("{hot} % of the updates of exchanges stayed on their page");
    assert!(hot > 80, "{hot} %");
}
