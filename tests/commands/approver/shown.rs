//! The view of a request: all of it, and nothing raw.

use countersign::client::random;
use countersign::e2e::{PlainArtifact, seal_artifact};
use countersign::protocol::canonical::canonical;
use countersign::protocol::json;
use serde_json::json;

use super::{asked, run};
use crate::client::people::command;
use crate::client::tamper::Tamper;
use crate::support::messages::hashed;

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_shown_and_nothing_moves_the_cursor() {
    let long = "x".repeat(700);
    let payload = json!({
        "kind": "command",
        "argv": ["rm", "\u{1b}[2Ka\u{202e}b", "-\u{430}", "", "$HOME\n"],
        "program": "/bin/\u{7}rm",
        "directory": "/work\r/etc",
        "environment": { "A\u{200b}": long },
    });
    let (world, asking) = asked(payload.as_object().unwrap().clone()).await;
    let shown = run(&world, "laptop", &["show", &asking.request_id])
        .expect(0)
        .out;
    let raw = |c: char| c.is_control() && c != '\n' || matches!(c, '\u{202e}' | '\u{200b}');
    assert!(!shown.chars().any(raw), "{shown:?}");
    for expected in [
        r"rm $'\x1b[2Ka\U0000202eb'",
        "''",
        r"$'$HOME\n'",
        r"/bin/\u{7}rm",
        r"/work\u{d}/etc",
        "environment",
        &long,
        "invisible or misleading characters",
        "700 characters",
        "U+0430",
    ] {
        assert!(shown.contains(expected), "{expected} in {shown}");
    }
    let listed = run(&world, "laptop", &["inbox"]).expect(0).out;
    assert!(!listed.chars().any(raw), "{listed:?}");
    let rejected = run(&world, "laptop", &["reject", &asking.request_id])
        .expect(0)
        .err;
    assert!(!rejected.chars().any(raw), "{rejected:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn patches_plans_and_tool_calls_are_shown_whole() {
    let patch = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\r\n+new\n";
    for (payload, expected) in [
        (
            json!({ "kind": "patch", "patch": patch }),
            vec!["-old\\u{d}", "+new", "@@ -1 +1 @@"],
        ),
        (
            json!({ "kind": "plan", "text": "# Plan\n\n- one\n\ttwo" }),
            vec!["# Plan", "- one", "\ttwo"],
        ),
        (
            json!({ "kind": "plan", "text": "# Plan", "title": "Ship\nit" }),
            vec!["title Ship\\u{a}it", "# Plan"],
        ),
        (
            json!({ "kind": "tool", "tool": "Write", "input": { "path": "/x", "n": [1, true] }, "more": 1 }),
            vec!["tool Write", "\"path\": \"/x\"", "true", "\"more\": 1"],
        ),
        (
            json!({
                "kind": "patch", "patch": patch, "agent": "claude", "tool": "Edit", "directory": "/w\u{7}",
                "files": [
                    { "path": "/w/x", "sha256": "abc", "realPath": "/etc/x" },
                    { "path": "/w/y", "sha256": null },
                ],
                "options": { "dry": true },
            }),
            vec![
                "agent claude\nin /w\\u{7}\ntool Edit\nfile /w/x (abc), a link to /etc/x\nfile /w/y (new)\n\n--- a/x",
                "\"dry\": true",
            ],
        ),
        (
            json!({ "kind": "patch", "patch": patch, "files": [{ "path": "/w/x", "sha256": "abc", "mode": 1 }] }),
            vec!["\"mode\": 1", "\"sha256\": \"abc\"", "+new"],
        ),
        (
            json!({
                "kind": "command", "command": "make \u{430}ll\nrm x", "directory": "/w", "agent": "codex",
                "tool": "Bash", "background": true,
            }),
            vec![
                "agent codex\nin /w\ntool Bash\nin the background\n\nmake \u{430}ll\nrm x",
                "U+0430",
            ],
        ),
        (
            json!({ "kind": "patch", "text": 7 }),
            vec!["\"kind\": \"patch\"", "\"text\": 7"],
        ),
        (
            json!({ "anything": { "deep": null } }),
            vec!["\"deep\": null"],
        ),
    ] {
        let (world, asking) = asked(payload.as_object().unwrap().clone()).await;
        let shown = run(&world, "laptop", &["show", &asking.request_id])
            .expect(0)
            .out;
        for text in expected {
            assert!(shown.contains(text), "{text:?} in {shown}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_answer_reaches_no_terminal_raw_and_is_not_approved() {
    let (world, asking) = asked(command(&["git", "push"])).await;
    let node = world.cluster.urls()[0].clone();
    let liar = Tamper::start(&node, |path, answer| {
        if path.contains("/inbox") {
            let item = &mut answer["body"]["items"][0]["body"];
            item["enforcerId"] = "stranger\u{202e}".into();
            item["enforcerLabel"] = "\u{1b}[31mbot\u{202e}".into();
            item["artifactType"] = "\u{1b}]0;title\u{7}".into();
        }
    })
    .await;
    world.through("laptop", vec![liar.url.clone()]);
    let id = &asking.request_id;
    for arguments in [
        &["inbox"][..],
        &["show", id],
        &["inbox", "--json"],
        &["approve", id],
    ] {
        let ran = run(&world, "laptop", arguments);
        let raw = |c: char| c == '\u{1b}' || c == '\u{7}';
        assert!(
            !ran.out.chars().any(raw) && !ran.err.chars().any(raw),
            "{:?}{:?}",
            ran.out,
            ran.err
        );
        let wanted = if arguments[0] == "approve" { 77 } else { 0 };
        assert_eq!(ran.code, wanted, "{}", ran.err);
        if arguments[0] != "approve" && arguments.len() < 2 {
            assert!(ran.out.contains("unverified"), "{}", ran.out);
            assert!(ran.out.contains("can't be approved"), "{}", ran.out);
        }
    }
}

/// The salt is left out of what is shown, so it must not be a place for anything else.
#[tokio::test(flavor = "multi_thread")]
async fn what_stands_in_place_of_the_salt_is_shown() {
    let (world, asking) = asked(command(&["git", "push"])).await;
    let enforcer = world.file("bot").load().unwrap().enforcer.unwrap();
    let (keys, id) = (enforcer.keys().unwrap(), enforcer.id().unwrap());
    let trust = enforcer.approvers[0].trust(world.cluster.tenant.clone());
    let trust = trust.unwrap();
    let node = world.cluster.urls()[0].clone();
    let liar = Tamper::start(&node, move |path, answer| {
        if !path.contains("/inbox") {
            return;
        }
        let item = &mut answer["body"]["items"][0];
        let artifact = hashed(json!({
            "requestId": item["requestId"], "artifactType": "command.review", "repoRef": "x",
            "createdAt": "2026-02-21T12:00:00Z", "expiresAt": item["body"]["expiresAt"],
            "payload": { "kind": "command", "argv": ["true"] }, "artifactHashAlg": "SHA-256",
            "extensions": { "countersign.salt": "and now something else" },
        }));
        let text = artifact.to_string();
        let text = canonical(&json::parse(text.as_bytes()).unwrap());
        let artifact = PlainArtifact::parse(text.as_bytes()).unwrap();
        let sealed = seal_artifact(&keys, &id, &artifact, &[&trust], &mut random).unwrap();
        item["body"]["artifactHash"] = artifact.hash().to_string().into();
        item["body"]["ciphertext"] = serde_json::from_str(&sealed.to_text().unwrap()).unwrap();
    })
    .await;
    world.through("laptop", vec![liar.url.clone()]);
    let shown = run(&world, "laptop", &["show", &asking.request_id]).expect(0);
    assert!(
        shown.out.contains("and now something else"),
        "{}",
        shown.out
    );
}
