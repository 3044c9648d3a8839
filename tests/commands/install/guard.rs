//! `install --guard-for`: the steps that set up a guard. The programs that change a system only
//! write down how they were called.

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
    for name in ["useradd", "install", "mv", "systemctl"] {
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
        "install -d -m 755 /var/lib/countersign-guard".to_owned(),
        format!("install -d -o countersign-guard -m 700 /var/lib/countersign-guard/{USER}"),
        "install -m 755 PROGRAM /usr/local/bin/countersign.new".to_owned(),
        "mv -f /usr/local/bin/countersign.new /usr/local/bin/countersign".to_owned(),
        "unit".to_owned(),
        "systemctl daemon-reload".to_owned(),
        format!("systemctl enable countersign-guard@{USER}.service"),
        format!("systemctl restart countersign-guard@{USER}.service"),
    ];
    let called = calls(&home);
    let mut called: Vec<_> = called.lines().map(str::to_owned).collect();
    // The copy is of the process that runs, whatever its path leads to by now.
    let copied = called.iter_mut().find(|call| call.contains("/proc/"));
    let copied = copied.expect("the program is copied");
    let process = copied
        .split_whitespace()
        .find(|word| word.starts_with("/proc/"));
    *copied = copied.replace(process.unwrap(), "PROGRAM");
    called.insert(5, "unit".to_owned());
    assert_eq!(called, expected);
    for step in expected
        .iter()
        .filter(|step| !step.contains("PROGRAM") && *step != "unit")
    {
        assert!(ran.out.contains(&format!("run {step}")), "{}", ran.out);
    }
    let unit = home.read(UNIT);
    assert!(unit.contains("ExecStart=/usr/local/bin/countersign guard --socket /run/countersign-guard/%i/socket --user %i"));
    let settings = home.read("system/etc/claude-code/managed-settings.json");
    let settings: Value = serde_json::from_str(&settings).unwrap();
    let hook = command_of(call_hook("claude", &settings));
    // One hook for all users, each of whom has a guard.
    let address = "countersign-guard:/run/countersign-guard/{user}/socket";
    assert!(hook.contains(address), "{hook}");
    // The agent's user could replace the one that was built.
    assert!(hook.contains("/usr/local/bin/countersign"), "{hook}");
    assert!(!hook.contains(program), "{hook}");
    assert!(ran.err.contains("join 'LINK'"), "{}", ran.err);

    std::fs::remove_file(home.path("calls")).unwrap();
    let again = set_up(&home, USER, &["--managed", "--yes", "--json"]);
    assert_eq!(again.code, 0, "{}", again.err);
    let report: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(report["files"].as_array().unwrap().len(), 0, "{report}");
    assert_eq!(report["commands"].as_array().unwrap().len(), 8, "{report}");
    assert!(
        report["warnings"].to_string().contains("join 'LINK'"),
        "{report}"
    );
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
    assert!(ran.err.contains("install -d -m 755"), "{}", ran.err);
    assert!(ran.err.contains("no room"), "{}", ran.err);
    assert!(!home.path(UNIT).exists());
    assert!(!home.path("system/etc/claude-code").exists());
}

/// A hook that asks a guard that does not run denies every call.
#[test]
fn the_hook_is_installed_only_when_the_guard_was_started() {
    let home = machine();
    replace(&home, "systemctl", "echo no bus >&2; exit 1");
    let ran = set_up(&home, USER, &["--managed", "--yes"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("no bus"), "{}", ran.err);
    assert!(home.path(UNIT).exists());
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
        ("root", &["--managed", "--yes"], 64, "root's agents"),
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
        // A system without systemd says that first.
        let expected = ["needs root", "does not run systemd"];
        let is_expected = expected.iter().any(|text| ran.err.contains(text));
        assert!(is_expected, "{}", ran.err);
    }
    assert_eq!(calls(&home), "");
    assert!(!home.path(UNIT).exists());
}
