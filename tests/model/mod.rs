//! Random lives of exchanges, played on two nodes and in a plain model at once: every answer and
//! every row must agree.

mod play;
mod truth;

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::{Builder, Runtime};

use self::play::Play;
use crate::support::Cluster;

/// Exchanges of a case.
const SLOTS: usize = 3;

/// One call, by whom, about which exchange.
#[derive(Debug, Clone)]
enum Step {
    /// The last is the life, or none if it is over on arrival.
    Submit(usize, usize, usize, usize, Option<usize>),
    Decide(usize, usize, usize, usize),
    Withdraw(usize, usize),
    Cancel(usize),
    AckDecision(usize, usize),
    AckItem(usize, usize),
    AckRefresh(usize, usize),
    Remove(usize, usize),
    Refresh(usize, Option<usize>),
    Pass(usize),
    Status(usize, usize),
    Wait(usize, usize),
    Inboxes(usize),
}

/// Calls in about the proportions in which they are interesting.
fn step() -> impl Strategy<Value = Step> {
    let (slot, two) = (0..SLOTS, 0..2_usize);
    // Mostly the first of two, so that lives go on; now and then the other.
    let mostly = || prop_oneof![6 => Just(0_usize), 1 => Just(1)];
    let life = prop_oneof![3 => Just(Some(0)), 5 => Just(Some(1)), 1 => Just(None)];
    prop_oneof![
        6 => (slot.clone(), mostly(), mostly(), mostly(), life)
            .prop_map(|(slot, who, asked, hash, life)| Step::Submit(slot, who, asked, hash, life)),
        6 => (slot.clone(), mostly(), mostly(), two.clone())
            .prop_map(|(slot, who, hash, which)| Step::Decide(slot, who, hash, which)),
        2 => (slot.clone(), mostly()).prop_map(|(slot, who)| Step::Withdraw(slot, who)),
        1 => slot.clone().prop_map(Step::Cancel),
        3 => (slot.clone(), mostly()).prop_map(|(slot, who)| Step::AckDecision(slot, who)),
        1 => (slot.clone(), mostly()).prop_map(|(slot, who)| Step::AckItem(slot, who)),
        1 => (slot.clone(), mostly()).prop_map(|(slot, who)| Step::AckRefresh(slot, who)),
        2 => (slot.clone(), mostly()).prop_map(|(slot, who)| Step::Remove(slot, who)),
        2 => (slot.clone(), proptest::option::weighted(0.8, mostly()))
            .prop_map(|(slot, who)| Step::Refresh(slot, who)),
        2 => prop_oneof![5 => Just(0), 1 => Just(1)].prop_map(Step::Pass),
        2 => (slot.clone(), 0..5_usize).prop_map(|(slot, who)| Step::Status(slot, who)),
        2 => (slot, 0..3_usize).prop_map(|(slot, who)| Step::Wait(slot, who)),
        1 => two.prop_map(Step::Inboxes),
    ]
}

#[test]
fn random_lives_go_as_the_contract_says() {
    let runtime: Runtime = Builder::new_multi_thread().enable_all().build().unwrap();
    let (cluster, admin) = runtime.block_on(async {
        let cluster = Cluster::start(2).await;
        let admin = cluster.admin().await;
        (cluster, admin)
    });
    let cases = AtomicUsize::new(0);
    let mut runner = TestRunner::new(Config {
        cases: 24,
        max_shrink_iters: 200,
        failure_persistence: None,
        ..Config::default()
    });
    // Two exchanges are there from the beginning, so that the calls have something to meet.
    let first = [0, 1].map(|slot| Step::Submit(slot, 0, 0, 0, Some(1)));
    let lives = proptest::collection::vec(step(), 12..=40);
    let outcome = runner.run(&lives, |steps| {
        runtime.block_on(async {
            let case = cases.fetch_add(1, Ordering::Relaxed);
            let mut play = Play::begin(&cluster, &admin, case).await;
            for step in first.iter().chain(&steps) {
                play.play(step).await?;
            }
            play.compare_rows().await
        })
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
