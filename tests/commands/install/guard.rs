//! `install --guard-for`: the steps that set up a guard. The programs that change a system only write down how they were called.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::{Home, call_hook, command_of};
use crate::commands::install::home::Ran;

const UNIT: &str = "system/etc/systemd/system/countersign-guard@.service";
/// A user that every system has, and that is not root.
const USER: &str = "nobody";

/// A system of its own, that runs systemd.
fn machine() -> Home {
    let home = Home::new();
    std::fs::create_dir_all(home.path("system/run/systemd/system")).unwrap();
    for name in ["useradd", "install", "systemctl"] {
        let log = home.path("calls");
        replace(
            &home,
            name,
            &format!("echo \"{name} $*\" >> {}", log.display()),
        );
    }
    home
}

fn replace(home: &Home, name: &str, script: &str) {
    let path = format!("programs/{name}");
    home.write(&path, &format!("#!/bin/sh\n{script}\n"));
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(home.path(&path), executable).unwrap();
}

fn set_up(home: &Home, user: &str, more: &[&str]) -> Ran {
    let path = format!("{}:/usr/bin:/bin", home.path("programs").display());
    let system = home.path("system");
    let mut command = home.command(&["install", "claude", "--guard-for", user, "--system-root"]);
    let output = command.arg(system).args(more).env("PATH", path).output();
    let output = output.unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn calls(home: &Home) -> String {
    std::fs::read_to_string(home.path("calls")).unwrap_or_default()
}

#[test]
fn a_guard_is_set_up_in_order_and_the_hook_asks_through_it() {
    let home = machine();
    let ran = set_up(&home, USER, &["--managed", "--yes"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let program = env!("CARGO_BIN_EXE_countersign");
    let expected = [
        "useradd --system --home-dir /var/lib/countersign-guard --shell /usr/sbin/nologin countersign-guard".to_owned(),
        format!("install -d -o countersign-guard -m 700 /var/lib/countersign-guard /var/lib/countersign-guard/{USER}"),
        format!("install -m 755 {program} /usr/local/bin/countersign"),
        "systemctl daemon-reload".to_owned(),
        format!("systemctl enable countersign-guard@{USER}"),
        format!("systemctl restart countersign-guard@{USER}"),
    ];
    let called = calls(&home);
    assert_eq!(called.lines().collect::<Vec<_>>(), expected);
    for step in expected {
        assert!(ran.out.contains(&format!("run {step}")), "{}", ran.out);
    }
    let unit = home.read(UNIT);
    assert!(unit.contains("ExecStart=/usr/local/bin/countersign guard --socket /run/countersign-guard/%i/socket --user %i"));
    let settings = home.read("system/etc/claude-code/managed-settings.json");
    let settings: Value = serde_json::from_str(&settings).unwrap();
    let hook = command_of(call_hook("claude", &settings));
    let address = format!("countersign-guard:/run/countersign-guard/{USER}/socket");
    assert!(hook.contains(&address), "{hook}");
    // The agent's user could replace the one that was built.
    assert!(hook.contains("/usr/local/bin/countersign"), "{hook}");
    assert!(!hook.contains(program), "{hook}");
    assert!(ran.err.contains("join 'LINK'"), "{}", ran.err);

    std::fs::remove_file(home.path("calls")).unwrap();
    let again = set_up(&home, USER, &["--managed", "--yes", "--json"]);
    assert_eq!(again.code, 0, "{}", again.err);
    let report: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(report["files"].as_array().unwrap().len(), 0, "{report}");
    assert_eq!(report["commands"].as_array().unwrap().len(), 6, "{report}");
    assert!(calls(&home).contains("systemctl restart"));
}

#[test]
fn a_look_changes_nothing() {
    let home = machine();
    let ran = set_up(&home, USER, &["--managed", "--dry-run"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("run useradd"), "{}", ran.out);
    assert!(
        ran.out.contains("countersign-guard@.service"),
        "{}",
        ran.out
    );
    assert_eq!(calls(&home), "");
    assert!(!home.path(UNIT).exists());
}

#[test]
fn a_step_that_fails_ends_it_and_no_hook_is_installed() {
    let home = machine();
    replace(&home, "install", "echo no room >&2; exit 1");
    let ran = set_up(&home, USER, &["--managed", "--yes"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(
        ran.err.contains("install -d -o countersign-guard"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("no room"), "{}", ran.err);
    assert!(!home.path(UNIT).exists());
    assert!(!home.path("system/etc/claude-code").exists());
}

#[test]
fn users_and_systems_that_cannot_have_one_are_refused() {
    let home = machine();
    for (user, more, code, expected) in [
        (
            "nobody-of-this-name",
            &["--managed", "--yes"][..],
            64,
            "there is no user",
        ),
        ("root", &["--managed", "--yes"], 64, "agents of root"),
        (USER, &["--yes"], 2, "--managed"),
        (USER, &["--managed", "--remove"], 2, "cannot be used with"),
    ] {
        let ran = set_up(&home, user, more);
        assert_eq!(ran.code, code, "{user} {more:?}: {}", ran.err);
        assert!(ran.err.contains(expected), "{user} {more:?}: {}", ran.err);
    }
    std::fs::remove_dir_all(home.path("system/run")).unwrap();
    let ran = set_up(&home, USER, &["--managed", "--yes"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("does not run systemd"), "{}", ran.err);
    if !nix::unistd::geteuid().is_root() {
        let ran = home.run(&[
            "install",
            "claude",
            "--managed",
            "--guard-for",
            USER,
            "--yes",
        ]);
        assert_eq!(ran.code, 1, "{}", ran.err);
        assert!(ran.err.contains("needs root"), "{}", ran.err);
    }
    assert_eq!(calls(&home), "");
    assert!(!home.path(UNIT).exists());
}
