//! Requests that wait on this machine: every terminal shows them, and a person with a device of
//! their own decides them there.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::approver::{Ran, prepared};
use crate::client::people::{ClientScene, PATIENCE, pair};
use crate::support::process::countersign;
use crate::support::until;

async fn scene() -> ClientScene {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    std::fs::create_dir_all(world.directory.path().join("project/.git")).unwrap();
    world
}

async fn ran(world: &ClientScene, profile: &str, arguments: &[&str]) -> Ran {
    let mut command = prepared(world, profile, arguments);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap());
    output.await.unwrap().into()
}

/// What waits, once there are so many.
async fn listed(world: &ClientScene, count: usize) -> Value {
    let list = async || {
        ran(world, "bot", &["waiting", "--json"])
            .await
            .expect(0)
            .json()
    };
    until("requests wait", PATIENCE, async || {
        list().await.as_array().unwrap().len() == count
    })
    .await;
    list().await
}

fn begin(world: &ClientScene, arguments: &[&str], input: &str) -> Child {
    let mut command = prepared(world, "bot", arguments);
    let mut child = command
        .env("HOME", world.directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child
}

fn hook(world: &ClientScene, tool: &str, input: &Value) -> Child {
    let event = json!({
        "session_id": "s", "cwd": world.directory.path().join("project"), "hook_event_name": "PreToolUse",
        "tool_name": tool, "tool_input": input,
    });
    begin(world, &["hook", "claude"], &event.to_string())
}

async fn end(child: Child) -> Ran {
    let ended = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap());
    tokio::time::timeout(PATIENCE, ended)
        .await
        .unwrap()
        .unwrap()
        .into()
}

