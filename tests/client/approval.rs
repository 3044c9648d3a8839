//! Agents written in Rust: ask and wait, run a call only if it was approved.

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

pub fn transfer(amount: u64) -> ToolCall {
    ToolCall::new(
        "transfer",
        [("amount", json!(amount)), ("iban", json!("DE02"))],
    )
}

/// An agent whose enforcer is paired with Alice.
pub struct AgentScene {
    pub world: ClientScene,
    pub client: ApprovalClient,
    pub alice: Approver,
}

impl AgentScene {
    pub async fn start() -> Self {
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
    pub fn process(world: &ClientScene) -> ApprovalClient {
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
    pub async fn decide(&self, count: usize, verdict: Verdict) {
        for _ in 0..count {
            let item = self.next_item().await;
            self.alice
                .decide(&item, &because(verdict, "not on Friday"))
                .await
                .unwrap();
        }
    }

    pub async fn submitted(&self, call: ToolCall) -> PendingApproval {
        let options = AskOptions::default();
        self.client.submit(call, &options, None).await.unwrap()
    }

    pub async fn approved(&self, pending: &PendingApproval) -> Box<UnusedApproval> {
        self.decide(1, Verdict::Approve).await;
        match pending.outcome(PATIENCE).await.unwrap() {
            RequestOutcome::Approved(approved) => approved,
            RequestOutcome::Denied(denial) => panic!("{denial}"),
            RequestOutcome::StillWaiting => panic!("it was decided"),
        }
    }

    /// Whether no approval of the request can be used any more.
    pub fn is_taken(&self, pending: &PendingApproval) -> bool {
        let used = self.world.file("bot").path().with_extension("used");
        used.join(pending.request_id().as_str()).exists()
    }

    /// The state of a request at the gateway.
    pub async fn state(&self, request: &str) -> String {
        let state = format!("select state::text from exchanges where request_id = '{request}'");
        self.world.cluster.database.text(&state).await
    }
}

pub fn denial<T>(result: Result<T, ApprovalDenial>) -> ApprovalDenial {
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
