//! Every kind of answer to somebody who asks, and every way in which it can be none.

use std::time::Duration;

use super::meddler::{Content, Lie, Reply, Route};
use super::scene::{Case, HostileScene};

const KINDS: [(Route, u16); 3] = [
    (Route::Devices, 200),
    (Route::Submit, 202),
    (Route::Wait, 200),
];
/// Long enough for the step that is lied about to be reached, also by many at once on a busy
/// machine.
const SOON: Duration = Duration::from_secs(8);

fn invented(route: Route, reply: Reply) -> Lie {
    Lie::default().instead(route, move |_| Some(reply.clone()))
}

fn silent(status: u16, body: Content) -> Reply {
    let reply = Reply::new(status, "");
    Reply { body, ..reply }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_status_is_no_answer() {
    let scene = HostileScene::start().await;
    let mut cases = Vec::new();
    for (route, _) in KINDS {
        for status in [201, 206, 301, 302, 307, 400, 401, 403, 404, 409, 410, 500] {
            let reply = Reply::new(status, r#"{"decision": "approve"}"#).with("location", "/again");
            let cause = match (route, status) {
                (Route::Devices, 404) => "the pairing with alice has been revoked".to_owned(),
                _ => format!("the gateway refused this: status {status}"),
            };
            let what = format!("{route:?}: {status}");
            let case = Case::undecided(what, invented(route, reply), &cause);
            cases.push(match status {
                500 => case.within(SOON),
                _ => case,
            });
        }
    }
    scene.all_denied(cases).await;
    let reply = Reply::new(307, "").with("location", "/again");
    let lie = invented(Route::Wait, reply);
    let case = Case::undecided("a redirect", lie, "the gateway refused this: status 307");
    scene.program_denied(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_the_expected_message_is_no_answer() {
    let scene = HostileScene::start().await;
    let mut cases = Vec::new();
    for (route, status) in KINDS {
        for (what, body, cause) in [
            ("nothing", "", "ends before its value is complete"),
            (
                "cut off",
                "{\"statements\":[",
                "ends before its value is complete",
            ),
            ("no JSON", "<html>approve</html>", "is not JSON"),
            (
                "something after it",
                "{\"statements\":[]} x",
                "must not be followed by anything",
            ),
            (
                "a name twice",
                "{\"body\":1,\"body\":2}",
                "two members of the same name",
            ),
            (
                "a list",
                "[]",
                "the gateway's answer is not what was expected",
            ),
            (
                "null",
                "null",
                "the gateway's answer is not what was expected",
            ),
            (
                "an empty object",
                "{}",
                "the gateway's answer is not what was expected",
            ),
            (
                "another message",
                r#"{"msgId":"1","msgType":"decision.accepted","requestId":"01J2V8V3K6B2Z9X6G1V7Y2QK8H","body":{"decision":"approve"}}"#,
                "the gateway's answer is not what was expected",
            ),
        ] {
            let reply = Reply::new(status, body);
            let what = format!("{route:?}: {what}");
            cases.push(Case::undecided(what, invented(route, reply), cause));
        }
        let flood = invented(route, silent(status, Content::Flood));
        let what = format!("{route:?}: without an end");
        cases.push(Case::undecided(what, flood, "at most 32 MiB"));
    }
    scene.all_denied(cases).await;
    let reply = silent(200, Content::Flood);
    let case = Case::undecided(
        "without an end",
        invented(Route::Wait, reply),
        "at most 32 MiB",
    );
    scene.program_denied(case).await;
}

const NO_DECISION: &str = "nobody decided in time";

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_come_denies_when_the_time_is_over() {
    let scene = HostileScene::start().await;
    let mut cases = Vec::new();
    for (route, status) in KINDS {
        for (what, reply, cause) in [
            ("busy", Reply::new(503, ""), "status 503"),
            (
                "broken off",
                silent(status, Content::Broken),
                "cannot be reached",
            ),
            (
                "never complete",
                silent(status, Content::Silence),
                "did not answer in time",
            ),
        ] {
            // The end of the time cuts a wait off before its answer is late.
            let is_wait = route == Route::Wait && what == "never complete";
            let cause = if is_wait { NO_DECISION } else { cause };
            let what = format!("{route:?}: {what}");
            cases.push(Case::undecided(what, invented(route, reply), cause).within(SOON));
        }
    }
    let never = invented(Route::Wait, Reply::new(204, ""));
    cases.push(Case::approved("kept for ever", never, NO_DECISION).within(SOON));
    scene.all_denied(cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_the_gateway_claims_is_no_approval() {
    let scene = HostileScene::start().await;
    let mut cases = Vec::new();
    for state in [
        "expired",
        "withdrawn",
        "cancelled",
        "approved",
        "decided",
        "delivered",
    ] {
        let reply = Reply::new(204, "").with("exchange-state", state);
        let cause = format!("ended without a decision ({state})");
        let lie = invented(Route::Wait, reply);
        cases.push(Case::undecided(state, lie, &cause));
        // With an approval that is genuine, too: what it says of itself is contradictory.
        let lie = Lie::default().decision(move |reply| {
            *reply = reply.clone().with("exchange-state", state);
        });
        cases.push(Case::approved(
            format!("{state} beside an approval"),
            lie,
            &cause,
        ));
    }
    scene.all_denied(cases).await;
    let reply = Reply::new(204, "").with("exchange-state", "approved");
    let cause = "ended without a decision (approved)";
    let case = Case::undecided("approved", invented(Route::Wait, reply), cause);
    scene.program_denied(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_was_not_taken_is_not_waited_for() {
    let scene = HostileScene::start().await;
    let accepted = |request: &str| {
        format!(
            r#"{{"msgId":"1","msgType":"artifact.accepted","requestId":"{request}","body":{{}}}}"#
        )
    };
    let own = |call: &super::meddler::Call| {
        let envelope: serde_json::Value = serde_json::from_slice(&call.body).unwrap();
        envelope["requestId"].as_str().unwrap().to_owned()
    };
    let dropped = Lie::default().instead(Route::Submit, move |call| {
        Some(Reply::new(202, accepted(&own(call))))
    });
    let foreign = Lie::default().reply(Route::Submit, |reply| {
        reply.edit(|it| it["requestId"] = "01J2V8V3K6B2Z9X6G1V7Y2QK8H".into());
    });
    let renamed = Lie::default().reply(Route::Submit, |reply| {
        reply.edit(|it| it["msgType"] = "decision.deliver".into());
    });
    let refused = Lie::default().reply(Route::Submit, |reply| reply.status = 422);
    let twice = Lie::default().twice(Route::Submit).twice(Route::Devices);
    let taken = "not what was expected: artifact.accepted for this request";
    let cases = [
        Case::undecided(
            "dropped, and said to be accepted",
            dropped.clone(),
            "404 NOT_FOUND",
        ),
        Case::undecided("another request was accepted", foreign.clone(), taken),
        Case::undecided("another kind of message", renamed, taken),
        Case::undecided("taken, and said to be refused", refused, "status 422"),
        Case::rejected("submitted twice", twice, "alice rejected it"),
    ];
    scene.all_denied(cases).await;
    scene
        .program_denied(Case::undecided("dropped", dropped, "404 NOT_FOUND"))
        .await;
    scene
        .program_denied(Case::undecided("another request", foreign, taken))
        .await;
}
