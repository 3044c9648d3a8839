//! Requests that are altered on their way to the approver: they do not open, cannot be approved,
//! and the enforcer is told no.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::client::ClientError;
use countersign::client::approver::Approver;
use countersign::client::random;
use countersign::e2e::{DeviceTrust, EnforcerKeys, PlainArtifact, seal_artifact};
use countersign::protocol::decision::Verdict;
use countersign::protocol::id::{EnforcerId, TextId as _};
use serde_json::{Value, json};

use super::meddler::{Lie, Route};
use super::scene::{HostileScene, UNKNOWN};
use crate::client::people::{choice, pair};

const TIME: Duration = Duration::from_secs(600);

/// A lie about the body of a submission.
fn submitting(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Lie {
    Lie::default().call(Route::Submit, move |call| {
        call.edit(|envelope| change(&mut envelope["body"]));
    })
}

/// An item that came to `device` does not open and cannot be approved. Then it is rejected.
async fn cannot_approve(scene: &HostileScene, device: &Approver, id: &str, what: &str) {
    let item = scene.item(device, id).await;
    assert!(item.content.is_err(), "{what}: it does not open");
    let refused = device.decide(&item, &choice(Verdict::Approve)).await;
    let refused = refused.unwrap_err();
    let expected = matches!(refused, ClientError::NotApprovable(_));
    assert!(expected, "{what}: {refused}");
    let rejected = device.decide(&item, &choice(Verdict::Reject)).await;
    rejected.unwrap_or_else(|error| panic!("{what}: {error}"));
}

/// A request that the gateway has written itself, for a device whose keys it knows, in the
/// enforcer's name.
fn written_by_the_gateway(scene: &HostileScene) -> Lie {
    let (tenant, approver) = (scene.owner.tenant.clone(), scene.owner.approver.clone());
    let devices = vec![scene.laptop.bundle.clone()];
    let trust = DeviceTrust::from_own_records(tenant, approver, devices, [].into());
    Lie::default().call(Route::Submit, move |call| {
        call.edit(|envelope| {
            let artifact = json!({
                "requestId": envelope["requestId"], "artifactType": "command.review", "repoRef": "x",
                "createdAt": envelope["createdAt"], "expiresAt": envelope["body"]["expiresAt"],
                "payload": { "kind": "command", "argv": ["true"] }, "artifactHashAlg": "SHA-256",
            });
            let artifact = PlainArtifact::complete(&artifact.to_string(), &mut random).unwrap();
            let keys = EnforcerKeys::generate(&mut random).unwrap();
            let bot = EnforcerId::parse("bot").unwrap();
            let sealed = seal_artifact(&keys, &bot, &artifact, &[&trust], &mut random).unwrap();
            let body = &mut envelope["body"];
            body["artifactHash"] = artifact.hash().to_string().into();
            body["ciphertext"] = serde_json::from_str(&sealed.to_text().unwrap()).unwrap();
        });
    })
}

/// The submission of another request, kept.
async fn earlier(scene: &HostileScene) -> Value {
    let seen = Arc::new(Mutex::new(Value::Null));
    let kept = Arc::clone(&seen);
    scene.lie(Lie::default().call(Route::Submit, move |call| {
        *kept.lock().unwrap() = serde_json::from_slice(&call.body).unwrap();
    }));
    let asked = scene.ask_with(scene.enforcer(), TIME, async |id| {
        scene.decide(&id, &choice(Verdict::Approve)).await;
    });
    asked.await.unwrap();
    let seen = seen.lock().unwrap().clone();
    seen["body"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_was_altered_cannot_be_approved() {
    let scene = HostileScene::start().await;
    let old = earlier(&scene).await;
    let (rejected, artifact) = ("alice rejected it", "about another artifact");
    let member = |name: &'static str| {
        let old = old[name].clone();
        submitting(move |body| body[name] = old.clone())
    };
    let recipient = |change: fn(&mut Value)| {
        submitting(move |body| change(&mut body["ciphertext"]["recipients"]))
    };
    let mallory = scene.mallory.id();
    let cases = [
        (
            "the content of another request",
            member("ciphertext"),
            rejected,
        ),
        (
            "another request under this id",
            submitting({
                let old = old.clone();
                move |body| *body = old.clone()
            }),
            artifact,
        ),
        (
            "no recipients",
            recipient(|list| *list = json!([])),
            rejected,
        ),
        (
            "a recipient twice",
            recipient(|list| {
                let first = list[0].clone();
                list.as_array_mut().unwrap().push(first);
            }),
            rejected,
        ),
        (
            "another recipient",
            submitting(move |body| {
                body["ciphertext"]["recipients"][0]["deviceId"] = mallory.clone().into();
            }),
            rejected,
        ),
        (
            "the recipients of another request",
            submitting({
                let old = old["ciphertext"]["recipients"].clone();
                move |body| body["ciphertext"]["recipients"] = old.clone()
            }),
            rejected,
        ),
        (
            "more time",
            submitting(|body| {
                body["expiresAt"] = crate::support::in_time(86_000).into();
            }),
            rejected,
        ),
        ("another hash", member("artifactHash"), artifact),
        (
            "another type",
            submitting(|body| body["artifactType"] = "plan.review".into()),
            rejected,
        ),
        (
            "written by the gateway",
            written_by_the_gateway(&scene),
            artifact,
        ),
    ];
    for (what, lie, cause) in cases {
        scene.lie(lie.clone());
        let denied = scene.ask_with(scene.enforcer(), TIME, async |id| {
            cannot_approve(&scene, &scene.alice, &id, what).await;
        });
        let denial = denied.await.expect_err(what).to_string();
        assert!(denial.contains(cause), "{what}: {denial}");
    }
    let (ran, ended) = scene
        .run(written_by_the_gateway(&scene), async |id| {
            cannot_approve(&scene, &scene.alice, &id, "written by the gateway").await;
        })
        .await;
    assert!(!ran, "{}", ended.err);
    assert_eq!(ended.code, 77, "{}", ended.err);
    assert!(ended.err.contains(artifact), "{}", ended.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_was_led_elsewhere_is_decided_by_nobody() {
    let mut scene = HostileScene::start().await;
    // Another enforcer that alice is paired with too.
    let mut other = scene.world.enforcer("other").await;
    pair(&mut other, &mut scene.alice).await;
    let profile = scene.world.file("other").load().unwrap();
    let profile = profile.enforcer.unwrap();
    let bearer = format!("Bearer {}", profile.gateway.api_key.expose());
    let token = profile.approvers[0].routing_token.clone();
    let posed = Lie::default().call(Route::Submit, move |call| {
        let value = bearer.parse().unwrap();
        call.headers.insert("authorization", value);
        call.edit(|envelope| {
            envelope["sender"]["enforcerId"] = "other".into();
            envelope["body"]["metadata"]["routingToken"] = token.clone().into();
        });
    });
    scene.lie(posed);
    let mut request = String::new();
    let denied = scene.ask_with(scene.enforcer(), TIME, async |id| request = id);
    let denial = denied.await.unwrap_err().to_string();
    assert!(denial.contains("404 NOT_FOUND"), "{denial}");
    let item = scene.item(&scene.alice, &request).await;
    assert_eq!(item.enforcer_id.as_ref().unwrap().as_str(), "other");
    assert!(item.content.is_err(), "it does not open as the other's");
    let refused = scene.alice.decide(&item, &choice(Verdict::Approve)).await;
    assert!(matches!(refused, Err(ClientError::NotApprovable(_))));

    // To another approver, whom the enforcer does not know.
    let bob = scene.world.approver("bob", "watch").await;
    let led = Lie::default().call(Route::Submit, |call| {
        call.edit(|envelope| {
            envelope["recipient"]["approverId"] = "bob".into();
            envelope["body"].as_object_mut().unwrap().remove("metadata");
        });
    });
    scene.lie(led.clone());
    let denied = scene.ask_with(scene.enforcer(), TIME, async |id| {
        cannot_approve(&scene, &bob, &id, "to bob").await;
    });
    let denial = denied.await.unwrap_err().to_string();
    assert!(denial.contains(UNKNOWN), "{denial}");
}
