//! Pairing and devices by command.

use std::io::BufReader;
use std::process::Stdio;

use countersign::client::approver::EnrolmentProgress;
use countersign::client::enforcer::Enforcer;
use reqwest::Method;
use serde_json::{Deserializer, Value, json};

use super::{Ran, prepared, run};
use crate::client::people::{ClientScene, PATIENCE};
use crate::support::until;

#[tokio::test(flavor = "multi_thread")]
async fn pairing_by_code_without_a_terminal_pairs_nobody() {
    let world = ClientScene::start().await;
    let enforcer = world.enforcer("bot").await;
    let alice = world.approver("alice", "laptop").await;
    let attempt = enforcer.begin_pairing(None, None).await.unwrap();
    let code = attempt.code().to_string();
    let ran = run(&world, "laptop", &["pair", &code]).expect(77);
    assert!(ran.err.contains("not paired"), "{}", ran.err);
    assert!(
        world
            .file("laptop")
            .load()
            .unwrap()
            .approver
            .unwrap()
            .enforcers
            .is_empty()
    );
    let pairings = world.cluster.approver(alice.id().as_str()).await;
    let listed = pairings.client.get("/v1/pairings").await.expect(200).json();
    assert_eq!(listed["items"], json!([]), "it is revoked");

    let attempt = enforcer.begin_pairing(None, None).await.unwrap();
    let link = attempt.link("https://page.example.org");
    let mut command = prepared(&world, "laptop", &["pair", "-", "--json"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), link.as_bytes()).unwrap();
    let paired: Ran = child.wait_with_output().unwrap().into();
    assert_eq!(paired.expect(0).json()["enforcerId"], "bot");
    let listed = run(&world, "laptop", &["pairings", "--json"])
        .expect(0)
        .json();
    assert_eq!(listed[0]["enforcerId"], "bot");
    run(&world, "laptop", &["unpair", "bot"]).expect(0);
    run(&world, "laptop", &["unpair", "bot"]).expect(77);
    run(&world, "laptop", &["pair", "7K3M-9QRT"]).expect(77);
    run(
        &world,
        "laptop",
        &["pair", "https://page.example.org/#/pair/x"],
    )
    .expect(77);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_enforcer_gets_another_key_only_on_purpose() {
    let world = ClientScene::start().await;
    let enforcer = world.enforcer("bot").await;
    world.approver("alice", "laptop").await;
    let link = async |enforcer: &Enforcer| {
        let attempt = enforcer.begin_pairing(None, None).await.unwrap();
        let link = attempt.link("https://page.example.org").to_string();
        (link, attempt.code().to_string())
    };
    let key = || {
        let profile = world.file("laptop").load().unwrap();
        profile.approver.unwrap().enforcers[0].key.clone()
    };
    run(&world, "laptop", &["pair", &link(&enforcer).await.0]).expect(0);
    let known = key();
    // The same key again is no replacement.
    run(&world, "laptop", &["pair", &link(&enforcer).await.0]).expect(0);
    assert_eq!(key(), known);

    // The same name with new keys: set up anew, or somebody else.
    let other = world.enforcer("bot").await;
    let (address, code) = link(&other).await;
    for answer in [&address, &code] {
        let refused = run(&world, "laptop", &["pair", answer]).expect(77);
        assert!(refused.err.contains("--replace"), "{}", refused.err);
    }
    assert_eq!(key(), known);
    run(&world, "laptop", &["pair", "--replace", &address]).expect(0);
    assert_ne!(key(), known);
    run(&world, "bot", &["pair", "--replace"]).expect(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_are_listed_added_and_revoked_by_command() {
    let world = ClientScene::start().await;
    let laptop = world.approver("alice", "laptop").await;
    let phone = world.device("alice", "phone").await;
    let EnrolmentProgress::Asks(request) = phone.enrol().await.unwrap() else {
        panic!("another device has to add it");
    };
    let link = request.link(&phone.page()).unwrap();
    run(
        &world,
        "laptop",
        &["devices", "add", "https://page.example.org/#/device/x"],
    )
    .expect(77);
    let added = run(
        &world,
        "laptop",
        &["devices", "add", &link, "--yes", "--json"],
    )
    .expect(0)
    .json();
    assert_eq!(added["deviceId"], phone.device_id().to_string());
    let listed = run(&world, "laptop", &["devices"]).expect(0).out;
    assert!(
        listed.contains("this device") && listed.contains("active"),
        "{listed}"
    );
    let listed = run(&world, "phone", &["devices", "list", "--json"])
        .expect(0)
        .json();
    assert_eq!(listed[0]["standing"], "in force");
    assert_eq!(listed[1]["standing"], "this device");
    let id = phone.device_id().to_string();
    run(&world, "laptop", &["devices", "revoke", "no-such", "--yes"]).expect(64);
    run(&world, "laptop", &["devices", "revoke", &id[14..], "--yes"]).expect(0);
    let listed = run(&world, "laptop", &["devices", "--json"])
        .expect(0)
        .json();
    assert_eq!(listed[1]["standing"], "revoked");
    assert_eq!(listed[1]["inForce"], false);
    run(&world, "phone", &["join"]).expect(77);
    assert_eq!(laptop.devices().await.unwrap().listed.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_adds_a_terminal_by_a_link() {
    let world = ClientScene::start().await;
    world.approver("alice", "laptop").await;
    let mut adding = prepared(&world, "laptop", &["devices", "add", "--yes", "--json"]);
    let mut adding = adding.stdout(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(adding.stdout.take().unwrap());
    let mut told = Deserializer::from_reader(out).into_iter::<Value>();
    let mut next = move || told.next().unwrap().unwrap();
    let offered = next();
    assert_eq!(offered["state"], "waiting");
    let link = offered["link"].as_str().unwrap();
    // It would be called as the other one.
    let arguments = ["join", link, "--name", "laptop", "--json", "--wait", "60s"];
    let joined = run(&world, "second", &arguments).expect(0);
    let told = Deserializer::from_str(&joined.out).into_iter::<Value>();
    let told: Vec<_> = told.map(Result::unwrap).collect();
    assert_eq!(told[0]["state"], "waiting");
    assert_eq!(told[0]["digits"].as_str().unwrap().len(), 17);
    assert_eq!(told[1]["state"], "inForce");
    let added = next();
    assert_eq!(added["name"], "laptop 2");
    assert_eq!(added["deviceId"], told[1]["deviceId"]);
    assert!(adding.wait().unwrap().success());
    let listed = run(&world, "second", &["devices", "--json"])
        .expect(0)
        .json();
    assert_eq!(listed[0]["standing"], "in force", "each trusts the other");
    // A link is used once.
    run(&world, "third", &["join", link]).expect(77);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_who_used_the_link_without_its_secret_keeps_no_access() {
    let world = ClientScene::start().await;
    world.approver("alice", "laptop").await;
    let mut adding = prepared(&world, "laptop", &["devices", "add", "--yes", "--json"]);
    let mut adding = adding
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let out = BufReader::new(adding.stdout.take().unwrap());
    let mut told = Deserializer::from_reader(out).into_iter::<Value>();
    let offered = told.next().unwrap().unwrap();
    let link = offered["link"].as_str().unwrap();
    let code = link
        .split_once("#/join/")
        .unwrap()
        .1
        .split('/')
        .next()
        .unwrap();
    let nobody = world.cluster.client(None);
    let joined = nobody.post("/v1/join", &json!({ "code": code })).await;
    let joined = joined.expect(201).json();
    let stranger = world.cluster.client(joined["apiKey"].as_str());
    let invitation = joined["invitationId"].as_str().unwrap();
    let path = format!("/v1/approvers/alice/invitations/{invitation}");
    let body = json!({ "request": "a request", "proof": "A".repeat(43) });
    let sent = stranger.call(Method::PUT, &path).json(&body).send().await;
    sent.expect(200);
    let ended = adding.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(77));
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("someone may be interfering"), "{said}");
    until("the stranger's key is refused", PATIENCE, async || {
        stranger.get("/v1/pairings").await.status == 401
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_is_renamed_for_this_terminal_only() {
    let world = ClientScene::start().await;
    let laptop = world.approver("alice", "laptop").await;
    let phone = world.device("alice", "phone").await;
    let EnrolmentProgress::Asks(request) = phone.enrol().await.unwrap() else {
        panic!("another device has to add it");
    };
    laptop.add_device(&request).await.unwrap();
    let id = phone.device_id().to_string();
    let rename = |name: &str| run(&world, "laptop", &["devices", "rename", &id[..8], name]);
    rename("work phone").expect(0);
    let listed = run(&world, "laptop", &["devices"]).expect(0).out;
    assert!(listed.contains("work phone (joined as phone)"), "{listed}");
    let elsewhere = run(&world, "phone", &["devices"]).expect(0).out;
    assert!(!elsewhere.contains("work phone"), "{elsewhere}");
    // Two are not called the same, and nothing invisible is part of a name.
    rename("laptop").expect(64);
    rename("phone\u{202e}").expect(77);
    rename("phone").expect(0);
    let listed = run(&world, "laptop", &["devices", "--json"])
        .expect(0)
        .json();
    assert_eq!(listed[1]["nickname"], Value::Null);
    run(&world, "laptop", &["devices", "rename", "no-such", "x"]).expect(64);
}
