//! Random lives of sessions: one by one in step with a plain model, and all at once, where only
//! what must hold is asked.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use super::{at, end, hashed, outcome, report, seen, snapshot, start, status};
use crate::support::{Client, Cluster, with};

const STATES: [&str; 3] = ["planning", "editing", "executing"];

/// A report: what, and which of a few variants.
#[derive(Debug, Clone)]
enum Step {
    Start(usize),
    Status { state: usize, seconds: usize },
    Snapshot { id: usize, variant: usize },
    End(usize),
    Foreign,
}

fn step() -> impl Strategy<Value = Step> {
    let few = || prop_oneof![4 => Just(0_usize), 1 => Just(1)];
    prop_oneof![
        2 => few().prop_map(Step::Start),
        6 => (0..STATES.len(), 10..16_usize)
            .prop_map(|(state, seconds)| Step::Status { state, seconds }),
        4 => (0..4_usize, few()).prop_map(|(id, variant)| Step::Snapshot { id, variant }),
        1 => few().prop_map(Step::End),
        1 => Just(Step::Foreign),
    ]
}

impl Step {
    fn seconds(&self) -> usize {
        match self {
            Self::Start(variant) => *variant,
            Self::Status { seconds, .. } => *seconds,
            Self::Snapshot { id, variant } => 11 + id + variant,
            Self::End(variant) => 20 + variant,
            Self::Foreign => 50,
        }
    }

    fn event(&self, session: &str) -> Value {
        let seconds = self.seconds();
        match self {
            Self::Start(_) => start(session, seconds),
            Self::Status { state, .. } => status(session, STATES[*state], seconds),
            Self::Snapshot { id, variant } => {
                let shot = snapshot(session, &format!("shot-{id}"), seconds);
                hashed(with(&shot, "/payload", json!({ "variant": variant })))
            }
            Self::End(_) => end(session, seconds),
            Self::Foreign => status(session, "error", seconds),
        }
    }
}

/// The contract's view of one session.
#[derive(Debug, Default)]
struct Model {
    start: Option<usize>,
    status: Option<(usize, usize)>,
    end: Option<usize>,
    snapshots: BTreeMap<usize, usize>,
    updated: usize,
}

impl Model {
    fn play(&mut self, step: &Step) -> &'static str {
        const DUPLICATE: &str = "202 duplicate";
        if matches!(step, Step::Foreign) {
            // A case begins with the owner's report, so a stranger finds the session taken.
            return "403 FORBIDDEN";
        }
        let closed = self.end.is_some();
        match step {
            Step::Snapshot { id, variant } if self.snapshots.get(id) == Some(variant) => DUPLICATE,
            Step::End(variant) if self.end == Some(*variant) => DUPLICATE,
            _ if closed => "409 SESSION_CLOSED",
            Step::Start(variant) if self.start == Some(*variant) => DUPLICATE,
            Step::Start(_) if self.start.is_some() => "409 ALREADY_EXISTS",
            Step::Snapshot { id, .. } if self.snapshots.contains_key(id) => {
                "409 DUPLICATE_SNAPSHOT"
            }
            Step::Status { state, seconds } if self.status == Some((*seconds, *state)) => DUPLICATE,
            _ => {
                self.write(step);
                "202"
            }
        }
    }

    fn write(&mut self, step: &Step) {
        match step {
            Step::Start(variant) => self.start = Some(*variant),
            Step::Status { state, seconds } => {
                if self.status.is_none_or(|(stands, _)| *seconds >= stands) {
                    self.status = Some((*seconds, *state));
                }
            }
            Step::Snapshot { id, variant } => {
                self.snapshots.insert(*id, *variant);
            }
            Step::End(variant) => self.end = Some(*variant),
            Step::Foreign => {}
        }
        self.updated = self.updated.max(step.seconds());
    }

    fn state(&self) -> &'static str {
        self.status.map_or("idle", |(_, state)| STATES[state])
    }

    /// Asserts that a reader sees just this.
    fn compare(&self, session: &Value) -> Result<(), TestCaseError> {
        let time = |seconds: Option<usize>| seconds.map_or(Value::Null, |n| json!(at(n)));
        prop_assert_eq!(&session["state"], self.state());
        prop_assert_eq!(&session["updatedAt"], &time(Some(self.updated)));
        prop_assert_eq!(&session["startedAt"], &time(self.start));
        prop_assert_eq!(&session["endedAt"], &time(self.end.map(|n| 20 + n)));
        let mut shown: Vec<_> = session["snapshots"]
            .as_array()
            .unwrap()
            .iter()
            .map(|shot| shot["snapshotHash"].clone())
            .collect();
        shown.sort_by_key(ToString::to_string);
        let id = session["sessionId"].as_str().unwrap();
        let mut expected: Vec<_> = self
            .snapshots
            .iter()
            .map(|(id, variant)| (*id, *variant))
            .map(|(shot, variant)| Step::Snapshot { id: shot, variant }.event(id))
            .map(|event| event["snapshotHash"].clone())
            .collect();
        expected.sort_by_key(ToString::to_string);
        prop_assert_eq!(shown, expected);
        Ok(())
    }
}

