//! The life of a prompt: repeats, races, final words, and time.

use std::time::Duration;

use countersign::store::identity::credential::RoleName;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::{ack, acknowledge, path, prompt, scene, sealed_in, send, send_to, socket, status};
use crate::support::framing::Framing;
use crate::support::{Client, Cluster, counts, in_time, tally, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_answers_with_what_became_of_the_first() {
    let (cluster, enforcer, approver) = scene(2).await;
    let prompt = prompt();
    let first = send(&approver, &prompt).await.expect(202).json();
    assert_eq!(send(&approver, &prompt).await.expect(202).json(), first);
    acknowledge(&enforcer, &prompt, "rejected")
        .await
        .expect(200);
    let later = send(&approver, &prompt).await.expect(202).json();
    assert_eq!(later["status"], "rejected");
    let mut other = prompt.clone();
    other["text"] = json!("Something else.");
    let answer = send(&approver, &sealed_in(other)).await;
    answer.refused_at(409, "ALREADY_EXISTS", "/body/requestId");
    let bob = cluster.approver("bob").await;
    send(&bob, &prompt).await.refused(409, "ALREADY_EXISTS");
    let rows = "select count(*) from messages where kind = 'prompt.send'";
    assert_eq!(cluster.database.number(rows).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_at_once_on_three_nodes_are_one() {
    let (cluster, enforcer, approver) = scene(3).await;
    let prompt = prompt();
    let answers = join_all((0..20).map(|_| send(&approver, &prompt))).await;
    assert_eq!(tally(&answers), counts([("202", 20)]));
    let rows = "select count(*) from messages where kind = 'prompt.send'";
    assert_eq!(cluster.database.number(rows).await, 1);
    let words = ["delivered", "rejected", "error"];
    let answers = join_all((0..30).map(|n| acknowledge(&enforcer, &prompt, words[n % 3]))).await;
    assert_eq!(
        tally(&answers),
        counts([("200", 10), ("409 INVALID_STATE", 20)]),
        "the first final word stays, and its repeats are no conflict"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_answer_for_prompts() {
    let (cluster, _enforcer, approver) = scene(2).await;
    let keyed = async |key: &str, prompt: &Value| {
        let wire = Framing::Wire.wrap(
            "prompt.send",
            ("MA", "alice"),
            Some(("HE", "build-bot")),
            prompt,
        );
        let wire = crate::support::with(&wire, "/createdAt", json!("2026-01-01T00:00:00Z"));
        approver
            .client
            .call(Method::POST, "/v1/prompt")
            .header("idempotency-key", key)
            .json(&wire)
            .send()
            .await
    };
    let (one, two) = (prompt(), prompt());
    let first = keyed("k", &one).await.expect(202);
    assert_eq!(first.header("idempotency-replayed"), None);
    let again = keyed("k", &one).await.expect(202);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.json(), first.json());
    keyed("k", &two)
        .await
        .refused(409, "IDEMPOTENCY_KEY_REUSED");
    // A repeat without its key binds the key it now has.
    send(&approver, &two).await.expect(202);
    keyed("l", &two).await.expect(202);
    keyed("l", &prompt())
        .await
        .refused(409, "IDEMPOTENCY_KEY_REUSED");
    let bad = approver
        .client
        .call(Method::POST, "/v1/prompt")
        .header("idempotency-key", "a b");
    let bad = bad.json(&one).send().await.refused(400, "VALIDATION");
    assert_eq!(bad.detail("parameter"), "Idempotency-Key");

    let strict = Cluster::with(1, |config| config.idempotency.required = true).await;
    let alice = strict.approver("alice").await;
    send(&alice, &one).await.refused(400, "VALIDATION");
    let bot = strict.enforcer("build-bot").await;
    let answer = acknowledge(&bot, &one, "queued").await;
    answer.refused(404, "NOT_FOUND");
    drop(cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_word_moves_a_queued_prompt_and_final_ones_stay() {
    let (_cluster, enforcer, approver) = scene(1).await;
    let words = ["queued", "delivered", "rejected", "expired", "error"];
    for first in words {
        for second in words {
            let prompt = prompt();
            send(&approver, &prompt).await.expect(202);
            acknowledge(&enforcer, &prompt, first).await.expect(200);
            assert_eq!(status(&enforcer.client, &prompt).await, first);
            let answer = acknowledge(&enforcer, &prompt, second).await;
            if first == "queued" || first == second {
                assert_eq!(answer.expect(200).json()["status"], second);
            } else {
                answer.refused_at(409, "INVALID_STATE", "/status");
                assert_eq!(status(&enforcer.client, &prompt).await, first);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_its_enforcer_acknowledges_and_only_what_it_got() {
    let (cluster, enforcer, approver) = scene(1).await;
    let prompt = prompt();
    send(&approver, &prompt).await.expect(202);
    let other = cluster.enforcer("other-bot").await;
    let answer = acknowledge(&other, &prompt, "delivered").await;
    answer.refused(404, "NOT_FOUND");
    let mut mismatched = ack(&prompt, "delivered");
    mismatched["promptHash"] = json!(crate::support::OTHER_HASH);
    let answer = enforcer.client.post("/v1/prompt", &mismatched).await;
    answer.refused_at(409, "INVALID_STATE", "/promptHash");
    assert_eq!(status(&approver.client, &prompt).await, "queued");
    let roles = [
        (&approver.client, ack(&prompt, "delivered")),
        (&enforcer.client, super::prompt()),
    ];
    for (client, message) in roles {
        client
            .post("/v1/prompt", &message)
            .await
            .refused(403, "FORBIDDEN");
    }
    // Readers: the enforcer, the sender, administrators.
    let bob = cluster.approver("bob").await;
    for client in [&other.client, &bob.client] {
        client.get(&path(&prompt)).await.refused(404, "NOT_FOUND");
    }
    cluster.admin().await.get(&path(&prompt)).await.expect(200);
    let unbound = key(&cluster, "enforcer").await;
    unbound.get(&path(&prompt)).await.expect(200);
    // Bare, from a credential that may be any enforcer: the one it was for.
    let answer = unbound.post("/v1/prompt", &ack(&prompt, "delivered")).await;
    answer.expect(200);
}

async fn key(cluster: &Cluster, role: &str) -> Client {
    let role = RoleName::parse(role).unwrap();
    let key = cluster.key(&cluster.tenant, role, None).await;
    cluster.client(Some(&key))
}

fn ending(ahead: i64) -> Value {
    let mut prompt = prompt();
    prompt["extensions"] = json!({ "org.proto.prompt": { "expiresAt": in_time(ahead) } });
    sealed_in(prompt)
}

#[tokio::test(flavor = "multi_thread")]
async fn past_its_time_a_prompt_is_expired_whether_or_not_anyone_looked() {
    let (cluster, enforcer, approver) = scene(2).await;
    let (kept, missed, waiting) = (ending(60), ending(60), ending(60));
    for prompt in [&kept, &missed, &waiting] {
        send(&approver, prompt).await.expect(202);
    }
    acknowledge(&enforcer, &kept, "delivered").await.expect(200);
    acknowledge(&enforcer, &waiting, "queued").await.expect(200);
    cluster.pass(Duration::from_secs(61));
    let shown = approver.client.get(&path(&missed)).await.expect(200).json();
    assert_eq!(shown["status"], "expired");
    assert_eq!(
        shown["ackAt"],
        crate::support::printed(&missed["extensions"]["org.proto.prompt"]["expiresAt"])
    );
    assert_eq!(status(&approver.client, &kept).await, "delivered");
    assert_eq!(status(&approver.client, &waiting).await, "expired");
    let answer = acknowledge(&enforcer, &missed, "delivered").await;
    answer.refused_at(409, "INVALID_STATE", "/status");
    let mut agent = socket(&cluster, 0, &enforcer).await;
    assert!(
        agent.is_silent(Duration::from_millis(1_200)).await,
        "nobody is prompted too late"
    );
    until(
        "the sweep writes it down",
        Duration::from_secs(10),
        async || {
            let written = "select count(*) from prompts where status = 'expired'";
            cluster.database.number(written).await == 2
        },
    )
    .await;
    let open = "select count(*) from messages where acked_at is null";
    assert_eq!(
        cluster.database.number(open).await,
        0,
        "nothing left to send"
    );
    assert_eq!(
        approver.client.get(&path(&missed)).await.expect(200).json(),
        shown
    );
    let own = "/body/extensions/org.proto.prompt/expiresAt";
    let late = send(&approver, &ending(30)).await;
    late.refused_at(422, "EXPIRED", own);
    let far = send(&approver, &ending(40 * 24 * 3_600)).await;
    far.refused_at(400, "TIMESTAMP", own);
    let to_bot = Some(("HE", "build-bot"));
    let mut wire = Framing::Wire.wrap("prompt.send", ("MA", "alice"), to_bot, &prompt());
    wire["expiresAt"] = json!(in_time(30));
    let late = approver.client.post("/v1/prompt", &wire).await;
    late.refused_at(422, "EXPIRED", "/expiresAt");
    // A repeat is a repeat, however late.
    let repeat = send(&approver, &missed).await.expect(202).json();
    assert_eq!(repeat["status"], "expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_waits_for_an_agent_that_was_away_for_days() {
    let (cluster, enforcer, approver) = scene(1).await;
    let prompt = prompt();
    send(&approver, &prompt).await.expect(202);
    cluster.pass(Duration::from_secs(3 * 24 * 3_600));
    let mut agent = socket(&cluster, 0, &enforcer).await;
    let pushed = agent.expect_type("prompt.send").await;
    assert_eq!(pushed["body"], prompt);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_prompts_come_in_small_pages_and_all_of_them() {
    let (cluster, enforcer, approver) = scene(1).await;
    let mut sent = Vec::new();
    for _ in 0..12 {
        let mut prompt = prompt();
        prompt["text"] = json!("x".repeat(200 << 10));
        let prompt = sealed_in(prompt);
        send(&approver, &prompt).await.expect(202);
        sent.push(prompt["requestId"].clone());
    }
    let mut agent = socket(&cluster, 0, &enforcer).await;
    for expected in &sent {
        let pushed = agent.expect_type("prompt.send").await;
        assert_eq!(pushed["requestId"], *expected);
        let id = expected.as_str().unwrap();
        let message = pushed["msgId"].as_str().unwrap();
        enforcer.ack(id, message).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_of_a_session_arrive_in_the_order_they_were_sent() {
    let (cluster, enforcer, approver) = scene(3).await;
    let mut sent = Vec::new();
    for _ in 0..20 {
        let mut prompt = prompt();
        prompt["sessionId"] = json!("s-1");
        let prompt = sealed_in(prompt);
        send(&approver, &prompt).await.expect(202);
        sent.push(prompt["requestId"].clone());
    }
    let mut agent = socket(&cluster, 1, &enforcer).await;
    let mut arrived = Vec::new();
    for round in 0..2 {
        while arrived.len() < sent.len() {
            let pushed = agent.expect_type("prompt.send").await;
            if !arrived.contains(&pushed["requestId"]) {
                arrived.push(pushed["requestId"].clone());
            }
        }
        assert_eq!(arrived, sent, "round {round}");
        // And while the channel listens.
        for _ in 0..20 {
            let prompt = prompt();
            send(&approver, &prompt).await.expect(202);
            sent.push(prompt["requestId"].clone());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_tenant_knows_nothing_of_anothers_prompts() {
    let (cluster, _enforcer, approver) = scene(1).await;
    let prompt = prompt();
    send(&approver, &prompt).await.expect(202);
    let tenant = cluster
        .administration
        .create_tenant("other")
        .await
        .expect("a tenant");
    for role in [RoleName::Enforcer, RoleName::Approver, RoleName::Admin] {
        let key = cluster.key(&tenant, role, None).await;
        let client = cluster.client(Some(&key));
        client.get(&path(&prompt)).await.refused(404, "NOT_FOUND");
        if role == RoleName::Enforcer {
            let answer = client.post("/v1/prompt", &ack(&prompt, "delivered")).await;
            answer.refused(404, "NOT_FOUND");
        }
    }
    let key = cluster
        .key(&tenant, RoleName::Approver, Some("alice"))
        .await;
    let theirs = crate::support::Approver {
        client: cluster.client(Some(&key)),
        id: "alice".into(),
    };
    send_to(&theirs, "build-bot", &prompt).await.expect(202);
    let rows = "select count(*) from prompts";
    assert_eq!(cluster.database.number(rows).await, 2, "the same id, twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_are_forgotten_and_their_texts_before_them() {
    let cluster = Cluster::with(1, |config| {
        config.retention.every_seconds = 1;
        config.retention.scrub_seconds = 3_600;
        config.retention.prompt_seconds = 7_200;
    })
    .await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let (settled, open) = (prompt(), prompt());
    send(&approver, &settled).await.expect(202);
    send(&approver, &open).await.expect(202);
    acknowledge(&enforcer, &settled, "delivered")
        .await
        .expect(200);
    cluster.pass(Duration::from_secs(3_601));
    until("the text goes", Duration::from_secs(10), async || {
        let texts = "select count(*) from prompt_payloads";
        cluster.database.number(texts).await == 1
    })
    .await;
    assert_eq!(status(&approver.client, &settled).await, "delivered");
    cluster.pass(Duration::from_secs(3_600));
    until("all of it goes", Duration::from_secs(10), async || {
        let rows = "select (select count(*) from prompts) + (select count(*) from prompt_payloads)
                         + (select count(*) from messages)";
        cluster.database.number(rows).await == 0
    })
    .await;
    let answer = approver.client.get(&path(&settled)).await;
    answer.refused(404, "NOT_FOUND");
}
