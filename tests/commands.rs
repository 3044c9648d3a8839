//! The command line as a user meets it: `dev`, `serve`, `migrate`, `check`, `health` and the administration.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::database::Database;
use crate::support::process::{Process, countersign, run, signal};
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
    signal(pids[0], "KILL");
    approver
        .on(1)
        .decide(&request, compact("approve"))
        .await
        .expect(200);
    enforcer.on(1).wait(&request, 10).await.expect(200);

    signal(dev.pid(), "TERM");
    let (clean, printed) = dev.end();
    assert!(clean);
    for key in ["operator", "admin", "enforcer", "approver"] {
        assert!(
            printed.contains(ready[key]["apiKey"].as_str().unwrap()),
            "{key} is printed"
        );
    }
    assert!(printed.contains("curl "));
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
    signal(dev.pid(), "INT");
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

#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_migrated_checked_and_administered_from_the_command_line() {
    let database = Database::empty("commands").await;
    let with = |arguments: &[&str]| {
        run(countersign()
            .args(["--database-url", &database.url])
            .args(arguments))
    };

    let (ok, text) = with(&["check"]);
    assert!(!ok && text.contains("countersign migrate"), "{text}");
    let (ok, text) = with(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(
        !ok && text.contains("countersign migrate"),
        "a node does not migrate: {text}"
    );
    assert!(with(&["migrate"]).0);
    assert!(with(&["migrate"]).0, "twice is no harm");
    let (ok, text) = with(&["check"]);
    assert!(ok, "{text}");

    let answer = |arguments: &[&str]| -> Value {
        let (ok, text) = with(arguments);
        assert!(ok, "{arguments:?}: {text}");
        let start = text
            .find(['{', '['])
            .unwrap_or_else(|| panic!("JSON: {text}"));
        let mut documents = serde_json::Deserializer::from_str(&text[start..]).into_iter();
        documents.next().unwrap().unwrap()
    };
    let tenant = answer(&["tenant", "create", "acme"])["tenantId"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(answer(&["tenant", "list"])[0]["name"], "acme");
    let made = answer(&[
        "credential",
        "create",
        "--tenant",
        &tenant,
        "--role",
        "approver",
        "--bound-id",
        "alice",
    ]);
    let key = made["apiKey"].as_str().unwrap();
    let listed = answer(&["credential", "list", "--tenant", &tenant]);
    assert_eq!(listed[0]["credentialId"], made["credentialId"]);
    assert!(!listed.to_string().contains(key), "a key is shown once");
    let public = crate::support::public_key(&crate::support::signing_key(1));
    let put = [
        "key",
        "put",
        "--tenant",
        &tenant,
        "--approver",
        "alice",
        "--key",
        "k1",
        "--public-key",
        &public,
    ];
    assert!(with(&put).0);
    assert_eq!(
        answer(&["key", "list", "--tenant", &tenant, "--approver", "alice"])[0]["publicKey"],
        json!(public)
    );

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("url");
    let mut node = Process::start(
        countersign()
            .args([
                "--database-url",
                &database.url,
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--ready-file",
            ])
            .arg(&file),
    );
    let url = node.await_file(&file);
    let address = url.trim_start_matches("http://");
    let (ok, text) = run(countersign().args(["health", "--address", address]));
    assert!(ok && text.contains("status"), "{text}");
    let approver = Approver {
        client: Client::new(vec![url.clone()], Some(key)),
        id: "alice".into(),
    };
    approver.inbox("").await.expect(200);
    assert!(
        with(&[
            "credential",
            "revoke",
            made["credentialId"].as_str().unwrap()
        ])
        .0
    );
    let audited = "select string_agg(action || ' by ' || actor || ' on ' || node, ', ' order by at) from audit_events
                    where principal is null and address is null";
    assert_eq!(
        database.text(audited).await,
        [
            "tenant.created",
            "credential.created",
            "key.registered",
            "credential.revoked"
        ]
        .map(|action| format!("{action} by command line on command-line"))
        .join(", ")
    );
    until(
        "the revocation is known",
        Duration::from_secs(5),
        async || approver.inbox("").await.status == 401,
    )
    .await;
    signal(node.pid(), "TERM");
    assert!(node.end().0);
    let (ok, text) = run(countersign().args(["health", "--address", address]));
    assert!(!ok, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_makes_no_sense_refuses_to_start_and_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let url = "postgres://countersign:hush@127.0.0.1:1/none";
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let unknown = file("unknown.toml", "[server]\nlistne = \"127.0.0.1:0\"\n");
    let wrong = file("wrong.toml", "[limits]\npage_max = \"many\"\n");
    let short = file("short.toml", "[platform]\noperator_key = \"hush-hush\"\n");
    for (arguments, expected) in [
        (vec!["check"], "database.url"),
        (vec!["--config", &unknown, "check"], "listne"),
        (vec!["--config", &wrong, "check"], "page_max"),
        (
            vec!["--config", &short, "--database-url", url, "check"],
            "operator_key",
        ),
        (vec!["--config", "missing.toml", "check"], "missing.toml"),
        (
            vec!["--database-url", url, "serve", "--listen", "0.0.0.0:0"],
            "loopback",
        ),
        (vec!["--database-url", url, "check"], "database"),
    ] {
        let (ok, text) = run(countersign().args(&arguments));
        assert!(!ok && text.contains(expected), "{arguments:?}: {text}");
        assert!(!text.contains("hush"), "a secret is not printed: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_comes_from_a_file_and_the_environment_overrides_the_configuration() {
    let database = Database::create().await;
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("url.txt"), format!("{}\n", database.url)).unwrap();
    std::fs::write(
        path("operator.txt"),
        "an-operator-key-of-at-least-32-characters\n",
    )
    .unwrap();
    std::fs::write(
        path("config.toml"),
        "[server]\nlisten = \"127.0.0.1:1\"\ngateway_id = \"from-the-file\"\n",
    )
    .unwrap();
    let ready = path("ready");
    let mut node = Process::start(
        countersign()
            .arg("--config")
            .arg(path("config.toml"))
            .args(["serve", "--ready-file"])
            .arg(&ready)
            .env("COUNTERSIGN_SERVER__LISTEN", "127.0.0.1:0")
            .env("COUNTERSIGN_DATABASE__URL_FILE", path("url.txt"))
            .env(
                "COUNTERSIGN_PLATFORM__OPERATOR_KEY_FILE",
                path("operator.txt"),
            ),
    );
    let url = node.await_file(&ready);
    let operator = Client::new(
        vec![url.clone()],
        Some("an-operator-key-of-at-least-32-characters"),
    );
    operator.get("/platform/v1/tenants").await.expect(200);
    let refused = Client::new(vec![url], None)
        .get("/v1/exchanges/x")
        .await
        .refused(401, "UNAUTHENTICATED");
    assert_eq!(refused.json()["sender"]["gatewayId"], "from-the-file");
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
    signal(dev.pid(), "TERM");
    let (clean, printed) = dev.end();
    assert!(
        clean && metrics.iter().all(|url| printed.contains(url)),
        "{printed}"
    );
}

#[test]
fn telemetry_that_makes_no_sense_refuses_to_start() {
    for (name, value, key) in [
        ("METRICS_LISTEN", "localhost", "telemetry.metrics_listen"),
        ("OTLP_ENDPOINT", "collector:4318", "telemetry.otlp_endpoint"),
        ("OTLP_HEADERS", "no-equals-sign", "telemetry.otlp_headers"),
        ("SAMPLE_RATIO", "1.5", "telemetry.sample_ratio"),
        ("EXPORT_SECONDS", "0", "telemetry.export_seconds"),
    ] {
        let (good, printed) = run(countersign()
            .args(["--database-url", "postgres://nowhere.invalid/x", "check"])
            .env(format!("COUNTERSIGN_TELEMETRY__{name}"), value));
        assert!(!good && printed.contains(key), "{key} in {printed}");
    }
}
