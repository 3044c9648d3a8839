//! A rule with `park`: the requests of a call outlive the hook.

use std::path::PathBuf;

use countersign::agent::Agent;
use countersign::client::approver::Approver;
use countersign::protocol::decision::Verdict;
use serde_json::json;

use super::process::{HookScene, end};
use super::rules::{decide, with_others};
use crate::client::people::{PATIENCE, because, choice};
use crate::support::process::{Signal, signal};
use crate::support::until;

const RULE: &str = "[[rule]]\nfrom = [\"alice\", \"bob\"]\napprovals = 2\npark = \"4h\"\n";
/// The deadline of a hook that is denied.
const SHORT: [&str; 2] = ["--timeout", "4s"];

async fn is_asked(person: &Approver, count: usize) {
    until("requests wait", PATIENCE, async || {
        person.find("").await.unwrap().len() == count
    })
    .await;
}

fn sets(scene: &HookScene) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(scene.own("bot.sets")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|it| it == "json"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_nobody_decides_in_time_goes_on_later_and_is_allowed_once() {
    let scene = HookScene::start().await;
    let [bob, _carol] = with_others(&scene).await;
    scene.policy(RULE);
    let input = scene.bash("make deploy");
    let ran = scene.hook(Agent::Claude, &SHORT, &input).await;
    ran.is_denied(Agent::Claude, "not decided yet, waiting for 2 approvals");
    ran.is_denied(Agent::Claude, "the same call, unchanged, continues to wait");
    let seconds =
        scene.item().await.expires_at.unwrap().inner() - scene.world.cluster.clock.now().inner();
    assert!(seconds.whole_minutes() > 200, "{seconds}");
    scene.decide(&choice(Verdict::Approve)).await;
    decide(&bob, &because(Verdict::Approve, "Fine.")).await;

    // Nothing else is allowed by it.
    for other in ["make deploy ", "make"] {
        let ran = scene.hook(Agent::Claude, &SHORT, &scene.bash(other)).await;
        ran.is_denied(Agent::Claude, "not decided yet");
    }
    let ran = scene.hook(Agent::Claude, &[], &input).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.out.contains("approved by alice, bob: bob says: Fine."),
        "{}",
        ran.out
    );
    let ran = scene.hook(Agent::Claude, &SHORT, &input).await;
    ran.is_denied(Agent::Claude, "not decided yet");
    assert_eq!(sets(&scene).len(), 3);
    is_asked(&bob, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_a_file_that_has_changed_is_another_call() {
    let scene = HookScene::start().await;
    let [bob, _carol] = with_others(&scene).await;
    scene.policy(RULE);
    let file = scene.write("a.txt", "1\n");
    let edit = scene.claude("Write", &json!({ "file_path": file, "content": "2\n" }));
    let ran = scene.hook(Agent::Claude, &SHORT, &edit).await;
    ran.is_denied(Agent::Claude, "not decided yet");
    scene.decide(&choice(Verdict::Approve)).await;
    decide(&bob, &choice(Verdict::Approve)).await;
    std::fs::write(&file, "3\n").unwrap();
    let ran = scene.hook(Agent::Claude, &SHORT, &edit).await;
    ran.is_denied(Agent::Claude, "waiting for 2 approvals");
    std::fs::write(&file, "1\n").unwrap();
    let ran = scene.hook(Agent::Claude, &[], &edit).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_was_killed_leaves_its_requests_and_one_that_was_ended_withdraws_them() {
    let scene = HookScene::start().await;
    let [bob, _carol] = with_others(&scene).await;
    scene.policy(RULE);
    let input = scene.bash("make deploy");
    let child = scene.start_hook(Agent::Claude, &[], &input);
    is_asked(&bob, 1).await;
    scene.item().await;
    signal(child.id(), Signal::SIGKILL);
    end(child).await;
    scene.decide(&choice(Verdict::Approve)).await;
    decide(&bob, &choice(Verdict::Approve)).await;
    let ran = scene.hook(Agent::Claude, &[], &input).await;
    assert_eq!(ran.code, 0, "{}", ran.err);

    let child = scene.start_hook(Agent::Claude, &[], &input);
    is_asked(&bob, 1).await;
    scene.item().await;
    signal(child.id(), Signal::SIGTERM);
    end(child).await.is_denied(Agent::Claude, "withdrawn");
    scene.nobody_was_asked().await;
    is_asked(&bob, 0).await;
    assert!(sets(&scene).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_became_stricter_asks_again_and_a_project_cannot_park() {
    let scene = HookScene::start().await;
    let [bob, carol] = with_others(&scene).await;
    scene.policy(RULE);
    let input = scene.bash("make deploy");
    let ran = scene.hook(Agent::Claude, &SHORT, &input).await;
    ran.is_denied(Agent::Claude, "not decided yet");
    scene.decide(&choice(Verdict::Approve)).await;
    decide(&bob, &choice(Verdict::Approve)).await;
    scene.policy(&format!("{RULE}[[rule]]\nfrom = [\"carol\"]\n"));
    let child = scene.start_hook(Agent::Claude, &[], &input);
    scene.decide(&choice(Verdict::Approve)).await;
    decide(&bob, &choice(Verdict::Approve)).await;
    decide(&carol, &choice(Verdict::Reject)).await;
    end(child)
        .await
        .is_denied(Agent::Claude, "carol rejected it");

    scene.write(
        ".countersign.toml",
        "[[rule]]\napprovals = 2\npark = \"1h\"\n",
    );
    let ran = scene.hook(Agent::Claude, &[], &input).await;
    ran.is_denied(
        Agent::Claude,
        "escalate, park and rejections are for policy.toml only",
    );
    scene.nobody_was_asked().await;
}
