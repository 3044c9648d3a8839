//! Runs of `dev` that keep apart: their banners, profiles, ports, and how to delete them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::process::{Process, Signal, countersign, run, signal};

/// A user's home, with a configuration and data.
struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("tmp")).unwrap();
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = countersign();
        command
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_DATA_HOME", self.path("data"))
            .env("TMPDIR", self.path("tmp"))
            .args(arguments);
        command
    }

    fn dev(&self, arguments: &[&str]) -> (Process, Value) {
        let file = self.path("ready.json");
        let _absent = std::fs::remove_file(&file);
        let mut command = self.command(&["dev", "--listen", "127.0.0.1:0"]);
        let mut dev = Process::start(command.args(arguments).arg("--ready-file").arg(&file));
        let ready = dev.await_json(&file);
        (dev, ready)
    }

    fn kept(&self) -> PathBuf {
        self.path("data/countersign-dev")
    }

    fn profile(&self) -> String {
        std::fs::read_to_string(self.path("config/countersign/default.toml")).unwrap()
    }
}

fn stop(dev: Process) -> String {
    signal(dev.pid(), Signal::SIGTERM);
    let (clean, printed) = dev.end();
    assert!(clean, "{printed}");
    printed
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// A person with a terminal on one of the runs.
struct Person<'a> {
    home: &'a Home,
    profiles: Option<&'a str>,
}

impl Person<'_> {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.command(arguments);
        if let Some(profiles) = self.profiles {
            command.env("COUNTERSIGN_PROFILES", profiles);
        }
        command
    }

    /// Joins, and pairs with the enforcer.
    fn join_and_pair(&self, ready: &Value) {
        let link = ready["invitation"].as_str().unwrap();
        let (ok, text) = run(&mut self.command(&["join", link]));
        assert!(ok, "{text}");
        let offered = self.home.path("offered");
        let stderr = std::fs::File::create(&offered).unwrap();
        let mut enforcer = self.command(&["pair"]).stderr(stderr).spawn().unwrap();
        let link = loop {
            let said = std::fs::read_to_string(&offered).unwrap();
            if let Some(link) = said.split_whitespace().find(|it| it.contains("/#/pair/")) {
                break link.trim_matches('\'').to_owned();
            }
            assert!(enforcer.try_wait().unwrap().is_none(), "{said}");
            std::thread::sleep(Duration::from_millis(20));
        };
        let (ok, text) = run(&mut self.command(&["pair", &link]));
        assert!(ok && text.contains("paired with demo-enforcer"), "{text}");
        assert!(enforcer.wait().unwrap().success());
    }

    /// The agent asks, without another pairing, and is approved.
    fn approve(&self) {
        let mut agent = self.command(&["run", "--", "true"]).spawn().unwrap();
        let id = loop {
            let output = self.command(&["inbox", "--json"]).output().unwrap();
            let listed: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            if let Some(id) = listed.pointer("/0/requestId") {
                break id.as_str().unwrap().to_owned();
            }
            assert!(agent.try_wait().unwrap().is_none(), "{listed}");
        };
        let (ok, text) = run(&mut self.command(&["approve", &id]));
        assert!(ok, "{text}");
        assert!(agent.wait().unwrap().success());
    }
}

#[test]
fn the_banner_has_ten_lines_and_no_key_and_the_log_is_in_a_file() {
    let home = Home::new();
    for arguments in [&[][..], &["--ephemeral"]] {
        let file = home.path("ready.json");
        let _absent = std::fs::remove_file(&file);
        let said = home.path("stderr");
        let mut command = home.command(&["dev", "--listen", "127.0.0.1:0", "--ready-file"]);
        let stderr = std::fs::File::create(&said).unwrap();
        let mut dev = Process::start(command.arg(&file).args(arguments).stderr(stderr));
        let ready = dev.await_json(&file);
        let log = std::fs::read_to_string(ready["log"].as_str().unwrap()).unwrap();
        assert!(log.contains("INFO"), "{log}");
        let printed = stop(dev);
        assert!(printed.lines().count() <= 10, "{printed}");
        let link = ready["invitation"].as_str().unwrap();
        assert_eq!(printed.lines().last(), Some(link), "{printed}");
        assert!(
            !printed.contains("csk_") && !printed.contains("cso_"),
            "{printed}"
        );
        // But where they are.
        assert!(
            printed.contains("/demo.json (--keys prints them)"),
            "{printed}"
        );
        assert_eq!(std::fs::read_to_string(&said).unwrap(), "");
    }
}

