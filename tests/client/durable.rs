//! Requests that outlive their process: submitted now, resumed in another, used once or never.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use countersign::client::approval::{AskOptions, RequestOutcome, ToolCall};
use countersign::client::enforcer::ApprovalDenial;
use countersign::e2e::ControlOrder;
use countersign::protocol::decision::Verdict;
use countersign::protocol::timestamp::Timestamp;
use serde_json::{Value, json};

use super::approval::{AgentScene, denial, transfer};
use super::people::PATIENCE;

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_resumed_in_another_process_and_used_once() {
    let scene = AgentScene::start().await;
    let pending = scene.submitted(transfer(500)).await;
    assert!(matches!(
        pending.outcome(Duration::ZERO).await.unwrap(),
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
    match third.outcome(Duration::ZERO).await.unwrap() {
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
    let outcome = pending.outcome(PATIENCE).await.unwrap();
    let RequestOutcome::Denied(ApprovalDenial::Rejected(_)) = outcome else {
        panic!("it was rejected");
    };
    assert!(scene.is_taken(&pending));
}

/// The state of an exchange is the gateway's word, and nobody signs it.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_the_gateway_says_has_ended_is_denied_for_good() {
    let scene = AgentScene::start().await;
    let pending = scene.submitted(transfer(7)).await;
    let admin = scene.world.cluster.admin().await;
    let cancel = format!("/platform/v1/exchanges/{}/cancel", pending.request_id());
    admin.post(&cancel, &json!({})).await.expect(200);
    let outcome = pending.outcome(PATIENCE).await.unwrap();
    let RequestOutcome::Denied(ApprovalDenial::Ended(_)) = outcome else {
        panic!("it has ended");
    };
    assert!(scene.is_taken(&pending));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_stops_the_use_of_an_approval_and_leaves_it() {
    let scene = AgentScene::start().await;
    let pending = scene.submitted(transfer(7)).await;
    let approved = scene.approved(&pending).await;
    let until = scene.world.cluster.clock.now().inner() + Duration::from_secs(300);
    let pause = ControlOrder::Pause {
        session: None,
        until: Timestamp::from(until),
    };
    scene.alice.order("bot", &pause).await.unwrap();
    let paused = approved.use_once(transfer(7), async |_| panic!("it ran"));
    assert!(matches!(denial(paused.await), ApprovalDenial::Paused(_)));
    assert!(!scene.is_taken(&pending));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_not_used_where_others_could_forget_it() {
    let scene = AgentScene::start().await;
    let pending = scene.submitted(transfer(7)).await;
    let approved = scene.approved(&pending).await;
    let used = scene.world.file("bot").path().with_extension("used");
    std::fs::create_dir(&used).unwrap();
    std::fs::set_permissions(&used, std::fs::Permissions::from_mode(0o777)).unwrap();
    let refused = approved.use_once(transfer(7), async |_| panic!("it ran"));
    let refused = denial(refused.await).to_string();
    assert!(refused.contains("others can write"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_lasts_longer_than_its_use_is_remembered() {
    let scene = AgentScene::start().await;
    let options = AskOptions {
        timeout: Duration::from_secs(30 * 24 * 3600 + 1),
        ..AskOptions::default()
    };
    let refused = denial(scene.client.submit(transfer(7), &options, None).await);
    assert!(refused.to_string().contains("30 days"), "{refused}");
    let refused = denial(scene.client.ask(transfer(7), &options).await);
    assert!(refused.to_string().contains("30 days"), "{refused}");
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
    let proof = edited(&|value| value["proof"] = "A".repeat(43).into());
    let enforcer = edited(&|value| value["enforcerId"] = "other-bot".into());
    let unknown = edited(&|value| value["more"] = json!(1));
    let version = edited(&|value| value["v"] = json!(2));
    for text in [more, key, proof, enforcer, unknown, version, "{".to_owned()] {
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
