//! The enforcer's commands as processes: what runs, what does not, and how that is told.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use countersign::client::approver::{Approver, ApproverChoice};
use countersign::client::profile::{Profile, ProfileError};
use countersign::protocol::decision::Verdict;
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;

use crate::client::people::{ClientScene, PATIENCE, because, choice, pair};
use crate::support::process::{Signal, countersign, signal};
use crate::support::{Cluster, until};

struct Ran {
    code: i32,
    out: String,
    err: String,
}

/// An enforcer that is paired with alice, and her laptop.
pub async fn paired(cluster: Cluster) -> (ClientScene, Approver) {
    let world = ClientScene::with(cluster);
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    (world, alice)
}

fn command(world: &ClientScene, arguments: &[&str]) -> Command {
    let mut command = countersign();
    command
        .env("XDG_CONFIG_HOME", world.directory.path())
        .env("COUNTERSIGN_PROFILE", "bot")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Waits for its end, without blocking the cluster that runs in this process.
async fn end(child: Child) -> Ran {
    let ended = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap());
    let output = tokio::time::timeout(PATIENCE * 2, ended).await.unwrap();
    let output = output.unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Decides the only request, once it is there.
pub async fn decide(approver: &Approver, choice: &ApproverChoice) -> Value {
    until("one request waits", PATIENCE, async || {
        approver.find("").await.unwrap().len() == 1
    })
    .await;
    let item = approver.find("").await.unwrap().remove(0);
    approver.decide(&item, choice).await.unwrap();
    let opened = item.content.as_ref().unwrap();
    serde_json::from_str(opened.artifact().text()).unwrap()
}

fn marker(world: &ClientScene) -> PathBuf {
    world.directory.path().join("it-ran")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_command_has_this_process_to_itself() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let script = "read line; echo \"out: $line $0\"; echo err >&2; kill -TERM $$";
    let mut child = command(&world, &["run", "--quiet", "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let input = child.stdin.take().unwrap();
    let mut input = tokio::process::ChildStdin::from_std(input).unwrap();
    let artifact = decide(&alice, &choice(Verdict::Approve)).await;
    let payload = &artifact["payload"];
    assert_eq!(payload["argv"], serde_json::json!(["sh", "-c", script]));
    assert_eq!(payload["program"], "/usr/bin/sh");
    let here = std::env::current_dir().unwrap();
    assert_eq!(payload["directory"], here.to_str().unwrap());
    input.write_all(b"typed later\n").await.unwrap();
    let ended = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap());
    let output = ended.await.unwrap();
    assert_eq!(output.stdout, b"out: typed later sh\n");
    assert_eq!(output.stderr, b"err\n");
    assert_eq!(output.status.signal(), Some(Signal::SIGTERM as i32));
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_statuses_are_those_of_the_command() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    for status in ["0", "3", "77"] {
        let line = format!("exit {status}");
        let child = command(&world, &["run", "--", "sh", "-c", &line])
            .spawn()
            .unwrap();
        decide(&alice, &choice(Verdict::Approve)).await;
        let ran = end(child).await;
        assert_eq!(ran.code.to_string(), status, "{}", ran.err);
        assert!(ran.err.contains("approved by alice"), "{}", ran.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_command_does_not_run_and_the_reason_is_told() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let marker = marker(&world);
    let touch = ["run", "--", "touch", marker.to_str().unwrap()];
    let child = command(&world, &touch).spawn().unwrap();
    decide(
        &alice,
        &because(Verdict::Reject, "Not on a Friday.\u{1b}[2J"),
    )
    .await;
    let ran = end(child).await;
    assert_eq!((ran.code, ran.out.as_str()), (77, ""));
    let expected = r"countersign: denied: alice rejected it: Not on a Friday.\u{1b}[2J";
    assert!(ran.err.contains(expected), "{}", ran.err);
    assert!(!marker.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_decision_in_time_nothing_runs() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let marker = marker(&world);
    let marker_text = marker.to_str().unwrap();
    let begun = Instant::now();
    let child = command(
        &world,
        &["run", "--timeout", "2s", "--", "touch", marker_text],
    );
    let ran = end({ child }.spawn().unwrap()).await;
    assert_eq!(ran.code, 77, "{}", ran.err);
    assert!(ran.err.contains("denied: "), "{}", ran.err);
    assert!(begun.elapsed() >= Duration::from_secs(2));
    let asked = command(&world, &["ask", "--timeout", "1s"])
        .spawn()
        .unwrap();
    let ran = end(asked).await;
    assert_eq!(ran.code, 75, "{}", ran.err);
    assert!(!marker.exists());
    drop(alice);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_gateway_nothing_runs_and_that_is_said() {
    let (world, _alice) = paired(Cluster::start(1).await).await;
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", nowhere.local_addr().unwrap());
    drop(nowhere);
    world
        .file("bot")
        .update(|profile: &mut Profile| {
            profile.enforcer.as_mut().unwrap().gateway.urls = vec![url.clone()];
            Ok::<_, ProfileError>(())
        })
        .unwrap();
    let marker = marker(&world);
    let touch = [
        "run",
        "--timeout",
        "3s",
        "--",
        "touch",
        marker.to_str().unwrap(),
    ];
    let begun = Instant::now();
    let ran = end(command(&world, &touch).spawn().unwrap()).await;
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(ran.code, 77);
    assert!(
        ran.err.contains(&url) && ran.err.contains("cannot be reached"),
        "{}",
        ran.err
    );
    let ran = end(command(&world, &["ask", "--timeout", "2s", "/dev/null"])
        .spawn()
        .unwrap())
    .await;
    assert_eq!(ran.code, 69, "{}", ran.err);
    assert!(!marker.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_before_the_decision_withdraw_the_request() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    for (sent, code) in [
        (Signal::SIGINT, 130),
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 129),
    ] {
        let child = command(&world, &["run", "--", "true"]).spawn().unwrap();
        until("it waits", PATIENCE, async || {
            alice.find("").await.unwrap().len() == 1
        })
        .await;
        signal(child.id(), sent);
        let ran = end(child).await;
        assert_eq!(ran.code, code, "{}", ran.err);
        assert!(ran.err.contains("withdrawn"), "{}", ran.err);
        assert!(alice.find("").await.unwrap().is_empty());
    }
}

/// Two nodes. Alice stays on the second one, and the command waits on the first.
async fn waiting_on_the_first_of_two(arguments: &[&str]) -> (ClientScene, Approver, Child) {
    let (world, _) = paired(Cluster::start(2).await).await;
    let second = vec![world.cluster.urls()[1].clone()];
    let alice = world.through("laptop", second);
    let child = command(&world, arguments).spawn().unwrap();
    until("it waits", PATIENCE, async || {
        alice.find("").await.unwrap().len() == 1
    })
    .await;
    (world, alice, child)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_survives_the_node_it_waits_on() {
    let arguments = ["run", "--", "echo", "still here"];
    let (mut world, alice, child) = waiting_on_the_first_of_two(&arguments).await;
    world.cluster.nodes.remove(0).stop().await;
    decide(&alice, &choice(Verdict::Approve)).await;
    let ran = end(child).await;
    let expected = (0, "still here\n");
    assert_eq!((ran.code, ran.out.as_str()), expected, "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_survives_a_machine_that_slept_while_its_connection_broke() {
    let arguments = ["run", "--", "echo", "awake"];
    let (mut world, alice, child) = waiting_on_the_first_of_two(&arguments).await;
    signal(child.id(), Signal::SIGSTOP);
    world.cluster.nodes.remove(0).stop().await;
    decide(&alice, &choice(Verdict::Approve)).await;
    signal(child.id(), Signal::SIGCONT);
    let ran = end(child).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "awake\n"), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_run_is_not_asked_about() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let plain = world.directory.path().join("plain");
    std::fs::write(&plain, "no program").unwrap();
    for (program, code) in [
        ("no-such-program", 127),
        ("./no/such", 127),
        (plain.to_str().unwrap(), 126),
    ] {
        let ran = end(command(&world, &["run", "--", program]).spawn().unwrap()).await;
        assert_eq!(ran.code, code, "{}", ran.err);
        assert!(ran.err.contains(program), "{}", ran.err);
    }
    let mut unreadable = command(&world, &["run", "--", "echo"]);
    unreadable.arg(std::ffi::OsStr::from_bytes(b"\xff"));
    let ran = end(unreadable.spawn().unwrap()).await;
    assert_eq!(ran.code, 77);
    assert!(ran.err.contains("UTF-8"), "{}", ran.err);
    assert!(alice.find("").await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_is_missing_or_damaged_denies() {
    let (world, _alice) = paired(Cluster::start(1).await).await;
    let marker = marker(&world);
    let touch = ["run", "--", "touch", marker.to_str().unwrap()];
    let missing = command(&world, &touch)
        .env("COUNTERSIGN_PROFILE", "none")
        .spawn();
    let ran = end(missing.unwrap()).await;
    assert_eq!(ran.code, 77);
    assert!(ran.err.contains("none.toml"), "{}", ran.err);
    std::fs::write(world.file("bot").path(), "[enforcer]\nid = 7").unwrap();
    let ran = end(command(&world, &touch).spawn().unwrap()).await;
    assert_eq!(ran.code, 77);
    assert!(ran.err.contains("damaged"), "{}", ran.err);
    // Without a terminal there is no pairing on the way.
    world.enforcer("alone").await;
    let alone = command(&world, &touch)
        .env("COUNTERSIGN_PROFILE", "alone")
        .spawn();
    let ran = end(alone.unwrap()).await;
    assert_eq!(ran.code, 77);
    assert!(ran.err.contains("countersign pair"), "{}", ran.err);
    assert!(!marker.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pairing_that_another_program_ends_denies_at_once() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let child = command(&world, &["run", "--", "true"]).spawn().unwrap();
    until("it waits", PATIENCE, async || {
        alice.find("").await.unwrap().len() == 1
    })
    .await;
    // Only in the profile, so that the gateway still takes the decision.
    (world.file("bot"))
        .update(|profile: &mut Profile| {
            profile.enforcer.as_mut().unwrap().approvers.clear();
            Ok::<_, ProfileError>(())
        })
        .unwrap();
    decide(&alice, &choice(Verdict::Approve)).await;
    let ran = end(child).await;
    assert_eq!(ran.code, 77, "{}", ran.err);
    assert!(ran.err.contains("is not known here"), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_printed_for_programs_and_can_be_verified_later() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let file = world.directory.path().join("record.json");
    let plan = world.directory.path().join("plan.md");
    std::fs::write(&plan, "# Plan\n\nShip it.\n").unwrap();
    let arguments = [
        "ask",
        "--action",
        "approve:now:Now",
        "--action",
        "reject:never:Never",
        "--save",
        file.to_str().unwrap(),
        plan.to_str().unwrap(),
    ];
    let child = command(&world, &arguments).spawn().unwrap();
    let mut now = because(Verdict::Approve, "Fine.");
    now.hints.action_id = Some("now".to_owned());
    let artifact = decide(&alice, &now).await;
    assert_eq!(artifact["artifactType"], "plan.review");
    assert_eq!(artifact["payload"]["text"], "# Plan\n\nShip it.\n");
    let ran = end(child).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let printed: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(printed["outcome"], "approved");
    assert_eq!(printed["requestId"], artifact["requestId"]);
    assert_eq!(printed["actionId"], "now");
    assert_eq!(printed["reason"], "Fine.");
    assert_eq!(printed["decision"]["decision"], "approve");
    let ran = end(command(&world, &["verify", file.to_str().unwrap()])
        .spawn()
        .unwrap())
    .await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.out.contains("laptop") && ran.out.contains("Ship it."),
        "{}",
        ran.out
    );

    let child = command(&world, &["ask", "--json", plan.to_str().unwrap()])
        .spawn()
        .unwrap();
    decide(&alice, &because(Verdict::Reject, "No.")).await;
    let ran = end(child).await;
    assert_eq!(ran.code, 77);
    let printed: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&printed["outcome"], &printed["cause"]),
        (&"denied".into(), &"rejected".into())
    );
    assert_eq!(printed["reason"], "No.");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_each_get_their_own_answer() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let children: Vec<_> = (0..12)
        .map(|number| {
            let line = format!("echo number {number}");
            command(&world, &["run", "--", "sh", "-c", &line])
                .spawn()
                .unwrap()
        })
        .collect();
    until("all wait", PATIENCE, async || {
        alice.find("").await.unwrap().len() == 12
    })
    .await;
    for item in alice.find("").await.unwrap() {
        let text = item.content.as_ref().unwrap().artifact().text().to_owned();
        let number: usize = (0..12)
            .rev()
            .find(|n| text.contains(&format!("number {n}\"")))
            .unwrap();
        let verdict = if number.is_multiple_of(2) {
            Verdict::Approve
        } else {
            Verdict::Reject
        };
        alice.decide(&item, &choice(verdict)).await.unwrap();
    }
    for (number, child) in children.into_iter().enumerate() {
        let ran = end(child).await;
        let expected = match number % 2 {
            0 => (0, format!("number {number}\n")),
            _ => (77, String::new()),
        };
        assert_eq!((ran.code, ran.out), expected, "{}", ran.err);
    }
}

#[test]
fn a_label_that_nobody_could_read_is_refused_before_anyone_is_asked() {
    let long = "x".repeat(257);
    for label in ["", " ", "a\u{200b}b", &long] {
        let output = countersign().args(["pair", "--label", label]).output();
        let output = output.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{label:?}: {said}");
        assert!(
            said.contains("1 to 256 visible characters"),
            "{label:?}: {said}"
        );
    }
}

#[test]
fn every_command_has_help() {
    for name in [
        "run", "ask", "mcp", "pair", "join", "inbox", "show", "approve", "reject", "devices",
        "verify",
    ] {
        let output = countersign().args([name, "--help"]).output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        assert!(help.contains("Example"), "{name}: {help}");
    }
}
