//! The command line as a user runs it: configuration and errors here, each command in a file.

mod administration;
pub mod approver;
mod away;
mod dev;
mod doctor;
mod enforcer;
mod first_minutes;
mod grants;
mod guard;
pub mod install;
mod mcp;
mod newcomer;
mod operators;
mod page;
mod parking;
mod policy;
mod receipts;
mod rules;
mod sets;
mod sets_receipts;
mod teams;
mod waiting;

use crate::support::Client;
use crate::support::database::Database;
use crate::support::process::{Process, countersign, run};

#[test]
fn a_database_that_refuses_connections_is_named_once_with_what_to_do() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap().to_string();
    drop(holder);
    let url = format!("postgres://countersign@{address}/none");
    for arguments in [
        &["migrate"][..],
        &["check"],
        &["tenant", "list"],
        &["dev", "--ephemeral", "--listen", "127.0.0.1:0"],
    ] {
        let (ok, text) = run(countersign().args(["--database-url", &url]).args(arguments));
        assert!(!ok, "{arguments:?}: {text}");
        let count = text.matches("Connection refused").count();
        assert_eq!(count, 1, "{arguments:?}: {text}");
        for expected in [&address, "check that it is running", "database.url"] {
            assert!(text.contains(expected), "{arguments:?}: {text}");
        }
    }
}

#[test]
fn an_address_that_is_none_is_refused_with_an_example() {
    for command in ["serve", "dev"] {
        for listen in ["localhost", ":8080", "127.0.0.1", "80800"] {
            let (ok, text) = run(countersign().args([command, "--listen", listen]));
            let expected = "expected an IP address and a port, such as 127.0.0.1:8080";
            assert!(!ok && text.contains(expected), "{listen}: {text}");
        }
    }
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

/// Ids of devices are in base64url, which has a hyphen.
#[test]
fn the_id_of_a_device_may_begin_with_a_hyphen() {
    let home = tempfile::tempdir().unwrap();
    for (arguments, code) in [
        (&["verify", "/dev/null", "--device", "-Yx"][..], 65),
        (&["devices", "revoke", "-Yx", "--yes"], 78),
        (&["devices", "revoke", "--yes", "-Yx"], 78),
    ] {
        let mut command = countersign();
        command.env("XDG_CONFIG_HOME", home.path()).args(arguments);
        let output = command.output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {err}");
    }
}
