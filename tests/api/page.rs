//! The pages for people: they stand alone, list every call and message, and their commands work.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::Everyone;
use super::examples::{MADE_UP, order};
use crate::support::{Answer, Cluster, Contract, until};

fn unescaped(html: &str) -> String {
    html.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#x27;", "'")
        .replace("&#x2f;", "/")
        .replace("&amp;", "&")
}

/// The blocks of a page that are marked with an attribute, by its value.
fn blocks(page: &str, attribute: &str) -> Vec<(String, String)> {
    page.split(&format!("<pre {attribute}=\""))
        .skip(1)
        .map(|rest| {
            let (name, rest) = rest.split_once("\"><code>").unwrap();
            let text = rest.split("</code>").next().unwrap();
            (name.to_owned(), unescaped(text))
        })
        .collect()
}

/// The page as its script fills it from the documents of the node.
fn filled(page: &Answer, contract: &Contract) -> String {
    let input = json!({
        "page": page.text,
        "documents": { "/openapi.json": contract.document, "/asyncapi.json": contract.messages },
    });
    let mut node = Command::new("node")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/render.mjs"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node");
    let mut stdin = node.stdin.take().unwrap();
    stdin.write_all(input.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The text between the tags of the only element of this name.
fn only<'p>(page: &'p str, tag: &str) -> &'p str {
    let parts: Vec<_> = page.split(&format!("<{tag}>")).collect();
    assert_eq!(parts.len(), 2, "{tag}");
    parts[1].split(&format!("</{tag}>")).next().unwrap()
}

