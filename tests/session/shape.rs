//! Every member of every event: there, missing, of another type, out of range; and one that is not
//! known.

use serde_json::{Value, json};

use super::{FRAMES, Frame, end, hashed, report, snapshot, start, status};
use crate::support::{Cluster, Enforcer, in_time, request_id, with, without};

/// Each event with every member it may have.
pub fn events() -> [Value; 4] {
    let id = request_id();
    let mut first = start(&id, 0);
    first["repoRef"] = json!("repo:acme/widgets");
    first["metadata"] = json!({});
    let mut shot = snapshot(&id, "s", 0);
    shot["metadata"] = json!({});
    let mut now = status(&id, "idle", 0);
    now["details"] = json!({});
    let mut last = end(&id, 0);
    last["metadata"] = json!({});
    [first, hashed(shot), now, last]
}

/// The same event, as one that would be taken whatever came before it.
pub fn fresh(event: &Value) -> Value {
    let event = with(event, "/sessionId", json!(request_id()));
    if event.get("snapshotHash").is_some() {
        hashed(event)
    } else {
        event
    }
}

/// Reports an event in this framing, as a message of this type.
pub async fn send(
    agent: &Enforcer,
    frame: Frame,
    kind: &str,
    event: &Value,
) -> crate::support::Answer {
    report(&agent.client, &frame.wrap_as(kind, event, &agent.id)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_member_is_checked_and_named_where_it_stands() {
    let cluster = Cluster::start(2).await;
    let agent = cluster.enforcer("build-bot").await;
    let before = cluster.database.counts().await;
    for event in events() {
        let kind = event["eventType"].as_str().unwrap();
        for (name, value) in event.as_object().unwrap() {
            let pointer = format!("/{name}");
            let mut wrong = vec![json!(null), json!(7), json!([])];
            match value {
                Value::Object(_) => wrong.extend([json!("{}"), json!(true)]),
                _ => wrong.extend([json!({}), json!(false)]),
            }
            let optional = ["repoRef", "metadata", "details"].contains(&name.as_str());
            for frame in FRAMES {
                let at = frame.at(&pointer);
                if !optional {
                    send(&agent, frame, kind, &without(&event, &pointer))
                        .await
                        .refused_at(400, "VALIDATION", &at);
                }
                for value in &wrong {
                    send(&agent, frame, kind, &with(&event, &pointer, value.clone()))
                        .await
                        .refused_at(400, "VALIDATION", &at);
                }
            }
        }
        for frame in FRAMES {
            for unknown in ["x", "SessionId", "requestId", "a~b/c"] {
                let mut event = event.clone();
                event[unknown] = json!(1);
                let at = frame.at(&format!(
                    "/{}",
                    unknown.replace('~', "~0").replace('/', "~1")
                ));
                send(&agent, frame, kind, &event)
                    .await
                    .refused_at(400, "VALIDATION", &at);
            }
        }
    }
    // Members of one event are unknown in another.
    for (event, foreign) in events()
        .iter()
        .zip(["details", "reason", "metadata", "state"])
    {
        let kind = event["eventType"].as_str().unwrap();
        for frame in FRAMES {
            let at = frame.at(&format!("/{foreign}"));
            send(
                &agent,
                frame,
                kind,
                &with(event, &format!("/{foreign}"), json!({})),
            )
            .await
            .refused_at(400, "VALIDATION", &at);
        }
    }
    assert_eq!(cluster.database.counts().await, before);
    for event in events() {
        for name in ["repoRef", "metadata", "details"] {
            if event.get(name).is_some() {
                let less = fresh(&without(&event, &format!("/{name}")));
                report(&agent.client, &less).await.expect(202);
            }
        }
        report(&agent.client, &fresh(&event)).await.expect(202);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn words_ids_times_and_hashes_are_exactly_as_listed() {
    let cluster = Cluster::start(2).await;
    let agent = cluster.enforcer("build-bot").await;
    let [first, shot, now, last] = events();
    let words: [(&Value, &str, &[&str]); 3] = [
        (
            &shot,
            "snapshotType",
            &["summary", "plan", "diff_summary", "context"],
        ),
        (
            &now,
            "state",
            &[
                "idle",
                "planning",
                "editing",
                "executing",
                "waiting_approval",
                "error",
            ],
        ),
        (&last, "reason", &["user_end", "timeout", "policy_kill"]),
    ];
    for (event, name, known) in words {
        let pointer = format!("/{name}");
        for word in known {
            let event = fresh(&with(event, &pointer, json!(word)));
            report(&agent.client, &event).await.expect(202);
        }
        for word in [
            "",
            "other",
            &known[0].to_uppercase(),
            &format!("{} ", known[0]),
        ] {
            report(&agent.client, &with(event, &pointer, json!(word)))
                .await
                .refused_at(400, "VALIDATION", &pointer);
        }
    }

    let long = |count| json!("ü".repeat(count));
    for (event, name, longest, shortest) in [
        (&first, "sessionId", 128, 1),
        (&shot, "snapshotId", 128, 1),
        (&first, "agentHost", 1_024, 0),
        (&first, "repoRef", 1_024, 0),
    ] {
        let pointer = format!("/{name}");
        let sent = async |count| {
            let event = with(&fresh(event), &pointer, long(count));
            let event = if name == "snapshotId" {
                hashed(event)
            } else {
                event
            };
            report(&agent.client, &event).await
        };
        sent(longest).await.expect(202);
        sent(longest + 1)
            .await
            .refused_at(400, "VALIDATION", &pointer);
        if shortest == 0 {
            sent(0).await.expect(202);
        } else {
            sent(0).await.refused_at(400, "VALIDATION", &pointer);
        }
    }
    for (event, name) in [(&first, "sessionId"), (&shot, "snapshotId")] {
        let pointer = format!("/{name}");
        report(&agent.client, &with(event, &pointer, json!("a\nb")))
            .await
            .refused_at(400, "VALIDATION", &pointer);
    }

    let hash = shot["snapshotHash"].as_str().unwrap();
    for bad in [&hash.to_uppercase(), &hash[1..], &format!("{hash}0"), ""] {
        report(&agent.client, &with(&shot, "/snapshotHash", json!(bad)))
            .await
            .refused_at(400, "VALIDATION", "/snapshotHash");
    }
    for bad in ["SHA-512", "sha-256", ""] {
        for frame in FRAMES {
            let event = with(&shot, "/snapshotHashAlg", json!(bad));
            send(&agent, frame, "session.snapshot", &event)
                .await
                .refused_at(400, "UNSUPPORTED", &frame.at("/snapshotHashAlg"));
        }
    }

    for (event, name) in [
        (&first, "createdAt"),
        (&shot, "createdAt"),
        (&now, "updatedAt"),
        (&last, "endedAt"),
    ] {
        let pointer = format!("/{name}");
        for bad in [
            "",
            "yesterday",
            "2020-02-21",
            "2020-02-21T12:00:00",
            "2020-02-30T12:00:00Z",
        ] {
            report(&agent.client, &with(event, &pointer, json!(bad)))
                .await
                .refused_at(400, "TIMESTAMP", &pointer);
        }
        let kind = event["eventType"].as_str().unwrap();
        for frame in FRAMES {
            let future = fresh(&with(event, &pointer, json!(in_time(90))));
            send(&agent, frame, kind, &future).await.refused_at(
                400,
                "TIMESTAMP",
                &frame.at(&pointer),
            );
        }
        for good in [
            in_time(30),
            "1970-01-01T00:00:00.123456789+14:00".to_owned(),
        ] {
            let event = fresh(&with(event, &pointer, json!(good)));
            report(&agent.client, &event).await.expect(202);
        }
    }
}
