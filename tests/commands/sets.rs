//! `run` and `ask` with several people, their receipt, and its verification without a gateway.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use countersign::client::approver::{Approver, ApproverChoice, DeliveryConfirmation};
use countersign::e2e::{DenialCause, OutcomeEffect};
use countersign::protocol::decision::Verdict;
use serde_json::{Value, json};

use super::approver::{Ran, prepared};
use super::enforcer::decide;
use crate::client::people::{ClientScene, PATIENCE, because, choice};
use crate::client::sets::team;
use crate::support::process::{Signal, countersign, signal};
use crate::support::until;

pub const NAMES: [&str; 3] = ["alice", "bob", "carol"];

pub async fn scene() -> (ClientScene, Vec<Approver>) {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let people = team(&world, &mut enforcer, &NAMES).await;
    (world, people)
}

/// Runs a command of the enforcer while these people decide.
pub async fn decided(
    world: &ClientScene,
    arguments: &[&str],
    decisions: &[(&Approver, ApproverChoice)],
) -> Ran {
    let mut command = prepared(world, "bot", arguments);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    for (person, choice) in decisions {
        decide(person, choice).await;
    }
    let ended = tokio::task::spawn_blocking(|| child.unwrap().wait_with_output().unwrap());
    let output = tokio::time::timeout(PATIENCE * 2, ended).await.unwrap();
    output.unwrap().into()
}

pub fn verify(world: &ClientScene, profile: &str, arguments: &[&str]) -> Ran {
    let arguments = [&["verify"], arguments].concat();
    prepared(world, profile, &arguments)
        .output()
        .unwrap()
        .into()
}

pub fn path(world: &ClientScene, name: &str) -> (PathBuf, String) {
    let path = world.directory.path().join(name);
    let text = path.to_str().unwrap().to_owned();
    (path, text)
}