#[test]
fn a_node_that_does_not_start_shows_the_end_of_its_log() {
    let home = Home::new();
    let mut command = home.command(&["dev", "--ephemeral", "--listen", "127.0.0.1:0"]);
    let (ok, text) = run(command.env("COUNTERSIGN_AUTH__JWT_SECRET", "short"));
    assert!(
        !ok && text.contains("\ncountersign: auth.jwt_issuer: "),
        "{text}"
    );
}

#[test]
fn other_runs_leave_the_enforcer_of_the_kept_demo_alone() {
    let home = Home::new();
    let (dev, ready) = home.dev(&[]);
    assert_eq!(
        (&ready["profile"], &ready["profiles"]),
        (&Value::Null, &Value::Null)
    );
    let person = |profiles| Person {
        home: &home,
        profiles,
    };
    person(None).join_and_pair(&ready);
    person(None).approve();
    stop(dev);
    let before = home.profile();

    // An ephemeral run has an enforcer of the same name and another key.
    let (dev, ready) = home.dev(&["--ephemeral"]);
    let profiles = ready["profiles"].as_str().unwrap().to_owned();
    person(Some(profiles.as_str())).join_and_pair(&ready);
    person(Some(profiles.as_str())).approve();
    let printed = stop(dev);
    let setup = format!("COUNTERSIGN_PROFILES=\"{profiles}\"");
    assert!(printed.contains(&setup), "{printed}");
    assert_eq!(home.profile(), before);
    assert_eq!(files(&home.path("tmp")), Vec::<PathBuf>::new());
    assert_eq!(
        files(&home.path("config/countersign")).len(),
        2,
        "and its lock"
    );

    let elsewhere = home.path("elsewhere");
    let (dev, ready) = home.dev(&["--data-dir", elsewhere.to_str().unwrap()]);
    let own = elsewhere.join("profiles");
    assert_eq!(ready["profiles"].as_str(), own.to_str());
    assert!(own.join("default.toml").exists());
    stop(dev);
    assert_eq!(home.profile(), before);

    // The kept demo goes on: its agent asks without another pairing, hence without a warning.
    let (dev, _) = home.dev(&[]);
    person(None).approve();
    stop(dev);
}

#[test]
fn a_run_on_another_database_has_its_own_profiles() {
    let home = Home::new();
    let (kept, ready) = home.dev(&[]);
    let before = home.profile();
    // A second one beside it, on the same data directory.
    let url = ready["databaseUrl"].as_str().unwrap();
    let file = home.path("second.json");
    let mut command = home.command(&["--database-url", url, "dev", "--listen", "127.0.0.1:0"]);
    let mut second = Process::start(command.arg("--ready-file").arg(&file));
    let other = second.await_json(&file);
    let profiles = other["profiles"].as_str().unwrap();
    assert!(profiles.starts_with(&format!("{}/profiles-", home.kept().display())));
    assert_eq!(home.profile(), before);
    let (ok, text) = run(&mut home.command(&["invite", "me"]));
    assert!(!ok && text.contains("--tenant"), "two run: {text}");
    let again = &mut home.command(&["--database-url", url, "dev", "--listen", "127.0.0.1:0"]);
    let (ok, text) = run(again);
    assert!(!ok && text.contains("in use by another"), "{text}");
    stop(second);
    stop(kept);
}

#[test]
fn two_that_start_together_do_not_race_for_the_port_of_the_metrics() {
    let home = Home::new();
    let port = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().to_string()
    };
    let mut started: Vec<_> = (0..3)
        .map(|number| {
            let file = home.path(&format!("ready-{number}.json"));
            let mut command = home.command(&["dev", "--ephemeral", "--listen", "127.0.0.1:0"]);
            command.env("COUNTERSIGN_TELEMETRY__METRICS_LISTEN", &port);
            let dev = Process::start(command.arg("--ready-file").arg(&file));
            (dev, file)
        })
        .collect();
    let ready = started.iter_mut().map(|(dev, file)| dev.await_json(file));
    let url = |ready: Value| ready["metrics"][0].as_str().unwrap().to_owned();
    let mut metrics: Vec<_> = ready.map(url).collect();
    metrics.sort();
    metrics.dedup();
    assert_eq!(metrics.len(), 3, "{metrics:?}");
}

