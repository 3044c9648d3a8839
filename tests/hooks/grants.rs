//! Grants of agents' calls: comments that change, edits of a file or a project, sessions that go
//! on, and agents that are paused.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use countersign::agent::Agent;
use countersign::e2e::{ControlOrder, DecisionScope, GrantMatch, WordPattern};
use countersign::protocol::decision::Verdict;
use countersign::protocol::timestamp::Timestamp;
use serde_json::{Value, json};

use super::process::{HookScene, end};
use crate::client::grants::permits;
use crate::client::people::choice;

fn in_session(matches: GrantMatch) -> countersign::client::approver::ApproverChoice {
    permits(DecisionScope::Session, matches)
}

impl HookScene {
    /// A person is asked, and decides so. Returns the artifact.
    async fn asked(
        &self,
        input: &str,
        decided: &countersign::client::approver::ApproverChoice,
    ) -> Value {
        let child = self.start_hook(Agent::Claude, &[], input);
        let artifact = self.decide(decided).await;
        let ran = end(child).await;
        let expected = if decided.verdict == Verdict::Approve {
            0
        } else {
            2
        };
        assert_eq!(ran.code, expected, "{}", ran.err);
        artifact
    }

    async fn is_asked(&self, input: &str) {
        self.asked(input, &choice(Verdict::Reject)).await;
    }

