//! The configuration: its reference matches the code, secrets can come from files, and unknown keys
//! refuse to start.

mod check;

use std::collections::BTreeMap;

use countersign::config::Config;
use figment::Figment;
use figment::providers::{Format as _, Toml};
use serde_json::Value;

use crate::support::process::{countersign, run};
use crate::support::{Cluster, request_id, sealed};

const REFERENCE: &str = include_str!("../docs/configuration.md");

/// A secret that is long enough for every key.
const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// Every key with its default, by its path.
fn keys() -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    collect(
        "",
        serde_json::to_value(Config::default()).unwrap(),
        &mut found,
    );
    found
}

/// Every key of a section and of the sections in it.
fn collect(path: &str, value: Value, found: &mut BTreeMap<String, Value>) {
    let Value::Object(members) = value else {
        found.insert(path.to_owned(), value);
        return;
    };
    for (name, value) in members {
        let path = if path.is_empty() {
            name
        } else {
            format!("{path}.{name}")
        };
        collect(&path, value, found);
    }
}

/// Every key that holds a secret, recognised by its debug output.
fn secrets() -> Vec<String> {
    let printed = format!("{:#?}", Config::default());
    let (mut section, mut found) = (String::new(), Vec::new());
    for line in printed.lines() {
        if let Some((name, _)) = line
            .split_once(": ")
            .filter(|(_, rest)| rest.ends_with('{'))
        {
            name.trim().clone_into(&mut section);
        } else if let Some(name) = line.strip_suffix(": (none),") {
            found.push(format!("{section}.{}", name.trim()));
        }
    }
    found
}

/// The environment variable of a key.
fn variable(key: &str) -> String {
    format!("COUNTERSIGN_{}", key.replace('.', "__").to_uppercase())
}

/// The default that a cell of the reference states.
fn default(cell: &str) -> Value {
    let Some(code) = cell.strip_prefix('`') else {
        return Value::Null;
    };
    let (code, remark) = code.split_once('`').expect("a closing backtick");
    let read = Figment::from(Toml::string(&format!("value = {code}")));
    let value: Value = read.extract_inner("value").expect("TOML");
    if let Some(remark) = remark.trim().strip_prefix('(') {
        let (count, unit) = remark.trim_end_matches(')').split_once(' ').unwrap();
        let unit = match unit {
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "h" => 3_600,
            "days" => 24 * 3_600,
            other => panic!("unknown unit: {other}"),
        };
        let count: u64 = count.parse().unwrap();
        assert_eq!(value, Value::from(count * unit), "{cell}");
    }
    value
}

#[test]
fn the_reference_has_every_key_with_its_variable_and_true_default_and_no_other() {
    let mut rest = keys();
    let mut section = "";
    for line in REFERENCE.lines() {
        if let Some(name) = line.strip_prefix("## `[") {
            section = name.trim_end_matches("]`");
        }
        let Some(row) = line
            .strip_prefix("| `")
            .filter(|row| row.contains("`COUNTERSIGN_"))
        else {
            continue;
        };
        let cells: Vec<&str> = row.split(" | ").collect();
        let [key, named, said, meaning] = cells[..] else {
            panic!("not four cells: {line}")
        };
        let key = key.trim_end_matches('`');
        let truth = rest
            .remove(key)
            .unwrap_or_else(|| panic!("{key} does not exist, or is listed twice"));
        assert!(
            key.starts_with(&format!("{section}.")),
            "{key} in {section}"
        );
        assert_eq!(named, format!("`{}`", variable(key)));
        let truth = if truth == "" { Value::Null } else { truth };
        assert_eq!(default(said), truth, "the default of {key}");
        assert!(meaning.len() > 5, "{key} has no meaning");
    }
    assert!(rest.is_empty(), "not in the reference: {rest:?}");
}

#[test]
fn the_reference_has_every_constant_with_its_true_value_and_no_key_sets_one() {
    let mut rest = BTreeMap::new();
    collect("", Config::default().constants(), &mut rest);
    let (_, table) = REFERENCE.split_once("## Constants").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    for row in table.lines().filter_map(|line| line.strip_prefix("| `")) {
        let (name, row) = row.split_once("` | ").unwrap();
        let (said, _) = row.split_once(" | ").unwrap();
        assert_eq!(Some(default(said)), rest.remove(name), "{name}");
        assert!(!keys().contains_key(name), "{name} is a key");
    }
    assert!(rest.is_empty(), "not in the reference: {rest:?}");
    assert!(keys().len() <= 123, "{} keys", keys().len());
}

#[test]
fn every_secret_can_stand_in_a_file_and_nothing_is_guessed() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let load = |key: &str, lines: &[(&str, &str)]| {
        let (section, _) = key.split_once('.').unwrap();
        let lines: Vec<String> = lines
            .iter()
            .map(|(key, value)| format!("{} = '{value}'\n", key.split_once('.').unwrap().1))
            .collect();
        let file = write(
            "countersign.toml",
            &format!("[{section}]\n{}", lines.concat()),
        );
        Config::load(Some(file.as_ref()))
    };
    let held = write("secret", &format!("{SECRET}\r\n"));
    let missing = directory.path().join("missing").display().to_string();
    let empty = write("empty", "\n");
    let secrets = secrets();
    assert!(secrets.contains(&"database.listen_url".to_owned()));
    for key in &secrets {
        let twin = format!("{key}_file");
        assert!(keys().contains_key(&twin), "{key} has no file");
        let config = load(key, &[(&twin, &held)]).unwrap();
        let (section, name) = key.split_once('.').unwrap();
        let read = &serde_json::to_value(&config).unwrap()[section][name];
        assert_eq!(read, SECRET, "{key}");
        let printed = format!("{config:?}");
        assert!(!printed.contains(SECRET), "{printed}");
        // An empty path takes back what an earlier layer set.
        let config = load(key, &[(&twin, ""), (key, SECRET)]).unwrap();
        assert_eq!(
            serde_json::to_value(&config).unwrap()[section][name],
            SECRET
        );

        for (lines, reason) in [
            (vec![(twin.as_str(), missing.as_str())], "missing"),
            (vec![(&twin, &empty)], "is empty"),
            (
                vec![(&twin, directory.path().to_str().unwrap())],
                "directory",
            ),
            (vec![(&twin, &held), (key, SECRET)], "set one of them"),
        ] {
            let refused = load(key, &lines).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("{twin}: ")), "{refused}");
            assert!(refused.contains(reason), "{refused}");
            assert!(!refused.contains(SECRET), "{refused}");
        }
        let (ok, text) = run(countersign().arg("check").env(variable(&twin), &missing));
        assert!(!ok && text.contains(&format!("{twin}: ")), "{text}");
    }
}

