//! Paths that lead elsewhere: the hook follows links before it judges.

use std::os::unix::fs::symlink;

use countersign::agent::Agent;
use countersign::protocol::decision::Verdict;
use serde_json::json;

use super::process::{HookScene, end, start};
use crate::client::people::choice;

async fn is_asked_by_hook(scene: &HookScene, input: &str) {
    let child = scene.start_hook(Agent::Claude, &[], input);
    scene.decide(&choice(Verdict::Reject)).await;
    end(child)
        .await
        .is_denied(Agent::Claude, "alice rejected it");
}

#[tokio::test(flavor = "multi_thread")]
async fn links_are_followed_before_and_after_the_parent_directories() {
    let scene = HookScene::start().await;
    let project = scene.project();
    scene.write("a/b/c/d/e/f", "x\n");
    scene.write("other/f", "x\n");
    scene.write("x", "x\n");
    let outside = scene.world.directory.path().join("outside");
    std::fs::create_dir_all(outside.join("deep/er")).unwrap();
    symlink("a/b/c/d/e", project.join("l")).unwrap();
    symlink(outside.join("deep/er"), project.join("out")).unwrap();
    symlink(outside.join("key"), project.join("x[1]")).unwrap();
    std::fs::write(outside.join("key"), "k").unwrap();
    let read = |path: &str| scene.claude("Read", &json!({ "file_path": path }));
    for path in ["l/f", "l/../e/f", "other/../x"] {
        let ran = scene.hook(Agent::Claude, &[], &read(path)).await;
        let is = (ran.code, ran.out.as_str(), ran.err.as_str());
        // The second one is another file for a reader that takes out `..` first, but in the
        // project.
        assert_eq!(is, (0, "", ""), "{path}");
    }
    for path in [
        "l/../../outside/key",
        "l/../../../../../etc/passwd",
        "out/../../key",
        "x[1]",
        "out/x",
    ] {
        is_asked_by_hook(&scene, &read(path)).await;
    }
    // Nobody could say which file is meant.
    for path in ["l/../other/f", "l/../x"] {
        let write = scene.claude("Write", &json!({ "file_path": path, "content": "y" }));
        let ran = scene.hook(Agent::Claude, &[], &write).await;
        ran.is_denied(Agent::Claude, "without ..");
    }
    for (path, expected) in [
        ("~/x", "absolute path"),
        ("file:///x", "absolute path"),
        ("x ", "white space"),
        (" x", "white space"),
        ("a\nb", "invisible"),
    ] {
        let write = scene.claude("Write", &json!({ "file_path": path, "content": "y" }));
        let ran = scene.hook(Agent::Claude, &[], &write).await;
        ran.is_denied(Agent::Claude, expected);
    }
    scene.nobody_was_asked().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_behind_a_link_is_asked_by_either_name() {
    let scene = HookScene::start().await;
    let data = scene.world.directory.path().join("data");
    let work = scene.world.directory.path().join("work");
    std::fs::create_dir_all(data.join("secret")).unwrap();
    symlink(&data, &work).unwrap();
    let (all, secret) = (scene.world.directory.path().display(), work.join("secret"));
    scene.policy(&format!(
        "[allow]\npaths = ['{all}']\n[ask]\npaths = ['{}']\n",
        secret.display()
    ));
    for path in [secret.join("k"), data.join("secret/k")] {
        let input = scene.claude("Read", &json!({ "file_path": path }));
        is_asked_by_hook(&scene, &input).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_own_directory_may_be_elsewhere() {
    let scene = HookScene::start().await;
    scene.policy("[allow]\ntools = ['edit.project']\n");
    for (name, file) in [
        ("CLAUDE_CONFIG_DIR", "conf/settings.json"),
        ("CODEX_HOME", "conf/config.toml"),
        ("COPILOT_HOME", "conf/hooks/x.json"),
        ("GEMINI_CLI_HOME", "conf/.gemini/settings.json"),
    ] {
        let input = scene.claude("Write", &json!({ "file_path": file, "content": "y" }));
        let mut command = scene.command(Agent::Claude, &[]);
        let child = start(command.env(name, scene.project().join("conf")), &input);
        scene.decide(&choice(Verdict::Reject)).await;
        end(child)
            .await
            .is_denied(Agent::Claude, "alice rejected it");
    }
}