    async fn is_granted(&self, input: &str) {
        let ran = self.hook(Agent::Claude, &[], input).await;
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.out.contains("approved by alice, until "), "{}", ran.out);
    }

    fn edit(&self, path: &Path, content: &str) -> String {
        let input = json!({ "file_path": path, "content": content });
        self.claude("Write", &input)
    }

    async fn event(&self, name: &str, more: &Value) {
        let mut event =
            json!({ "session_id": "s-1", "cwd": self.project(), "hook_event_name": name });
        let event = event.as_object_mut().unwrap();
        event.extend(more.as_object().unwrap().clone());
        let event = Value::Object(event.clone()).to_string();
        assert_eq!(self.hook(Agent::Claude, &[], &event).await.code, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_command_with_other_comments_is_the_same() {
    let scene = HookScene::start().await;
    let call = |more: Value| {
        let mut input = json!({ "command": "make deploy" });
        let members = input.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        scene.claude("Bash", &input)
    };
    let first = call(json!({ "description": "Deploy", "timeout": 1000 }));
    scene.asked(&first, &in_session(GrantMatch::Same)).await;
    for more in [
        json!({}),
        json!({ "description": "Deploy it again" }),
        json!({ "description": "x", "timeout": 600_000 }),
    ] {
        scene.is_granted(&call(more)).await;
    }
    for more in [
        json!({ "dangerouslyDisableSandbox": true }),
        json!({ "run_in_background": true }),
        json!({ "comment": "x" }),
    ] {
        scene.is_asked(&call(more)).await;
    }
    scene.is_asked(&scene.bash("make deploy ")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_of_a_file_are_permitted_for_the_session_and_of_no_other_file() {
    let scene = HookScene::start().await;
    let (file, other) = (scene.write("a.txt", "1\n"), scene.write("b.txt", "1\n"));
    let shown = scene
        .asked(&scene.edit(&file, "2\n"), &in_session(GrantMatch::File))
        .await;
    let project = std::fs::canonicalize(scene.project()).unwrap();
    assert_eq!(shown["payload"]["project"], json!(project));
    scene.is_granted(&scene.edit(&file, "3\n")).await;
    let replace = json!({ "file_path": file, "old_string": "1", "new_string": "4" });
    scene.is_granted(&scene.claude("Edit", &replace)).await;
    scene.is_asked(&scene.edit(&other, "2\n")).await;
    // Another session, and more than the edit.
    let mut foreign: Value = serde_json::from_str(&scene.edit(&file, "3\n")).unwrap();
    foreign["session_id"] = "s-2".into();
    scene.is_asked(&foreign.to_string()).await;
    let odd = json!({ "file_path": file, "content": "5\n", "run_after": "x" });
    scene.is_asked(&scene.claude("Write", &odd)).await;
    // The same name may come to lead elsewhere.
    std::fs::remove_file(&file).unwrap();
    symlink(&other, &file).unwrap();
    scene.is_asked(&scene.edit(&file, "3\n")).await;
    // And a link may lead to the file.
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, "1\n").unwrap();
    std::fs::remove_file(&other).unwrap();
    symlink(&file, &other).unwrap();
    scene.is_granted(&scene.edit(&other, "3\n")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_in_a_project_are_permitted_but_for_sensitive_files_and_other_places() {
    let scene = HookScene::start().await;
    let file = scene.write("a.txt", "1\n");
    let outside = scene.world.directory.path().join("outside");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("x.txt"), "1\n").unwrap();
    let granted = in_session(GrantMatch::Project);
    scene.asked(&scene.edit(&file, "2\n"), &granted).await;
    for name in ["a.txt", "new.txt", "src/deep/new.txt"] {
        let path = scene.project().join(name);
        scene.is_granted(&scene.edit(&path, "3\n")).await;
    }
    // Whatever the grant says.
    for name in [".env", ".git/config", ".github/workflows/ci.yml", ".envrc"] {
        scene
            .is_asked(&scene.edit(&scene.project().join(name), "x\n"))
            .await;
    }
    let own = scene.own("policy.toml");
    let denied = scene
        .hook(Agent::Claude, &[], &scene.edit(&own, "x\n"))
        .await;
    denied.is_denied(Agent::Claude, "own files");
    scene
        .is_asked(&scene.edit(&outside.join("x.txt"), "2\n"))
        .await;
    // A link that leads out, to a file and to a directory.
    symlink(outside.join("x.txt"), scene.project().join("link.txt")).unwrap();
    symlink(&outside, scene.project().join("away")).unwrap();
    for name in ["link.txt", "away/x.txt", "away/new.txt"] {
        scene
            .is_asked(&scene.edit(&scene.project().join(name), "2\n"))
            .await;
    }
    // A directory that is named alike is another one.
    let alike = scene.world.directory.path().join("project-2/a.txt");
    std::fs::create_dir_all(alike.parent().unwrap()).unwrap();
    scene.is_asked(&scene.edit(&alike, "2\n")).await;
    // No command is an edit.
    scene.is_asked(&scene.bash("rm a.txt")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sensitive_edit_gives_no_permission_for_others() {
    let scene = HookScene::start().await;
    let env = scene.project().join(".env");
    let child = scene.start_hook(Agent::Claude, &[], &scene.edit(&env, "1\n"));
    let item = scene.item().await;
    for matches in [GrantMatch::File, GrantMatch::Project] {
        let refused = scene.alice.decide(&item, &in_session(matches)).await;
        assert!(refused.is_err(), "it names no project");
    }
    let approve = choice(Verdict::Approve);
    scene.alice.decide(&item, &approve).await.unwrap();
    assert_eq!(end(child).await.code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_were_chosen_are_free_and_no_others() {
    let scene = HookScene::start().await;
    let words = ["git", "commit", "-m"].map(|word| Some(word.to_owned()));
    let words: Vec<_> = words.into_iter().chain([None]).collect();
    let pattern = GrantMatch::Words(WordPattern::new(words, false).unwrap());
    let commit = |message: &str| scene.bash(&format!("git commit -m {message}"));
    scene.asked(&commit("one"), &in_session(pattern)).await;
    scene.is_granted(&commit("two")).await;
    scene.is_granted(&commit("'a whole sentence'")).await;
    for command in [
        "git commit -m one two",
        "git commit -m --amend",
        "git commit -m a=b",
        "git commit -F one",
        "git push -m one",
        "git commit -m one; git push",
        "git commit -m $(git push)",
    ] {
        scene.is_asked(&scene.bash(command)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn grants_of_a_session_rest_while_it_is_closed_and_end_when_it_is_cleared() {
    let scene = HookScene::start().await;
    let make = scene.bash("make deploy");
    scene.asked(&make, &in_session(GrantMatch::Same)).await;
    scene.is_granted(&make).await;
    scene
        .event("SessionStart", &json!({ "source": "compact" }))
        .await;
    scene.is_granted(&make).await;
    scene
        .event("SessionEnd", &json!({ "reason": "prompt_input_exit" }))
        .await;
    scene.is_asked(&make).await;
    // Another session does not wake it.
    scene
        .event(
            "SessionStart",
            &json!({ "session_id": "s-2", "source": "resume" }),
        )
        .await;
    scene.is_asked(&make).await;
    scene
        .event("SessionStart", &json!({ "source": "resume" }))
        .await;
    scene.is_granted(&make).await;
    for (name, more) in [
        ("SessionEnd", json!({ "reason": "clear" })),
        ("SessionEnd", json!({ "reason": "logout" })),
        ("SessionStart", json!({ "source": "clear" })),
    ] {
        scene.event(name, &more).await;
        scene
            .event("SessionStart", &json!({ "source": "resume" }))
            .await;
        scene.asked(&make, &in_session(GrantMatch::Same)).await;
        scene.is_granted(&make).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_agent_hears_who_paused_it() {
    let scene = HookScene::start().await;
    let until = scene.alice.now().inner() + Duration::from_secs(3_600);
    let until = Timestamp::from(until);
    let pause = ControlOrder::Pause {
        session: None,
        until,
    };
    let sent = scene.alice.order("bot", &pause).await.unwrap();
    let ran = scene.hook(Agent::Claude, &[], &scene.bash("make")).await;
    ran.is_denied(Agent::Claude, &format!("paused by alice until {until}"));
    scene.nobody_was_asked().await;
    let sent = scene.alice.order_obeyed(sent, Duration::from_secs(5)).await;
    assert!(sent.unwrap().is_confirmed());
    // What needs no question goes on.
    let read = json!({ "file_path": scene.write("a.txt", "1\n") });
    let ran = scene
        .hook(Agent::Claude, &[], &scene.claude("Read", &read))
        .await;
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
    let resume = ControlOrder::Resume { session: None };
    scene.alice.order("bot", &resume).await.unwrap();
    scene.is_asked(&scene.bash("make")).await;
}
