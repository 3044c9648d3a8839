//! Receipts of several people in cases that are not plain, and a signal while one is put together.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::Method;
use countersign::client::approver::ApproverChoice;
use countersign::e2e::ArtifactHints;
use countersign::protocol::decision::Verdict;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::approver::prepared;
use super::enforcer::decide;
use super::sets::{NAMES, decided, path, results, scene, verify};
use crate::client::devices::asks;
use crate::client::people::{ClientScene, PATIENCE, choice};
use crate::client::sets::team;
use crate::hostile::meddler::{Meddler, Route};
use crate::log::logged;
use crate::support::Cluster;
use crate::support::process::{Signal, countersign, signal};
use crate::support::until;

fn chosen(action: &str) -> ApproverChoice {
    ApproverChoice {
        hints: ArtifactHints {
            action_id: Some(action.to_owned()),
            ..ArtifactHints::default()
        },
        ..choice(Verdict::Approve)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_of_another_choice_is_neither_reported_nor_counted() {
    let (world, people) = scene().await;
    let (file, plan) = path(&world, "plan.md");
    std::fs::write(&file, "Release it.").unwrap();
    let (_, saved) = path(&world, "receipt.json");
    let actions = [
        "--action",
        "approve:staging:To staging",
        "--action",
        "approve:production:To production",
    ];
    let ask = ["ask", "--approvals", "2", "--save", &saved];
    let ask = [&ask[..], &actions, &[plan.as_str()]].concat();
    let decisions = [
        (&people[0], chosen("staging")),
        (&people[2], chosen("production")),
        (&people[1], chosen("staging")),
    ];
    let printed = decided(&world, &ask, &decisions).await.expect(0).json();
    assert_eq!(printed["actionId"], "staging");
    let approvals = printed["approvals"].as_array().unwrap().iter();
    let who: Vec<_> = approvals.map(|it| it["approverId"].clone()).collect();
    assert_eq!(who, ["alice", "bob"]);

    let verified = verify(&world, "bot", &[&saved, "--json"]).expect(0).json();
    assert_eq!(verified["actionId"], "staging");
    assert_eq!(verified["approverIds"], json!(["alice", "bob"]));
    assert_eq!(verified["parts"][2]["actionId"], "production");
    let shown = verify(&world, "bot", &[&saved]).expect(0).out;
    for expected in [
        "alice approved “To staging” (staging)\n",
        "carol approved “To production” (production) (does not count)",
        "The approved request names bot as its sender.",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    for (demands, code) in [
        (&["--approvals", "2"][..], 0),
        (&["--approvals", "2", "--from", "alice,bob"], 0),
        (&["--enforcer", "bot"], 0),
        (&["--approvals", "3"], 77),
        (&["--approvals", "2", "--from", "alice,carol"], 77),
        (&["--enforcer", "ci"], 77),
    ] {
        let ended = verify(&world, "bot", &[&[saved.as_str()], demands].concat());
        assert_eq!(ended.code, code, "{demands:?}: {}", ended.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn proofs_from_the_log_show_that_an_agents_machine_asked() {
    let world = ClientScene::with(Cluster::with(1, logged).await);
    let mut enforcer = world.enforcer("bot").await;
    let people = team(&world, &mut enforcer, &NAMES).await;
    let (file, saved) = path(&world, "receipt.json");
    let run = ["run", "--approvals", "2", "--save", &saved, "--", "true"];
    let approve = choice(Verdict::Approve);
    let decisions = [(&people[0], approve.clone()), (&people[1], approve)];
    decided(&world, &run, &decisions).await.expect(0);
    let verified = || verify(&world, "bot", &[&saved, "--json"]);
    let asked = |shown: &Value| results(shown, "asked").concat();
    assert_eq!(asked(&verified().expect(0).json()), "absent");
    until("the log has the decisions", PATIENCE, async || {
        let mut prove = prepared(&world, "bot", &["receipt", "prove", &saved]);
        prove.output().unwrap().status.success()
    })
    .await;
    assert_eq!(asked(&verified().expect(0).json()), "proven");
    // Elsewhere, by what this machine trusts.
    let (anchors, named) = path(&world, "anchors.json");
    let listed = prepared(&world, "bot", &["anchors"]).output().unwrap();
    std::fs::write(anchors, listed.stdout).unwrap();
    let elsewhere = [saved.as_str(), "--json", "--anchors", &named];
    let elsewhere = verify(&world, "nobody", &elsewhere).expect(0).json();
    assert_eq!(asked(&elsewhere), "proven");
    let mut receipt: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    receipt["log"].as_array_mut().unwrap().reverse();
    std::fs::write(&file, receipt.to_string()).unwrap();
    assert_eq!(asked(&verified().expect(77).json()), "failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_verifies_although_a_decision_failed_a_check() {
    let (world, people) = scene().await;
    let phone = world.device("alice", "phone").await;
    let request = asks(&phone).await;
    people[0].add_device(&request).await.unwrap();
    people[0].share_enforcers().await.unwrap();
    let (ran_in, ran) = path(&world, "ran");
    let (_, saved) = path(&world, "receipt.json");
    let from = ["--approvals", "2", "--from", "alice,bob", "--save", &saved];
    let run = [&["run"], &from[..], &["--", "touch", &ran]].concat();
    let deciding = async {
        decide(&phone, &choice(Verdict::Approve)).await;
        // The enforcer has counted it by now, or does so before it counts that of bob.
        sleep(Duration::from_secs(1)).await;
        people[0].revoke_device(phone.device_id()).await.unwrap();
        decide(&people[1], &choice(Verdict::Approve)).await;
    };
    let (ended, ()) = tokio::join!(decided(&world, &run, &[]), deciding);
    ended.expect(77);
    assert!(!ran_in.exists());
    let verified = verify(&world, "bot", &[&saved, "--json"]).expect(0).json();
    assert_eq!(verified["outcome"], "denied: untrusted");
    assert_eq!(results(&verified, "complete"), ["absent"]);
    assert_eq!(verified["parts"].as_array().unwrap().len(), 1);
}

/// The gateway stalls the last calls before the command runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_while_the_receipt_is_put_together_denies() {
    let world = ClientScene::start().await;
    let (is_told, is_held) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let holding = Arc::clone(&is_held);
    let slow = Meddler::start(&world.cluster.urls()[0], move |call, gateway| {
        let text = String::from_utf8_lossy(&call.body);
        if call.method == Method::POST && text.contains("\"outcome\":") {
            is_told.store(true, Ordering::SeqCst);
        }
        let holds = call.route() == Route::Devices && is_told.load(Ordering::SeqCst);
        holding.fetch_or(holds, Ordering::SeqCst);
        async move {
            if holds {
                sleep(PATIENCE).await;
            }
            gateway.pass(&call).await
        }
    })
    .await;
    let mut enforcer = world.enforcer_at("bot", vec![slow.url.clone()]).await;
    let people = team(&world, &mut enforcer, &NAMES[..2]).await;
    let (ran_in, ran) = path(&world, "ran");
    let (_, saved) = path(&world, "receipt.json");
    let child = countersign()
        .env("XDG_CONFIG_HOME", world.directory.path())
        .env("COUNTERSIGN_PROFILE", "bot")
        .args(["run", "--approvals", "2", "--save", &saved])
        .args(["--", "touch", &ran])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for person in &people {
        decide(person, &choice(Verdict::Approve)).await;
    }
    until("the receipt is put together", PATIENCE, async || {
        is_held.load(Ordering::SeqCst)
    })
    .await;
    signal(child.id(), Signal::SIGTERM);
    let ended = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap());
    let output = ended.await.unwrap();
    assert_eq!(output.status.code(), Some(143));
    assert!(!ran_in.exists());
}
