//! `countersign dev` as a user runs it.

mod apart;
mod lan;
mod strict;

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::process::{Process, Signal, countersign, run, signal};
use crate::support::scrape::scrape;
use crate::support::{Approver, Client, Enforcer, compact, request_id, sealed, until};

/// The clients of a running `dev`.
fn parties(ready: &Value) -> (Enforcer, Approver) {
    let urls: Vec<String> = serde_json::from_value(ready["nodes"].clone()).unwrap();
    let client = |role: &str| Client::new(urls.clone(), ready[role]["apiKey"].as_str());
    let id = |role: &str| ready[role]["id"].as_str().unwrap().to_owned();
    (
        Enforcer {
            client: client("enforcer"),
            id: id("enforcer"),
        },
        Approver {
            client: client("approver"),
            id: id("approver"),
        },
    )
}

/// Whether anything listens there.
async fn answers(url: &str) -> bool {
    let address = url
        .rsplit('@')
        .next()
        .unwrap()
        .trim_start_matches("http://")
        .split('/')
        .next()
        .unwrap();
    tokio::net::TcpStream::connect(address).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn dev_runs_a_cluster_that_survives_a_killed_node_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ready.json");
    let mut dev = Process::start(
        countersign()
            .args([
                "dev",
                "--ephemeral",
                "--listen",
                "127.0.0.1:0",
                "--nodes",
                "2",
                "--keys",
                "--ready-file",
            ])
            .arg(&file)
            .env("TMPDIR", directory.path()),
    );
    let ready = dev.await_json(&file);
    let (enforcer, approver) = parties(&ready);
    let request = request_id();
    enforcer
        .submit(&request, &approver.id, sealed())
        .await
        .expect(202);

    let pids: Vec<u32> = serde_json::from_value(ready["pids"].clone()).unwrap();
    assert_eq!(pids.len(), 2);
    signal(pids[0], Signal::SIGKILL);
    approver
        .on(1)
        .decide(&request, compact("approve"))
        .await
        .expect(200);
    enforcer.on(1).wait(&request, 10).await.expect(200);

    signal(dev.pid(), Signal::SIGTERM);
    let (clean, printed) = dev.end();
    assert!(clean);
    for key in ["operator", "admin", "enforcer", "approver"] {
        assert!(
            printed.contains(ready[key]["apiKey"].as_str().unwrap()),
            "{key} is printed"
        );
    }
    assert!(printed.contains("curl "));
    // The link comes last, after the agent that asks.
    let invitation = ready["invitation"].as_str().unwrap();
    let (keys, steps) = printed.split_once("Countersign is running at ").unwrap();
    assert_eq!(printed.lines().last(), Some(invitation), "{printed}");
    assert!(
        steps.contains(" countersign run -- echo hello\n"),
        "{steps}"
    );
    assert!(
        !steps.contains("csk_") && keys.contains("csk_"),
        "{printed}"
    );
    let (page, code) = invitation.split_once("#/join/").unwrap();
    assert_eq!(page, format!("{}/", ready["nodes"][0].as_str().unwrap()));
    assert_eq!(code.len(), 43);
    assert!(
        printed.contains("WARNING: these demo keys are UNBOUND."),
        "{printed}"
    );
    for url in [&ready["nodes"][1], &ready["databaseUrl"]] {
        assert!(!answers(url.as_str().unwrap()).await, "{url} still answers");
    }
    std::fs::remove_file(&file).unwrap();
    let left: Vec<_> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dev_recovers_its_data_and_keys_after_it_was_killed() {
    let directory = tempfile::tempdir().unwrap();
    let (data, file) = (
        directory.path().join("data"),
        directory.path().join("ready.json"),
    );
    let start = || {
        let mut command = countersign();
        command
            .args(["dev", "--listen", "127.0.0.1:0", "--ready-file"])
            .arg(&file)
            .arg("--data-dir")
            .arg(&data);
        Process::start(&mut command)
    };
    let mut dev = start();
    let before = dev.await_json(&file);
    let (enforcer, approver) = parties(&before);
    let request = request_id();
    enforcer
        .submit(&request, &approver.id, sealed())
        .await
        .expect(202);
    let body = json!({ "enforcerId": enforcer.id });
    let begun = enforcer.client.post("/v1/pairing/initiate", &body).await;
    let body = json!({ "nonce": begun.json()["nonce"], "approverId": approver.id });
    let paired = approver.client.post("/v1/pairing/complete", &body).await;
    std::fs::remove_file(&file).unwrap();
    dev.kill();
    let node = before["nodes"][0].as_str().unwrap();
    until(
        "its node goes with it",
        Duration::from_secs(30),
        async || !answers(node).await,
    )
    .await;

    let mut dev = start();
    let after = dev.await_json(&file);
    for key in ["tenantId", "operator", "admin", "enforcer", "approver"] {
        assert_eq!(before[key], after[key], "{key}");
    }
    let (enforcer, _) = parties(&after);
    assert_eq!(enforcer.state(&request).await, "pendingApproval");
    let listed = enforcer.client.get("/v1/pairings").await.expect(200).json();
    let token = &listed["items"][0]["routingToken"];
    assert_eq!(*token, paired.expect(200).json()["routingToken"]);
    signal(dev.pid(), Signal::SIGINT);
    assert!(dev.end().0);
}

#[tokio::test(flavor = "multi_thread")]
async fn dev_says_what_to_install_where_there_is_no_postgresql() {
    let empty = tempfile::tempdir().unwrap();
    let (ok, text) = run(countersign()
        .args(["dev", "--ephemeral", "--listen", "127.0.0.1:0"])
        .env("COUNTERSIGN_POSTGRES_BIN", empty.path()));
    assert!(!ok && text.contains("postgresql"), "{text}");
}

#[test]
fn dev_notices_a_taken_port_before_anything_else() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap();
    let no_postgres = tempfile::tempdir().unwrap();
    // A port alone is one of this machine.
    for listen in [address.to_string(), address.port().to_string()] {
        let (ok, text) = run(countersign()
            .args(["dev", "--ephemeral", "--listen", &listen])
            .env("COUNTERSIGN_POSTGRES_BIN", no_postgres.path()));
        assert!(!ok && !text.contains("PostgreSQL"), "{text}");
        let address = format!("cannot listen on {address}: Address already in use");
        for expected in [address.as_str(), "--listen"] {
            assert!(text.contains(expected), "{text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dev_shows_where_metrics_are_read_and_a_taken_port_is_no_obstacle_to_it_but_to_serve() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ready.json");
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    let mut dev = Process::start(
        countersign()
            .args([
                "dev",
                "--ephemeral",
                "--nodes",
                "2",
                "--listen",
                "127.0.0.1:0",
                "--ready-file",
            ])
            .arg(&file)
            .env("COUNTERSIGN_TELEMETRY__METRICS_LISTEN", &taken),
    );
    let ready = dev.await_json(&file);
    let metrics: Vec<String> = serde_json::from_value(ready["metrics"].clone()).unwrap();
    assert_eq!(metrics.len(), 2);
    for url in &metrics {
        assert!(!url.ends_with(&taken), "{url} is taken");
        let read = scrape(&format!("{url}/metrics")).await;
        assert!(read.types.contains_key("countersign_build_info"));
    }
    let (served, printed) = run(countersign()
        .args([
            "--database-url",
            ready["databaseUrl"].as_str().unwrap(),
            "serve",
            "--listen",
            "127.0.0.1:0",
        ])
        .env("COUNTERSIGN_TELEMETRY__METRICS_LISTEN", &taken));
    assert!(!served);
    for word in [taken.as_str(), "telemetry.metrics_listen"] {
        assert!(printed.contains(word), "{word} in {printed}");
    }
    drop(holder);
    signal(dev.pid(), Signal::SIGTERM);
    let (clean, printed) = dev.end();
    assert!(
        clean && metrics.iter().all(|url| printed.contains(url)),
        "{printed}"
    );
}
