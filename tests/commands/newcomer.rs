//! What a newcomer meets: help, completion, the next step, short ids, and errors that say what to
//! do.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use countersign::client::approver::Approver;
use countersign::client::enforcer::Enforcer;
use countersign::protocol::decision::Verdict;
use tempfile::TempDir;

use super::approver::{Ran, prepared};
use super::enforcer::{decide, paired};
use super::first_minutes::{end, terminal};
use crate::client::people::{ClientScene, PATIENCE, ask, choice, command, pair, question};
use crate::support::process::countersign;
use crate::support::tls::{Authority, Files};
use crate::support::{Cluster, until};

fn run(world: &ClientScene, profile: &str, arguments: &[&str]) -> Ran {
    prepared(world, profile, arguments).output().unwrap().into()
}

/// The suggestions for the last word, as fish gets them.
fn suggested(config: &Path, words: &[&str]) -> String {
    let mut command = countersign();
    command
        .env("XDG_CONFIG_HOME", config)
        .env("COUNTERSIGN_COMPLETE", "fish");
    let output = command.args(["--", "countersign"]).args(words).output();
    let ran: Ran = output.unwrap().into();
    ran.expect(0).out
}

/// An empty configuration directory.
fn config() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn help_shows_every_command_in_a_group() {
    let ran: Ran = countersign().arg("--help").output().unwrap().into();
    let help = ran.expect(0).out;
    let groups = [
        "Set up:",
        "Decide, as an approver:",
        "Ask, on an agent's machine:",
        "Operate a gateway:",
        "Options:",
    ];
    let places = groups.map(|title| help.find(&format!("\n{title}\n")).expect(title));
    assert!(places.is_sorted(), "{help}");
    assert!(!help.contains("\nMore:"), "a command has no group: {help}");
    for line in ["\n  inbox  ", "\n  run  ", "\n  serve  ", "\n  join  "] {
        assert!(help.contains(line), "{line}: {help}");
    }
}

#[test]
fn only_the_gateways_commands_show_its_options() {
    let help = |arguments: &[&str]| {
        let output = countersign().args(arguments).arg("--help").output();
        let ran: Ran = output.unwrap().into();
        ran.expect(0).out
    };
    for client in [
        &["inbox"][..],
        &["devices", "add"],
        &["hook"],
        &["completions"],
    ] {
        let text = help(client);
        assert!(!text.contains("--config"), "{text}");
        assert!(!text.contains("--database-url"), "{text}");
    }
    for gateway in [&["serve"][..], &["tenant", "list"]] {
        let text = help(gateway);
        assert!(text.contains("--config") && text.contains("--database-url"));
    }
    // Where they were allowed before, they still are.
    let config = config();
    let mut command = countersign();
    command.env("XDG_CONFIG_HOME", config.path());
    let output = command.args(["pairings", "--config", "/dev/null"]).output();
    let ran: Ran = output.unwrap().into();
    assert!(ran.expect(78).err.contains("there is no profile"));
}

#[tokio::test(flavor = "multi_thread")]
async fn shells_complete_agents_profiles_pairings_and_requests() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let config = world.directory.path();
    let agents = suggested(config, &["install", ""]);
    assert!(agents.contains("claude\tClaude Code\n"), "{agents}");
    assert_eq!(suggested(config, &["doctor", "cod"]), "codex\tCodex CLI\n");
    std::fs::write(config.join("countersign/policy.toml"), "").unwrap();
    let profiles = suggested(config, &["inbox", "--profile", ""]);
    assert_eq!(profiles, "bot\nlaptop\n");
    let commands = suggested(config, &["inb"]);
    assert!(commands.starts_with("inbox\t"), "{commands}");

    let known = suggested(config, &["prompt", "--profile", "laptop", ""]);
    assert!(known.starts_with("bot\t"), "{known}");
    let known = suggested(config, &["run", "--profile=bot", "--approver", ""]);
    assert!(known.starts_with("alice\t"), "{known}");
    let known = suggested(config, &["devices", "revoke", "--profile", "laptop", ""]);
    assert!(
        known.contains(&alice.device_id().to_string()) && known.contains("\tlaptop\n"),
        "{known}"
    );

    let bot = Enforcer::open(&world.file("bot"), &world.cluster.clock).unwrap();
    let asking = ask(bot, question(command(&["git", "push"])), &alice).await;
    let short = &asking.request_id[28..];
    let requests = suggested(config, &["approve", "--profile", "laptop", &short[..3]]);
    let expected = format!("{short}\tcommand.review from bot\n");
    assert_eq!(requests, expected);
    // Nothing fails where nothing is set up.
    assert!(!suggested(config, &["approve", ""]).contains(short));
}

