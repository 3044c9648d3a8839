//! The README tells the truth: its commands run as they stand, and its tables are complete.

use std::process::Command;

use countersign::config::Config;
use figment::Figment;
use figment::providers::{Format as _, Toml};

use crate::support::Cluster;
use crate::support::process::{Process, countersign};

const README: &str = include_str!("../README.md");

/// The README's blocks of one language.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    README
        .split(fence.as_str())
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_exchange_of_the_readme_works_as_printed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ready.json");
    let mut dev = Process::start(
        countersign()
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
    let text = |pointer: &str| ready.pointer(pointer).unwrap().as_str().unwrap().to_owned();
    let script = blocks("sh")
        .join("\n")
        .replace("http://127.0.0.1:8080", &text("/nodes/0"))
        .replacen("csk_…", &text("/enforcer/apiKey"), 1)
        .replacen("csk_…", &text("/approver/apiKey"), 1);
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &script])
        .env("TMPDIR", directory.path())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for expected in [
        "artifact.accepted",
        "inbox.page",
        "\"verified\":true",
        "decision.deliver",
        "\"workspaceName\":\"widgets\"",
        "\"status\":\"completed\"",
        "\"agentHost\":\"laptop-7\"",
        "\"status\":\"queued\"",
    ] {
        assert!(printed.contains(expected), "{expected} in {printed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queries_of_the_readme_run() {
    let cluster = Cluster::start(1).await;
    let queries = blocks("sql");
    assert!(!queries.is_empty());
    for query in queries {
        cluster.database.run(query).await;
    }
}

#[test]
fn every_configuration_of_the_readme_is_one() {
    let files = blocks("toml");
    assert!(files.len() > 3);
    for file in files {
        let read = Figment::from(Toml::string(file)).extract::<Config>();
        assert!(read.is_ok(), "{file}: {read:?}");
    }
}
