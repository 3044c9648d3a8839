//! The same thing at once on several nodes: one does it, all others are told what became of it.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::{
    Answer, Approver, Cluster, Enforcer, HASH, compact, counts, request_id, sealed, tally,
};

/// How many do it at once.
const CROWD: usize = 50;

/// Three nodes and two parties.
async fn scene() -> (Cluster, Enforcer, Approver) {
    let cluster = Cluster::start(3).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    (cluster, enforcer, approver)
}

/// The same call from everyone in the crowd, at once, each to the next node.
async fn crowd<F: Future<Output = Answer>>(call: impl Fn(usize) -> F) -> Vec<Answer> {
    join_all((0..CROWD).map(call)).await
}

/// How many rows there are: exchanges, inbox items, payloads, events, messages.
async fn rows(cluster: &Cluster) -> String {
    let sql = "select concat_ws(' ', (select count(*) from exchanges), (select count(*) from inbox_items),
                                (select count(*) from exchange_payloads), (select count(*) from exchange_events),
                                (select count(*) from messages))";
    cluster.database.text(sql).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_submission_fifty_times_at_once_makes_one_exchange() {
    let (cluster, enforcer, approver) = scene().await;
    let (request, body) = (request_id(), sealed());
    let answers = crowd(|_| enforcer.submit(&request, "alice", body.clone())).await;
    assert_eq!(
        tally(&answers),
        counts([("202", 1), ("202 duplicate", CROWD - 1)])
    );
    for answer in &answers {
        assert_eq!(answer.body("/state"), "pendingApproval");
        assert_eq!(answer.body("/requestId"), request.as_str());
        assert_eq!(
            answer.body("/expiresAt"),
            answers[0].body("/expiresAt"),
            "everyone hears of the same exchange"
        );
    }
    assert_eq!(rows(&cluster).await, "1 1 1 1 0");
    assert_eq!(approver.inbox_ids().await, [request.as_str()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_id_used_by_two_enforcers_at_once_goes_to_one_of_them() {
    let (cluster, enforcer, _) = scene().await;
    let other = cluster.enforcer("deploy-bot").await;
    let (request, body) = (request_id(), sealed());
    let answers = crowd(|turn| {
        let who = if turn % 2 == 0 { &enforcer } else { &other };
        who.submit(&request, "alice", body.clone())
    })
    .await;
    let (first, second): (Vec<_>, Vec<_>) = answers
        .into_iter()
        .enumerate()
        .partition(|(turn, _)| turn % 2 == 0);
    let of = |side: Vec<(usize, Answer)>| {
        tally(
            &side
                .into_iter()
                .map(|(_, answer)| answer)
                .collect::<Vec<_>>(),
        )
    };
    let (first, second) = (of(first), of(second));
    let half = CROWD / 2;
    let won = counts([("202", 1), ("202 duplicate", half - 1)]);
    let lost = counts([("409 ALREADY_EXISTS", half)]);
    let winner = if first == won {
        "build-bot"
    } else {
        "deploy-bot"
    };
    assert!(
        (first == won && second == lost) || (first == lost && second == won),
        "{first:?} {second:?}"
    );
    assert_eq!(rows(&cluster).await, "1 1 1 1 0");
    assert_eq!(
        cluster
            .database
            .text("select enforcer_id from exchanges")
            .await,
        winner
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_fifty_different_decisions_at_once_one_is_taken() {
    let (cluster, enforcer, approver) = scene().await;
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    let decisions: Vec<Value> = (0..CROWD)
        .map(|turn| compact(if turn % 2 == 0 { "approve" } else { "reject" }))
        .collect();
    let answers = crowd(|turn| approver.decide(&request, decisions[turn].clone())).await;
    assert_eq!(
        tally(&answers),
        counts([("200", 1), ("409 ALREADY_DECIDED", CROWD - 1)])
    );
    let winner = answers.iter().position(|answer| answer.status == 200);
    let winner = &decisions[winner.expect("one was taken")];
    let status = enforcer.status(&request).await.expect(200);
    assert_eq!(status.body("/decision"), *winner);
    assert_eq!(
        enforcer.wait(&request, 5).await.expect(200).json()["body"],
        *winner
    );
    assert_eq!(rows(&cluster).await, "1 1 2 2 1");
    let on_record = "select concat_ws(' ', x.decision, x.nonce, m.kind, m.recipient)
                       from exchanges x join messages m on m.message_id = x.decision_message_id";
    assert_eq!(
        cluster.database.text(on_record).await,
        format!(
            "{} {} decision.deliver build-bot",
            winner["decision"].as_str().unwrap(),
            winner["nonce"].as_str().unwrap()
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_decision_fifty_times_at_once_is_taken_once_and_confirmed_to_all() {
    let (cluster, enforcer, approver) = scene().await;
    let (request, decision) = (request_id(), compact("reject"));
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    let answers = crowd(|_| approver.decide(&request, decision.clone())).await;
    assert_eq!(
        tally(&answers),
        counts([("200", 1), ("200 duplicate", CROWD - 1)])
    );
    for answer in &answers {
        assert_eq!(answer.body("/state"), "decided");
        assert_eq!(answer.body("/decision"), "reject");
        assert_eq!(answer.body("/verified"), false);
    }
    assert_eq!(rows(&cluster).await, "1 1 2 2 1");
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_acks_at_once_deliver_once() {
    let (cluster, enforcer, approver) = scene().await;
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    let item = approver.inbox("").await.body("/items/0/msgId");
    let item = item.as_str().expect("an id");
    let answers = crowd(|_| approver.ack(&request, item)).await;
    assert_eq!(tally(&answers), counts([("200", CROWD)]));

    approver
        .decide(&request, compact("approve"))
        .await
        .expect(200);
    let message = enforcer.wait(&request, 5).await.expect(200).json()["msgId"].clone();
    let message = message.as_str().expect("an id");
    let answers = crowd(|_| enforcer.ack(&request, message)).await;
    assert_eq!(tally(&answers), counts([("200", CROWD)]));
    for answer in &answers {
        assert_eq!(answer.body("/msgId"), message);
    }
    let delivered = "select count(*) from exchange_events where to_state = 'delivered'";
    assert_eq!(cluster.database.number(delivered).await, 1);
    assert_eq!(rows(&cluster).await, "1 1 2 3 1");
    assert_eq!(enforcer.state(&request).await, "delivered");
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_refreshes_at_once_queue_one_message() {
    let (cluster, enforcer, approver) = scene().await;
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    let ask =
        |turn: usize| approver.refresh(&request, json!({ "reason": format!("reason {turn}") }));
    let answers = crowd(ask).await;
    assert_eq!(tally(&answers), counts([("202", CROWD)]));
    let first = answers[0].json();
    for answer in &answers {
        assert_eq!(answer.json(), first, "the one that waits, whole");
    }
    assert_eq!(rows(&cluster).await, "1 1 1 1 1");

    let message = first["msgId"].as_str().expect("an id");
    enforcer.ack(&request, message).await.expect(200);
    let next = approver.refresh(&request, json!({})).await.expect(202);
    assert_ne!(
        next.json()["msgId"],
        message,
        "once acknowledged, a new one"
    );
    assert_eq!(rows(&cluster).await, "1 1 1 1 2");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_fifty_withdrawals_at_once_one_takes_effect() {
    let (cluster, enforcer, approver) = scene().await;
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    let answers = crowd(|_| enforcer.withdraw(&request)).await;
    assert_eq!(
        tally(&answers),
        counts([("200", 1), ("409 INVALID_STATE", CROWD - 1)])
    );
    assert_eq!(rows(&cluster).await, "1 1 1 2 1");
    assert_eq!(
        cluster
            .database
            .text("select concat_ws(' ', kind, recipient_kind, recipient) from messages")
            .await,
        "exchange.withdrawn approver alice"
    );
    assert!(approver.inbox_ids().await.is_empty());
    assert_eq!(enforcer.state(&request).await, "withdrawn");
    let hash = enforcer.status(&request).await.body("/artifactHash");
    assert_eq!(hash, HASH);
}