#[test]
fn bash_completes_with_the_script() {
    let config = config();
    let directory = Path::new(env!("CARGO_BIN_EXE_countersign")).parent();
    let path = std::env::var("PATH").unwrap();
    let script = "source <(countersign completions bash)\n\
        COMP_WORDS=(countersign install cl) COMP_CWORD=2 COMP_TYPE=9\n\
        _clap_complete_countersign countersign cl install\n\
        printf '%s\\n' \"${COMPREPLY[@]}\"\n\
        complete -p countersign >/dev/null && echo registered";
    let output = Command::new("bash")
        .args(["--norc", "-c", script])
        .env("XDG_CONFIG_HOME", config.path())
        .env("PATH", format!("{}:{path}", directory.unwrap().display()))
        .output();
    let ran: Ran = output.unwrap().into();
    assert_eq!(ran.out, "claude\nregistered\n", "{}", ran.err);
    for (shell, part) in [
        ("zsh", "#compdef countersign"),
        ("elvish", "arg-completer[countersign]"),
        ("fish", "--command countersign"),
    ] {
        let output = countersign().args(["completions", shell]).output();
        let ran: Ran = output.unwrap().into();
        assert!(ran.expect(0).out.contains(part), "{shell}");
    }
}

#[test]
fn a_hook_in_a_shell_that_completes_still_denies() {
    for words in [&["hook", "claude"][..], &["hook", "claude", "--", "x"], &[]] {
        let mut command = countersign();
        command.env("COUNTERSIGN_COMPLETE", "bash").args(words);
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
    }
}

fn alone(world: &ClientScene, profile: &str) -> String {
    let line = format!("COUNTERSIGN_PROFILE={profile} countersign");
    let (code, text) = end(terminal(world.directory.path(), &line, ""));
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("countersign --help"), "{text}");
    text
}

