//! `dev --lan`: a node over TLS that a phone can reach once it trusts the authority.

use std::path::Path;
use std::process::Command;

use reqwest::{Certificate, Client};
use rustls::pki_types::pem::PemObject as _;
use serde_json::Value;
use x509_parser::prelude::{FromDer as _, GeneralName, ParsedExtension, X509Certificate};

use crate::support::get;
use crate::support::process::{Process, Signal, countersign, run, signal};

/// An address of its own for each test: all of them are loopback, and the ports are fixed.
fn start(directory: &Path, address: &str, arguments: &[&str]) -> (Process, Value) {
    let file = directory.join("ready.json");
    let _absent = std::fs::remove_file(&file);
    let mut command = countersign();
    command
        .env("XDG_CONFIG_HOME", directory.join("config"))
        .env("XDG_DATA_HOME", directory.join("data"))
        .args(["dev", "--listen", "127.0.0.1:0"])
        .arg(format!("--lan={address}"))
        .args(arguments)
        .arg("--ready-file")
        .arg(&file);
    let mut dev = Process::start(&mut command);
    let ready = dev.await_json(&file);
    (dev, ready)
}

/// A client that trusts these certificates and no others.
fn trusting(pem: &[u8]) -> Client {
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let certificate = Certificate::from_pem(pem).unwrap();
    let client = Client::builder().tls_certs_only([certificate]).no_proxy();
    client.build().unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_that_trusts_the_authority_reaches_the_page() {
    let directory = tempfile::tempdir().unwrap();
    let (dev, ready) = start(directory.path(), "127.77.1.1", &[]);
    let lan = &ready["lan"];
    assert_eq!(lan["url"], "https://127.77.1.1:8443");
    // First the page over plain HTTP, with the certificate and its fingerprint.
    let page = get(text(&lan["trustPage"])).await.unwrap();
    assert_eq!(page.status(), 200);
    let page = page.text().await.unwrap();
    let fingerprint = text(&lan["fingerprint"]);
    for expected in [
        fingerprint,
        "iPhone",
        "Android",
        "href=\"/countersign-dev.crt\"",
    ] {
        assert!(page.contains(expected), "{expected} in {page}");
    }
    assert!(
        !page.contains("join"),
        "an open page has no invitation: {page}"
    );
    let missing = get(format!("{}other", text(&lan["trustPage"])))
        .await
        .unwrap();
    assert_eq!(missing.status(), 404);
    let fetched = get("http://127.77.1.1:8444/countersign-dev.crt")
        .await
        .unwrap();
    assert_eq!(
        fetched.headers()["content-type"],
        "application/x-x509-ca-cert"
    );
    let der = fetched.bytes().await.unwrap();
    let pem = std::fs::read(text(&lan["ca"])).unwrap();
    let from_file = rustls::pki_types::CertificateDer::from_pem_slice(&pem).unwrap();
    assert_eq!(from_file.as_ref(), &*der);
    let digest = <sha2::Sha256 as sha2::Digest>::digest(&der);
    let digest: Vec<_> = digest.iter().map(|byte| format!("{byte:02X}")).collect();
    assert_eq!(digest.join(":"), fingerprint);

    // Then the page itself, and the links that lead there.
    let client = trusting(&pem);
    let page = client.get(text(&lan["url"])).send().await.unwrap();
    assert_eq!(page.status(), 200);
    let invitation = text(&ready["invitation"]);
    assert!(
        invitation.starts_with("https://127.77.1.1:8443/#/join/"),
        "{invitation}"
    );
    let strange = trusting(
        crate::support::tls::Authority::new("another")
            .pem()
            .as_bytes(),
    );
    strange.get(text(&lan["url"])).send().await.unwrap_err();
    // The browser of this machine keeps its address.
    assert_eq!(get(text(&ready["nodes"][0])).await.unwrap().status(), 200);

    signal(dev.pid(), Signal::SIGTERM);
    let (clean, printed) = dev.end();
    assert!(clean);
    for expected in [text(&lan["trustPage"]), fingerprint, "▀▀▀▀▀"] {
        assert!(printed.contains(expected), "{expected} in {printed}");
    }
    assert_eq!(printed.lines().last(), Some(invitation));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_enforcer_trusts_the_authority_and_its_link_is_for_the_phone() {
    let directory = tempfile::tempdir().unwrap();
    let (dev, ready) = start(directory.path(), "127.77.1.2:9443", &[]);
    let with = |arguments: &[&str]| {
        let mut command = countersign();
        command
            .env("XDG_CONFIG_HOME", directory.path().join("config"))
            .env("XDG_DATA_HOME", directory.path().join("data"))
            .args(arguments);
        command
    };
    let (ok, text) = run(&mut with(&["invite", "me"]));
    assert!(
        ok && text.contains("https://127.77.1.2:9443/#/join/"),
        "{text}"
    );
    let said = directory.path().join("said");
    let stderr = std::fs::File::create(&said).unwrap();
    let mut enforcer = with(&["pair"]).stderr(stderr).spawn().unwrap();
    loop {
        let said = std::fs::read_to_string(&said).unwrap();
        if said.contains("https://127.77.1.2:9443/#/pair/") {
            break;
        }
        assert!(enforcer.try_wait().unwrap().is_none(), "{said}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    enforcer.kill().unwrap();
    enforcer.wait().unwrap();
    drop(dev);
    // Without --lan the profile leads to this machine again, under the same key.
    let profile = directory.path().join("config/countersign/default.toml");
    let before = std::fs::read_to_string(&profile).unwrap();
    let authority = std::fs::read(ready["lan"]["ca"].as_str().unwrap()).unwrap();
    let file = directory.path().join("plain.json");
    let mut plain = with(&["dev", "--listen", "127.0.0.1:0", "--ready-file"]);
    let mut dev = Process::start(plain.arg(&file));
    let ready = dev.await_json(&file);
    assert_eq!(ready["lan"], Value::Null);
    let after = std::fs::read_to_string(&profile).unwrap();
    assert!(
        before.contains("\nca = ") && !after.contains("\nca = "),
        "{after}"
    );
    let key = |text: &str| {
        text.lines()
            .find(|line| line.starts_with("key = "))
            .unwrap()
            .to_owned()
    };
    assert_eq!(key(&before), key(&after));
    drop(dev);
    // And with it, on another address, the phone's trust still counts.
    let (dev, ready) = start(directory.path(), "127.77.1.3", &[]);
    let again = std::fs::read(ready["lan"]["ca"].as_str().unwrap()).unwrap();
    assert_eq!(again, authority);
    let answer = trusting(&authority)
        .get("https://127.77.1.3:8443/livez")
        .send()
        .await;
    assert_eq!(answer.unwrap().status(), 200);
    drop(dev);
}

#[test]
fn the_authority_can_sign_for_private_addresses_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let (dev, ready) = start(directory.path(), "127.77.1.4", &["--ephemeral"]);
    let file = Path::new(ready["lan"]["ca"].as_str().unwrap()).to_owned();
    let key = file.with_file_name("ca.key");
    let mode = std::fs::metadata(&key).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let pem = std::fs::read(&file).unwrap();
    let der = rustls::pki_types::CertificateDer::from_pem_slice(&pem).unwrap();
    let (_, authority) = X509Certificate::from_der(&der).unwrap();
    let constraints = authority.name_constraints().unwrap().unwrap();
    assert!(constraints.critical);
    let permitted = constraints.value.permitted_subtrees.as_ref().unwrap();
    let names: Vec<_> = permitted
        .iter()
        .filter_map(|subtree| match &subtree.base {
            GeneralName::DNSName(name) => Some(*name),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["invalid"]);
    assert_eq!(permitted.len(), 8);
    let days = |certificate: &X509Certificate<'_>| {
        let validity = certificate.validity();
        (validity.not_after.timestamp() - validity.not_before.timestamp()) / 86_400
    };
    assert_eq!(days(&authority), 366);

    // The certificate of the node is short, and has the address and no name.
    let run = file.parent().unwrap().parent().unwrap().join("run/lan.crt");
    let pem = std::fs::read(run).unwrap();
    let der = rustls::pki_types::CertificateDer::from_pem_slice(&pem).unwrap();
    let (_, node) = X509Certificate::from_der(&der).unwrap();
    assert_eq!(days(&node), 61);
    let names = node
        .extensions()
        .iter()
        .find_map(|it| match it.parsed_extension() {
            ParsedExtension::SubjectAlternativeName(names) => Some(&names.general_names),
            _ => None,
        });
    let expected = vec![GeneralName::IPAddress(&[127, 77, 1, 4])];
    assert_eq!(names, Some(&expected));
    // OpenSSL agrees that it may sign this one.
    let output = Command::new("openssl")
        .args(["verify", "-CAfile"])
        .arg(&file)
        .arg(file.parent().unwrap().parent().unwrap().join("run/lan.crt"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    drop(dev);
    assert!(!file.exists(), "an ephemeral authority ends with its run");
}

#[test]
fn an_address_that_cannot_be_served_is_refused_first() {
    let no_postgres = tempfile::tempdir().unwrap();
    let held = std::net::TcpListener::bind("127.77.1.5:8444").unwrap();
    for (address, expected) in [
        ("203.0.113.7", "not an address of a private network"),
        ("host", "expected an IP address of this machine"),
        ("127.77.1.5:0", "expected a port"),
        ("127.77.1.5", "cannot listen on 127.77.1.5:8444"),
        ("10.255.255.254", "cannot listen on 10.255.255.254:8443"),
    ] {
        let (ok, text) = run(countersign()
            .args(["dev", "--ephemeral", "--listen", "127.0.0.1:0"])
            .arg(format!("--lan={address}"))
            .env("COUNTERSIGN_POSTGRES_BIN", no_postgres.path()));
        assert!(!ok && text.contains(expected), "{address}: {text}");
        assert!(!text.contains("PostgreSQL"), "{text}");
    }
    drop(held);
}

/// In a network namespace that has no address but its own loopback.
#[test]
fn without_an_address_it_says_what_to_do() {
    let unshare = ["--map-root-user", "--net"];
    let possible = Command::new("unshare").args(unshare).arg("true").output();
    if !possible.is_ok_and(|output| output.status.success()) {
        return;
    }
    let mut command = Command::new("unshare");
    command.args(unshare).arg(env!("CARGO_BIN_EXE_countersign"));
    let (ok, text) = run(command.args(["dev", "--ephemeral", "--lan"]));
    assert!(!ok, "{text}");
    assert!(
        text.contains("no address of a private IPv4 network"),
        "{text}"
    );
    assert!(text.contains("--lan=ADDRESS"), "{text}");
}
