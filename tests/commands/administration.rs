//! Tenants, credentials and keys on the command line, and the migration before them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::database::Database;
use crate::support::process::{Process, Signal, countersign, run, signal};
use crate::support::{Approver, Client, until};

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
        let (ok, text) = with(&[arguments, &["--json"]].concat());
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
    signal(node.pid(), Signal::SIGTERM);
    assert!(node.end().0);
    let (ok, text) = run(countersign().args(["health", "--address", address]));
    assert!(!ok, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn people_get_bare_ids_and_keys_that_the_next_command_takes() {
    let database = Database::create().await;
    let lines = |arguments: &[&str]| -> Vec<String> {
        let mut command = countersign();
        command
            .args(["--database-url", &database.url])
            .args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect()
    };
    let tenant = lines(&["tenant", "create", "acme"]);
    let [tenant] = &tenant[..] else {
        panic!("one line: {tenant:?}")
    };
    assert_eq!(lines(&["tenant", "list"]), [format!("{tenant}  acme")]);
    let create = ["credential", "create", "--role", "approver", "--tenant"];
    let key = lines(&[&create[..], &[tenant, "--unbound"]].concat());
    assert!(key.len() == 1 && key[0].starts_with("csk_"), "{key:?}");
    let alice = [tenant, "--bound-id", "alice", "--certificate"];
    let code = lines(&[&create[..], &alice].concat());
    let [code] = &code[..] else {
        panic!("one line: {code:?}")
    };
    let (id, _) = code.strip_prefix("csc_").unwrap().split_once('_').unwrap();
    let listed = lines(&["credential", "list", "--tenant", tenant]);
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert!(
        listed[1].starts_with(id) && listed[1].ends_with("approver  alice  (no certificate yet)"),
        "{listed:?}"
    );
    let again = lines(&["credential", "code", id]);
    assert!(again.len() == 1 && again[0] != *code, "{again:?}");
    assert!(lines(&["credential", "revoke", id]).is_empty());
    let listed = lines(&["credential", "list"]);
    assert!(listed[1].ends_with("(revoked)"), "{listed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_exist_is_named_on_the_command_line() {
    let database = Database::create().await;
    let with = |arguments: &[&str]| {
        run(countersign()
            .args(["--database-url", &database.url])
            .args(arguments))
    };
    let public = crate::support::public_key(&crate::support::signing_key(1));
    let credential = ["credential", "create", "--role", "admin", "--tenant"];
    let put = ["key", "put", "--approver", "alice", "--key", "k1"];
    for arguments in [
        [&credential[..], &["acme"]].concat(),
        vec!["credential", "list", "--tenant", "acme"],
        vec!["tenant", "disable", "acme"],
        vec!["key", "list", "--approver", "alice", "--tenant", "acme"],
        [&put[..], &["--public-key", &public, "--tenant", "acme"]].concat(),
    ] {
        let (ok, text) = with(&arguments);
        let expected =
            "no tenant \"acme\"; list tenants and their ids with `countersign tenant list`";
        assert!(!ok && text.contains(expected), "{arguments:?}: {text}");
    }
    let (ok, text) = with(&["credential", "revoke", "nobody"]);
    let expected = "no credential \"nobody\"; list them with `countersign credential list`";
    assert!(!ok && text.contains(expected), "{text}");

    let (_, printed) = with(&["tenant", "create", "acme", "--json"]);
    let start = printed.find('{').unwrap();
    let made = serde_json::Deserializer::from_str(&printed[start..])
        .into_iter::<Value>()
        .next();
    let tenant = made.unwrap().unwrap()["tenantId"]
        .as_str()
        .unwrap()
        .to_owned();
    let revoke = ["key", "revoke", "--approver", "alice", "--key", "k1"];
    let (ok, text) = with(&[&revoke[..], &["--tenant", &tenant]].concat());
    let expected = "alice has no key k1; list them with `countersign key list`";
    assert!(!ok && text.contains(expected), "{text}");
    assert!(with(&["tenant", "disable", &tenant]).0);
    let (ok, text) = with(&[&credential[..], &[&tenant]].concat());
    assert!(!ok && text.contains("is disabled"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_administration_of_an_empty_database_says_to_migrate_it() {
    let database = Database::empty("not_migrated").await;
    let (ok, text) = run(countersign()
        .args(["--database-url", &database.url])
        .args(["tenant", "create", "acme"]));
    assert!(!ok && text.contains("countersign migrate"), "{text}");
}
