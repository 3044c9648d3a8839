//! The first five minutes of the README, exactly as printed: a gateway, an approver's terminal, an
//! agent's terminal.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::process::{Process, countersign};

const PATIENCE: Duration = Duration::from_secs(60);

/// The commands of the section, with the links and paths left out.
fn printed() -> Vec<String> {
    let readme = include_str!("../../README.md");
    let (_, section) = readme.split_once("## The first five minutes").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let commands = section.lines().filter_map(|line| line.strip_prefix("$ "));
    commands.map(str::to_owned).collect()
}

/// One line in a terminal of its own, with what is typed there.
pub fn terminal(config: &Path, line: &str, typed: &str) -> Child {
    let program = countersign();
    let mut command = Command::new("script");
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let directory = Path::new(program.get_program()).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut child = command
        .env("XDG_CONFIG_HOME", config)
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
    let mut input = child.stdin.take().unwrap();
    input.write_all(typed.as_bytes()).unwrap();
    // Left open: the end of the input would end the terminal.
    std::mem::forget(input);
    child
}

/// Everything it prints until its end, and its exit status.
pub fn end(mut child: Child) -> (i32, String) {
    let mut text = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    std::io::Read::read_to_string(&mut output, &mut text).unwrap();
    (child.wait().unwrap().code().unwrap(), text)
}

fn run(config: &Path, line: &str, typed: &str) -> String {
    let (code, text) = end(terminal(config, line, typed));
    assert_eq!(code, 0, "{line}: {text}");
    text
}

/// Waits until something is in the inbox.
fn await_request(config: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while !run(config, "countersign inbox", "").contains("echo hello") {
        assert!(Instant::now() < deadline, "nothing arrived");
    }
}

#[test]
fn the_first_five_minutes_of_the_readme_go_as_printed() {
    let [_, join, ask, pair, inbox, show, approve, reject] = printed().try_into().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (config, file) = (
        directory.path().join("config"),
        directory.path().join("ready.json"),
    );
    let mut dev = Process::start(
        countersign()
            .env("XDG_CONFIG_HOME", &config)
            .args([
                "dev",
                "--ephemeral",
                "--listen",
                "127.0.0.1:0",
                "--ready-file",
            ])
            .arg(&file),
    );
    let ready = dev.await_json(&file);
    let invitation = ready["invitation"].as_str().unwrap();
    let page = ready["nodes"][0].as_str().unwrap();
    let fill = |line: &str, link: &str| {
        let (before, rest) = line.split_once('\'').unwrap();
        let (template, _) = rest.split_once('\'').unwrap();
        let template = template.replace("http://127.0.0.1:8080", page);
        assert!(
            link.starts_with(template.trim_end_matches('…')),
            "{link} is no {template}"
        );
        format!("{before}'{link}'")
    };

    let joined = run(&config, &fill(&join, invitation), "");
    assert!(joined.contains("joined as the approver me"), "{joined}");

    // The agent asks, and first has to be paired.
    let mut agent = terminal(&config, &ask, "");
    let mut lines = BufReader::new(agent.stdout.take().unwrap()).lines();
    let link = lines.by_ref().map(Result::unwrap).find_map(|line| {
        let (_, rest) = line.split_once("countersign pair '")?;
        rest.split_once('\'').map(|(link, _)| link.to_owned())
    });
    let paired = run(&config, &fill(&pair, &link.unwrap()), "");
    assert!(paired.contains("paired with demo-enforcer"), "{paired}");
    await_request(&config);
    let listed = run(&config, &inbox, "");
    assert!(listed.contains("demo-enforcer"), "{listed}");
    let shown = run(&config, &show, "");
    assert!(
        shown.contains("echo hello") && shown.contains("program "),
        "{shown}"
    );
    let approved = run(&config, &approve, "yes\n");
    assert!(approved.contains("approved"), "{approved}");
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(
        rest.iter().any(|line| line.trim_end().ends_with("hello")),
        "{rest:?}"
    );
    assert_eq!(agent.wait().unwrap().code(), Some(0));

    // Again, and no.
    let agent = terminal(&config, &ask, "");
    await_request(&config);
    run(&config, &reject, "yes\n");
    let (code, text) = end(agent);
    assert_eq!(code, 77, "{text}");
    assert!(text.contains("me rejected it: Not on a Friday."), "{text}");
    assert!(
        !text.lines().any(|line| line.trim_end() == "hello"),
        "{text}"
    );

    // And no more.
    assert!(include_str!("../../README.md").contains("`countersign unpair demo-enforcer`"));
    run(&config, "countersign unpair demo-enforcer", "");
    let (code, text) = end(terminal(&config, &ask, "no\n"));
    assert_eq!(code, 77, "{text}");
    assert!(text.contains("Pair again now? [yes/no]"), "{text}");
    assert!(
        text.contains("revoked") && text.contains("countersign pair"),
        "{text}"
    );
}
