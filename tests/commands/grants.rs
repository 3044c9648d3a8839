//! Grants and prompts as people use them: `run` without asking, `grants`, and `prompt`.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Stdio};

use countersign::client::approver::{Approver, ApproverChoice};
use countersign::client::enforcer::Enforcer;
use countersign::e2e::{DecisionScope, GrantMatch};
use countersign::protocol::decision::Verdict;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::approver::{Ran, prepared};
use crate::client::grants::{permits, prefix};
use crate::client::people::{ClientScene, PATIENCE, choice, pair};
use crate::support::until;

async fn paired() -> (ClientScene, Approver) {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    (world, alice)
}

fn later() -> Instant {
    Instant::now() + PATIENCE
}

fn start(world: &ClientScene, profile: &str, arguments: &[&str]) -> Child {
    prepared(world, profile, arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

async fn end(child: Child) -> Ran {
    let ended = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap());
    let output = tokio::time::timeout(PATIENCE * 2, ended).await.unwrap();
    output.unwrap().into()
}

async fn run(world: &ClientScene, profile: &str, arguments: &[&str]) -> Ran {
    end(start(world, profile, arguments)).await
}

/// Decides the only request, once it is there.
async fn decide(alice: &Approver, choice: &ApproverChoice) {
    until("one request waits", PATIENCE, async || {
        alice.find("").await.unwrap().len() == 1
    })
    .await;
    let item = alice.find("").await.unwrap().remove(0);
    alice.decide(&item, choice).await.unwrap();
}

async fn asked(
    world: &ClientScene,
    alice: &Approver,
    arguments: &[&str],
    choice: &ApproverChoice,
) -> Ran {
    let child = start(world, "bot", arguments);
    decide(alice, choice).await;
    end(child).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_was_permitted_for_a_time_runs_again_without_asking() {
    let (world, alice) = paired().await;
    let echo = ["run", "--", "echo", "hello"];
    let same = permits(DecisionScope::Timebox, GrantMatch::Same);
    let ran = asked(&world, &alice, &echo, &same).await.expect(0);
    assert!(ran.err.contains("saved as a grant"), "{}", ran.err);
    for _ in 0..2 {
        let ran = run(&world, "bot", &echo).await.expect(0);
        assert_eq!(ran.out, "hello\n");
        assert!(ran.err.contains("allowed by alice"), "{}", ran.err);
        assert!(ran.err.contains("until 20"), "{}", ran.err);
    }
    let ran = run(&world, "bot", &["run", "--json", "--", "echo", "hello"]).await;
    let told: Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!(told["outcome"], "approved");
    assert!(told["grant"]["until"].is_string(), "{told}");
    let ran = run(&world, "bot", &["run", "-q", "--", "echo", "hello"]).await;
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("hello\n", ""));

    let reject = choice(Verdict::Reject);
    for arguments in [
        &["run", "--always-ask", "--", "echo", "hello"][..],
        &["run", "--", "echo", "hello", "world"],
        &["ask", "/dev/null"],
    ] {
        asked(&world, &alice, arguments, &reject).await.expect(77);
    }
    let other = ["run", "--approver", "bob", "--", "echo", "hello"];
    let ran = run(&world, "bot", &other).await.expect(77);
    assert!(ran.err.contains("no approver is paired"), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn grants_are_listed_and_forgotten() {
    let (world, alice) = paired().await;
    let none = run(&world, "bot", &["grants"]).await.expect(0);
    assert!(none.err.contains("no grants"), "{}", none.err);
    let echo = ["run", "--", "echo", "hello", "you there"];
    let words = permits(DecisionScope::Timebox, prefix(&["echo", "hello"]));
    asked(&world, &alice, &echo, &words).await.expect(0);
    let ran = run(&world, "bot", &["run", "--", "echo", "hello", "again"]).await;
    assert_eq!(ran.expect(0).out, "hello again\n");

    let listed = run(&world, "bot", &["grants"]).await.expect(0).out;
    for part in ["alice", "echo hello 'you there'", "begin with echo hello"] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    let shown = run(&world, "bot", &["grants", "--json"])
        .await
        .expect(0)
        .out;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let grant = &shown[0];
    let end = &grant["requestId"].as_str().unwrap()[28..];
    assert!(listed.starts_with(&format!("{end}  ")), "{listed}");
    assert_eq!(
        grant["match"],
        json!({ "match": "prefix", "argv": ["echo", "hello"] })
    );
    let id = grant["requestId"].as_str().unwrap();
    run(&world, "bot", &["grants", "forget", "nothing"])
        .await
        .expect(77);
    run(&world, "bot", &["grants", "forget"]).await.expect(2);
    run(&world, "bot", &["grants", "forget", id, "--all"])
        .await
        .expect(2);
    run(&world, "bot", &["grants", "forget", &id[id.len() - 8..]])
        .await
        .expect(0);
    let reject = choice(Verdict::Reject);
    let again = ["run", "--", "echo", "hello", "again"];
    asked(&world, &alice, &again, &reject).await.expect(77);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_is_permitted_as_it_is_and_no_other() {
    let (world, alice) = paired().await;
    let script = ["run", "--", "sh", "-c", "echo one"];
    let same = permits(DecisionScope::Timebox, GrantMatch::Same);
    asked(&world, &alice, &script, &same).await.expect(0);
    assert_eq!(run(&world, "bot", &script).await.expect(0).out, "one\n");
    let other = ["run", "--", "sh", "-c", "echo two"];
    let reject = choice(Verdict::Reject);
    asked(&world, &alice, &other, &reject).await.expect(77);
    // The same words, found elsewhere.
    let fake = world.directory.path().join("sh");
    std::fs::copy("/bin/echo", &fake).unwrap();
    let mut command = prepared(&world, "bot", &script);
    let path = std::env::var("PATH").unwrap();
    command.env(
        "PATH",
        format!("{}:{path}", world.directory.path().display()),
    );
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    decide(&alice, &reject).await;
    end(child.unwrap()).await.expect(77);
}

#[tokio::test(flavor = "multi_thread")]
async fn grants_that_others_could_have_written_are_not_used() {
    let (world, alice) = paired().await;
    let echo = ["run", "--", "echo", "hello"];
    let same = permits(DecisionScope::Timebox, GrantMatch::Same);
    asked(&world, &alice, &echo, &same).await.expect(0);
    let grants = world.file("bot").path().with_extension("grants.json");
    let permissions = std::fs::Permissions::from_mode(0o666);
    std::fs::set_permissions(&grants, permissions).unwrap();
    let ran = asked(&world, &alice, &echo, &choice(Verdict::Reject)).await;
    let ran = ran.expect(77);
    assert!(ran.err.contains("grants are not used"), "{}", ran.err);
    let listed = run(&world, "bot", &["grants"]).await.expect(78);
    assert!(listed.err.contains("forget --all"), "{}", listed.err);
    run(&world, "bot", &["grants", "forget", "--all"])
        .await
        .expect(0);
    run(&world, "bot", &["grants"]).await.expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approver_is_told_what_a_grant_covers_and_refused_what_none_can() {
    let (world, alice) = paired().await;
    let child = start(&world, "bot", &["run", "--", "echo", "hello"]);
    until("one request waits", PATIENCE, async || {
        alice.find("").await.unwrap().len() == 1
    })
    .await;
    let id = alice.find("").await.unwrap()[0].request_id.to_string();
    let approve = async |words: &[&str]| {
        let mut arguments = vec!["approve", id.as_str(), "--for", "1h", "--grant"];
        arguments.extend(words);
        run(&world, "laptop", &arguments).await
    };
    let refused = approve(&["prefix", "echo", "world"]).await.expect(64);
    assert!(refused.err.contains("begin"), "{}", refused.err);
    let approved = approve(&["prefix", "echo"]).await.expect(0);
    let told = "every command that begins with: echo, until 20";
    assert!(approved.err.contains(told), "{}", approved.err);
    end(child).await.expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_sent_waited_for_and_its_fate_told() {
    let (world, _alice) = paired().await;
    let sent = run(&world, "laptop", &["prompt", "bot", "Use", "staging."]).await;
    let sent = sent.expect(0);
    assert!(sent.err.contains("sent"), "{}", sent.err);
    let mut bot = Enforcer::open(&world.file("bot"), &world.cluster.clock).unwrap();
    let taken = bot.take_prompts(None, later()).await.unwrap();
    assert_eq!(taken[0].opened.prompt.words(), "Use staging.");

    let mut command = prepared(
        &world,
        "laptop",
        &["prompt", "bot", "--wait", "--json", "-"],
    );
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"line one\nline two\n").unwrap();
    drop(input);
    let bot = Mutex::new(bot);
    let taken = Mutex::new(Vec::new());
    until("the prompt is there", PATIENCE, async || {
        let found = bot.lock().await.take_prompts(None, later()).await;
        *taken.lock().await = found.unwrap();
        !taken.lock().await.is_empty()
    })
    .await;
    let taken = taken.into_inner();
    assert_eq!(taken[0].opened.prompt.words(), "line one\nline two\n");
    let told: Value = serde_json::from_str(&end(child).await.expect(0).out).unwrap();
    assert_eq!(told["status"], "delivered");

    let late = ["prompt", "bot", "--wait=1s", "anyone there?"];
    run(&world, "laptop", &late).await.expect(75);
    let refuse = async || {
        let mut bot = bot.lock().await;
        let refused = bot.refuse_prompts(None, "it takes none", later()).await;
        refused.unwrap() == 1
    };
    assert!(refuse().await);
    let child = start(&world, "laptop", &["prompt", "bot", "--wait", "again"]);
    until("it is rejected", PATIENCE, refuse).await;
    let rejected = end(child).await.expect(77);
    assert!(rejected.err.contains("it takes none"), "{}", rejected.err);
    run(&world, "laptop", &["prompt", "stranger", "hello"])
        .await
        .expect(64);
    run(&world, "laptop", &["prompt", "bot", " "])
        .await
        .expect(64);
    run(&world, "laptop", &["prompt", "bot"]).await.expect(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approver_lists_and_ends_the_grants_of_this_device() {
    let (world, alice) = paired().await;
    let none = run(&world, "laptop", &["grants"]).await.expect(0);
    assert!(none.err.contains("no grants"), "{}", none.err);
    let echo = ["run", "--", "echo", "hello", "you"];
    let child = start(&world, "bot", &echo);
    until("one request waits", PATIENCE, async || {
        alice.find("").await.unwrap().len() == 1
    })
    .await;
    let id = alice.find("").await.unwrap().remove(0).request_id;
    let approve = async |words: &[&str]| {
        let mut arguments = vec!["approve", id.as_str(), "--for", "1h", "--grant"];
        arguments.extend(words);
        run(&world, "laptop", &arguments).await
    };
    for (words, expected) in [
        (&["words", "*", "hello", "you"][..], "the first is not"),
        (&["words", "echo", "bye", "*"], "does not fit"),
        (&["words", "echo", "*"], "does not fit"),
        (&["file"], "isn't part of a session"),
        (&["project"], "isn't part of a session"),
        (&["anything"], "--grant takes"),
    ] {
        let refused = approve(words).await.expect(64);
        assert!(refused.err.contains(expected), "{words:?} {}", refused.err);
    }
    let approved = approve(&["words", "echo", "hello", "*", "..."]).await;
    let told = "commands of the form echo hello (any word) and further words, until 20";
    let approved = approved.expect(0);
    assert!(approved.err.contains(told), "{}", approved.err);
    end(child).await.expect(0);
    let again = ["run", "--", "echo", "hello", "world", "again"];
    for _ in 0..2 {
        let ran = run(&world, "bot", &again).await.expect(0);
        assert!(ran.err.contains("allowed by alice"), "{}", ran.err);
    }
    let listed = run(&world, "laptop", &["grants"]).await.expect(0);
    assert!(
        listed.out.contains("echo hello (any word)"),
        "{}",
        listed.out
    );
    assert!(
        listed.out.contains("used 2 times, last at 20"),
        "{}",
        listed.out
    );
    let kept = run(&world, "bot", &["grants"]).await.expect(0);
    assert!(
        kept.out.contains("used 2 times, last at 20"),
        "{}",
        kept.out
    );
    let listed = run(&world, "laptop", &["grants", "--json"]).await.expect(0);
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!(listed[0]["requestId"], id.as_str());
    assert_eq!(listed[0]["uses"], 2);

    run(&world, "laptop", &["grants", "end", "nothing"])
        .await
        .expect(77);
    run(&world, "laptop", &["grants", "end", ""])
        .await
        .expect(64);
    // Nobody has confirmed it, so it may still be used.
    let sent = run(&world, "laptop", &["grants", "end", id.as_str()]).await;
    assert!(sent.expect(0).err.contains("sent: "));
    let listed = run(&world, "laptop", &["grants"]).await.expect(0);
    assert!(listed.out.contains("used 2 times"), "{}", listed.out);
    let ending = ["grants", "end", &id.as_str()[..30], "--wait", "--json"];
    let child = Mutex::new(start(&world, "laptop", &ending));
    // The agent's next call meets it.
    let bot = Mutex::new(Enforcer::open(&world.file("bot"), &world.cluster.clock).unwrap());
    until("the end is confirmed", PATIENCE, async || {
        let mut bot = bot.lock().await;
        bot.take_prompts(None, later()).await.unwrap();
        child.lock().await.try_wait().unwrap().is_some()
    })
    .await;
    assert!(bot.lock().await.grants().unwrap().is_empty());
    let child = child.into_inner();
    let told: Value = serde_json::from_str(&end(child).await.expect(0).out).unwrap();
    assert_eq!(told["isConfirmed"], true, "{told}");
    let none = run(&world, "laptop", &["grants"]).await.expect(0);
    assert!(none.err.contains("no grants"), "{}", none.err);
    let reject = choice(Verdict::Reject);
    asked(&world, &alice, &again, &reject).await.expect(77);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_paused_and_goes_on_by_the_terminal() {
    let (world, alice) = paired().await;
    let sent = run(&world, "laptop", &["pause", "bot"]).await.expect(0);
    assert!(sent.err.contains("sent: paused until 20"), "{}", sent.err);
    let ran = run(&world, "bot", &["run", "--", "echo", "hello"])
        .await
        .expect(77);
    assert!(ran.err.contains("paused by alice until 20"), "{}", ran.err);
    assert!(alice.find("").await.unwrap().is_empty());
    let told = run(&world, "bot", &["run", "--json", "--", "echo", "hello"]).await;
    let told: Value = serde_json::from_str(&told.expect(77).err).unwrap();
    assert_eq!(told["cause"], "paused");
    let shown = run(&world, "bot", &["grants"]).await.expect(0);
    assert!(
        shown.err.contains("paused by alice until 20"),
        "{}",
        shown.err
    );
    let found = run(&world, "bot", &["doctor", "--json"]).await;
    assert!(
        found.out.contains("paused by alice until 20"),
        "{}",
        found.out
    );

    let child = start(&world, "laptop", &["resume", "bot", "--wait"]);
    let bot = Mutex::new(Enforcer::open(&world.file("bot"), &world.cluster.clock).unwrap());
    until("the agent goes on", PATIENCE, async || {
        let mut bot = bot.lock().await;
        bot.take_prompts(None, later()).await.unwrap();
        bot.pauses().unwrap().is_empty()
    })
    .await;
    let resumed = end(child).await.expect(0);
    assert!(
        resumed.err.contains("confirmed by the agent's machine"),
        "{}",
        resumed.err
    );
    let reject = choice(Verdict::Reject);
    asked(&world, &alice, &["run", "--", "echo", "hello"], &reject)
        .await
        .expect(77);

    for arguments in [
        &["pause", "bot", "--for", "25h"][..],
        &["pause", "stranger"],
        &["resume", "stranger"],
    ] {
        run(&world, "laptop", arguments).await.expect(64);
    }
    let late = run(&world, "laptop", &["pause", "bot", "--wait=1s"]).await;
    late.expect(75);
}
