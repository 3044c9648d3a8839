//! Invitations on the command line.

use serde_json::Value;

use super::join;
use crate::support::Cluster;
use crate::support::process::{countersign, run};

#[tokio::test(flavor = "multi_thread")]
async fn invitations_are_made_listed_and_withdrawn_on_the_command_line() {
    let cluster = Cluster::start(1).await;
    let (database, tenant) = (&cluster.database.url, cluster.tenant.as_str());
    let with = |arguments: &[&str]| {
        run(countersign()
            .args(["--database-url", database])
            .args(arguments))
    };
    let invite = [
        "invite", "--tenant", tenant, "--role", "approver", "--id", "alice",
    ];
    let (ok, text) = with(&invite);
    assert!(
        ok && text.contains("http://127.0.0.1:8080/#/join/"),
        "{text}"
    );
    assert!(text.contains("page.url"), "{text}");
    let (_, code) = text.split_once("/#/join/").unwrap();
    let code: String = code.chars().take(43).collect();
    let (ok, listed) = with(&["invite", "list"]);
    assert!(
        ok && listed.contains("alice") && !listed.contains(&code),
        "{listed}"
    );
    join(&cluster, &code).await.expect(201);
    let (_, listed) = with(&["invite", "list", "--tenant", tenant]);
    assert!(listed.contains("used"), "{listed}");
    let id = listed.split(' ').next().unwrap().trim();
    let (ok, text) = with(&["invite", "withdraw", id]);
    assert!(!ok && text.contains("has been used"), "{text}");

    let (ok, text) = run(countersign()
        .env("COUNTERSIGN_PAGE__URL", "https://approve.example.com")
        .args(["--database-url", database])
        .args(invite)
        .args(["--expires", "30m", "--json"]));
    assert!(ok, "{text}");
    let made: Value =
        serde_json::from_str(&text[text.find('{').unwrap()..=text.rfind('}').unwrap()]).unwrap();
    let link = made["link"].as_str().unwrap();
    assert!(
        link.starts_with("https://approve.example.com/#/join/"),
        "{link}"
    );
    let id = made["invitationId"].as_str().unwrap();
    assert!(with(&["invite", "withdraw", id]).0);
    join(&cluster, &super::code(&made))
        .await
        .refused(404, "NOT_FOUND");
    for (arguments, expected) in [
        (&["invite", "--role", "approver"][..], "--tenant"),
        (&["invite", "--tenant", tenant, "--role", "boss"], "--role"),
        (
            &["invite", "--tenant", tenant, "--role", "approver"],
            "--id",
        ),
        (
            &["invite", "--tenant", "nobody", "--role", "admin"],
            "no tenant",
        ),
        (
            &[
                "invite",
                "--tenant",
                tenant,
                "--role",
                "admin",
                "--expires",
                "8d",
            ],
            "7 days",
        ),
        (
            &[
                "invite",
                "--tenant",
                tenant,
                "--role",
                "admin",
                "--expires",
                "soon",
            ],
            "such as 90s or 10m",
        ),
        (&["invite", "withdraw", "nobody"], "no invitation"),
    ] {
        let (ok, text) = with(arguments);
        assert!(!ok && text.contains(expected), "{arguments:?}: {text}");
    }
}