#[test]
fn a_misspelt_variable_refuses_to_start_and_the_nearest_is_named() {
    for (name, named, nearest) in [
        (
            "COUNTERSIGN_SERVER__LISTNE",
            "listne",
            "COUNTERSIGN_SERVER__LISTEN?",
        ),
        (
            "COUNTERSIGN_SERVRE__LISTEN",
            "servre",
            "COUNTERSIGN_SERVER__…?",
        ),
        (
            "COUNTERSIGN_DATABASE_URL",
            "database_url",
            "COUNTERSIGN_DATABASE__URL?",
        ),
        (
            "COUNTERSIGN_DATABASE_URL_FILE",
            "database_url_file",
            "COUNTERSIGN_DATABASE__URL_FILE?",
        ),
    ] {
        let (ok, text) = run(countersign().arg("check").env(name, "x"));
        assert!(!ok && text.contains(named), "{text}");
        assert!(text.contains(name.trim_end_matches("LISTEN")), "{text}");
        assert!(text.contains(nearest), "{text}");
    }
}

#[test]
fn a_misspelt_key_in_the_file_refuses_to_start_and_the_nearest_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("countersign.toml");
    for (text, key, nearest) in [
        (
            "[server]\nlistne = '127.0.0.1:0'\n",
            "server.listne",
            "server.listen",
        ),
        ("[push]\nping = 3\n", "push.ping", "push.ping_seconds"),
        ("[servre]\nlisten = '127.0.0.1:0'\n", "servre", "server"),
    ] {
        std::fs::write(&file, text).unwrap();
        let refused = Config::load(Some(&file)).unwrap_err().to_string();
        let expected = format!("sets {key}, which does not exist; did you mean ");
        assert!(refused.contains(&expected), "{refused}");
        assert!(
            refused.starts_with(&file.display().to_string()),
            "{refused}"
        );
        assert!(refused.ends_with(&format!(" {nearest}?")), "{refused}");
    }
}

#[test]
fn a_variable_of_no_section_is_ignored_with_a_warning() {
    let node = |arguments: &[&str]| {
        run(countersign()
            .args(["--database-url", "postgres://127.0.0.1:1/none"])
            .args(arguments)
            .env("COUNTERSIGN_BIN", "/usr/bin/countersign")
            .env("COUNTERSIGN_FLAVOUR", "x"))
    };
    let (_, text) = node(&["check"]);
    let found = |check: &str| text.lines().find(|line| line.contains(check)).unwrap();
    assert!(found(" configuration ").starts_with("ok "), "{text}");
    let warning = found(" environment ");
    assert!(warning.starts_with("warning "), "{text}");
    // Its standard input is empty, so it stops at once.
    let (_, log) = node(&["serve", "--listen", "127.0.0.1:0", "--stop-with-stdin"]);
    for name in ["COUNTERSIGN_BIN", "COUNTERSIGN_FLAVOUR"] {
        assert!(warning.contains(name), "{text}");
        assert!(log.contains(name), "{log}");
    }
    assert!(log.contains("is ignored"), "{log}");
    for name in ["COUNTERSIGN_CONFIG_FILE", "COUNTERSIGN_POSTGRES_BIN"] {
        assert!(!text.contains(name), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_that_holds_no_page_is_refused_and_the_least_that_is_not_suffices() {
    let mut config = Config::default();
    config.database.url = "postgres://localhost/countersign".into();
    // A page of 8 MiB, the artifact that exceeds it, and an envelope; no multiple of anything.
    config.limits.envelope_bytes = 75_000;
    let least = (8 << 20) + (2 << 20) + 75_000;
    config.limits.body_memory_bytes = least - 1;
    let refused = config.validate().unwrap_err().to_string();
    assert!(
        refused.starts_with("limits.body_memory_bytes: ") && refused.contains(&least.to_string()),
        "{refused}"
    );
    config.limits.body_memory_bytes = least;
    config.validate().unwrap();
    let cluster = Cluster::with(1, |node| node.limits = config.limits.clone()).await;
    let alice = cluster.approver("alice").await;
    let enforcer = cluster.enforcer("build-bot").await;
    let submitted = enforcer.submit(&request_id(), "alice", sealed()).await;
    submitted.expect(202);
    assert_eq!(alice.inbox_ids().await.len(), 1);
}

#[test]
fn a_connection_that_keeps_no_statement_refuses_to_start() {
    let mut config = Config::default();
    config.database.url = "postgres://localhost/countersign".into();
    config.validate().unwrap();
    config.database.statement_cache = 0;
    let refused = config.validate().unwrap_err().to_string();
    assert!(
        refused.starts_with("database.statement_cache: "),
        "{refused}"
    );
}
