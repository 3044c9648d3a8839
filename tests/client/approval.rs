//! Agents written in Rust: ask and wait, run a call only if it was approved, submit now and resume
//! in another process.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use countersign::client::approval::{
    ApprovalClient, AskOptions, OfferedAction, PendingApproval, RequestOutcome, ReviewSubject,
    ToolCall, UnusedApproval,
};
use countersign::client::approver::{Approver, InboxRequest};
use countersign::client::enforcer::ApprovalDenial;
use countersign::protocol::decision::Verdict;
use serde_json::{Value, json};

use super::people::{ClientScene, PATIENCE, because, choice, pair};
use crate::support::until;

fn transfer(amount: u64) -> ToolCall {
    ToolCall::new(
        "transfer",
        [("amount", json!(amount)), ("iban", json!("DE02"))],
    )
}

/// An agent whose enforcer is paired with Alice.
struct AgentScene {
    world: ClientScene,
    client: ApprovalClient,
    alice: Approver,
}

impl AgentScene {
    async fn start() -> Self {
        let world = ClientScene::start().await;
        let mut enforcer = world.enforcer("bot").await;
        let mut alice = world.approver("alice", "laptop").await;
        pair(&mut enforcer, &mut alice).await;
        let client = Self::process(&world);
        Self {
            world,
            client,
            alice,
        }
    }

    /// The library in another process: it shares nothing but the files.
    fn process(world: &ClientScene) -> ApprovalClient {
        ApprovalClient::open(&world.file("bot"), &world.cluster.clock).unwrap()
    }

