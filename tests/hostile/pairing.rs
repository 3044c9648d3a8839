//! Pairing by link with a gateway that lies about the code, the nonce, the approver and its keys.
//! Nothing is pinned.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign::client::approver::{KnownKey, PairingChoice};
use countersign::client::enforcer::{Enforcer, PairingCompletion};
use countersign::client::{ClientError, random};
use countersign::e2e::{
    EnforcerBundle, PairingClaims, PairingLink, ReceivedAnswer, answer_by_code,
};
use countersign::protocol::id::{ApproverId, TextId as _};
use countersign::protocol::pairing::Nonce;
use serde_json::{Value, json};

use super::meddler::{Lie, Route};
use super::scene::HostileScene;
use crate::client::operators::operators;
use crate::support::devices::Device;

pub const PROOF: &str = "the approver's proof is wrong; someone may be interfering";
const OFFER: &str = "not what was expected: a code, a nonce and when they expire";
const ANSWER: &str = "not what was expected: an approver and its key";

/// A bundle with something changed, encoded as it should be.
fn rebundled(text: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let bytes = URL_SAFE_NO_PAD.decode(text.as_str().unwrap()).unwrap();
    let mut value = serde_json::from_slice(&bytes).unwrap();
    change(&mut value);
    URL_SAFE_NO_PAD.encode(value.to_string()).into()
}

/// An answer to the offer of an enforcer, by a device of the gateway.
pub fn answer_of(device: &Device, offer: &str, nonce: &str, approver: &str) -> String {
    let offer = EnforcerBundle::parse(offer).unwrap();
    let (nonce, approver) = (Nonce::parse(nonce).unwrap(), ApproverId::parse(approver));
    let bundle = &device.bundle;
    let (answer, _) = answer_by_code(
        &offer,
        &nonce,
        &approver.unwrap(),
        bundle,
        &PairingClaims::default(),
        &mut random,
    )
    .unwrap();
    answer.to_text().unwrap()
}

/// Remembers the offer and the nonce of an attempt, and answers it with a device of the gateway.
pub fn answered_by(device: Device, change: impl Fn(&mut Value) + Send + Sync + 'static) -> Lie {
    let seen = Arc::new(Mutex::new((String::new(), String::new())));
    let (offer, nonce) = (Arc::clone(&seen), Arc::clone(&seen));
    Lie::default()
        .call(Route::Initiate, move |call| {
            let body: Value = serde_json::from_slice(&call.body).unwrap();
            let text = body["publicKey"].as_str().unwrap();
            text.clone_into(&mut offer.lock().unwrap().0);
        })
        .reply(Route::Initiate, move |reply| {
            let nonce_text = reply.json()["nonce"].as_str().unwrap().to_owned();
            nonce.lock().unwrap().1 = nonce_text;
        })
        .reply(Route::Status, move |reply| {
            let (offer, nonce) = seen.lock().unwrap().clone();
            let answer = answer_of(&device, &offer, &nonce, "alice");
            reply.edit(|status| {
                if status["status"] == "completed" {
                    change(status);
                    status["publicKey"] = rebundled(&answer.clone().into(), |forged| {
                        if status["proof"].is_string() {
                            forged["proof"] = status["proof"].clone();
                        }
                    });
                }
            });
        })
}

/// Alice's word: a new key of a known enforcer is right.
pub fn replacing() -> PairingChoice {
    PairingChoice {
        known: KnownKey::Replace,
        ..PairingChoice::default()
    }
}

/// An enforcer that is paired with nobody, pairs with alice by the link.
pub async fn attempt(
    scene: &mut HostileScene,
    lie: Lie,
) -> (Enforcer, Result<Option<PairingCompletion>, ClientError>) {
    attempt_with(scene, lie, replacing()).await
}

async fn attempt_with(
    scene: &mut HostileScene,
    lie: Lie,
    choice: PairingChoice,
) -> (Enforcer, Result<Option<PairingCompletion>, ClientError>) {
    let urls = vec![scene.meddler.url.clone()];
    let enforcer = scene.world.enforcer_at("novice", urls).await;
    scene.lie(lie);
    let begun = match enforcer.begin_pairing(None, None).await {
        Ok(begun) => begun,
        Err(error) => return (enforcer, Err(error)),
    };
    let link = PairingLink::parse(&begun.link("https://page.example.org")).unwrap();
    let paired = scene.alice.pair_by_link_with(&link, choice).await;
    paired.unwrap();
    let answer = enforcer.wait_for_answer(begun).await;
    (enforcer, answer)
}

pub fn assert_unpaired(scene: &HostileScene, enforcer: &Enforcer, what: &str) {
    assert!(enforcer.approvers().is_empty(), "{what}");
    let kept = scene.world.file("novice").load().unwrap().enforcer.unwrap();
    assert!(kept.approvers.is_empty(), "{what}");
}

