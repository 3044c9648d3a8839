//! `[receipts]` of the policy: a receipt of every decided request, whoever asks, and what happens if
//! it cannot be written.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use countersign::client::approver::{Approver, DeliveryConfirmation};
use countersign::e2e::{DenialCause, OutcomeEffect};
use countersign::protocol::decision::Verdict;
use serde_json::{Value, json};

use super::approver::{Ran, prepared};
use super::enforcer::decide;
use super::guard::{own_name, socket, start_guard};
use super::mcp::agent::Agent;
use super::rules::policy;
use super::sets::{decided, path, results, scene, verify};
use crate::client::people::{ClientScene, PATIENCE, because, choice};
use crate::support::until;

/// The receipts, in the order of their names.
fn kept(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn wants(world: &ClientScene, directory: &Path, more: &str) {
    let directory = directory.display();
    policy(
        world,
        &format!("[receipts]\ndirectory = \"{directory}\"\n{more}\n"),
    );
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn hook(world: &ClientScene) -> Command {
    let mut command = prepared(world, "bot", &["hook", "claude"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs the hook about a command, while this person decides.
async fn hooked(mut hook: Command, world: &ClientScene, person: &Approver) -> Ran {
    let mut child = hook.spawn().unwrap();
    let input = json!({
        "session_id": "s-1", "cwd": world.directory.path(), "hook_event_name": "PreToolUse",
        "tool_name": "Bash", "tool_input": { "command": "make hooked" },
    });
    let mut writer = child.stdin.take().unwrap();
    writer.write_all(input.to_string().as_bytes()).unwrap();
    drop(writer);
    decide(person, &choice(Verdict::Approve)).await;
    let ended = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap());
    ended.await.unwrap().into()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_decided_request_leaves_a_receipt_whoever_asked() {
    let (world, people) = scene().await;
    let (directory, _) = path(&world, "kept/receipts");
    wants(&world, &directory, "required = true");
    let approve = || [(&people[0], choice(Verdict::Approve))];
    let mut known = Vec::new();
    let mut is_kept = |name: &str| {
        let now = kept(&directory);
        assert_eq!(now.len(), known.len() + 1, "{name}");
        assert_eq!(now[..known.len()], known, "{name}: the last one is new");
        known = now;
        let file = known.last().unwrap();
        assert_eq!(fs::metadata(file).unwrap().mode() & 0o777, 0o600, "{name}");
        let saved = file.to_str().unwrap().to_owned();
        let named = read(file)["parts"][0]["requestId"].clone();
        assert_eq!(file.extension().unwrap(), "json", "{saved}");
        (saved, named)
    };

    let run = ["run", "--", "echo", "of run"];
    decided(&world, &run, &approve()).await.expect(0);
    let (saved, id) = is_kept("run");
    assert!(saved.contains(id.as_str().unwrap()), "{saved}");
    let mode = fs::metadata(&directory).unwrap().mode();
    assert_eq!(mode & 0o777, 0o700);
    let shown = verify(&world, "bot", &[&saved, "--json"]).expect(0).json();
    assert_eq!(shown["outcome"], "allowed");
    assert_eq!(shown["approverIds"], json!(["alice"]));

    let (plan, text) = path(&world, "plan.md");
    fs::write(plan, "Release it.").unwrap();
    decided(&world, &["ask", &text], &approve()).await.expect(0);
    verify(&world, "bot", &[&is_kept("ask").0]).expect(0);

    hooked(hook(&world), &world, &people[0]).await.expect(0);
    let (saved, _) = is_kept("hook");
    let shown = verify(&world, "bot", &[&saved]).expect(0).out;
    assert!(shown.contains("make hooked"), "{shown}");

    let mut agent = Agent::start(&world).await;
    let plan = json!({ "type": "plan", "text": "Ship it." });
    let asked = agent.begin_call("request_approval", plan).await;
    decide(&people[1], &choice(Verdict::Approve)).await;
    assert_eq!(agent.outcome(asked).await["outcome"], "approved");
    verify(&world, "bot", &[&is_kept("MCP").0]).expect(0);

    let _guard = start_guard(&world, &own_name());
    let address = format!("{}:{}", own_name(), socket(&world).display());
    let run = ["run", "--guard", &address, "--", "true"];
    decided(&world, &run, &approve()).await.expect(0);
    verify(&world, "bot", &[&is_kept("guard").0]).expect(0);

    let run = ["run", "--approvals", "2", "--", "true"];
    let both = [&people[0], &people[2]].map(|person| (person, choice(Verdict::Approve)));
    decided(&world, &run, &both).await.expect(0);
    let demands = ["--approvals", "2", "--from", "alice,carol"];
    let saved = is_kept("two people").0;
    verify(&world, "bot", &[&[saved.as_str()], &demands[..]].concat()).expect(0);

    // Rejections too. A rejection does not prove the outcome.
    let rejected = [(&people[0], because(Verdict::Reject, "No."))];
    let run = ["run", "--", "true"];
    decided(&world, &run, &rejected).await.expect(77);
    let shown = verify(&world, "bot", &[&is_kept("rejection").0, "--json"]);
    let shown = shown.expect(77).json();
    assert_eq!(shown["parts"][0]["reason"], "No.");
    // Without a decision there is nothing to prove.
    let run = ["run", "--timeout", "1s", "--", "true"];
    assert_ne!(decided(&world, &run, &[]).await.code, 0);
    assert_eq!(kept(&directory), known);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_request_a_receipt_proves_the_decisions_alone_and_shows_no_text() {
    let (world, people) = scene().await;
    let (directory, _) = path(&world, "receipts");
    wants(&world, &directory, "artifact = false");
    let secret = because(Verdict::Approve, "about the zebra");
    let run = ["run", "--approvals", "2", "--", "echo", "zebra"];
    let both = [&people[0], &people[1]].map(|person| (person, secret.clone()));
    decided(&world, &run, &both).await.expect(0);
    let file = kept(&directory).remove(0);
    let text = fs::read_to_string(&file).unwrap();
    for hidden in ["zebra", "hintsKey", "asks", "\"artifact\""] {
        assert!(!text.contains(hidden), "{hidden}: {text}");
    }
    let saved = file.to_str().unwrap();
    let said = verify(&world, "bot", &[saved]).expect(77).err;
    assert!(said.contains("only its decisions are proven"), "{said}");
    let shown = verify(&world, "bot", &[saved, "--json"]).expect(77).json();
    for (fact, expected) in [
        ("artifact", vec!["absent"]),
        ("decision", vec!["proven", "proven"]),
        ("device", vec!["proven", "proven"]),
        ("hints", vec!["absent", "absent"]),
        ("outcome", vec!["absent"]),
        ("count", vec!["absent"]),
    ] {
        assert_eq!(results(&shown, fact), expected, "{fact}");
    }
    // A false decision is no less false for it.
    let mut edited = read(&file);
    edited["parts"][0]["approverId"] = json!("carol");
    fs::write(&file, edited.to_string()).unwrap();
    let ended = verify(&world, "bot", &[saved]).expect(77);
    assert!(ended.err.contains("does not prove"), "{}", ended.err);
}

/// Directories in which nothing can be written, also not by root.
fn bad_directories(world: &ClientScene) -> Vec<(&'static str, PathBuf)> {
    let place = |name: &str| world.directory.path().join(name);
    fs::create_dir(place("real")).unwrap();
    symlink(place("real"), place("link")).unwrap();
    fs::write(place("file"), "").unwrap();
    fs::create_dir(place("open")).unwrap();
    fs::set_permissions(place("open"), fs::Permissions::from_mode(0o777)).unwrap();
    vec![
        ("a symbolic link", place("link")),
        ("it is a file", place("file")),
        ("below a file", place("file/receipts")),
        ("others can write in it", place("open")),
        ("it cannot be made", PathBuf::from("/proc/receipts")),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_that_cannot_be_written_denies_if_it_is_required_and_is_told_if_not() {
    let (world, people) = scene().await;
    let (ran_in, ran) = path(&world, "ran");
    let approve = choice(Verdict::Approve);
    let both = [&people[0], &people[1]].map(|person| (person, approve.clone()));
    for (name, directory) in bad_directories(&world) {
        for (options, decisions) in [
            (&[][..], &both[..1]),
            (&["--approvals", "2", "--from", "alice,bob"], &both),
        ] {
            let run = [&["run"], options, &["--", "touch", &ran]].concat();
            wants(&world, &directory, "required = true");
            let denied = decided(&world, &run, decisions).await.expect(77).err;
            assert!(denied.contains("receipt was not saved"), "{name}: {denied}");
            assert!(!ran_in.exists(), "{name}");
            wants(&world, &directory, "");
            let told = decided(&world, &run, decisions).await.expect(0).err;
            assert!(told.contains("receipt was not saved"), "{name}: {told}");
            fs::remove_file(&ran_in).unwrap();
        }
    }
    let real = world.directory.path().join("real");
    assert_eq!(kept(&real), Vec::<PathBuf>::new(), "not through the link");

    // Hooks and MCP, and the people are told.
    let link = world.directory.path().join("link");
    wants(&world, &link, "required = true");
    let ended = hooked(hook(&world), &world, &people[0]).await.expect(2);
    assert!(ended.out.contains("receipt was not saved"), "{}", ended.out);
    let mut agent = Agent::start(&world).await;
    let plan = json!({ "type": "plan", "text": "Ship it." });
    let asked = agent.begin_call("request_approval", plan).await;
    until("one request waits", PATIENCE, async || {
        people[0].find("").await.unwrap().len() == 1
    })
    .await;
    let item = people[0].find("").await.unwrap().remove(0);
    let decision = people[0].decide(&item, &approve).await.unwrap();
    let outcome = agent.outcome(asked).await;
    assert_eq!(
        (&outcome["outcome"], &outcome["cause"]),
        (&json!("denied"), &json!("receipt"))
    );
    let confirmed = people[0].delivered(&item, &decision, PATIENCE).await;
    let interrupted = OutcomeEffect::Denied(DenialCause::Interrupted);
    assert_eq!(
        confirmed.unwrap(),
        DeliveryConfirmation::ByEnforcer(interrupted)
    );
    wants(&world, &link, "");
    let ended = hooked(hook(&world), &world, &people[0]).await.expect(0);
    assert!(ended.err.contains("receipt was not saved"), "{}", ended.err);
}

/// No file can have more than 16 KiB, and the request has more.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_denies_and_leaves_no_part_of_a_receipt() {
    let (world, people) = scene().await;
    let (directory, _) = path(&world, "receipts");
    let (ran_in, ran) = path(&world, "ran");
    let long = "x".repeat(40_000);
    let script = format!("touch {ran}");
    let run = ["run", "--", "sh", "-c", &script, &long];
    for (more, code) in [("required = true", 77), ("", 0)] {
        wants(&world, &directory, more);
        let whole = prepared(&world, "bot", &run);
        let mut limited = Command::new("sh");
        for (name, value) in whole.get_envs() {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        }
        limited
            .args(["-c", "trap '' XFSZ; ulimit -f 32; exec \"$0\" \"$@\""])
            .arg(whole.get_program())
            .args(whole.get_args())
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        let child = limited.spawn().unwrap();
        decide(&people[0], &choice(Verdict::Approve)).await;
        let ended = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap());
        let output = ended.await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains("File too large"), "{said}");
        assert_eq!(ran_in.exists(), code == 0);
        assert_eq!(kept(&directory), Vec::<PathBuf>::new());
    }
}
