//! Guessing codes: what a principal and a tenant may get wrong in a minute, on however many nodes.

use std::time::Duration;

use countersign::store::identity::credential::RoleName;
use futures_util::future::join_all;

use super::{complete, initiate, pair, resolve};
use crate::support::{Answer, Approver, Cluster, counts, tally};

/// Asserts that a guess was not answered, and when to come back.
#[track_caller]
fn limited(answer: Answer) -> u64 {
    let answer = answer.refused(429, "RATE_LIMITED");
    assert_eq!(answer.json()["retryable"], true);
    let pause = answer.header("retry-after").expect("a pause");
    let pause = pause.parse().expect("seconds");
    assert!((1..=60).contains(&pause), "{pause}");
    pause
}

/// Wrong codes, one of them no code at all.
fn wrong(index: usize) -> String {
    match index {
        0 => "no-code".to_owned(),
        _ => format!("{index:04}-ZZZZ"),
    }
}

/// Three nodes, patient with locks and connections: guesses queue up behind one another, however
/// slow the machine.
async fn patient() -> Cluster {
    Cluster::with(3, |config| {
        config.database.acquire_timeout_ms = 30_000;
        config.database.lock_timeout_ms = 30_000;
        config.database.statement_timeout_ms = 30_000;
    })
    .await
}

async fn approvers(cluster: &Cluster, count: usize) -> Vec<Approver> {
    let mut approvers = Vec::new();
    for index in 0..count {
        approvers.push(cluster.approver(&format!("guesser-{index}")).await);
    }
    approvers
}

#[tokio::test(flavor = "multi_thread")]
async fn a_principal_that_was_wrong_ten_times_learns_nothing_for_a_minute() {
    let cluster = Cluster::start(3).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let mallory = cluster.approver("mallory").await;
    let alice = cluster.approver("alice").await;
    let (code, _) = initiate(&enforcer).await;
    // A right code in between neither counts nor wipes the slate.
    for index in 0..9 {
        let answer = resolve(&mallory, &wrong(index)).await;
        answer.refused(404, "NOT_FOUND");
    }
    resolve(&mallory, &code).await.expect(200);
    cluster.pass(Duration::from_secs(40));
    let answer = resolve(&mallory, &wrong(9)).await;
    answer.refused(404, "NOT_FOUND");
    let pauses = [
        limited(resolve(&mallory, &wrong(10)).await),
        limited(resolve(&mallory, &code).await),
    ];
    assert!(pauses.iter().all(|pause| *pause <= 20), "{pauses:?}");
    resolve(&alice, &code).await.expect(200);
    resolve(&alice, &wrong(1)).await.refused(404, "NOT_FOUND");

    // The window began with the first wrong one, and asking in vain does not prolong it.
    cluster.pass(Duration::from_secs(20));
    resolve(&mallory, &code).await.expect(200);
    for index in 0..10 {
        let answer = resolve(&mallory, &wrong(index)).await;
        answer.refused(404, "NOT_FOUND");
    }
    limited(resolve(&mallory, &code).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_guesses_of_one_principal_do_not_slip_past_its_limit() {
    let cluster = patient().await;
    let mallory = cluster.approver("mallory").await;
    let codes: Vec<_> = (0..60).map(wrong).collect();
    let answers = join_all(codes.iter().map(|code| resolve(&mallory, code))).await;
    assert_eq!(
        tally(&answers),
        counts([("404 NOT_FOUND", 10), ("429 RATE_LIMITED", 50)])
    );
    // An unanswered call was no guess, and has not used up the tenant's.
    let everyone = "select failures::bigint from pairing_guesses where principal = ''";
    assert_eq!(cluster.database.number(everyone).await, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_guessers_on_many_nodes_meet_the_tenants_limit_and_keep_nobody_from_pairing() {
    let cluster = patient().await;
    let enforcer = cluster.enforcer("build-bot").await;
    let honest = cluster.approver("honest").await;
    let guessers = approvers(&cluster, 30).await;
    let (code, nonce) = initiate(&enforcer).await;
    let codes: Vec<_> = (0..10).map(wrong).collect();
    let guesses = guessers
        .iter()
        .flat_map(|guesser| codes.iter().map(move |code| resolve(guesser, code)));
    let (answers, token) =
        futures_util::future::join(join_all(guesses), pair(&enforcer, &honest)).await;
    assert!(!token.is_empty(), "an honest pairing in the midst of it");
    assert_eq!(
        tally(&answers),
        counts([("404 NOT_FOUND", 100), ("429 RATE_LIMITED", 200)])
    );
    for answer in answers.into_iter().filter(|answer| answer.status == 429) {
        limited(answer);
    }

    // An approver that guessed wrong learns nothing now, be the code right or wrong.
    for guesser in &guessers {
        limited(resolve(guesser, &code).await);
    }
    // One that did not still pairs; once wrong, it is like the others.
    let late = cluster.approver("late").await;
    limited(resolve(&late, &wrong(1)).await);
    limited(resolve(&late, &code).await);
    resolve(&honest, &code).await.expect(200);
    resolve(&honest, &code).await.expect(200);
    complete(&honest, &nonce).await.expect(200);

    cluster.pass(Duration::from_secs(61));
    let (code, _) = initiate(&enforcer).await;
    resolve(&late, &wrong(1)).await.refused(404, "NOT_FOUND");
    resolve(&guessers[0], &code).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_guess_leaves_the_attempt_as_it_was_and_tenants_count_apart() {
    let cluster = Cluster::with(2, |config| {
        config.pairing.guesses_per_principal = 1;
        config.pairing.guesses_per_tenant = 2;
    })
    .await;
    let enforcer = cluster.enforcer("build-bot").await;
    let (alice, bob) = (
        cluster.approver("alice").await,
        cluster.approver("bob").await,
    );
    let (code, nonce) = initiate(&enforcer).await;
    for approver in [&alice, &bob] {
        let answer = resolve(approver, &wrong(1)).await;
        answer.refused(404, "NOT_FOUND");
        limited(resolve(approver, &code).await);
    }
    assert_eq!(super::word(&enforcer, &nonce).await, "pending");
    let there = cluster.administration.create_tenant("b").await.unwrap();
    let key = cluster.key(&there, RoleName::Approver, None).await;
    let stranger = cluster.client(Some(&key));
    let answer = stranger.get("/v1/pairing/resolve/0000-0000").await;
    answer.refused(404, "NOT_FOUND");
}
