//! `countersign page` writes the page for any host of static files, says how to serve it, and
//! whether a host does.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;

use countersign::page::{HEADERS, page, policy};

use crate::support::Cluster;
use crate::support::process::countersign;

fn write(out: &Path, arguments: &[&str]) -> Output {
    let mut command = countersign();
    command.arg("page").arg("--out").arg(out).args(arguments);
    // It needs neither a configuration nor a database.
    command.env("COUNTERSIGN_CONFIG_FILE", "/none/of/this.toml");
    command.output().unwrap()
}

#[track_caller]
fn written(out: &Path, arguments: &[&str]) -> String {
    let output = write(out, arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refused(out: &Path, arguments: &[&str], why: &str) {
    let output = write(out, arguments);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(why), "{text}");
}

/// All files below a directory.
fn files(directory: &Path) -> BTreeSet<String> {
    let mut waiting = vec![directory.to_owned()];
    let mut found = BTreeSet::new();
    while let Some(next) = waiting.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                let name = path.strip_prefix(directory).unwrap();
                found.insert(name.to_str().unwrap().to_owned());
            }
        }
    }
    found
}

fn expected() -> BTreeSet<String> {
    let versioned = page().versioned.keys();
    let versioned = versioned.map(|name| format!("page/{}/{name}", page().version));
    let fixed = page().fixed.keys().cloned();
    let all = versioned.chain(fixed);
    all.chain(["index.html".to_owned()]).collect()
}

#[test]
fn all_files_are_written_as_nodes_serve_them_with_the_headers_to_serve_them_with() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("new/public");
    let printed = written(&out, &[]);
    assert_eq!(files(&out), expected());
    for (name, file) in &page().versioned {
        let path = out.join("page").join(&page().version).join(name);
        assert_eq!(std::fs::read(path).unwrap(), file.content, "{name}");
    }
    for (name, file) in &page().fixed {
        assert_eq!(std::fs::read(out.join(name)).unwrap(), file.content);
    }
    let index = std::fs::read_to_string(out.join("index.html")).unwrap();
    let served = std::str::from_utf8(&page().index.content).unwrap();
    let rest = index
        .lines()
        .filter(|line| !line.contains("Content-Security-Policy") && !line.contains("generator"));
    assert_eq!(rest.collect::<Vec<_>>(), served.lines().collect::<Vec<_>>());
    let policy = policy([]);
    let within = policy.replace("; frame-ancestors 'none'", "");
    let meta = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{within}\">");
    // Before whatever it is to restrict.
    assert!(
        index.find(&meta).unwrap() < index.find("<link").unwrap(),
        "{index}"
    );
    assert!(printed.contains(&format!("content-security-policy: {policy}\n")));
    for (name, value) in HEADERS {
        assert!(printed.contains(&format!("\n{name}: {value}\n")), "{name}");
    }
    assert!(!printed.contains("server.origins"), "{printed}");
}

#[test]
fn gateways_elsewhere_are_named_and_may_be_called() {
    let directory = tempfile::tempdir().unwrap();
    let printed = written(
        directory.path(),
        &[
            "--gateway",
            "https://one.example.org/",
            "--gateway",
            "https://two.example.org:8443/a&b",
            "--gateway",
            "http://127.0.0.1:8080",
        ],
    );
    let index = std::fs::read_to_string(directory.path().join("index.html")).unwrap();
    let meta = "<meta name=\"countersign-gateways\" content=\"https://one.example.org https://two.example.org:8443/a&amp;b \
                http://127.0.0.1:8080\">";
    assert!(index.contains(meta), "{index}");
    let connect = "connect-src 'self' https://one.example.org wss://one.example.org https://two.example.org:8443 \
                   wss://two.example.org:8443 http://127.0.0.1:8080 ws://127.0.0.1:8080;";
    assert!(
        index.contains(connect) && printed.contains(connect),
        "{index}"
    );
    assert!(printed.contains("server.origins") && printed.contains("page.url"));
    for (gateway, why) in [
        ("gateway.example.org", "expected an address such as"),
        ("ftp://gateway.example.org", "expected https"),
        ("http://gateway.example.org", "plain http would show"),
        ("https://a:b@gateway.example.org", "expected only a host"),
        ("https://gateway.example.org/?a", "expected only a host"),
        ("https://a\"b.example.org", "expected"),
        ("https://a;b.example.org", "expected a host name"),
        ("https://a'b.example.org", "expected a host name"),
        ("https://a,b.example.org", "expected a host name"),
    ] {
        let other = tempfile::tempdir().unwrap();
        refused(other.path(), &["--gateway", gateway], why);
        assert!(files(other.path()).is_empty(), "{gateway}");
    }
}