/// The result of one kind of check.
pub fn results<'v>(verified: &'v Value, fact: &str) -> Vec<&'v str> {
    let checks = verified["checks"].as_array().unwrap().iter();
    let checks = checks.filter(|check| check["fact"] == fact);
    checks
        .map(|check| check["result"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_two_of_three_approve_runs_once_and_its_receipt_verifies_offline() {
    let (world, people) = scene().await;
    let (ran_in, ran) = path(&world, "ran");
    let (file, saved) = path(&world, "receipt.json");
    let script = format!("echo once >> {ran}");
    let approve = choice(Verdict::Approve);
    let run = [
        "run",
        "--approvals",
        "2",
        "--save",
        &saved,
        "--",
        "sh",
        "-c",
        &script,
    ];
    let decisions = [
        (&people[0], approve.clone()),
        (&people[2], because(Verdict::Approve, "looks right")),
    ];
    let ended = decided(&world, &run, &decisions).await.expect(0);
    assert!(
        ended.err.contains("approved by alice, carol"),
        "{}",
        ended.err
    );
    assert_eq!(std::fs::read_to_string(&ran_in).unwrap(), "once\n");

    // No gateway is needed from here on, and each profile knows other devices.
    let verified = verify(&world, "bot", &[&saved, "--json"]).expect(0).json();
    assert_eq!(verified["trusted"], true);
    assert_eq!(verified["outcome"], "allowed");
    assert_eq!(verified["parts"][1]["reason"], "looks right");
    for (fact, expected) in [
        ("artifact", vec!["proven"]),
        ("decision", vec!["proven", "proven"]),
        ("device", vec!["proven", "proven"]),
        ("outcome", vec!["proven"]),
        ("count", vec!["proven"]),
        ("asked", vec!["absent"]),
    ] {
        assert_eq!(results(&verified, fact), expected, "{fact}");
    }
    let shown = verify(&world, "bot", &[&saved]).expect(0).out;
    for expected in [
        "allowed by bot",
        "One of 2 approvals, from alice, bob and carol; one rejection ends it.",
        "alice approved\n",
        "carol approved: “looks right”",
        "proven      The decisions, counted by the rule, lead to the outcome.",
        "not proven  An agent's machine asked: no approver made up",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    let half = verify(&world, "alice", &[&saved, "--json"])
        .expect(77)
        .json();
    assert_eq!(results(&half, "device"), ["proven", "absent"]);
    assert_eq!(results(&half, "count"), ["absent"]);

    let device = |place: usize| people[place].device_id().to_string();
    let (alice, carol) = (
        format!("alice={}", device(0)),
        format!("carol={}", device(2)),
    );
    let named = [saved.as_str(), "--device", &alice, "--device", &carol];
    verify(&world, "nobody", &named).expect(0);
    verify(&world, "nobody", &[&saved, "--device", &alice]).expect(77);
    let swapped = (
        format!("carol={}", device(0)),
        format!("alice={}", device(2)),
    );
    let swapped = [
        saved.as_str(),
        "--device",
        &swapped.0,
        "--device",
        &swapped.1,
    ];
    verify(&world, "nobody", &swapped).expect(77);
    let bare = verify(&world, "nobody", &[&saved, "--device", &device(0)]).expect(64);
    assert!(bare.err.contains("alice=ID"), "{}", bare.err);

    let receipt: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let artifact = receipt["artifact"].as_str().unwrap();
    let lowered = artifact.replace("\"approvals\":2", "\"approvals\":1");
    let renamed = artifact.replace("echo once", "echo more");
    assert!(lowered != artifact && renamed != artifact);
    for (name, pointer, lie) in [
        ("a lower number", "/artifact", json!(lowered)),
        ("another command", "/artifact", json!(renamed)),
        ("another person", "/parts/1/approverId", json!("bob")),
        (
            "one decision for two",
            "/parts/1/decision",
            receipt["parts"][0]["decision"].clone(),
        ),
        ("another enforcer", "/enforcerId", json!("other")),
        ("no outcome", "/outcome", Value::Null),
        ("a part is missing", "/parts", json!([receipt["parts"][0]])),
    ] {
        let mut edited = receipt.clone();
        *edited.pointer_mut(pointer).unwrap() = lie.clone();
        if lie.is_null() {
            edited.as_object_mut().unwrap().remove("outcome");
        }
        let (file, text) = path(&world, "edited.json");
        std::fs::write(&file, edited.to_string()).unwrap();
        let refused = verify(&world, "bot", &[&text, "--json"]);
        assert_eq!(refused.code, 77, "{name}: {}", refused.err);
        assert_eq!(refused.json()["trusted"], false, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_somebody_rejects_does_not_run_and_the_receipt_says_so() {
    let (world, people) = scene().await;
    let (ran_in, ran) = path(&world, "ran");
    let (_, saved) = path(&world, "receipt.json");
    let from = ["--approvals", "2", "--from", "alice,bob", "--save", &saved];
    let run = [&["run"], &from[..], &["--", "touch", &ran]].concat();
    let decisions = [
        (&people[0], choice(Verdict::Approve)),
        (&people[1], because(Verdict::Reject, "not today")),
    ];
    let ended = decided(&world, &run, &decisions).await.expect(77);
    assert!(
        ended.err.contains("bob rejected it: not today"),
        "{}",
        ended.err
    );
    assert!(!ran_in.exists());
    let verified = verify(&world, "bot", &[&saved, "--json"]).expect(0).json();
    assert_eq!(verified["outcome"], "denied: rejected");
    assert_eq!(results(&verified, "count"), ["proven"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_for_which_too_few_can_be_asked_is_denied_at_once() {
    let (world, people) = scene().await;
    let (ran_in, ran) = path(&world, "ran");
    let (_, taken) = path(&world, "taken.json");
    std::fs::write(&taken, "").unwrap();
    let touch = ["--", "touch", &ran];
    let guard = ["--guard", "nobody:/nowhere", "--approvals", "1"];
    for (options, code, expected) in [
        (
            &["--approvals", "4"][..],
            77,
            "it needs 4 approvals and lacks 4",
        ),
        (
            &["--approvals", "2", "--from", "alice,dave"],
            77,
            "dave: not paired",
        ),
        (
            &["--approvals", "2", "--from", "alice,alice"],
            77,
            "lacks 2",
        ),
        (
            &["--approvals", "1", "--from", "alice,"],
            77,
            "ids of approvers",
        ),
        (
            &["--approvals", "2", "--save", &taken],
            77,
            "already exists",
        ),
        (&guard, 77, "guard"),
        (&["--approvals", "0"], 2, "--approvals"),
        (&["--from", "alice"], 2, "--approvals"),
        (
            &["--approvals", "2", "--approver", "alice"],
            2,
            "--approver",
        ),
    ] {
        let arguments = [&["run"], options, &touch].concat();
        let ended = decided(&world, &arguments, &[]).await;
        assert_eq!(ended.code, code, "{options:?}: {}", ended.err);
        assert!(ended.err.contains(expected), "{options:?}: {}", ended.err);
    }
    assert!(!ran_in.exists());
    assert!(
        people[0].find("").await.unwrap().is_empty(),
        "nobody was asked"
    );
    // Without a profile nothing is asked either.
    let mut alone = countersign();
    alone.env("XDG_CONFIG_HOME", world.directory.path().join("empty"));
    let output = alone.args(["run", "--approvals", "1"]).args(touch).output();
    assert_eq!(output.unwrap().status.code(), Some(77));
}

#[tokio::test(flavor = "multi_thread")]
async fn asking_prints_every_approval_and_the_terminal_shows_the_rule() {
    let (world, people) = scene().await;
    let (file, plan) = path(&world, "plan.md");
    std::fs::write(&file, "Release it.").unwrap();
    let ask = ["ask", "--approvals", "2", &plan];
    let asking = decided(&world, &ask, &[]);
    let deciding = async {
        decide(&people[0], &choice(Verdict::Approve)).await;
        let shown: Ran = prepared(&world, "bob", &["show"]).output().unwrap().into();
        let rule = "One of 2 approvals, from alice, bob and carol; one rejection ends it.";
        assert!(shown.out.contains(rule), "{}", shown.out);
        assert!(!shown.out.contains("countersign.rule"), "{}", shown.out);
        decide(&people[1], &because(Verdict::Approve, "good")).await;
    };
    let (asked, ()) = tokio::join!(asking, deciding);
    let printed = asked.expect(0).json();
    assert_eq!(printed["outcome"], "approved");
    assert_eq!(printed["approvals"][0]["approverId"], "alice");
    assert_eq!(printed["approvals"][1]["reason"], "good");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_withdraws_every_request_and_those_who_decided_are_told() {
    let (world, people) = scene().await;
    let mut command = countersign();
    let child = command
        .env("XDG_CONFIG_HOME", world.directory.path())
        .env("COUNTERSIGN_PROFILE", "bot")
        .args(["run", "--approvals", "2", "--", "true"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("one request waits", PATIENCE, async || {
        people[0].find("").await.unwrap().len() == 1
    })
    .await;
    let item = people[0].find("").await.unwrap().remove(0);
    let approve = choice(Verdict::Approve);
    let decided = people[0].decide(&item, &approve).await.unwrap();
    // By then the decision has arrived.
    tokio::time::sleep(Duration::from_secs(1)).await;
    signal(child.id(), Signal::SIGTERM);
    let ended = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap());
    let output = ended.await.unwrap();
    assert_eq!(output.status.code(), Some(143));
    assert!(String::from_utf8_lossy(&output.stderr).contains("withdrawn"));
    assert!(people[1].find("").await.unwrap().is_empty());
    let told = people[0].delivered(&item, &decided, PATIENCE).await;
    let interrupted = OutcomeEffect::Denied(DenialCause::Interrupted);
    assert_eq!(told.unwrap(), DeliveryConfirmation::ByEnforcer(interrupted));
}
