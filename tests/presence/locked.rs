//! One enforcer's row is locked: hellos and closings of all others go on.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use super::hello::say;
use super::socket;
use crate::support::database::finish;
use crate::support::{Cluster, until};

#[tokio::test(flavor = "multi_thread")]
async fn hellos_and_closings_go_on_while_one_enforcers_row_is_locked() {
    let cluster = Cluster::with(1, |config| {
        config.database.lock_timeout_ms = 60_000;
        config.database.statement_timeout_ms = 90_000;
    })
    .await;
    let (stuck, other) = (
        cluster.enforcer("build-bot").await,
        cluster.enforcer("other-bot").await,
    );
    let hello = json!({ "enforcerLabel": "before" });
    // More than the workers of one kind of statement.
    let mut sockets = join_all((0..3).map(|_| socket(&cluster, 0, &stuck))).await;
    let idle = socket(&cluster, 0, &stuck).await;
    let (mut first, second) = (
        socket(&cluster, 0, &other).await,
        socket(&cluster, 0, &other).await,
    );
    assert_eq!(say(&mut sockets[0], &hello).await, None);
    assert_eq!(say(&mut first, &hello).await, None);
    let lock = "select from enforcers where enforcer_id = 'build-bot' for update";
    let mut lock = cluster.database.holding(lock).await;

    let later = json!({ "msgType": "hello", "enforcerLabel": "after" });
    for socket in &mut sockets {
        socket.send(&later).await;
    }
    cluster.busy("hello").await;
    assert_eq!(say(&mut first, &later).await, None);

    drop(idle);
    cluster.busy("close_channel").await;
    drop((first, second));
    let channels_of = async |enforcer: &str| {
        let count = format!("select count(*) from channels where identity = '{enforcer}'");
        cluster.database.number(&count).await
    };
    until(
        "the other's channels go",
        Duration::from_secs(10),
        async || channels_of("other-bot").await == 0,
    )
    .await;
    assert_eq!(channels_of("build-bot").await, 4);

    finish(&mut lock, "rollback").await;
    drop(sockets);
    until("all channels go", Duration::from_secs(10), async || {
        channels_of("build-bot").await == 0
    })
    .await;
    let label = "select label from enforcers where enforcer_id = 'build-bot'";
    assert_eq!(cluster.database.text(label).await, "after");
}