fn set_passphrase(world: &ClientScene) -> std::path::PathBuf {
    let file = world.directory.path().join("passphrase");
    std::fs::write(&file, "correct horse battery\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let new = ["passphrase", "--new-file", file.to_str().unwrap()];
    let set: Ran = prepared(world, "laptop", &new).output().unwrap().into();
    set.expect(0);
    file
}

/// Types on a terminal of its own once it says `part`, and returns everything that it said.
async fn typed(config: &Path, passphrase: &Path, line: &str, said: &[(&str, &str)]) -> Ran {
    let program = countersign();
    let mut command = Command::new("script");
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let directory = Path::new(program.get_program())
        .parent()
        .unwrap()
        .to_owned();
    let path = std::env::var("PATH").unwrap();
    let mut child = command
        .env("XDG_CONFIG_HOME", config)
        .env("COUNTERSIGN_PASSPHRASE_FILE", passphrase)
        .env("NO_COLOR", "1")
        .env("PATH", format!("{}:{path}", directory.display()))
        .args([
            "--quiet",
            "--flush",
            "--return",
            "--command",
            line,
            "/dev/null",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("util-linux");
    let said: Vec<_> = said
        .iter()
        .map(|(part, text)| ((*part).to_owned(), (*text).to_owned()))
        .collect();
    let work = tokio::task::spawn_blocking(move || {
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        for (part, answer) in said {
            let from = text.len();
            while !text[from..].contains(&part) {
                let mut byte = [0];
                assert_eq!(output.read(&mut byte).unwrap(), 1, "{part:?} in {text}");
                text.push(char::from(byte[0]));
            }
            input.write_all(answer.as_bytes()).unwrap();
        }
        let mut rest = Vec::new();
        output.read_to_end(&mut rest).unwrap();
        text.push_str(&String::from_utf8_lossy(&rest));
        let code = child.wait().unwrap().code().unwrap();
        Ran {
            code,
            out: text,
            err: String::new(),
        }
    });
    tokio::time::timeout(PATIENCE * 2, work)
        .await
        .unwrap()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_terminal_of_the_machine_shows_who_is_asked_where_and_how_long() {
    let world = scene().await;
    assert_eq!(listed(&world, 0).await, json!([]));
    let none = ran(&world, "bot", &["waiting"]).await.expect(0);
    assert!(
        none.err.contains("nothing on this machine is waiting"),
        "{}",
        none.err
    );

    let mut watching = begin(&world, &["waiting", "--watch", "--json"], "");
    let mut told = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut waits = vec![
        hook(&world, "Bash", &json!({ "command": "make deploy" })),
        begin(
            &world,
            &["run", "--timeout", "5m", "--", "echo", "hello"],
            "",
        ),
        begin(&world, &["ask", "--type", "plan"], "Ship it"),
    ];
    let list = listed(&world, 3).await;
    let find = |sentence: &str| {
        let found = list
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["sentence"].as_str().unwrap().contains(sentence));
        found
            .unwrap_or_else(|| panic!("{sentence} in {list}"))
            .clone()
    };
    for (sentence, by) in [
        ("make deploy", "Claude Code"),
        ("echo hello", "countersign run"),
        ("Ship it", "countersign ask"),
    ] {
        let shown = find(sentence);
        assert_eq!(
            (&shown["by"], &shown["approvers"]),
            (&by.into(), &json!(["alice"]))
        );
        let gateway = shown["gateway"].as_str().unwrap();
        let id = shown["requestId"].as_str().unwrap();
        assert_eq!(shown["link"], format!("{gateway}/#/request/{id}"));
    }
    let shown = ran(&world, "laptop", &["waiting"]).await.expect(0).out;
    for expected in [
        "Claude Code waits for alice, 8:",
        "countersign run waits for alice, 4:",
        "/#/request/",
    ] {
        assert!(shown.contains(expected), "{expected} in {shown}");
    }
    let directory = world.directory.path().join("countersign/waiting");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for entry in std::fs::read_dir(&directory).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
    let mut watched: Vec<Value> = Vec::new();
    while watched.len() < 3 {
        watched.push(serde_json::from_str(&told.next().unwrap().unwrap()).unwrap());
    }

    // One is killed, and leaves its file; one is decided; one is interrupted.
    let mut killed = waits.remove(0);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let id = find("Ship it")["requestId"].as_str().unwrap().to_owned();
    ran(&world, "laptop", &["reject", &id]).await.expect(0);
    assert_eq!(end(waits.pop().unwrap()).await.code, 77);
    let left = listed(&world, 1).await;
    assert!(
        left[0]["sentence"].as_str().unwrap().contains("echo hello"),
        "{left}"
    );
    let id = find("echo hello")["requestId"].as_str().unwrap().to_owned();
    ran(&world, "laptop", &["approve", &id]).await.expect(0);
    assert_eq!(end(waits.pop().unwrap()).await.expect(0).out, "hello\n");
    listed(&world, 0).await;
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
    for _ in 0..3 {
        let ended: Value = serde_json::from_str(&told.next().unwrap().unwrap()).unwrap();
        assert_eq!(ended["ended"], true);
    }
    watching.kill().unwrap();
    watching.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_decides_beside_the_agent_with_a_key_of_their_own_only() {
    let world = scene().await;
    let config = world.directory.path().to_owned();
    let nothing = config.join("nothing");
    let refused = ran(&world, "bot", &["waiting", "--decide"])
        .await
        .expect(64);
    assert!(
        refused.err.contains("An enforcer's key decides nothing"),
        "{}",
        refused.err
    );
    let refused = ran(&world, "laptop", &["ask", "--local"]).await.expect(64);
    assert!(
        refused.err.contains("countersign passphrase"),
        "{}",
        refused.err
    );
    let passphrase = set_passphrase(&world);
    let refused = ran(&world, "laptop", &["waiting", "--decide"])
        .await
        .expect(64);
    assert!(refused.err.contains("terminal"), "{}", refused.err);
    let line = "countersign waiting --decide --profile laptop";
    let ended = typed(&config, &passphrase, line, &[]).await.expect(77);
    assert!(ended.out.contains("no decision was made"), "{}", ended.out);
    let refused = typed(&config, &nothing, line, &[]).await;
    assert_ne!(refused.code, 0, "{}", refused.out);

    let child = hook(&world, "Bash", &json!({ "command": "make deploy" }));
    listed(&world, 1).await;
    let left = typed(&config, &passphrase, line, &[("[a/r/N]", "\r")])
        .await
        .expect(77);
    assert!(left.out.contains("make deploy"), "{}", left.out);
    listed(&world, 1).await;
    // An answer that was typed before the question is none.
    typed(
        &config,
        &passphrase,
        line,
        &[("", "a\r"), ("[a/r/N]", "\r")],
    )
    .await
    .expect(77);
    listed(&world, 1).await;
    let line = "countersign ask --local --profile laptop";
    typed(&config, &passphrase, line, &[("[a/r/N]", "a\r")])
        .await
        .expect(0);
    let ran = end(child).await.expect(0);
    assert!(ran.out.contains("approved by alice"), "{}", ran.out);

    let question = json!({ "questions": [{
        "question": "Which colour?", "header": "Colour", "multiSelect": true,
        "options": [{ "label": "Blue", "description": "The sky" }, { "label": "Red" }, { "label": "Green" }],
    }] });
    let child = hook(&world, "AskUserQuestion", &question);
    listed(&world, 1).await;
    let said = typed(
        &config,
        &passphrase,
        line,
        &[("do not answer)", "1, green\r")],
    )
    .await
    .expect(0);
    for expected in ["Colour: Which colour?", "1  Blue", "The sky", "3  Green"] {
        assert!(said.out.contains(expected), "{expected} in {}", said.out);
    }
    let told = end(child).await.expect(0).json();
    let input = &told["hookSpecificOutput"]["updatedInput"];
    assert_eq!(input["answers"]["Which colour?"], "Blue, Green");
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_answered_by_arguments() {
    let world = scene().await;
    let question = json!({ "questions": [
        { "question": "Which colour?", "multiSelect": false, "options": [{ "label": "Blue" }, { "label": "7" }] },
        { "question": "Why?", "multiSelect": false },
    ] });
    for (first, second, expected) in [
        ("1", "It is, well, blue.", ["Blue", "It is, well, blue."]),
        ("7", "2", ["7", "2"]),
        ("blue", "no", ["Blue", "no"]),
        ("1, 2", "x", ["1, 2", "x"]),
    ] {
        let child = hook(&world, "AskUserQuestion", &question);
        let list = listed(&world, 1).await;
        let id = list[0]["requestId"].as_str().unwrap();
        assert_eq!(
            list[0]["sentence"],
            "Ask you: Which colour? (and 1 more question)"
        );
        let shown = ran(&world, "laptop", &["show", id]).await.expect(0).out;
        for expected in ["Which colour?\n  1  Blue\n  2  7", "Why?"] {
            assert!(shown.contains(expected), "{expected} in {shown}");
        }
        for wrong in [
            &["approve", id][..],
            &["approve", id, "--answer", "1"],
            &["approve", id, "--answer", "1", "--answer", " "],
        ] {
            let refused = ran(&world, "laptop", wrong).await.expect(64);
            assert!(refused.err.contains("answer"), "{}", refused.err);
        }
        let answers = ["approve", id, "--answer", first, "--answer", second];
        ran(&world, "laptop", &answers).await.expect(0);
        let told = end(child).await.expect(0).json();
        let answers = &told["hookSpecificOutput"]["updatedInput"]["answers"];
        assert_eq!(
            answers,
            &json!({ "Which colour?": expected[0], "Why?": expected[1] })
        );
    }
    let child = hook(&world, "Bash", &json!({ "command": "make" }));
    let list = listed(&world, 1).await;
    let id = list[0]["requestId"].as_str().unwrap();
    let refused = ran(&world, "laptop", &["approve", id, "--answer", "1"])
        .await
        .expect(64);
    assert!(refused.err.contains("asks no questions"), "{}", refused.err);
    ran(&world, "laptop", &["reject", id]).await.expect(0);
    end(child).await.expect(2);
}
