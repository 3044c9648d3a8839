//! Events come in any order, and more than once.

use serde_json::{Value, json};

use super::{at, end, hashed, outcome, report, seen, snapshot, start, status};
use crate::support::{Client, Cluster, with};

/// Reports events one after the other, and what came of each.
async fn outcomes(agent: &Client, events: &[Value]) -> Vec<String> {
    let mut outcomes = Vec::new();
    for event in events {
        outcomes.push(outcome(&report(agent, event).await));
    }
    outcomes
}

/// The state each event is answered with.
async fn states(agent: &Client, events: &[Value]) -> Vec<Value> {
    let mut states = Vec::new();
    for event in events {
        let answer = report(agent, event).await.expect(202);
        states.push(answer.json()["state"].clone());
    }
    states
}

#[tokio::test(flavor = "multi_thread")]
async fn any_event_opens_a_session_and_its_start_fills_in_the_rest() {
    let cluster = Cluster::start(3).await;
    let agent = cluster.enforcer("build-bot").await.client;
    let mut first = start("early", 10);
    first["repoRef"] = json!("repo");
    first["metadata"] = json!({ "from": "start" });
    let answers = states(
        &agent,
        &[status("early", "editing", 20), snapshot("early", "s", 15)],
    )
    .await;
    assert_eq!(answers, ["editing", "editing"]);
    let session = seen(&agent, "early").await;
    assert_eq!(session["updatedAt"], at(20));
    for missing in [
        "agentHost",
        "repoRef",
        "startedAt",
        "metadata",
        "endedAt",
        "reason",
    ] {
        assert_eq!(session.get(missing), None, "{session}");
    }
    assert_eq!(states(&agent, &[first.clone()]).await, ["editing"]);
    let session = seen(&agent, "early").await;
    assert_eq!(session["agentHost"], "laptop-7");
    assert_eq!(session["repoRef"], "repo");
    assert_eq!(session["metadata"], json!({ "from": "start" }));
    assert_eq!(
        (&session["startedAt"], &session["updatedAt"]),
        (&json!(at(10)), &json!(at(20)))
    );

    assert_eq!(states(&agent, &[snapshot("shot", "s", 5)]).await, ["idle"]);
    assert_eq!(seen(&agent, "shot").await["state"], "idle");

    let mut last = end("over", 30);
    last["metadata"] = json!({ "from": "end" });
    assert_eq!(states(&agent, &[last]).await, ["idle"]);
    let session = seen(&agent, "over").await;
    assert_eq!(session["metadata"], json!({ "from": "end" }));
    assert_eq!(
        (&session["endedAt"], &session["reason"]),
        (&json!(at(30)), &json!("user_end"))
    );
    let late = outcomes(&agent, &[start("over", 20)]).await;
    assert_eq!(late, ["409 SESSION_CLOSED"]);
    assert_eq!(seen(&agent, "over").await.get("agentHost"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_with_the_latest_time_stands() {
    let cluster = Cluster::start(3).await;
    let agent = cluster.enforcer("build-bot").await.client;
    let newest = status("s", "executing", 40);
    let answers = states(
        &agent,
        &[
            status("s", "planning", 20),
            newest.clone(),
            status("s", "error", 30),
            status("s", "planning", 20),
            start("s", 50),
            status("s", "error", 39),
        ],
    )
    .await;
    assert_eq!(answers[0], "planning");
    assert!(
        answers[1..].iter().all(|state| state == "executing"),
        "{answers:?}"
    );
    let old = [
        status("s", "error", 30),
        status("s", "planning", 20),
        newest.clone(),
    ];
    assert_eq!(
        outcomes(&agent, &old).await,
        ["202", "202", "202 duplicate"]
    );
    let session = seen(&agent, "s").await;
    assert_eq!(
        (&session["state"], &session["updatedAt"]),
        (&json!("executing"), &json!(at(50)))
    );

    // Of two at the same time, the one that came later; spelled otherwise, it is still that time.
    let same_time = status("s", "waiting_approval", 40);
    let moved = with(
        &same_time,
        "/updatedAt",
        json!("2020-02-21T14:00:40.0+02:00"),
    );
    let detailed = with(&newest, "/details", json!({ "n": 1 }));
    let answers = states(&agent, &[same_time, newest, moved, detailed.clone()]).await;
    assert_eq!(
        answers,
        [
            "waiting_approval",
            "executing",
            "waiting_approval",
            "executing"
        ]
    );
    assert_eq!(outcomes(&agent, &[detailed]).await, ["202 duplicate"]);
    let details = "select details::text from sessions";
    assert_eq!(cluster.database.text(details).await, "{\"n\":1}");
    report(&agent, &status("s", "idle", 41)).await.expect(202);
    let gone = "select count(*) from sessions where details is null";
    assert_eq!(
        cluster.database.number(gone).await,
        1,
        "they were the old state's"
    );
    // A microsecond decides.
    let finer = with(
        &status("s", "error", 41),
        "/updatedAt",
        json!("2020-02-21T12:00:41.000001Z"),
    );
    let answers = states(&agent, &[finer, status("s", "planning", 41)]).await;
    assert_eq!(answers, ["error", "error"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn repeats_are_duplicates_and_others_conflict() {
    let cluster = Cluster::start(3).await;
    let agent = cluster.enforcer("build-bot").await.client;
    let (first, shot) = (start("s", 0), snapshot("s", "one", 1));
    let other_shot = hashed(with(&shot, "/payload", json!({})));
    let answers = outcomes(
        &agent,
        &[
            first.clone(),
            first.clone(),
            with(&first, "/agentHost", json!("other")),
            with(&first, "/metadata", json!({})),
            shot.clone(),
            shot.clone(),
            other_shot.clone(),
            snapshot("s", "two", 1),
            first.clone(),
        ],
    )
    .await;
    assert_eq!(
        answers,
        [
            "202",
            "202 duplicate",
            "409 ALREADY_EXISTS",
            "409 ALREADY_EXISTS",
            "202",
            "202 duplicate",
            "409 DUPLICATE_SNAPSHOT",
            "202",
            "202 duplicate",
        ]
    );
    let answer = report(&agent, &with(&first, "/agentHost", json!("x"))).await;
    answer.refused_at(409, "ALREADY_EXISTS", "/sessionId");
    let answer = report(&agent, &other_shot).await;
    answer.refused_at(409, "DUPLICATE_SNAPSHOT", "/snapshotId");
    // The same id in another session is another snapshot.
    assert_eq!(outcomes(&agent, &[snapshot("t", "one", 1)]).await, ["202"]);
    let session = seen(&agent, "s").await;
    assert_eq!(session["agentHost"], "laptop-7");
    assert_eq!(session["snapshots"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_session_takes_only_repeats_of_its_end_and_its_snapshots() {
    let cluster = Cluster::start(3).await;
    let agent = cluster.enforcer("build-bot").await.client;
    let (first, now) = (start("s", 0), status("s", "editing", 1));
    let (shot, last) = (snapshot("s", "one", 2), end("s", 3));
    for event in [&first, &now, &shot, &last] {
        report(&agent, event).await.expect(202);
    }
    let before = seen(&agent, "s").await;
    let answers = outcomes(
        &agent,
        &[
            first,
            now,
            shot.clone(),
            hashed(with(&shot, "/payload", json!({}))),
            snapshot("s", "two", 2),
            status("s", "idle", 9),
            start("s", 9),
            with(&last, "/reason", json!("timeout")),
            with(&last, "/endedAt", json!(at(4))),
            last,
        ],
    )
    .await;
    let closed = "409 SESSION_CLOSED";
    let mut expected = [closed; 10];
    expected[2] = "202 duplicate";
    expected[9] = "202 duplicate";
    assert_eq!(answers, expected);
    assert_eq!(seen(&agent, "s").await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_twenty_snapshots_are_shown_newest_first() {
    let cluster = Cluster::start(3).await;
    let agent = cluster.enforcer("build-bot").await.client;
    // Not in the order of their times, and two at the same.
    let mut times: Vec<usize> = (0..24).map(|n| n * 7 % 24).collect();
    times.push(23);
    for (n, seconds) in times.iter().enumerate() {
        let shot = snapshot("s", &format!("{seconds:02}-{n:02}"), *seconds);
        report(&agent, &shot).await.expect(202);
    }
    let session = seen(&agent, "s").await;
    let shown: Vec<_> = session["snapshots"]
        .as_array()
        .unwrap()
        .iter()
        .map(|shot| shot["createdAt"].as_str().unwrap().to_owned())
        .collect();
    let mut expected: Vec<String> = times.iter().map(|seconds| at(*seconds)).collect();
    expected.sort();
    expected.reverse();
    expected.truncate(20);
    assert_eq!(shown, expected);
    assert_eq!(session["updatedAt"], at(23));
    let stored = "select count(*) from session_snapshots";
    assert_eq!(cluster.database.number(stored).await, 25);
}