    async fn next_item(&self) -> InboxRequest {
        let waiting = async {
            loop {
                if let Some(item) = self.alice.find("").await.unwrap().pop() {
                    break item;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap()
    }

    /// Decides each of so many requests once it is there.
    async fn decide(&self, count: usize, verdict: Verdict) {
        for _ in 0..count {
            let item = self.next_item().await;
            self.alice
                .decide(&item, &because(verdict, "not on Friday"))
                .await
                .unwrap();
        }
    }

    async fn submitted(&self, call: ToolCall) -> PendingApproval {
        let options = AskOptions::default();
        self.client.submit(call, &options, None).await.unwrap()
    }

    async fn approved(&self, pending: &PendingApproval) -> Box<UnusedApproval> {
        self.decide(1, Verdict::Approve).await;
        match pending.outcome(PATIENCE).await {
            RequestOutcome::Approved(approved) => approved,
            RequestOutcome::Denied(denial) => panic!("{denial}"),
            RequestOutcome::StillWaiting => panic!("it was decided"),
        }
    }

    /// The state of a request at the gateway.
    async fn state(&self, request: &str) -> String {
        let state = format!("select state::text from exchanges where request_id = '{request}'");
        self.world.cluster.database.text(&state).await
    }
}

fn denial<T>(result: Result<T, ApprovalDenial>) -> ApprovalDenial {
    result.err().expect("it is denied")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_call_runs_once_with_its_own_arguments() {
    let scene = AgentScene::start().await;
    let (call, options) = (transfer(500), AskOptions::default());
    let runs = AtomicUsize::new(0);
    let running = scene
        .client
        .approval_required(&call, &options, async |arguments| {
            runs.fetch_add(1, Ordering::Relaxed);
            arguments["amount"].clone()
        });
    let (result, ()) = tokio::join!(running, scene.decide(1, Verdict::Approve));
    assert_eq!(result.unwrap(), json!(500));
    assert_eq!(runs.into_inner(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_call_does_not_run_and_the_model_learns_why() {
    let scene = AgentScene::start().await;
    let (call, options) = (transfer(500), AskOptions::default());
    let running = scene
        .client
        .approval_required(&call, &options, async |_| panic!("it ran"));
    let (result, ()) = tokio::join!(running, scene.decide(1, Verdict::Reject));
    let text = denial(result).for_model();
    assert!(text.contains("alice rejected it: not on Friday"), "{text}");
    assert!(text.contains("Nothing was executed"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_many_calls_at_once_runs_as_it_was_approved() {
    let scene = AgentScene::start().await;
    let options = AskOptions::default();
    let calls = (0..20).map(|amount| {
        let (client, options) = (&scene.client, &options);
        async move {
            let run = async |arguments: serde_json::Map<String, Value>| arguments["amount"].clone();
            let call = transfer(amount);
            client.approval_required(&call, options, run).await.unwrap()
        }
    });
    let running = futures_util::future::join_all(calls);
    let (results, ()) = tokio::join!(running, scene.decide(20, Verdict::Approve));
    assert_eq!(
        results,
        (0..20).map(|amount| json!(amount)).collect::<Vec<_>>()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_no_longer_waits_withdraws_its_request() {
    let scene = AgentScene::start().await;
    let options = AskOptions::default();
    let asked = scene.client.ask(transfer(1), &options);
    let short = tokio::time::timeout(Duration::from_secs(2), asked).await;
    assert!(short.is_err(), "nobody decides");
    until("it is withdrawn", PATIENCE, async || {
        let states = "select coalesce(string_agg(state::text, ' '), '') from exchanges";
        scene.world.cluster.database.text(states).await == "withdrawn"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_content_is_asked_about_with_choices() {
    let scene = AgentScene::start().await;
    let content = ReviewSubject::Content {
        artifact_type: "plan.review".to_owned(),
        payload: json!({ "steps": ["build", "release"] })
            .as_object()
            .unwrap()
            .clone(),
    };
    let action = |verdict, id: &str| OfferedAction {
        verdict,
        id: id.to_owned(),
        caption: id.to_owned(),
    };
    let options = AskOptions {
        actions: vec![
            action(Verdict::Approve, "staging"),
            action(Verdict::Reject, "no"),
        ],
        ..AskOptions::default()
    };
    let deciding = async {
        let item = scene.next_item().await;
        let mut chosen = choice(Verdict::Approve);
        chosen.hints.action_id = Some("staging".to_owned());
        scene.alice.decide(&item, &chosen).await.unwrap();
    };
    let (accepted, ()) = tokio::join!(scene.client.ask(content, &options), deciding);
    let hints = accepted.unwrap().approval.hints;
    assert_eq!(hints.action_id.as_deref(), Some("staging"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_resumed_in_another_process_and_used_once() {
    let scene = AgentScene::start().await;
    let pending = scene.submitted(transfer(500)).await;
    assert!(matches!(
        pending.outcome(Duration::ZERO).await,
        RequestOutcome::StillWaiting
    ));
    let text = pending.to_json().unwrap();
    drop(pending);
    let other = AgentScene::process(&scene.world);
    let pending = other.pending(&text).unwrap();
    let approved = scene.approved(&pending).await;
    // A call that was changed does not run, and does not use the approval up.
    let changed = approved.use_once(transfer(501), async |_| panic!("it ran"));
    assert!(matches!(denial(changed.await), ApprovalDenial::Changed(_)));
    let other_tool = ToolCall::new("refund", [("amount", json!(500)), ("iban", json!("DE02"))]);
    let changed = approved.use_once(other_tool, async |_| panic!("it ran"));
    assert!(matches!(denial(changed.await), ApprovalDenial::Changed(_)));
    let ran = approved.use_once(transfer(500), async |_| "sent").await;
    assert_eq!(ran.unwrap(), "sent");
    // Neither here nor in a process that resumes it again.
    let again = approved.use_once(transfer(500), async |_| panic!("it ran"));
    assert!(matches!(denial(again.await), ApprovalDenial::AlreadyUsed));
    let third = AgentScene::process(&scene.world).pending(&text).unwrap();
    match third.outcome(Duration::ZERO).await {
        RequestOutcome::Approved(approved) => {
            let again = approved.use_once(transfer(500), async |_| panic!("it ran"));
            assert!(matches!(denial(again.await), ApprovalDenial::AlreadyUsed));
        }
        RequestOutcome::Denied(_) => {}
        RequestOutcome::StillWaiting => panic!("it was decided"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_that_use_an_approval_at_once_run_it_once() {
    let scene = AgentScene::start().await;
    let pending = scene.submitted(transfer(7)).await;
    let approved = scene.approved(&pending).await;
    let runs = AtomicUsize::new(0);
    let uses = (0..8).map(|_| async {
        let run = async |_: &_| runs.fetch_add(1, Ordering::Relaxed);
        approved.use_once(transfer(7), run).await.is_ok()
    });
    let uses = futures_util::future::join_all(uses).await;
    assert_eq!(uses.iter().filter(|ran| **ran).count(), 1);
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_is_final_even_if_the_gateway_shows_another_decision_later() {
    let scene = AgentScene::start().await;
    let pending = scene.submitted(transfer(7)).await;
    scene.decide(1, Verdict::Reject).await;
    let RequestOutcome::Denied(ApprovalDenial::Rejected(_)) = pending.outcome(PATIENCE).await
    else {
        panic!("it was rejected");
    };
    let used = scene.world.file("bot").path().with_extension("used");
    assert!(used.join(pending.request_id().as_str()).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_request_cannot_be_used() {
    let scene = AgentScene::start().await;
    let pending = scene.submitted(transfer(7)).await;
    let approved = scene.approved(&pending).await;
    pending.withdraw("no longer needed").await.unwrap();
    let late = approved.use_once(transfer(7), async |_| panic!("it ran"));
    assert!(matches!(denial(late.await), ApprovalDenial::AlreadyUsed));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_request_that_was_edited_or_is_anothers_is_refused() {
    let scene = AgentScene::start().await;
    let pending = scene.submitted(transfer(500)).await;
    let text = pending.to_json().unwrap();
    let edited = |edit: &dyn Fn(&mut Value)| {
        let mut value: Value = serde_json::from_str(&text).unwrap();
        edit(&mut value);
        value.to_string()
    };
    let more = edited(&|value| {
        let artifact = value["artifact"].as_str().unwrap();
        value["artifact"] = artifact.replace("500", "999").into();
    });
    let key = edited(&|value| value["outcomeKey"] = "A".repeat(43).into());
    let enforcer = edited(&|value| value["enforcerId"] = "other-bot".into());
    let unknown = edited(&|value| value["more"] = json!(1));
    let version = edited(&|value| value["v"] = json!(2));
    for text in [more, key, enforcer, unknown, version, "{".to_owned()] {
        let refused = denial(scene.client.pending(&text));
        assert!(matches!(refused, ApprovalDenial::Changed(_)), "{refused}");
    }
    scene.client.pending(&text).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_makes_a_repeated_submission_the_same_request() {
    let scene = AgentScene::start().await;
    let (options, key) = (AskOptions::default(), Some("run 1/call 7"));
    let first = scene.client.submit(transfer(7), &options, key).await;
    let first = first.unwrap();
    let other = AgentScene::process(&scene.world);
    let second = other.submit(transfer(7), &options, key).await.unwrap();
    assert_eq!(first.request_id(), second.request_id());
    let count = scene
        .world
        .cluster
        .database
        .text("select count(*)::text from exchanges")
        .await;
    assert_eq!(count, "1");
    // Another call, another approver, other choices: not under this key.
    let reused = other.submit(transfer(8), &options, key).await;
    assert!(matches!(denial(reused), ApprovalDenial::KeyReused));
    let elsewhere = AskOptions {
        repository: Some("repo:acme/other".to_owned()),
        ..AskOptions::default()
    };
    let reused = other.submit(transfer(7), &elsewhere, key).await;
    assert!(matches!(denial(reused), ApprovalDenial::KeyReused));
    let other_key = other.submit(transfer(7), &options, Some("run 2")).await;
    assert_ne!(other_key.unwrap().request_id(), first.request_id());
    // At once, from several processes.
    let at_once = (0..6).map(|_| other.submit(transfer(9), &options, Some("run 3")));
    let at_once = futures_util::future::join_all(at_once).await;
    let mut ids: Vec<_> = (at_once.iter())
        .map(|pending| pending.as_ref().ok().unwrap().request_id())
        .collect();
    ids.dedup();
    assert_eq!(ids.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_used_before_its_end_or_never() {
    let scene = AgentScene::start().await;
    let pending = scene.submitted(transfer(7)).await;
    let approved = scene.approved(&pending).await;
    scene.world.cluster.pass(Duration::from_secs(601));
    let late = denial(
        approved
            .use_once(transfer(7), async |_| panic!("it ran"))
            .await,
    );
    assert!(late.is_timeout(), "{late}");
    let state = scene.state(pending.request_id().as_str()).await;
    assert_ne!(state, "pendingApproval");
}
