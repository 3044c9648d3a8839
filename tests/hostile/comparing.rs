//! Pairing by typed code with a gateway in the middle that replaces both bundles: the digits
//! differ, and "no" pins nothing.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use countersign::client::random;
use countersign::e2e::{EnforcerBundle, EnforcerKeys, ReceivedAnswer};
use countersign::protocol::id::{EnforcerId, TextId as _};
use countersign::protocol::pairing::PairingCode;
use serde_json::json;

use super::pairing::{answered_by, replacing};
use super::scene::HostileScene;
use crate::client::tamper::Tamper;
use crate::commands::approver::prepared;
use crate::support::devices::Device;

/// Shows the approver an enforcer of the gateway's own.
async fn own_enforcer(node: &str) -> Tamper {
    let keys = EnforcerKeys::generate(&mut random).unwrap();
    let id = EnforcerId::parse("novice").unwrap();
    let offer = EnforcerBundle::new(&keys, id, &mut random).unwrap();
    let offer = offer.to_text().unwrap();
    Tamper::start(node, move |path, answer| {
        if path.contains("/pairing/resolve/") {
            answer["publicKey"] = offer.clone().into();
        }
    })
    .await
}

fn novices(pairings: &serde_json::Value) -> usize {
    let pairings = pairings.as_array().unwrap().iter();
    pairings.filter(|it| it["enforcerId"] == "novice").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn digits_differ_if_the_gateway_replaces_both_bundles_and_no_pins_nothing() {
    let scene = HostileScene::start().await;
    let node = scene.world.cluster.urls()[0].clone();
    let liar = own_enforcer(&node).await;
    let alice = scene.world.through("laptop", vec![liar.url.clone()]);
    let urls = vec![scene.meddler.url.clone()];
    let enforcer = scene.world.enforcer_at("novice", urls).await;
    scene.lie(answered_by(Device::new("mallory"), |_| {}));
    let begun = enforcer.begin_pairing(None, None).await.unwrap();
    let comparing = alice
        .pair_by_code_with(begun.code(), replacing())
        .await
        .unwrap();
    let completed = enforcer.wait_for_answer(begun).await.unwrap().unwrap();
    let (received, pairing) = completed.split();
    let ReceivedAnswer::ToCompare(comparison) = received else {
        panic!("a typed code proves nothing");
    };
    assert_ne!(
        comparison.digits().to_string(),
        comparing.digits().to_string()
    );
    assert_eq!(novices(&scene.pairings().await), 1);
    enforcer.abort(pairing).await.unwrap();
    assert_eq!(
        novices(&scene.pairings().await),
        0,
        "the enforcer's no revokes it"
    );
    alice.abort(comparing).await.unwrap();
    assert!(enforcer.approvers().is_empty());
    assert!(alice.enforcers().iter().all(|known| known.id != "novice"));
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_without_a_terminal_pair_nobody_by_a_typed_code() {
    let scene = HostileScene::start().await;
    let node = scene.world.cluster.urls()[0].clone();
    let liar = own_enforcer(&node).await;
    scene.world.through("laptop", vec![liar.url.clone()]);
    let urls = vec![scene.meddler.url.clone()];
    drop(scene.world.enforcer_at("novice", urls).await);
    scene.lie(answered_by(Device::new("mallory"), |_| {}));
    let mut enforcer = prepared(&scene.world, "novice", &["pair"]);
    let mut enforcer = enforcer.stderr(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(enforcer.stderr.take().unwrap());
    let waiting = tokio::task::spawn_blocking(move || {
        let mark = "compare the digits on both screens: ";
        let mut line = String::new();
        while !line.contains(mark) {
            line.clear();
            assert!(printed.read_line(&mut line).unwrap() > 0, "it ended");
        }
        let code = line.rsplit_once(mark).unwrap().1.trim().to_owned();
        (code, printed)
    });
    let (code, mut printed) = waiting.await.unwrap();
    assert!(PairingCode::parse(&code).is_some(), "{code}");
    let mut approver = prepared(&scene.world, "laptop", &["pair", &code]);
    let ended = tokio::task::spawn_blocking(move || approver.output().unwrap());
    let approver = ended.await.unwrap();
    let shown = String::from_utf8(approver.stderr).unwrap();
    assert_eq!(approver.status.code(), Some(77), "{shown}");
    assert!(
        shown.contains("not paired: the digits were not confirmed"),
        "{shown}"
    );
    let ended = tokio::task::spawn_blocking(move || {
        let mut rest = String::new();
        printed.read_to_string(&mut rest).unwrap();
        (enforcer.wait().unwrap().code(), rest)
    });
    let (code, rest) = ended.await.unwrap();
    assert_eq!(code, Some(77), "{rest}");
    // Whichever of the two was told no first.
    let named = rest.contains("not paired") || rest.contains("has been revoked");
    assert!(named, "{rest}");
    let kept = scene.world.file("novice").load().unwrap().enforcer.unwrap();
    assert!(kept.approvers.is_empty());
    let kept = scene.world.file("laptop").load().unwrap().approver.unwrap();
    assert!(kept.enforcers.iter().all(|known| known.id != "novice"));
    assert_eq!(scene.pairings().await.as_array().map(Vec::len), Some(1));
    assert_eq!(novices(&json!(scene.pairings().await)), 0);
}