pub fn initiate(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Lie {
    Lie::default().reply(Route::Initiate, move |reply| reply.edit(&change))
}

/// Changes the answer of the device, once there is one.
pub fn status(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Lie {
    Lie::default().reply(Route::Status, move |reply| {
        reply.edit(|status| {
            if status["status"] == "completed" {
                change(status);
            }
        });
    })
}

fn bundle(change: fn(&mut Value)) -> Lie {
    status(move |status| status["publicKey"] = rebundled(&status["publicKey"], change))
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_pinned_if_anything_was_altered() {
    let mut scene = HostileScene::start().await;
    let mallory = || Device::new("mallory");
    let x25519 = {
        let text = mallory().bundle.to_text().unwrap();
        let bytes = URL_SAFE_NO_PAD.decode(text).unwrap();
        let value: Value = serde_json::from_slice(&bytes).unwrap();
        value["x25519"].clone()
    };
    let key = status(move |status| {
        let x25519 = x25519.clone();
        status["publicKey"] = rebundled(&status["publicKey"], |it| it["x25519"] = x25519);
    });
    // The proof of the real device, under the keys of another.
    let borrowed = answered_by(mallory(), |status| {
        let bytes = URL_SAFE_NO_PAD.decode(status["publicKey"].as_str().unwrap());
        let real: Value = serde_json::from_slice(&bytes.unwrap()).unwrap();
        status["proof"] = real["proof"].clone();
    });
    let invented = answered_by(mallory(), |status| {
        status["proof"] = URL_SAFE_NO_PAD.encode([7; 32]).into();
    });
    let cases: Vec<(&str, Lie, &str)> = vec![
        (
            "initiate: no code",
            initiate(|it| it["code"] = Value::Null),
            OFFER,
        ),
        (
            "initiate: a code that is none",
            initiate(|it| it["code"] = "UUUU".into()),
            OFFER,
        ),
        (
            "initiate: no nonce",
            initiate(|it| it["nonce"] = Value::Null),
            OFFER,
        ),
        (
            "initiate: a short nonce",
            initiate(|it| it["nonce"] = "AAAA".into()),
            OFFER,
        ),
        (
            "initiate: no end",
            initiate(|it| it["expiresAt"] = "never".into()),
            OFFER,
        ),
        (
            "initiate: something else",
            initiate(|it| *it = json!([])),
            OFFER,
        ),
        (
            "status: another approver",
            status(|it| it["approverId"] = "bob".into()),
            PROOF,
        ),
        (
            "status: no approver",
            status(|it| it["approverId"] = Value::Null),
            ANSWER,
        ),
        (
            "status: no token",
            status(|it| it["routingToken"] = Value::Null),
            "the pairing with alice has been revoked",
        ),
        ("status: another device, the real proof", borrowed, PROOF),
        ("status: another device, an invented proof", invented, PROOF),
        ("status: another encryption key", key, PROOF),
        (
            "status: another name",
            bundle(|it| it["name"] = "phone".into()),
            PROOF,
        ),
        (
            "status: another random value",
            bundle(|it| it["random"] = URL_SAFE_NO_PAD.encode([0; 16]).into()),
            PROOF,
        ),
        (
            "status: another proof",
            bundle(|it| it["proof"] = URL_SAFE_NO_PAD.encode([0; 32]).into()),
            PROOF,
        ),
        (
            "status: a short proof",
            bundle(|it| it["proof"] = "AAAA".into()),
            "should have 32 bytes",
        ),
        (
            "status: no key",
            status(|it| it["publicKey"] = Value::Null),
            "the approver's bundle",
        ),
        (
            "status: a key that is none",
            status(|it| it["publicKey"] = "=".into()),
            "base64url",
        ),
        (
            "status: one member more",
            bundle(|it| it["admin"] = true.into()),
            "no such member",
        ),
        (
            "status: another version",
            bundle(|it| it["v"] = 2.into()),
            "does not know (it knows 1)",
        ),
        (
            "status: a weak key",
            bundle(|it| it["x25519"] = URL_SAFE_NO_PAD.encode([0; 32]).into()),
            "is a weak or malformed key",
        ),
    ];
    for (what, lie, cause) in cases {
        let (enforcer, answer) = attempt(&mut scene, lie).await;
        let refused = answer.err().unwrap_or_else(|| panic!("{what}: ACCEPTED"));
        let refused = refused.to_string();
        assert!(refused.contains(cause), "{what}: {refused}");
        assert_unpaired(&scene, &enforcer, what);
        if cause == PROOF {
            let left = scene.pairings().await;
            let left = left.as_array().unwrap().iter();
            let mut left = left.filter(|pairing| pairing["enforcerId"] == "novice");
            assert!(left.next().is_none(), "{what}: it is revoked");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_a_proof_proves_nothing() {
    let mut scene = HostileScene::start().await;
    let removed = bundle(|it| drop(it.as_object_mut().unwrap().remove("proof")));
    let other = answered_by(Device::new("mallory"), |_| {});
    for (what, lie) in [("the proof removed", removed), ("another device", other)] {
        let (enforcer, answer) = attempt(&mut scene, lie).await;
        let (received, pairing) = answer.unwrap().unwrap().split();
        // A person has to compare digits, and the other screen shows none.
        assert!(matches!(received, ReceivedAnswer::ToCompare(_)), "{what}");
        enforcer.abort(pairing).await.unwrap();
        assert_unpaired(&scene, &enforcer, what);
    }
}

/// The people who work with the agent are under the proof: the gateway can let nobody approve for
/// the own agent by taking a name away.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_pinned_if_operators_were_changed_dropped_or_invented() {
    let mut scene = HostileScene::start().await;
    let named = |ids: Option<&[&str]>| PairingChoice {
        operators: ids.map(operators),
        ..replacing()
    };
    let dropped = bundle(|it| drop(it.as_object_mut().unwrap().remove("operators").unwrap()));
    let emptied = bundle(|it| it["operators"] = json!([]));
    let swapped = bundle(|it| it["operators"] = json!(["erin"]));
    let invented = bundle(|it| it["operators"] = json!([]));
    for (what, lie, choice) in [
        ("dropped", dropped, named(Some(&["dave"]))),
        ("emptied", emptied, named(Some(&["dave"]))),
        ("swapped", swapped, named(Some(&["dave"]))),
        ("invented", invented, named(None)),
    ] {
        let (enforcer, answer) = attempt_with(&mut scene, lie, choice).await;
        let refused = answer.err().expect(what).to_string();
        assert!(refused.contains(PROOF), "{what}: {refused}");
        assert_unpaired(&scene, &enforcer, what);
        assert_eq!(enforcer.operators(), None, "{what}");
    }
}
