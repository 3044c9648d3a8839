//! The approver's commands as processes: what they print, for people and for programs, and how they
//! end.

mod notifications;
mod passphrase;
mod people;
mod second;
mod shown;

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};

use serde_json::{Map, Value};

use crate::client::people::{Asking, ClientScene, ask, command, pair, question, refusing};
use crate::support::process::countersign;

pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|_| panic!("JSON: {} {}", self.out, self.err))
    }

    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.out, self.err);
        self
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("an exit status"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Without a controlling terminal, wherever the tests run.
pub fn prepared(world: &ClientScene, profile: &str, arguments: &[&str]) -> Command {
    let program = countersign();
    let mut command = Command::new("setsid");
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .env("XDG_CONFIG_HOME", world.directory.path())
        .env("COUNTERSIGN_PROFILE", profile)
        .arg(program.get_program())
        .args(arguments)
        .stdin(Stdio::null());
    command
}

pub fn run(world: &ClientScene, profile: &str, arguments: &[&str]) -> Ran {
    prepared(world, profile, arguments).output().unwrap().into()
}

/// A command that an enforcer asks alice about, on her laptop.
async fn asked(payload: Map<String, Value>) -> (ClientScene, Asking) {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    let asking = ask(enforcer, question(payload), &alice).await;
    (world, asking)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inbox_is_listed_shown_approved_saved_and_verified() {
    let (world, asking) = asked(command(&["git", "commit", "-m", "it's done"])).await;
    let listed = run(&world, "laptop", &["inbox"]).expect(0);
    let short = &asking.request_id[asking.request_id.len() - 8..];
    assert!(
        listed.out.starts_with(&format!("{short}  ")),
        "{}",
        listed.out
    );
    assert!(
        listed.out.contains(r"git commit -m 'it'\''s done'"),
        "{}",
        listed.out
    );
    assert!(listed.out.contains("bot (build machine)"), "{}", listed.out);
    let listed = run(&world, "laptop", &["inbox", "--json"]).expect(0).json();
    assert_eq!(listed[0]["requestId"], asking.request_id.as_str());
    assert_eq!(listed[0]["artifact"]["payload"]["argv"][1], "commit");

    let shown = run(&world, "laptop", &["show", &asking.request_id])
        .expect(0)
        .out;
    for expected in [
        "in /work",
        "program /usr/bin/git",
        r"git commit -m 'it'\''s done'",
        "repo:acme/widgets",
    ] {
        assert!(shown.contains(expected), "{expected} in {shown}");
    }
    assert!(!shown.contains("countersign.salt"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "no colour without a terminal");

    let file = world.directory.path().join("decision.json");
    let file = file.to_str().unwrap();
    let refused = run(&world, "laptop", &["approve"]).expect(64);
    assert!(refused.err.contains("terminal"), "{}", refused.err);
    let done = run(
        &world,
        "laptop",
        &[
            "approve",
            &asking.request_id,
            "--reason",
            "go on",
            "--save",
            file,
            "--json",
            "--wait",
            "20s",
        ],
    );
    let done = done.expect(0).json();
    assert_eq!(done["decision"], "approve");
    assert_eq!(done["state"], "delivered");
    let accepted = asking.end().await.1.unwrap();
    assert_eq!(accepted.approval.hints.reason.as_deref(), Some("go on"));
    let mode = std::fs::metadata(file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it has the artifact in plain");

    // Its own device, the enforcer that pinned it, and a device that is told the id trust it; a
    // stranger does not.
    let verified = run(&world, "laptop", &["verify", file]).expect(0).out;
    assert!(
        verified.contains("approved by alice on laptop"),
        "{verified}"
    );
    assert!(verified.contains("git commit"), "{verified}");
    let verified = run(&world, "bot", &["verify", file, "--json"])
        .expect(0)
        .json();
    assert_eq!(verified["trusted"], true);
    assert_eq!(verified["artifact"]["payload"]["argv"][0], "git");
    let id = verified["deviceId"].as_str().unwrap();
    run(&world, "nobody", &["verify", file, "--device", id]).expect(0);
    let stranger = run(&world, "nobody", &["verify", file]).expect(77);
    assert!(stranger.err.contains("not trusted"), "{}", stranger.err);
    run(
        &world,
        "nobody",
        &["verify", file, "--device", "AAAAAAAAAAAAAAAAAAAAAA"],
    )
    .expect(77);
    let whole = std::fs::read_to_string(file).unwrap();
    std::fs::write(file, whole.replace("approve\\\"", "reject\\\"")).unwrap();
    let changed = run(&world, "laptop", &["verify", file, "--json"])
        .expect(77)
        .json();
    assert_eq!(changed["trusted"], false);
    std::fs::write(file, "{}").unwrap();
    run(&world, "laptop", &["verify", file]).expect(65);
    std::fs::write(file, "not JSON \u{1b}[2J").unwrap();
    let malformed = run(&world, "laptop", &["verify", file]).expect(65);
    assert!(!malformed.err.contains('\u{1b}'), "{:?}", malformed.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_without_a_match_or_twice_says_so() {
    let (world, asking) = asked(command(&["git", "push"])).await;
    let missing = run(&world, "laptop", &["reject", "no-such-id"]).expect(77);
    assert!(missing.err.contains("no-such-id"), "{}", missing.err);
    let file = world.directory.path().join("there.json");
    std::fs::write(&file, "mine").unwrap();
    let file = file.to_str().unwrap();
    run(
        &world,
        "laptop",
        &["reject", &asking.request_id, "--save", file],
    )
    .expect(64);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "mine");
    let reason = "not on a Friday";
    let done = run(
        &world,
        "laptop",
        &["reject", &asking.request_id[..30], "--reason", reason],
    );
    let done = done.expect(0);
    assert!(
        done.err.contains("rejected: Run `git push` in work"),
        "{}",
        done.err
    );
    let denial = asking.end().await.1.unwrap_err().to_string();
    assert!(denial.contains(reason), "{denial}");
    run(&world, "laptop", &["reject"]).expect(77);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_needs_a_time_and_sensible_words() {
    let (world, asking) = asked(command(&["git", "commit"])).await;
    let id = asking.request_id.clone();
    for arguments in [
        &["--scope", "timebox"][..],
        &["--grant", "same"],
        &["--for", "25h"],
        &["--scope", "once", "--for", "1h"],
        &["--for", "1h", "--grant", "same", "words"],
        &["--for", "1h", "--grant", "prefix"],
        &["--for", "1h", "--grant", "anything"],
        &["--action", "nothing-of-this-kind"],
    ] {
        let whole = [&["approve", &id], arguments].concat();
        run(&world, "laptop", &whole).expect(64);
    }
    run(
        &world,
        "laptop",
        &[
            "approve", &id, "--for", "1h", "--grant", "prefix", "git", "commit",
        ],
    )
    .expect(0);
    let approval = asking.end().await.1.unwrap().approval;
    let countersign::e2e::GrantOutcome::Given(grant) = approval.grant else {
        panic!("a grant");
    };
    let words = vec!["git".to_owned(), "commit".to_owned()];
    assert_eq!(grant.matches, countersign::e2e::GrantMatch::Prefix(words));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_is_missing_exposed_or_damaged_is_not_used() {
    let world = ClientScene::start().await;
    world.approver("alice", "laptop").await;
    let missing = run(&world, "nobody", &["inbox"]).expect(78);
    assert!(missing.err.contains("countersign join"), "{}", missing.err);
    let file = world.file("laptop");
    let path = file.path();
    let mode = |mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o644);
    for arguments in [
        &["inbox"][..],
        &["devices"],
        &["approve", "x"],
        &["pairings"],
        &["pair", "7K3M-9QRT"],
    ] {
        let exposed = run(&world, "laptop", arguments).expect(78);
        assert!(exposed.err.contains("chmod 600"), "{}", exposed.err);
    }
    mode(0o600);
    let whole = std::fs::read_to_string(path).unwrap();
    let (_, secret) = whole.split_once("signing_key = \"").unwrap();
    let (secret, _) = secret.split_once('"').unwrap();
    for damaged in [
        whole.replace("signing_key = \"", "signing_key = \"!"),
        whole.replace("[approver]", "[approver]\nunknown = 1"),
        whole[..whole.len() / 2].to_owned(),
    ] {
        std::fs::write(path, &damaged).unwrap();
        let refused = run(&world, "laptop", &["inbox"]).expect(78);
        assert!(
            !refused.err.contains(secret),
            "no secret is printed: {}",
            refused.err
        );
    }
    run(&world, "../laptop", &["inbox"]).expect(78);
    std::fs::write(path, whole).unwrap();
    run(&world, "laptop", &["inbox"]).expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_away_is_its_own_exit_status() {
    let world = ClientScene::start().await;
    world.approver("alice", "laptop").await;
    let (_socket, url) = refusing();
    world.through("laptop", vec![url]);
    let away = run(&world, "laptop", &["inbox"]).expect(69);
    assert!(away.err.contains("Connection refused"), "{}", away.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_prints_what_comes_until_it_is_stopped() {
    let (world, asking) = asked(command(&["git", "push"])).await;
    let mut command = prepared(&world, "laptop", &["inbox", "--watch", "--json"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let out = child.stdout.take().unwrap();
    let plain = world.cluster.enforcer("plain").await;
    let reading = tokio::task::spawn_blocking(move || {
        use std::io::BufRead as _;
        let mut lines = std::io::BufReader::new(out).lines();
        let mut next =
            || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
        let first = next();
        (first, lines)
    });
    let (first, mut lines) = reading.await.unwrap();
    assert_eq!(first["requestId"], asking.request_id.as_str());
    assert_eq!(first["opened"], true);
    plain
        .submit("second", "alice", crate::support::sealed())
        .await
        .expect(202);
    let next = tokio::task::spawn_blocking(move || lines.next().unwrap().unwrap());
    let second: Value = serde_json::from_str(&next.await.unwrap()).unwrap();
    assert_eq!(second["requestId"], "second");
    assert_eq!(second["opened"], false);
    crate::support::process::signal(child.id(), crate::support::process::Signal::SIGINT);
    assert!(child.wait().unwrap().success());
}

#[test]
fn help_has_examples_and_a_usage_error_its_own_status() {
    for name in [
        "join", "inbox", "show", "approve", "reject", "devices", "verify", "pair",
    ] {
        let ran: Ran = countersign()
            .args([name, "--help"])
            .output()
            .unwrap()
            .into();
        let ran = ran.expect(0);
        assert!(ran.out.contains("Example"), "{name}: {}", ran.out);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn half_an_id_approves_nothing_without_a_person_who_looks() {
    let (world, asking) = asked(command(&["git", "push"])).await;
    let half = &asking.request_id[..13];
    let refused = run(&world, "laptop", &["approve", half]).expect(64);
    assert!(refused.err.contains("whole id"), "{}", refused.err);
    let listed = run(&world, "laptop", &["inbox"]).expect(0);
    let short = &asking.request_id[asking.request_id.len() - 8..];
    assert!(
        listed.out.starts_with(&format!("{short}  ")),
        "{}",
        listed.out
    );
    run(&world, "laptop", &["reject", half]).expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_two_commands_shows_both() {
    let payload =
        serde_json::json!({ "kind": "command", "command": "ls", "argv": ["rm", "-rf", "/"] });
    let (world, asking) = asked(payload.as_object().unwrap().clone()).await;
    for arguments in [&["inbox"][..], &["show", &asking.request_id]] {
        let shown = run(&world, "laptop", arguments).expect(0).out;
        assert!(shown.contains("ls") && shown.contains("-rf"), "{shown}");
    }
}