#[test]
fn another_link_is_printed_for_the_running_demo() {
    let home = Home::new();
    let (ok, text) = run(&mut home.command(&["invite", "me"]));
    let place = format!("no `countersign dev` runs on {}", home.kept().display());
    assert!(!ok && text.contains(&place), "{text}");
    let (dev, ready) = home.dev(&[]);
    let output = home.command(&["invite", "me"]).output().unwrap();
    let link = String::from_utf8(output.stdout).unwrap();
    let page = ready["nodes"][0].as_str().unwrap();
    assert!(link.starts_with(&format!("{page}/#/join/")), "{link}");
    let (ok, text) = run(&mut home.command(&["join", link.trim()]));
    assert!(ok && text.contains("joined as the approver me"), "{text}");
    stop(dev);
    let (ok, text) = run(&mut home.command(&["invite", "me"]));
    assert!(!ok && text.contains(&place), "{text}");

    let (dev, ready) = home.dev(&["--ephemeral"]);
    let data = Path::new(ready["log"].as_str().unwrap()).parent().unwrap();
    let invite = ["invite", "me", "--data-dir", data.to_str().unwrap()];
    assert!(run(&mut home.command(&invite)).0);
    let printed = stop(dev);
    assert!(
        printed.contains(&format!("countersign {}\n", invite.join(" "))),
        "{printed}"
    );
    for (arguments, expected) in [
        (&["invite", "bot", "--role", "enforcer"][..], "--id bot"),
        (&["invite", "me", "--id", "you"], "cannot be used with"),
    ] {
        let (ok, text) = run(&mut home.command(arguments));
        assert!(!ok && text.contains(expected), "{text}");
    }
}

#[test]
fn reset_deletes_the_data_and_the_roles_of_the_demo_and_nothing_else() {
    let home = Home::new();
    let reset = |arguments: &[&str]| {
        let all = [&["dev", "--reset"], arguments].concat();
        run(&mut home.command(&all))
    };
    let (ok, text) = reset(&["--yes"]);
    assert!(ok && text.contains("nothing to delete"), "{text}");

    let (dev, ready) = home.dev(&[]);
    let (ok, text) = run(&mut home.command(&["join", ready["invitation"].as_str().unwrap()]));
    assert!(ok, "{text}");
    let (ok, text) = reset(&["--yes"]);
    assert!(!ok && text.contains("in use by another"), "{text}");
    stop(dev);
    // It has no terminal to ask on.
    let (ok, text) = run(Command::new("setsid")
        .args(["--wait"])
        .arg(env!("CARGO_BIN_EXE_countersign"))
        .args(["dev", "--reset"])
        .env("XDG_CONFIG_HOME", home.path("config"))
        .env("XDG_DATA_HOME", home.path("data"))
        .stdin(std::process::Stdio::null()));
    assert!(!ok && text.contains("--yes"), "{text}");
    for named in ["/countersign-dev: the database", "default.toml: the roles"] {
        assert!(text.contains(named), "{text}");
    }
    assert!(home.kept().join("demo.json").exists());

    let config = home.path("config/countersign");
    std::fs::write(home.kept().join("notes.txt"), "mine").unwrap();
    let other = config.join("work.toml");
    std::fs::write(&other, "").unwrap();
    let (ok, text) = reset(&["--yes"]);
    assert!(ok, "{text}");
    assert_eq!(files(&home.kept()), [home.kept().join("notes.txt")]);
    assert_eq!(files(&config), [other]);
    std::fs::remove_file(home.kept().join("notes.txt")).unwrap();

    // A server that a killed run left is stopped.
    let (mut dev, ready) = home.dev(&[]);
    dev.kill();
    let (ok, text) = reset(&["--yes"]);
    assert!(ok, "{text}");
    assert!(!home.kept().exists());
    let address = ready["databaseUrl"]
        .as_str()
        .unwrap()
        .split(['@', '/'])
        .nth(3)
        .unwrap();
    assert!(std::net::TcpStream::connect(address).is_err(), "{address}");

    let (ok, text) = reset(&["--database-url", "postgres://127.0.0.1:1/none"]);
    assert!(!ok && text.contains("yourself"), "{text}");
}

/// A directory that somebody named by mistake.
#[test]
fn reset_of_a_foreign_directory_deletes_nothing() {
    let home = Home::new();
    let foreign = home.path("foreign");
    std::fs::create_dir_all(foreign.join("demo")).unwrap();
    let path = foreign.to_str().unwrap();
    let (ok, text) = run(&mut home.command(&["dev", "--reset", "--yes", "--data-dir", path]));
    assert!(ok && text.contains("nothing to delete"), "{text}");
    assert!(foreign.join("demo").exists());
}
