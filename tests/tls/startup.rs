//! A user's view of the command line: refusals that say what to set, health through TLS, keys of
//! every kind.

use std::path::Path;
use std::process::Command;

use countersign::config::{self, TlsMode};
use countersign::http::server::tls::TlsListener;

use crate::support::database::Database;
use crate::support::get;
use crate::support::process::{Process, Signal, countersign, run, signal};
use crate::support::tls::{Authority, Files, TlsClient, address};

/// The environment of a command, from keys of `[tls]`.
fn with<'a>(command: &'a mut Command, keys: &[(&str, &str)]) -> &'a mut Command {
    for (key, value) in keys {
        command.env(format!("COUNTERSIGN_TLS__{}", key.to_uppercase()), value);
    }
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_refuses_to_start_and_says_what_to_set() {
    let authority = Authority::new("servers");
    let files = Files::with(&authority.server());
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (cert, key) = (text(&files.path("cert.pem")), text(&files.path("key.pem")));
    let other = text(&files.put("other.pem", &authority.server().key));
    let garbage = text(&files.put("garbage.pem", "hush\n"));
    let cut = text(&files.put("cut.pem", "-----BEGIN PRIVATE KEY-----\nhushhushhush\n"));
    let missing = text(&files.path("missing.pem"));
    let pair = [("mode", "on"), ("cert_file", &cert), ("key_file", &key)];
    let and = |more: &[(&'static str, &'static str)]| [&pair[..], more].concat();
    let broken_authority = [
        &and(&[("client_auth", "required")])[..],
        &[("client_ca_file", &garbage)],
    ]
    .concat();
    let trusted = text(&files.put("clients.pem", &authority.pem()));
    let broken_list = [
        &and(&[("client_auth", "required")])[..],
        &[("client_ca_file", &trusted), ("client_crl_file", &garbage)],
    ]
    .concat();
    let cases: Vec<(Vec<(&str, &str)>, &str)> = vec![
        (vec![("mode", "on")], "tls.cert_file: is not set"),
        (pair[..2].to_vec(), "tls.key_file: is not set"),
        (
            vec![pair[0], ("cert_file", &missing), pair[2]],
            "tls.cert_file: cannot read",
        ),
        (
            vec![pair[0], pair[1], ("key_file", &missing)],
            "tls.key_file: cannot read",
        ),
        (
            vec![pair[0], ("cert_file", &garbage), pair[2]],
            "tls.cert_file: cannot be used",
        ),
        (
            vec![pair[0], pair[1], ("key_file", &garbage)],
            "tls.key_file: cannot be used",
        ),
        (
            vec![pair[0], pair[1], ("key_file", &cut)],
            "tls.key_file: cannot be used",
        ),
        (
            vec![pair[0], pair[1], ("key_file", &other)],
            "is not the key of the certificate",
        ),
        (
            and(&[("client_auth", "required")]),
            "tls.client_ca_file: is not set",
        ),
        (
            and(&[("client_auth", "optional")]),
            "tls.client_ca_file: is not set",
        ),
        (broken_authority, "tls.client_ca_file: cannot be used"),
        (and(&[("client_auth", "perhaps")]), "perhaps"),
        (vec![("mode", "upstream")], "tls.proxies: is empty"),
        (
            vec![("mode", "upstream"), ("proxies", "[\"10.0.0.0/33\"]")],
            "10.0.0.0/33 is not a network",
        ),
        (
            vec![("mode", "upstream"), ("proxies", "[\"proxy.example\"]")],
            "proxy.example is not a network",
        ),
        (
            vec![
                ("mode", "upstream"),
                ("proxies", "[\"::1\"]"),
                ("client_cert_header", "not a name"),
            ],
            "tls.client_cert_header",
        ),
        (
            vec![
                ("mode", "upstream"),
                ("proxies", "[\"::1\"]"),
                ("client_cert_header", "X-Client-Cert"),
            ],
            "tls.proxy_secret: is not set",
        ),
        (
            vec![
                ("mode", "upstream"),
                ("proxies", "[\"::1\"]"),
                ("proxy_secret", "short"),
            ],
            "tls.proxy_secret: must have at least 32 characters",
        ),
        (
            vec![
                ("mode", "upstream"),
                ("proxies", "[\"::1\"]"),
                ("client_crl_file", &garbage),
            ],
            "tls.client_crl_file: has no effect",
        ),
        (
            [&pair[..], &[("client_crl_file", &garbage)]].concat(),
            "tls.client_crl_file: has no effect",
        ),
        (broken_list, "tls.client_crl_file: cannot be used"),
        (vec![("mode", "sometimes")], "sometimes"),
    ];
    let url = "postgres://countersign@127.0.0.1:1/none";
    for (keys, expected) in &cases {
        for command in ["serve", "check"] {
            let mut binary = countersign();
            let (ok, text) = run(with(binary.args(["--database-url", url, command]), keys));
            assert!(!ok && text.contains(expected), "{command} {keys:?}: {text}");
            assert!(!text.contains("hush"), "{text}");
        }
    }
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let (ok, text) =
            run(countersign().args(["--database-url", url, "serve", "--listen", listen]));
        for expected in [
            "loopback",
            "tls.mode = \"on\"",
            "tls.cert_file",
            "tls.mode = \"upstream\"",
            "tls.proxies",
        ] {
            assert!(!ok && text.contains(expected), "{listen}: {text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn health_is_asked_through_tls_even_where_certificates_are_required() {
    let database = Database::create().await;
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let files = Files::with(&servers.server());
    let authority = files.put("clients.pem", &clients.pem());
    let (cert, key) = (files.path("cert.pem"), files.path("key.pem"));
    for auth in ["none", "optional", "required"] {
        let keys = [
            ("mode", "on"),
            ("cert_file", cert.to_str().unwrap()),
            ("key_file", key.to_str().unwrap()),
            ("client_ca_file", authority.to_str().unwrap()),
            ("client_auth", auth),
        ];
        let ready = files.path(auth);
        let mut command = countersign();
        command.args(["--database-url", &database.url, "serve"]);
        // Everywhere, which TLS allows.
        command.args(["--listen", "0.0.0.0:0", "--ready-file"]);
        let mut node = Process::start(with(command.arg(&ready), &keys));
        let url = node.await_file(&ready);
        assert!(url.starts_with("https://0.0.0.0:"), "{url}");
        let here = address(&url).replace("0.0.0.0", "127.0.0.1");
        let ask = |keys: &[(&str, &str)], listen: &str| {
            let mut command = countersign();
            command.env("COUNTERSIGN_SERVER__LISTEN", listen);
            run(with(command.arg("health"), keys))
        };
        for listen in [address(&url), &here] {
            let (ok, text) = ask(&keys, listen);
            assert!(ok && text.contains("status"), "{auth} {listen}: {text}");
        }
        let (ok, text) = ask(&[], &here);
        assert!(!ok, "plain HTTP is no health: {text}");

        // The node's own certificate opens the door where one is needed, and no credential follows
        // from it.
        let pair = servers.server();
        let answer = TlsClient::trusting(&servers).showing(&pair);
        let answer = answer.get(&here, "/livez", &[]).await;
        assert_eq!(answer.is_ok(), auth == "none", "only its very own");
        signal(node.pid(), Signal::SIGTERM);
        assert!(node.end().0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn health_is_asked_past_the_proxy() {
    let database = Database::create().await;
    let directory = tempfile::tempdir().unwrap();
    let ready = directory.path().join("url");
    let keys = [("mode", "upstream"), ("proxies", "[\"10.0.0.0/8\"]")];
    let mut command = countersign();
    command.args(["--database-url", &database.url, "serve"]);
    command.args(["--listen", "0.0.0.0:0", "--ready-file"]);
    let mut node = Process::start(with(command.arg(&ready), &keys));
    let url = node.await_file(&ready);
    let mut command = countersign();
    command.env("COUNTERSIGN_SERVER__LISTEN", address(&url));
    let (ok, text) = run(with(command.arg("health"), &keys));
    assert!(ok && text.contains("status"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dev_stays_plain() {
    let database = Database::create().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ready.json");
    let mut command = countersign();
    command.args(["dev", "--ephemeral", "--listen", "127.0.0.1:0"]);
    command.args(["--database-url", &database.url, "--ready-file"]);
    command.env("TMPDIR", directory.path());
    let mut dev = Process::start(with(command.arg(&file), &[("mode", "on")]));
    let ready = dev.await_json(&file);
    let url = ready["nodes"][0].as_str().unwrap();
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    let live = get(format!("{url}/livez")).await.unwrap();
    assert_eq!(live.status(), 200);
}

/// Runs openssl.
fn openssl(arguments: &[&str]) {
    let output = Command::new("openssl").args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
}

#[test]
fn keys_are_read_as_pkcs_8_pkcs_1_and_sec_1() {
    let authority = Authority::new("servers");
    let files = Files::with(&authority.server());
    let path = |name: &str| files.path(name).to_str().unwrap().to_owned();
    openssl(&["ec", "-in", &path("key.pem"), "-out", &path("sec1.pem")]);
    openssl(&[
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=localhost",
        "-keyout",
        &path("rsa.pem"),
        "-out",
        &path("rsa-cert.pem"),
    ]);
    openssl(&[
        "rsa",
        "-traditional",
        "-in",
        &path("rsa.pem"),
        "-out",
        &path("pkcs1.pem"),
    ]);
    for (certificate, key, kind) in [
        ("cert.pem", "key.pem", "BEGIN PRIVATE KEY"),
        ("cert.pem", "sec1.pem", "BEGIN EC PRIVATE KEY"),
        ("rsa-cert.pem", "rsa.pem", "BEGIN PRIVATE KEY"),
        ("rsa-cert.pem", "pkcs1.pem", "BEGIN RSA PRIVATE KEY"),
    ] {
        let text = std::fs::read_to_string(files.path(key)).unwrap();
        assert!(text.contains(kind), "{key}");
        let config = config::Tls {
            mode: TlsMode::On,
            cert_file: Some(files.path(certificate)),
            key_file: Some(files.path(key)),
            ..config::Tls::default()
        };
        TlsListener::check(&config).unwrap_or_else(|error| panic!("{key}: {error}"));
    }
}
