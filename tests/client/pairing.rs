//! Pairing from the approver's side, and what happens if somebody interferes.

use std::time::Duration;

use countersign::client::ClientError;
use countersign::e2e::{Error, PairingLink, ReceivedAnswer};
use countersign::protocol::pairing::PairingCode;
use serde_json::json;

use super::people::{ClientScene, pair};
use super::tamper::Tamper;

#[tokio::test(flavor = "multi_thread")]
async fn a_typed_code_pairs_once_both_screens_show_the_same_digits() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    let attempt = enforcer
        .begin_pairing(Some("build machine"), None)
        .await
        .unwrap();
    let comparing = alice.pair_by_code(attempt.code()).await.unwrap();
    assert_eq!(comparing.enforcer().as_str(), "bot");
    assert!(alice.enforcers().is_empty(), "nothing is pinned yet");
    let completed = enforcer.wait_for_answer(attempt).await.unwrap().unwrap();
    let (received, pairing) = completed.split();
    let ReceivedAnswer::ToCompare(comparison) = received else {
        panic!("a code proves nothing");
    };
    assert_eq!(comparison.digits(), comparing.digits());
    let record = alice.confirm(comparing).await.unwrap();
    assert_eq!(record.id, "bot");
    enforcer
        .pin(&comparison.confirmed_by_person(), pairing)
        .unwrap();
    assert_eq!(alice.enforcers().len(), 1);
    assert_eq!(
        world
            .file("laptop")
            .load()
            .unwrap()
            .approver
            .unwrap()
            .enforcers
            .len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn digits_that_differ_pin_nobody_and_end_the_pairing() {
    let world = ClientScene::start().await;
    let enforcer = world.enforcer("bot").await;
    let alice = world.approver("alice", "laptop").await;
    // The gateway passes off an enforcer of its own to the device.
    let foreign = world.enforcer("foreign").await;
    let theirs = foreign.begin_pairing(None, None).await.unwrap();
    let attempt = enforcer.begin_pairing(None, None).await.unwrap();
    let bundle = {
        let path = format!("/v1/pairing/resolve/{}", theirs.code());
        let key = world.cluster.approver("alice").await;
        key.client.get(&path).await.expect(200).json()["publicKey"].clone()
    };
    let node = world.cluster.urls()[0].clone();
    let liar = Tamper::start(&node, move |path, answer| {
        if path.contains("/resolve/") {
            answer["publicKey"] = bundle.clone();
        }
    })
    .await;
    let deceived = world.through("laptop", vec![liar.url.clone()]);
    let comparing = deceived.pair_by_code(attempt.code()).await.unwrap();
    let completed = enforcer.wait_for_answer(attempt).await.unwrap().unwrap();
    let (received, pairing) = completed.split();
    let ReceivedAnswer::ToCompare(comparison) = received else {
        panic!("a code proves nothing");
    };
    assert_ne!(comparison.digits(), comparing.digits());
    deceived.abort(comparing).await.unwrap();
    enforcer.abort(pairing).await.unwrap();
    assert!(alice.enforcers().is_empty() && deceived.enforcers().is_empty());
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
    let pairings = world.cluster.approver("alice").await;
    let listed = pairings.client.get("/v1/pairings").await.expect(200).json();
    assert_eq!(listed["items"], json!([]), "it is revoked at the gateway");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_does_not_fit_pins_nobody() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    let attempt = enforcer.begin_pairing(None, None).await.unwrap();
    let link = attempt.link("https://page.example.org");
    let other = enforcer.begin_pairing(None, None).await.unwrap();
    let other = other.link("https://page.example.org");
    // The fingerprint of another attempt: as if the gateway had exchanged the enforcer's key.
    let (rest, _) = link.rsplit_once('/').unwrap();
    let (_, fingerprint) = other.rsplit_once('/').unwrap();
    let mixed = PairingLink::parse(&format!("{rest}/{fingerprint}")).unwrap();
    let refused = alice.pair_by_link(&mixed).await.unwrap_err();
    assert!(
        matches!(refused, ClientError::Crypto(Error::Fingerprint)),
        "{refused}"
    );
    assert!(alice.enforcers().is_empty());
    // Another secret: the enforcer notices, and ends it.
    let mut parts: Vec<_> = link.rsplitn(3, '/').collect();
    parts.reverse();
    let (_, secret) = other.rsplit_once('/').unwrap().0.rsplit_once('/').unwrap();
    let wrong = format!("{}/{secret}/{}", parts[0], parts[2]);
    alice
        .pair_by_link(&PairingLink::parse(&wrong).unwrap())
        .await
        .unwrap();
    let refused = enforcer.wait_for_answer(attempt).await.err().unwrap();
    assert!(
        matches!(refused, ClientError::Crypto(Error::PairingProof)),
        "{refused}"
    );
    assert!(enforcer.approvers().is_empty());
    // Pairing again puts it right.
    pair(&mut enforcer, &mut alice).await;
    assert_eq!(alice.enforcers().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_that_is_unknown_used_or_expired_is_said_to_be_so() {
    let world = ClientScene::start().await;
    let enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    let unknown = PairingCode::parse("7K3M-9QRT").unwrap();
    let refused = alice.pair_by_code(unknown).await.err().unwrap();
    assert!(matches!(refused, ClientError::NoSuchCode), "{refused}");
    let attempt = enforcer.begin_pairing(None, None).await.unwrap();
    let link = PairingLink::parse(&attempt.link("https://page.example.org")).unwrap();
    alice.pair_by_link(&link).await.unwrap();
    let refused = alice.pair_by_link(&link).await.unwrap_err();
    assert!(matches!(refused, ClientError::NoSuchCode), "{refused}");
    let late = enforcer.begin_pairing(None, None).await.unwrap();
    world.cluster.pass(Duration::from_secs(11 * 60));
    let refused = alice.pair_by_code(late.code()).await.err().unwrap();
    assert!(matches!(refused, ClientError::NoSuchCode), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unpairing_ends_it_here_and_at_the_gateway() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    assert!(!alice.unpair("nobody").await.unwrap());
    assert!(alice.unpair("bot").await.unwrap());
    assert!(alice.enforcers().is_empty());
    let pairings = world.cluster.approver("alice").await;
    let listed = pairings.client.get("/v1/pairings").await.expect(200).json();
    assert_eq!(listed["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_label_is_the_enforcers_own() {
    let world = ClientScene::start().await;
    let enforcer = world.enforcer("bot").await;
    world.approver("alice", "laptop").await;
    let node = world.cluster.urls()[0].clone();
    let liar = Tamper::start(&node, |path, answer| {
        if path.starts_with("/v1/pairing/resolve/") {
            assert_eq!(answer["enforcerLabel"], "build machine");
            answer["enforcerLabel"] = "your bank".into();
        }
    })
    .await;
    let mut deceived = world.through("laptop", vec![liar.url.clone()]);
    let attempt = enforcer.begin_pairing(Some("build machine"), None).await;
    let link = attempt.unwrap().link("https://page.example.org");
    let link = PairingLink::parse(&link).unwrap();
    let record = deceived.pair_by_link(&link).await.unwrap();
    assert_eq!(record.label.as_deref(), Some("build machine"));
    let attempt = enforcer.begin_pairing(Some("build machine"), None).await;
    let code = attempt.unwrap().code();
    let comparing = deceived.pair_by_code(code).await.unwrap();
    assert_eq!(comparing.label(), Some("build machine"));
}
