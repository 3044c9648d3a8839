//! Reaching people and agents that never agreed to it, and crowding an inbox.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::pairing::pair;
use crate::support::push::Socket;
use crate::support::{
    Approver, Cluster, Enforcer, compact, counts, envelope, hash_of, now, open, request_id, sealed,
    tally,
};

const REVOKE: &str = "/v1/pairing/revoke";

async fn scene() -> (Cluster, Enforcer, Approver) {
    let cluster = Cluster::with(2, |config| config.pairing.required = true).await;
    let bot = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    (cluster, bot, alice)
}

fn prompt(enforcer: &str) -> Value {
    let mut prompt = json!({
        "requestId": request_id(), "artifactType": "prompt.send", "createdAt": now(), "target": "tool",
        "text": "delete everything", "promptHashAlg": "SHA-256", "metadata": { "enforcerId": enforcer },
    });
    prompt["promptHash"] = json!(hash_of(&prompt.to_string(), "promptHash"));
    prompt
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enforcer_that_was_never_paired_reaches_nobody() {
    let (cluster, bot, alice) = scene().await;
    let refused = bot.submit(&request_id(), "alice", sealed()).await;
    let refused = refused.refused_at(403, "POLICY_DENY", "/recipient/approverId");
    let expected = "an approver that this enforcer is paired with";
    assert_eq!(refused.detail("expected"), expected);
    let id = request_id();
    let refused = bot.submit(&id, "alice", open(&id)).await;
    refused.refused_at(403, "POLICY_DENY", "/recipient/approverId");
    let mut by_metadata = sealed();
    by_metadata["metadata"] = json!({ "approverId": "alice" });
    let sender = json!({ "enforcerId": "build-bot" });
    let by_metadata = envelope("artifact.submit", &request_id(), sender, by_metadata);
    let refused = bot.client.post("/v1/artifacts", &by_metadata).await;
    refused.refused_at(403, "POLICY_DENY", "/body/metadata/approverId");
    // Nor together with somebody that it is paired with.
    let bob = cluster.approver("bob").await;
    pair(&bot, &bob).await;
    let mut among_others = sealed();
    among_others["metadata"] = json!({ "approverIds": ["bob", "alice"] });
    let sender = json!({ "enforcerId": "build-bot" });
    let among_others = envelope("artifact.submit", &request_id(), sender, among_others);
    let refused = bot.client.post("/v1/artifacts", &among_others).await;
    refused.refused_at(403, "POLICY_DENY", "/body/metadata/approverIds");
    assert_eq!(bob.inbox_ids().await, Vec::<String>::new());
    let url = &cluster.nodes[0].url;
    let mut socket = Socket::connect(url, "enforcer", "build-bot", bot.client.key())
        .await
        .unwrap();
    let frame = bot.submission(&request_id(), "alice", sealed());
    socket.send(&frame).await;
    let answer = socket.expect().await;
    assert_eq!(answer["body"]["code"], "PROTO_ERR_POLICY_DENY", "{answer}");
    // Another's pairing is not one's own, even under a credential for any enforcer.
    let other = cluster.enforcer("other-bot").await;
    pair(&other, &alice).await;
    let any = cluster.any_enforcer().await;
    let as_bot = bot.submission(&request_id(), "alice", sealed());
    let refused = any.post("/v1/artifacts", &as_bot).await;
    refused.refused(403, "POLICY_DENY");
    assert!(alice.inbox_ids().await.is_empty());
    assert_eq!(
        cluster.client(None).get("/v1/status").await.json()["limits"]["pairingRequired"],
        true
    );
    let paired = other.submit(&request_id(), "alice", sealed()).await;
    paired.expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_enforcer_cannot_go_on_by_the_approvers_id() {
    let (_cluster, bot, alice) = scene().await;
    let token = pair(&bot, &alice).await;
    let before = request_id();
    let submission = bot.submission(&before, "alice", sealed());
    bot.client
        .post("/v1/artifacts", &submission)
        .await
        .expect(202);
    let revoked = json!({ "routingToken": token });
    alice.client.post(REVOKE, &revoked).await.expect(200);
    // At once, on every node.
    for node in 0..2 {
        let refused = bot.on(node).submit(&request_id(), "alice", sealed()).await;
        refused.refused_at(403, "POLICY_DENY", "/recipient/approverId");
    }
    // Earlier requests stay as they are: a repeat is a repeat, and they can be decided.
    let again = bot.client.post("/v1/artifacts", &submission).await;
    assert_eq!(again.outcome(), "202 duplicate");
    assert_eq!(alice.inbox_ids().await, [before.as_str()]);
    alice.decide(&before, compact("reject")).await.expect(200);
    bot.wait(&before, 5).await.expect(200);
    pair(&bot, &alice).await;
    bot.submit(&request_id(), "alice", sealed())
        .await
        .expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn submissions_that_race_a_revocation_are_judged_by_the_statement_that_writes_them() {
    let (cluster, bot, alice) = scene().await;
    let token = pair(&bot, &alice).await;
    let flood =
        join_all((0..40).map(async |_| bot.submit(&request_id(), "alice", sealed()).await.status));
    let revoking = async {
        let revoked = json!({ "routingToken": token });
        alice.client.post(REVOKE, &revoked).await.expect(200);
        // From here on none is written.
        let count = "select count(*) from exchanges";
        let late = bot.submit(&request_id(), "alice", sealed()).await;
        late.refused(403, "POLICY_DENY");
        cluster.database.number(count).await
    };
    let (statuses, _) = futures_util::future::join(flood, revoking).await;
    assert!(
        statuses.iter().all(|status| [202, 403].contains(status)),
        "{statuses:?}"
    );
    let late = "select count(*) from exchanges e, pairings p where e.accepted_at > p.revoked_at + interval '1 s'";
    assert_eq!(cluster.database.number(late).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approver_that_is_not_paired_prompts_no_agent_and_reads_no_session() {
    let (cluster, bot, alice) = scene().await;
    let start = json!({
        "sessionId": "s-1", "eventType": "session.start", "createdAt": now(), "agentHost": "h",
    });
    let started = bot.client.post("/v1/session/event", &start).await;
    started.expect(202);
    let send = async |approver: &Approver| {
        approver
            .client
            .post("/v1/prompt", &prompt("build-bot"))
            .await
    };
    send(&alice).await.refused(403, "FORBIDDEN");
    let session = "/v1/session/s-1";
    alice.client.get(session).await.refused(404, "NOT_FOUND");
    let token = pair(&bot, &alice).await;
    send(&alice).await.expect(202);
    alice.client.get(session).await.expect(200);
    let revoked = json!({ "routingToken": token });
    bot.client.post(REVOKE, &revoked).await.expect(200);
    send(&alice).await.refused(403, "FORBIDDEN");
    alice.client.get(session).await.refused(404, "NOT_FOUND");
    // An administrator may always.
    let admin = cluster.admin().await;
    admin
        .post("/v1/prompt", &prompt("build-bot"))
        .await
        .expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_stranger_fills_a_tenth_of_an_inbox_and_the_others_still_get_in() {
    let cluster = Cluster::with(2, |config| config.limits.pending_per_approver = 50).await;
    let (flooder, honest) = (
        cluster.enforcer("flooder").await,
        cluster.enforcer("honest").await,
    );
    let alice = cluster.approver("alice").await;
    let mut answers = Vec::new();
    for _ in 0..7 {
        answers.push(flooder.submit(&request_id(), "alice", sealed()).await);
    }
    assert_eq!(
        tally(&answers),
        counts([("202", 5), ("429 RATE_LIMITED", 2)])
    );
    let refused = answers.into_iter().find(|answer| answer.status == 429);
    let refused = refused.unwrap().refused(429, "RATE_LIMITED");
    assert_eq!(refused.detail("limit"), 5);
    let message = refused.body("/message");
    assert!(
        message
            .as_str()
            .unwrap()
            .contains("this enforcer already has 5 requests"),
        "not as if the inbox were full: {message}"
    );
    for _ in 0..5 {
        let answer = honest.submit(&request_id(), "alice", sealed()).await;
        answer.expect(202);
    }
    // Elsewhere it has a share of its own, and here again once something is decided.
    let elsewhere = flooder.submit(&request_id(), "bob", sealed()).await;
    elsewhere.expect(202);
    let inbox = alice.inbox("?limit=200").await.body("/items");
    let own = inbox.as_array().unwrap().iter();
    let own = own.filter(|item| item["body"]["enforcerId"] == "flooder");
    for item in own {
        let request = item["requestId"].as_str().unwrap();
        alice.decide(request, compact("reject")).await.expect(200);
    }
    let again = flooder.submit(&request_id(), "alice", sealed()).await;
    again.expect(202);
    // All at once: within a batch they are counted too, and two batches may run beside each other.
    let burst = cluster.enforcer("burst").await.on(0);
    let burst = (0..20).map(async |_| burst.submit(&request_id(), "alice", sealed()).await);
    let answers = join_all(burst).await;
    let taken = answers.iter().filter(|answer| answer.status == 202).count();
    assert!((5..=10).contains(&taken), "{:?}", tally(&answers));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_share_holds_in_inboxes_that_are_seldom_counted() {
    // Above two thousand an inbox is counted only near a limit.
    let cluster = Cluster::with(1, |config| config.limits.pending_per_approver = 2_400).await;
    let (flooder, honest) = (
        cluster.enforcer("flooder").await,
        cluster.enforcer("honest").await,
    );
    let submit = async |enforcer: &Enforcer| {
        enforcer
            .submit(&request_id(), "alice", sealed())
            .await
            .status
    };
    let mut taken = 0;
    for _ in 0..10 {
        let statuses = join_all((0..30).map(|_| submit(&flooder))).await;
        taken += statuses.iter().filter(|status| **status == 202).count();
    }
    assert!((240..=270).contains(&taken), "{taken}");
    assert_eq!(submit(&honest).await, 202);
    assert_eq!(submit(&flooder).await, 429);
}
