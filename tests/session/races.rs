//! Reports of one session on several nodes at once, and replies that are lost.

use std::time::Duration;

use futures_util::future::{join, join_all};
use serde_json::{Value, json};

use super::{end, hashed, outcome, report, seen, snapshot, start, status};
use crate::lost::losing_the_reply;
use crate::support::database::finish;
use crate::support::{Client, Cluster, until, with};

/// A transaction of the test's own that has locked a session, as a report on some other node would.
async fn locking(cluster: &Cluster, session: &str) -> sqlx::PgConnection {
    let mut connection = cluster.database.connect().await;
    let lock = format!("begin; select from sessions where session_id = '{session}' for update");
    finish(&mut connection, &lock).await;
    connection
}

#[tokio::test(flavor = "multi_thread")]
async fn of_identical_reports_at_once_one_is_the_first() {
    let cluster = Cluster::start(3).await;
    let agent = cluster.enforcer("build-bot").await.client;
    for round in 0..5 {
        let session = format!("s-{round}");
        // The first of all opens the session, whichever it is.
        for event in [
            snapshot(&session, "one", 1),
            start(&session, 0),
            status(&session, "editing", 5),
            snapshot(&session, "two", 1),
            end(&session, 9),
        ] {
            let answers = join_all((0..12).map(|_| report(&agent, &event))).await;
            let mut outcomes: Vec<_> = answers.iter().map(outcome).collect();
            outcomes.sort();
            let mut expected = vec!["202"];
            expected.resize(12, "202 duplicate");
            assert_eq!(outcomes, expected, "{event}");
        }
        let session = seen(&agent, &session).await;
        assert_eq!(session["snapshots"].as_array().unwrap().len(), 2);
    }
}

/// Reports these at once, each on a node of its own, when all of them wait for the session's row;
/// and what came of each.
async fn meeting(
    cluster: &Cluster,
    agent: &Client,
    session: &str,
    events: &[Value],
) -> Vec<String> {
    let nodes: Vec<_> = (0..events.len()).map(|node| agent.on(node)).collect();
    let calls = nodes
        .iter()
        .zip(events)
        .map(|(node, event)| report(node, event));
    let mut lock = locking(cluster, session).await;
    let (answers, ()) = join(join_all(calls), async {
        let waiting = i64::try_from(events.len()).unwrap();
        cluster.database.blocked(waiting).await;
        finish(&mut lock, "commit").await;
    })
    .await;
    answers.iter().map(outcome).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_loses_to_its_twin_leaves_no_trace() {
    let cluster = Cluster::start(3).await;
    let agent = cluster.enforcer("build-bot").await.client;
    report(&agent, &start("s", 0)).await.expect(202);
    for round in 1..6 {
        let name = format!("shot-{round}");
        let rivals = [10 * round, 10 * round + 5].map(|seconds| snapshot("s", &name, seconds));
        let outcomes = meeting(&cluster, &agent, "s", &rivals).await;
        let winner = outcomes
            .iter()
            .position(|outcome| outcome == "202")
            .unwrap();
        assert_eq!(outcomes[1 - winner], "409 DUPLICATE_SNAPSHOT");
        let session = seen(&agent, "s").await;
        assert_eq!(session["updatedAt"], rivals[winner]["createdAt"]);
        let shown = session["snapshots"].as_array().unwrap();
        assert_eq!(shown.len(), round);
        assert_eq!(shown[0]["snapshotHash"], rivals[winner]["snapshotHash"]);
    }
    for event in [
        snapshot("s", "same", 99),
        status("s", "error", 99),
        end("s", 99),
    ] {
        let repeats = [event.clone(), event.clone(), event];
        let mut outcomes = meeting(&cluster, &agent, "s", &repeats).await;
        outcomes.sort();
        assert_eq!(outcomes, ["202", "202 duplicate", "202 duplicate"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_state_that_waited_longer_does_not_come_back() {
    let cluster = Cluster::start(3).await;
    let agent = cluster.enforcer("build-bot").await.client;
    for round in 1..6 {
        let states = ["planning", "executing", "editing"];
        let seconds = [10 * round, 10 * round + 2, 10 * round + 1];
        let events: Vec<_> = states
            .iter()
            .zip(seconds)
            .map(|(state, seconds)| status("s", state, seconds))
            .collect();
        report(&agent, &status("s", "idle", 10 * round - 1))
            .await
            .expect(202);
        let outcomes = meeting(&cluster, &agent, "s", &events).await;
        assert_eq!(outcomes, ["202", "202", "202"]);
        assert_eq!(seen(&agent, "s").await["state"], "executing");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_starts_or_ends_at_once_one_is_refused() {
    let cluster = Cluster::start(3).await;
    let agent = cluster.enforcer("build-bot").await.client;
    for round in 0..5 {
        let session = format!("s-{round}");
        let (first, last) = (start(&session, 0), end(&session, 9));
        for (event, pointer, refused) in [
            (first, "/agentHost", "409 ALREADY_EXISTS"),
            (last, "/metadata", "409 SESSION_CLOSED"),
        ] {
            let rivals: Vec<_> = (0..9)
                .map(|n| match pointer {
                    "/metadata" => with(&event, pointer, json!({ "n": n })),
                    _ => with(&event, pointer, json!(format!("host-{n}"))),
                })
                .collect();
            let answers = join_all(rivals.iter().map(|event| report(&agent, event))).await;
            let outcomes: Vec<_> = answers.iter().map(outcome).collect();
            let winner = outcomes
                .iter()
                .position(|outcome| outcome == "202")
                .unwrap();
            for (n, outcome) in outcomes.iter().enumerate() {
                assert_eq!(outcome, if n == winner { "202" } else { refused });
            }
            let member = &pointer[1..];
            assert_eq!(seen(&agent, &session).await[member], rivals[winner][member]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_whose_reply_was_lost_is_accepted_once_and_is_no_duplicate() {
    let (cluster, proxy) = Cluster::behind_proxy().await;
    let agent = cluster.enforcer("build-bot").await.client;
    report(&agent, &snapshot("s", "zero", 0)).await.expect(202);
    for answer in join_all((0..20).map(|_| super::read(&agent, "s"))).await {
        answer.expect(200);
    }
    for (event, done) in [
        (start("s", 0), "start_hash is not null"),
        (status("s", "editing", 5), "state = 'editing'"),
        (
            hashed(snapshot("s", "one", 6)),
            "exists (select from session_snapshots where snapshot_id = 'one')",
        ),
        (end("s", 9), "ended_at is not null"),
    ] {
        let done = format!("select count(*) from sessions where {done}");
        let lock = locking(&cluster, "s").await;
        let answer = losing_the_reply(&cluster, &proxy, lock, &done, report(&agent, &event)).await;
        assert_eq!(outcome(&answer), "202", "{event}");
        until(
            "connections are back",
            Duration::from_secs(10),
            async || super::read(&agent, "s").await.status == 200,
        )
        .await;
        let again = report(&agent, &event).await;
        assert_eq!(outcome(&again), "202 duplicate", "{event}");
    }
    let stored = "select count(*) from session_snapshots";
    assert_eq!(cluster.database.number(stored).await, 2);
}