/// The page brings everything along, and may do no more than run its own script and call its own
/// node.
fn stands_alone(page: &Answer) {
    let hash = |tag: &str| STANDARD.encode(Sha256::digest(only(&page.text, tag)));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
        hash("style"),
        hash("script")
    );
    assert_eq!(
        page.header("content-security-policy"),
        Some(policy.as_str())
    );
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    for banned in [
        "<script ",
        "src=",
        "http:",
        "https:",
        "@import",
        "url(",
        " style=",
        " onclick=",
        "innerHTML",
        "eval(",
    ] {
        assert!(!page.text.contains(banned), "{banned}");
    }
    assert!(page.text.contains("prefers-color-scheme: dark"));
    // Every tag that is opened is closed.
    for tag in [
        "table", "section", "h2", "h3", "p", "pre", "code", "tr", "td", "div", "main", "details",
        "summary", "form", "label", "textarea", "ul", "li", "a",
    ] {
        let opened = page.text.matches(&format!("<{tag}>")).count()
            + page.text.matches(&format!("<{tag} ")).count();
        let closed = page.text.matches(&format!("</{tag}>")).count();
        assert_eq!(opened, closed, "{tag}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_stands_alone_and_lists_every_call_and_message() {
    let cluster = Cluster::start(1).await;
    let nobody = cluster.client(None);
    let contract = Contract::of(&nobody).await;
    let page = nobody.get("/docs").await.expect(200);
    stands_alone(&page);
    let page = filled(&page, &contract);
    let text = unescaped(&page);
    for link in [
        "/openapi.json",
        "/asyncapi.json",
        "#authentication",
        "#messages",
    ] {
        assert!(text.contains(&format!("href=\"{link}\"")), "{link}");
    }
    for operation in contract.operations() {
        let line = format!("<code>{} {}</code>", operation.method, operation.path);
        assert!(text.contains(&line), "{line}");
        let head = format!("<details id=\"{}\">", operation.id());
        let (_, section) = text.split_once(&head).unwrap();
        let section = section.split("</details>").next().unwrap();
        let statuses = operation.value["responses"].as_object().unwrap().keys();
        for status in statuses {
            assert!(
                section.contains(&format!("<code>{status}</code>")),
                "{line} {status}"
            );
        }
        for parameter in operation.value["parameters"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let name = format!("<code>{}</code>", parameter["name"].as_str().unwrap());
            assert!(section.contains(&name), "{line} {name}");
        }
        // Every call but a WebSocket's can be made from the page.
        let form = format!(
            "<form data-method=\"{}\"",
            operation.method.as_str().to_lowercase()
        );
        assert_eq!(
            section.contains(&form),
            operation.path != "/v1/ws",
            "{line}"
        );
    }
    for code in ["1001", "1008", "1009", "1013"] {
        assert!(text.contains(&format!("<code>{code}</code>")), "{code}");
    }
    let shown = blocks(&page, "data-message");
    assert_eq!(shown.len(), 16);
    for (name, example) in &shown {
        let example: Value = serde_json::from_str(example).unwrap();
        assert_eq!(contract.message_faults(name, &example), None, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_approvers_page_a_landing_page_stands_alone_and_leads_on() {
    let cluster = Cluster::with(1, |config| config.page.enabled = false).await;
    let nobody = cluster.client(None);
    let page = nobody.get("/").await.expect(200);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    stands_alone(&page);
    for link in ["/docs", "/openapi.json", "/asyncapi.json", "/v1/status"] {
        assert!(page.text.contains(&format!("href=\"{link}\"")), "{link}");
        nobody.get(link).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_page_works_as_printed() {
    let cluster = Cluster::with(1, |config| config.presence.write_seconds = 1).await;
    let everyone = Everyone::of(&cluster).await;
    let contract = Contract::of(&everyone.nobody).await;
    let page = everyone.nobody.get("/docs").await.expect(200);
    let page = filled(&page, &contract);
    let commands = blocks(&page, "data-curl");
    let mut operations = contract.operations();
    assert_eq!(commands.len(), operations.len());
    operations.sort_by_key(order);
    let url = cluster.urls().remove(0);
    let keys = [
        &everyone.enforcer,
        &everyone.approver,
        &everyone.admin,
        &everyone.operator,
    ];
    for operation in operations {
        // One body is shown of several, and others are about what those submit.
        if operation.id() == "submitAnyArtifact" {
            for (_, body) in operation.bodies() {
                everyone
                    .enforcer
                    .post(&operation.path, &body)
                    .await
                    .expect(202);
            }
        }
        let (_, command) = commands
            .iter()
            .find(|(id, _)| id == operation.id())
            .unwrap();
        let run = async || {
            let mut statuses = Vec::new();
            for client in keys {
                // Streams do not end; the status is in the head.
                let limited = format!("{command} -o /dev/null -D - --max-time 3");
                let mut shell = Command::new("bash");
                shell
                    .args(["-c", &limited])
                    .env("GATEWAY", &url)
                    .env("KEY", client.key());
                let output = tokio::task::spawn_blocking(move || shell.output().unwrap())
                    .await
                    .unwrap();
                let head = String::from_utf8_lossy(&output.stdout).into_owned();
                let status = head
                    .split(' ')
                    .nth(1)
                    .and_then(|status| status.parse::<u16>().ok());
                statuses.push(status.unwrap_or_else(|| panic!("{limited} {head}")));
                if statuses.iter().any(|status| *status < 300) {
                    break;
                }
            }
            statuses
        };
        if operation.id() == "readPresence" {
            let written = async || run().await.contains(&200);
            until("presence is written down", Duration::from_secs(10), written).await;
        }
        let statuses = run().await;
        let expected = match operation.id() {
            // It takes a certificate, which has tests of its own.
            "bindCertificate" => 401,
            // Only a device can sign or begin them.
            "addDevice"
            | "revokeDevice"
            | "introduceEnforcer"
            | "inviteDevice"
            | "answerDeviceInvitation"
            | "endDeviceInvitation"
            | "createTeam"
            | "publishTeamState"
            | "inviteToTeam"
            | "consentToTeam"
            | "introduceToTeam"
            // These need a credential of another profile.
            | "checkConsent"
            | "readPolicies"
            | "sendHeartbeat"
            | "offerPairing"
            | "claimPairing" => 403,
            id if MADE_UP.contains(&id) => 404,
            _ => 300,
        };
        let good = statuses
            .iter()
            .any(|status| *status == expected || *status < 300);
        assert!(good, "{command} {statuses:?}");
    }
}