#[test]
fn further_origins_may_be_called_for_the_sign_in() {
    let directory = tempfile::tempdir().unwrap();
    let sign_in = [
        "--connect",
        "https://login.example.org/",
        "--connect",
        "https://api.example.org:8443",
    ];
    let printed = written(directory.path(), &sign_in);
    let index = std::fs::read_to_string(directory.path().join("index.html")).unwrap();
    let connect = "connect-src 'self' https://login.example.org https://api.example.org:8443;";
    assert!(
        index.contains(connect) && printed.contains(connect),
        "{index}"
    );
    assert!(!printed.contains("server.origins"), "{printed}");
    for (origin, why) in [
        (
            "https://login.example.org/realms/acme",
            "expected an origin such as https://login.example.org",
        ),
        ("login.example.org", "expected an address such as"),
        ("http://login.example.org", "use https"),
        ("https://*", "expected"),
        ("https://a;b.example.org", "expected a host name"),
    ] {
        let other = tempfile::tempdir().unwrap();
        refused(other.path(), &["--connect", origin], why);
        assert!(files(other.path()).is_empty(), "{origin}");
    }
}

#[test]
fn a_page_that_was_written_before_is_replaced_and_other_files_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path();
    let own = out.join("notes.txt");
    std::fs::write(&own, "mine").unwrap();
    refused(out, &[], "has other files");
    assert_eq!(files(out).len(), 1);
    let theirs = out.join("page/another");
    let looks_old = out.join("page/0123456789abcdef");
    for directory in [&theirs, &looks_old] {
        std::fs::create_dir_all(directory).unwrap();
        std::fs::write(directory.join("x.js"), "x").unwrap();
    }
    written(out, &["--force"]);
    // Among other files nothing is removed, whatever it is called.
    assert!(theirs.exists() && looks_old.exists() && own.exists());
    // A second time it is ours: older versions are removed, and nothing else.
    written(out, &["--gateway", "https://gateway.example.org"]);
    assert!(theirs.exists() && own.exists());
    assert!(!looks_old.exists());
    let mut expected = expected();
    expected.extend(["notes.txt", "page/another/x.js"].map(str::to_owned));
    assert_eq!(files(out), expected);
    let index = std::fs::read_to_string(out.join("index.html")).unwrap();
    assert!(index.contains("gateway.example.org"));
    // Where it cannot write, it says so.
    refused(&own, &[], "notes.txt");
}

/// Serves the files of a directory, without headers. Its address.
async fn host(directory: &Path) -> String {
    let directory = directory.to_owned();
    let serve = async move |uri: http::Uri| {
        let name = uri.path().trim_start_matches('/');
        let name = if name.is_empty() { "index.html" } else { name };
        std::fs::read(directory.join(name)).map_err(|_| http::StatusCode::NOT_FOUND)
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = axum::Router::new().fallback(serve);
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

/// Whether it is the right page, and all that was said.
async fn verify(url: &str, arguments: &[&str]) -> (bool, String) {
    let mut command = countersign();
    command.args(["page", "--verify", url]).args(arguments);
    let run = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = run.await.unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_serves_is_the_page_of_its_program() {
    let cluster = Cluster::start(1).await;
    let (is_right, said) = verify(&cluster.nodes[0].url, &[]).await;
    assert!(is_right, "{said}");
    let output = countersign().args(["page", "--hash"]).output().unwrap();
    let hash = String::from_utf8(output.stdout).unwrap();
    assert!(hash.starts_with(&format!("sha256:{}", page().version)));
    assert!(
        said.contains(hash.trim()) && said.contains("'self'"),
        "{said}"
    );
    let silent = Cluster::with(1, |config| config.page.enabled = false).await;
    let (is_right, said) = verify(&silent.nodes[0].url, &[]).await;
    assert!(!is_right && said.contains("differs: index.html"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_serves_something_else_is_found_out() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("public");
    let gateway = ["--gateway", "https://gateway.example.org"];
    written(&out, &gateway);
    let url = host(&out).await;
    let (is_right, said) = verify(&url, &gateway).await;
    assert!(is_right, "{said}");
    // Another gateway, or none.
    for other in [&["--gateway", "https://other.example.org"][..], &[]] {
        let (is_right, said) = verify(&url, other).await;
        assert!(!is_right && said.contains("differs: index.html"), "{said}");
    }
    let program = format!("page/{}/app.js", page().version);
    for name in [program.as_str(), "sw.js", "index.html"] {
        let original = std::fs::read(out.join(name)).unwrap();
        std::fs::write(out.join(name), [&original[..], b"\n"].concat()).unwrap();
        let (is_right, said) = verify(&url, &gateway).await;
        assert!(
            !is_right && said.contains(&format!("differs: {name}\n")),
            "{said}"
        );
        std::fs::remove_file(out.join(name)).unwrap();
        let (is_right, said) = verify(&url, &gateway).await;
        assert!(
            !is_right && said.contains(&format!("differs: {name}\n")),
            "{said}"
        );
        std::fs::write(out.join(name), original).unwrap();
    }
    let (is_right, said) = verify(&url, &gateway).await;
    assert!(is_right, "{said}");
    let (is_right, said) = verify("http://127.0.0.1:1", &[]).await;
    assert!(!is_right && said.contains("127.0.0.1:1"), "{said}");
}
