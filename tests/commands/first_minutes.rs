//! The first five minutes of the README, exactly as printed: a gateway, an approver's terminal, an
//! agent's terminal.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::process::{Process, countersign};

const PATIENCE: Duration = Duration::from_secs(60);

/// The commands of the part for terminals, without the path of the program.
fn printed() -> Vec<String> {
    let readme = include_str!("../../README.md");
    let (_, section) = readme.split_once("## The first five minutes").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let (_, section) = section
        .split_once("Everything works in terminals too.")
        .unwrap();
    let commands = section.lines().filter_map(|line| line.strip_prefix("$ "));
    let commands = commands.filter(|line| *line != "export PATH=\"$PWD/target/debug:$PATH\"");
    commands.map(str::to_owned).collect()
}

/// One line in a terminal of its own, with what is typed there.
pub fn terminal(config: &Path, line: &str, typed: &str) -> Child {
    terminal_with(config, &config.join("data"), line, typed)
}

fn terminal_at(home: &Path, line: &str, typed: &str) -> Child {
    terminal_with(&home.join("config"), &home.join("data"), line, typed)
}

fn terminal_with(config: &Path, data: &Path, line: &str, typed: &str) -> Child {
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
        .env("XDG_DATA_HOME", data)
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

fn run(home: &Path, line: &str, typed: &str) -> String {
    let (code, text) = end(terminal_at(home, line, typed));
    assert_eq!(code, 0, "{line}: {text}");
    text
}

/// Waits until something is in the inbox.
fn await_request(home: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while !run(home, "countersign inbox", "").contains("echo hello") {
        assert!(Instant::now() < deadline, "nothing arrived");
    }
}

#[test]
fn the_first_five_minutes_of_the_readme_go_as_printed() {
    let [join, ask, inbox, show, approve, reject] = printed().try_into().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().to_owned();
    let file = directory.path().join("ready.json");
    // As `make dev` does, but for the port.
    let mut dev = Process::start(
        countersign()
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("XDG_DATA_HOME", home.join("data"))
            .args(["dev", "--listen", "127.0.0.1:0", "--ready-file"])
            .arg(&file),
    );
    let ready = dev.await_json(&file);
    let page = ready["nodes"][0].as_str().unwrap();

    let joined = run(&home, &join, "");
    assert!(joined.contains("joined as the approver me"), "{joined}");

    // The agent asks, and first has to be paired.
    let mut agent = terminal_at(&home, &ask, "");
    let mut lines = BufReader::new(agent.stdout.take().unwrap()).lines();
    assert!(include_str!("../../README.md").contains("`countersign pair '…'`"));
    let pair = lines.by_ref().map(Result::unwrap).find_map(|line| {
        let (_, rest) = line.split_once("countersign pair '")?;
        let (link, _) = rest.split_once('\'')?;
        assert!(link.starts_with(&format!("{page}/#/pair/")), "{link}");
        Some(format!("countersign pair '{link}'"))
    });
    let paired = run(&home, &pair.unwrap(), "");
    assert!(paired.contains("paired with demo-enforcer"), "{paired}");
    await_request(&home);
    let listed = run(&home, &inbox, "");
    assert!(listed.contains("demo-enforcer"), "{listed}");
    let shown = run(&home, &show, "");
    assert!(
        shown.contains("echo hello") && shown.contains("program "),
        "{shown}"
    );
    let approved = run(&home, &approve, "yes\n");
    assert!(approved.contains("approved"), "{approved}");
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(
        rest.iter().any(|line| line.trim_end().ends_with("hello")),
        "{rest:?}"
    );
    assert_eq!(agent.wait().unwrap().code(), Some(0));

    // Again, and no.
    let agent = terminal_at(&home, &ask, "");
    await_request(&home);
    run(&home, &reject, "yes\n");
    let (code, text) = end(agent);
    assert_eq!(code, 77, "{text}");
    assert!(text.contains("me rejected it: Not on a Friday."), "{text}");
    assert!(
        !text.lines().any(|line| line.trim_end() == "hello"),
        "{text}"
    );

    // And no more.
    assert!(include_str!("../../README.md").contains("`countersign unpair demo-enforcer`"));
    run(&home, "countersign unpair demo-enforcer", "");
    let (code, text) = end(terminal_at(&home, &ask, "no\n"));
    assert_eq!(code, 77, "{text}");
    assert!(text.contains("Pair again now? [yes/no]"), "{text}");
    assert!(
        text.contains("revoked") && text.contains("countersign pair"),
        "{text}"
    );
}