#[test]
fn alone_it_says_how_to_begin() {
    let config = config();
    let (code, text) = end(terminal(config.path(), "countersign", ""));
    assert_eq!(code, 0, "{text}");
    for part in [
        "isn't set up",
        "countersign join 'LINK'",
        "countersign dev",
        "countersign serve",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // An agent whose hook lost its arguments must not take this for permission.
    let output = countersign().stdin(Stdio::null()).output();
    let ran: Ran = output.unwrap().into();
    assert!(ran.expect(2).err.contains("Usage: countersign"));
}

#[tokio::test(flavor = "multi_thread")]
async fn alone_it_says_what_to_do_next() {
    let world = ClientScene::start().await;
    let mut bot = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    let text = alone(&world, "bot");
    assert!(
        text.contains("isn't paired") && text.contains("  countersign pair "),
        "{text}"
    );
    let text = alone(&world, "laptop");
    assert!(text.contains("You approve as alice"), "{text}");
    assert!(text.contains("You're all caught up."), "{text}");
    assert!(text.contains("countersign pair 'LINK'"), "{text}");
    assert!(alone(&world, "nobody").contains("Others: bot, laptop"));

    pair(&mut bot, &mut alice).await;
    let text = alone(&world, "bot");
    assert!(text.contains("asks alice for approval, as bot"), "{text}");
    assert!(text.contains("countersign install "), "{text}");
    let _asking = ask(bot, question(command(&["git", "push"])), &alice).await;
    let text = alone(&world, "laptop");
    assert!(text.contains("1 request is waiting for you."), "{text}");
    assert!(!text.contains("countersign pair 'LINK'"), "{text}");
    let phone = world.device("alice", "phone").await;
    let text = alone(&world, "phone");
    assert!(text.contains("This device isn't approved yet."), "{text}");
    drop(phone);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_one_minute_are_told_apart_by_their_ends() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    // The beginning of ids changes every 65.536 s.
    let millis = world.cluster.clock.now().inner().unix_timestamp_nanos() / 1_000_000;
    let left = u64::try_from(65_536 - millis % 65_536).unwrap();
    if left < 30_000 {
        world.cluster.pass(Duration::from_millis(left));
    }
    let bot = || Enforcer::open(&world.file("bot"), &world.cluster.clock).unwrap();
    let first = ask(bot(), question(command(&["git", "push"])), &alice)
        .await
        .request_id;
    let second = ask(bot(), question(command(&["git", "tag"])), &alice)
        .await
        .request_id;
    let same = first[..8].to_owned();
    assert!(second.starts_with(&same), "made within a minute");

    let listed = run(&world, "laptop", &["inbox"]).expect(0).out;
    for (id, what) in [(&first, "git push"), (&second, "git tag")] {
        let end = &id[28..];
        assert!(
            listed.contains(&format!("{end}  Run `{what}` in")),
            "{listed}"
        );
        assert!(!listed.contains(&same), "{listed}");
        let shown = run(&world, "laptop", &["show", end]).expect(0).out;
        assert!(
            shown.contains(id.as_str()) && shown.contains(what),
            "{shown}"
        );
    }
    let refused = run(&world, "laptop", &["show", &same]).expect(64).err;
    for part in [&first, &second, "is not unique", "git push", "git tag"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    let refused = run(&world, "laptop", &["approve", &first[28..]])
        .expect(64)
        .err;
    assert!(refused.contains("give the whole id"), "{refused}");
    let missing = run(&world, "laptop", &["show", "ffffffffffff"])
        .expect(77)
        .err;
    assert!(
        missing.contains("no request ffffffffffff is waiting"),
        "{missing}"
    );
    run(&world, "laptop", &["reject", &first[28..], "--wait", "1s"]).expect(0);
    assert_eq!(alice.find("").await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_needs_no_dashes_before_it() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let words = [
        "run",
        "-q",
        "sh",
        "-c",
        "echo \"$@\"",
        "sh",
        "--json",
        "--",
        "-q",
    ];
    let child = prepared(&world, "bot", &words)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let artifact = decide(&alice, &choice(Verdict::Approve)).await;
    assert_eq!(artifact["payload"]["argv"], serde_json::json!(words[2..]));
    let ran: Ran = child.wait_with_output().unwrap().into();
    assert_eq!(ran.expect(0).out, "--json -- -q\n");
    // An option that is not known is no command.
    let ran = run(&world, "bot", &["run", "--tiemout", "1h", "true"]).expect(2);
    assert!(ran.err.contains("--tiemout"), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_unpairing_run_names_pair_and_offers_it() {
    let (world, mut alice) = paired(Cluster::start(1).await).await;
    assert!(alice.unpair("bot").await.unwrap());
    let ran = run(&world, "bot", &["run", "echo", "hello"]).expect(77);
    assert!(
        ran.err.contains("the pairing with alice has been revoked"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("countersign pair"), "{}", ran.err);

    let line = "COUNTERSIGN_PROFILE=bot countersign run echo hello";
    let mut agent = terminal(world.directory.path(), line, "yes\n");
    let mut lines = BufReader::new(agent.stdout.take().unwrap()).lines();
    let mut lines = lines.by_ref().map(Result::unwrap);
    let link = lines.find_map(|line| {
        let (_, rest) = line.split_once("countersign pair '")?;
        rest.split_once('\'').map(|(link, _)| link.to_owned())
    });
    run(&world, "laptop", &["pair", &link.unwrap()]).expect(0);
    until("the request waits", PATIENCE, async || {
        alice.find("").await.unwrap().len() == 1
    })
    .await;
    let alice = Approver::open(&world.file("laptop"), &world.cluster.clock);
    decide(&alice.unwrap(), &choice(Verdict::Approve)).await;
    let rest: Vec<_> = lines.collect();
    assert!(
        rest.iter().any(|line| line.trim_end() == "hello"),
        "{rest:?}"
    );
    assert_eq!(agent.wait().unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_with_the_wrong_scheme_is_explained_at_once() {
    let join = |world: &ClientScene, url: &str| {
        let link = format!("{url}/#/join/0123456789abcdef0123456789abcdef");
        let begun = Instant::now();
        let ran = run(world, "new", &["join", &link]);
        assert!(begun.elapsed().as_secs() < 10, "{}", ran.err);
        ran
    };
    let world = ClientScene::start().await;
    let url = world.cluster.urls().remove(0);
    let ran = join(&world, &url.replacen("http://", "https://", 1)).expect(69);
    let expected = format!("it does not use TLS; if that is intended, use {url}");
    assert!(ran.err.contains(&expected), "{}", ran.err);
    let ran = join(&world, "http://gateway.example.org").expect(1);
    assert!(
        ran.err.contains("use https, or --allow-http"),
        "{}",
        ran.err
    );
    // It was used, or never made.
    let ran = join(&world, &url).expect(77);
    assert!(
        ran.err
            .contains("has been used, has expired or was withdrawn"),
        "{}",
        ran.err
    );

    let files = Files::with(&Authority::new("gateways").server());
    let cluster = Cluster::with(1, |config| files.configure(config)).await;
    let world = ClientScene::with(cluster);
    let address = world.cluster.urls().remove(0).replace("https:", "http:");
    let ran = join(&world, &address).expect(69);
    let expected = address.replace("http:", "use https:");
    assert!(ran.err.contains(&expected), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_narrow_window_gets_the_link_without_its_qr_code() {
    let world = ClientScene::start().await;
    world.enforcer("bot").await;
    for (columns, has_code) in [(40, false), (120, true)] {
        let line = format!("stty cols {columns} rows 50; COUNTERSIGN_PROFILE=bot countersign pair");
        let mut child = terminal(world.directory.path(), &line, "");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut shown = String::new();
        while !shown.contains("countersign pair '") {
            shown += &lines.next().unwrap().unwrap();
        }
        assert_eq!(shown.contains('█'), has_code, "{columns}: {shown}");
        assert_eq!(shown.contains("scan this code"), has_code, "{shown}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
