//! The deletion of sessions.

use std::time::Duration;

use super::{end, outcome, read, report, seen, snapshot, start, status};
use crate::support::{Cluster, until};

const HOUR: Duration = Duration::from_secs(3_600);

async fn count(cluster: &Cluster, table: &str, of: &str) -> i64 {
    let sql = format!("select count(*) from {table} where session_id = '{of}'");
    cluster.database.number(&sql).await
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_go_when_nothing_was_heard_of_them_for_long_enough() {
    let cluster = Cluster::with(2, |config| {
        config.retention.session_seconds = 2 * 3_600;
        config.retention.every_seconds = 1;
    })
    .await;
    let agent = cluster.enforcer("build-bot").await.client;
    // However long ago it says it was, what counts is when it was heard of. One has more than goes
    // in a statement.
    for n in 0..230 {
        let shot = snapshot("over", &format!("shot-{n}"), 1);
        report(&agent, &shot).await.expect(202);
    }
    report(&agent, &end("over", 2)).await.expect(202);
    report(&agent, &start("quiet", 1)).await.expect(202);
    report(&agent, &start("busy", 1)).await.expect(202);
    report(&agent, &snapshot("busy", "one", 1))
        .await
        .expect(202);
    cluster.pass(HOUR);
    report(&agent, &status("busy", "editing", 2))
        .await
        .expect(202);
    cluster.pass(HOUR + Duration::from_secs(60));
    for gone in ["over", "quiet"] {
        until("it is gone", Duration::from_secs(20), async || {
            count(&cluster, "sessions", gone).await == 0
        })
        .await;
        assert_eq!(count(&cluster, "session_snapshots", gone).await, 0);
        read(&agent, gone).await.refused(404, "NOT_FOUND");
    }
    let session = seen(&agent, "busy").await;
    assert_eq!(session["snapshots"].as_array().unwrap().len(), 1);
    // Its name is free again.
    let answer = report(&agent, &start("over", 3)).await;
    assert_eq!(outcome(&answer), "202");
}

#[tokio::test(flavor = "multi_thread")]
async fn scrubbing_empties_the_snapshots_of_ended_sessions_and_keeps_their_hashes() {
    let cluster = Cluster::with(2, |config| {
        config.retention.scrub_seconds = 60;
        config.retention.every_seconds = 1;
    })
    .await;
    let agent = cluster.enforcer("build-bot").await.client;
    for session in ["over", "open"] {
        for n in 0..3 {
            let shot = snapshot(session, &format!("shot-{n}"), n);
            report(&agent, &shot).await.expect(202);
        }
    }
    report(&agent, &end("over", 5)).await.expect(202);
    let before = seen(&agent, "over").await;
    cluster.pass(Duration::from_secs(120));
    let full =
        "select count(*) from session_snapshots where body::text <> 'null' and session_id = 'over'";
    until("payloads are gone", Duration::from_secs(10), async || {
        cluster.database.number(full).await == 0
    })
    .await;
    assert_eq!(seen(&agent, "over").await, before);
    let again = report(&agent, &snapshot("over", "shot-1", 1)).await;
    assert_eq!(outcome(&again), "202 duplicate");
    let kept = "select count(*) from session_snapshots where body -> 'payload' is not null and session_id = 'open'";
    assert_eq!(cluster.database.number(kept).await, 3);
}
