//! `countersign page` writes the page for any host of static files, and says how to serve it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;

use countersign::page::{HEADERS, page, policy};

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
