//! Nodes that start while PostgreSQL is away: they stay up, and join when it is back. An error that
//! waiting does not mend ends them.

use std::time::Duration;

use countersign::app::App;
use countersign::config::Secret;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::becomes_ready;
use crate::support::cluster::{CLUSTER_SECRET, config};
use crate::support::database::Database;
use crate::support::process::{Process, Signal, countersign, signal};
use crate::support::proxy::Proxy;
use crate::support::{Client, Cluster, request_id, sealed, until};

/// How the database is away at first.
enum Away {
    /// Nobody listens.
    Refused,
    /// Nobody answers.
    Silent,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_starts_without_its_database_joins_when_it_is_there() {
    for away in [Away::Refused, Away::Silent] {
        let cluster = Cluster::start(1).await;
        let enforcer = cluster.enforcer("build-bot").await;
        let proxy = Proxy::start(&cluster.database.url).await;
        let turn = |off: bool| match away {
            Away::Refused => proxy.refuse(off),
            Away::Silent => {
                proxy.swallow_up(off);
                proxy.swallow_down(off);
            }
        };
        turn(true);
        let mut config = config(&cluster.database);
        config.database.url = Secret::from(proxy.url.as_str());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (clock, stop) = (cluster.clock.clone(), CancellationToken::new());
        let node = tokio::spawn({
            let stop = stop.clone();
            async move {
                let app = Box::pin(App::build_on(config, clock, listener)).await;
                app.expect("a node").run(stop).await;
            }
        });

        let client = Client::new(vec![url.clone()], None);
        let there = enforcer.at(vec![url]);
        client.get("/livez").await.expect(200);
        let ready = client.get("/readyz").await.expect(503);
        assert_eq!(ready.json()["status"], "the database does not answer");
        let (request, body) = (request_id(), sealed());
        let early = there.submit(&request, "alice", body.clone()).await;
        let early = early.refused(503, "UNAVAILABLE");
        assert!(early.header("retry-after").is_some());
        assert_eq!(early.json()["msgType"], "error");
        client.get("/v1/status").await.refused(503, "UNAVAILABLE");
        assert!(!node.is_finished());

        turn(false);
        becomes_ready(&client, 200).await;
        let submitted = there.submit(&request, "alice", body).await;
        assert_eq!(submitted.outcome(), "202");
        let nodes = "select count(*) from nodes";
        assert_eq!(cluster.database.number(nodes).await, 2);
        stop.cancel();
        node.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_waits_for_its_database_is_not_said_to_be_ready_and_can_be_stopped() {
    let database = Database::create().await;
    let proxy = Proxy::start(&database.url).await;
    proxy.refuse(true);
    let directory = tempfile::tempdir().unwrap();
    let (ready, log) = (directory.path().join("url"), directory.path().join("log"));
    let start = |port: u16| {
        let listen = format!("127.0.0.1:{port}");
        let mut command = countersign();
        command
            .args(["--database-url", &proxy.url, "serve", "--listen", &listen])
            .arg("--ready-file")
            .arg(&ready)
            .stderr(std::fs::File::create(&log).unwrap())
            .env("COUNTERSIGN_SECURITY__CLUSTER_SECRET", CLUSTER_SECRET)
            .env("COUNTERSIGN_SERVER__LAME_DUCK_MS", "0");
        Process::start(&mut command)
    };
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let client = Client::new(vec![format!("http://127.0.0.1:{port}")], None);
    let live = async || {
        let asked = client.call(reqwest::Method::GET, "/livez").try_send().await;
        asked.is_ok_and(|answer| answer.status == 200)
    };
    let waiting = start(port);
    until("it is live", Duration::from_secs(30), live).await;
    assert!(!ready.exists());
    let said = || std::fs::read_to_string(&log).unwrap();
    until("it says why", Duration::from_secs(30), async || {
        said().contains("the node waits for the database")
    })
    .await;
    let address = proxy.url.split(['@', '/']).nth(3).unwrap();
    for expected in [address, "check that it is running", "database.url"] {
        assert!(said().contains(expected), "{}", said());
    }
    signal(waiting.pid(), Signal::SIGTERM);
    let ended = tokio::task::spawn_blocking(move || waiting.end());
    let ended = tokio::time::timeout(Duration::from_secs(30), ended).await;
    assert!(ended.expect("it ends").unwrap().0);

    let mut waiting = start(port);
    until("it is live again", Duration::from_secs(30), live).await;
    assert!(!ready.exists());
    proxy.refuse(false);
    waiting.await_file(&ready);
    becomes_ready(&client, 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_database_role_or_schema_ends_a_node_with_words() {
    let database = Database::create().await;
    let (server, _) = database.url.rsplit_once('/').unwrap();
    let unmigrated = Database::empty("starting_unmigrated").await;
    for (url, words) in [
        (format!("{server}/no_such_database"), "does not exist"),
        (
            database.url.replace("countersign@", "nobody@"),
            "role \"nobody\" does not exist",
        ),
        (unmigrated.url, "run `countersign migrate`"),
    ] {
        let mut command = countersign();
        command.args(["--database-url", &url, "serve", "--listen", "127.0.0.1:0"]);
        let mut command = tokio::process::Command::from(command);
        let output = command.kill_on_drop(true).output();
        let output = tokio::time::timeout(Duration::from_secs(30), output).await;
        let output = output.expect("it ends").unwrap();
        assert!(!output.status.success());
        let said = String::from_utf8_lossy(&output.stderr);
        // A task in the background may log after it.
        let mut lines = said.lines();
        let end = lines.rfind(|line| line.starts_with("countersign: "));
        assert!(end.is_some_and(|line| line.contains(words)), "{said}");
    }
}
