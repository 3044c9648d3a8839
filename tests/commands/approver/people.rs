//! Pairing and devices by command.

use std::process::Stdio;

use countersign::client::approver::EnrolmentProgress;
use countersign::client::enforcer::Enforcer;
use serde_json::json;

use super::{Ran, prepared, run};
use crate::client::people::ClientScene;

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