/// Three nodes and two enforcers.
struct SessionScene {
    runtime: Runtime,
    /// Dropped after the clients, so that the nodes are there for them.
    _cluster: Cluster,
    agent: Client,
    other: Client,
    cases: AtomicUsize,
}

impl SessionScene {
    fn set() -> Self {
        let runtime = Builder::new_multi_thread().enable_all().build().unwrap();
        let (cluster, agent, other) = runtime.block_on(async {
            let cluster = Cluster::start(3).await;
            let agent = cluster.enforcer("build-bot").await.client;
            let other = cluster.enforcer("other-bot").await.client;
            (cluster, agent, other)
        });
        Self {
            runtime,
            _cluster: cluster,
            agent,
            other,
            cases: AtomicUsize::new(0),
        }
    }

    fn session(&self) -> String {
        format!("s-{}", self.cases.fetch_add(1, Ordering::Relaxed))
    }

    async fn send(&self, step: &Step, session: &str) -> String {
        let client = match step {
            Step::Foreign => &self.other,
            _ => &self.agent,
        };
        outcome(&report(client, &step.event(session)).await)
    }
}

fn run(
    cases: u32,
    steps: impl Strategy<Value = Vec<Step>>,
    test: impl Fn(Vec<Step>) -> Result<(), TestCaseError>,
) {
    let mut runner = TestRunner::new(Config {
        cases,
        max_shrink_iters: 200,
        failure_persistence: None,
        ..Config::default()
    });
    if let Err(error) = runner.run(&steps, test) {
        panic!("{error}");
    }
}

#[test]
fn random_sessions_go_as_the_contract_says() {
    let scene = SessionScene::set();
    run(40, proptest::collection::vec(step(), 5..=30), |steps| {
        scene.runtime.block_on(async {
            let session = scene.session();
            let mut model = Model::default();
            let first = Step::Snapshot { id: 9, variant: 0 };
            for step in [first].iter().chain(&steps) {
                let answer = scene.send(step, &session).await;
                prop_assert_eq!(answer, model.play(step), "{:?}", step);
                model.compare(&seen(&scene.agent, &session).await)?;
            }
            Ok(())
        })
    });
}

#[test]
fn reports_at_once_on_three_nodes_lose_nothing_and_never_go_back() {
    let scene = SessionScene::set();
    // No two states at one time: which of those came later, only the gateway knows.
    let steps = proptest::collection::vec(step(), 4..=24).prop_map(|mut steps| {
        for (n, step) in steps.iter_mut().enumerate() {
            if let Step::Status { seconds, .. } = step {
                *seconds = 100 + n * 7 % 24;
            }
        }
        steps
    });
    run(60, steps, |steps| {
        scene.runtime.block_on(async {
            let session = scene.session();
            let mut model = Model::default();
            let first = Step::Snapshot { id: 9, variant: 0 };
            prop_assert_eq!(scene.send(&first, &session).await, model.play(&first));
            let answers = join_all(steps.iter().map(|step| scene.send(step, &session))).await;
            let seen = seen(&scene.agent, &session).await;
            // Every step that was accepted as new counts, and no other, in any order.
            let mut accepted: Vec<_> = steps
                .iter()
                .zip(&answers)
                .filter(|(_, answer)| *answer == "202")
                .map(|(step, _)| step)
                .collect();
            accepted.sort_by_key(|step| matches!(step, Step::End(_)));
            for step in accepted {
                prop_assert_eq!(model.play(step), "202", "{:?} of {:?}", step, &answers);
            }
            model.compare(&seen)?;
            // And whatever was not accepted as new would not be now.
            for (step, answer) in steps
                .iter()
                .zip(&answers)
                .filter(|(_, answer)| *answer != "202")
            {
                let now = model.play(step);
                let closed_since = now == "409 SESSION_CLOSED";
                prop_assert!(
                    now == answer || closed_since,
                    "{:?} {} {}",
                    step,
                    answer,
                    now
                );
            }
            Ok(())
        })
    });
}
