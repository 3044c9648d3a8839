//! Decisions that somebody signed, only not this device about this request now: replayed, forged,
//! late.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::client::approver::ApproverChoice;
use countersign::e2e::{ArtifactHints, DecisionScope, GrantMatch};
use countersign::protocol::decision::Verdict;
use serde_json::{Value, json};

use super::meddler::{Content, Lie, Reply, Route};
use super::scene::{Case, HostileScene, REVOKED, SIGNATURE, UNKNOWN, approve_as, device_of, sign};
use crate::client::people::because;
use crate::support::in_time;

/// An approval of another request, as it was delivered.
async fn earlier(scene: &HostileScene) -> Value {
    let seen = Arc::new(Mutex::new(Value::Null));
    let kept = Arc::clone(&seen);
    scene.lie(Lie::default().decision(move |reply| *kept.lock().unwrap() = reply.json()));
    let timeout = Duration::from_secs(600);
    let approved = scene.ask_with(scene.enforcer(), timeout, async |id| {
        let says = because(Verdict::Approve, "this one");
        scene.decide(&id, &says).await;
    });
    approved.await.unwrap();
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen["body"]["decision"], "approve");
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_of_another_request_approves_nothing_else() {
    let scene = HostileScene::start().await;
    let old = earlier(&scene).await;
    let other = "the decision is about another request";
    let replayed = {
        let old = old.to_string();
        Lie::default().decision(move |it| it.body = Content::Whole(old.clone().into_bytes()))
    };
    // The same, without the approver having said anything.
    let invented = {
        let old = old.to_string();
        Lie::default().instead(Route::Wait, move |_| Some(Reply::new(200, old.clone())))
    };
    let outer = {
        let old = old["body"].clone();
        Lie::default().body(move |body| *body = old.clone())
    };
    let inner = {
        let old = old["body"].clone();
        Lie::default().body(move |body| {
            let own = body["requestId"].clone();
            *body = old.clone();
            body["requestId"] = own;
        })
    };
    let member = |name: &'static str| {
        let old = old["body"][name].clone();
        Lie::default().body(move |body| body[name] = old.clone())
    };
    let only = |name: &'static str| {
        let old = old["body"].clone();
        Lie::default().body(move |body| {
            let own = body[name].clone();
            *body = old.clone();
            body[name] = own;
        })
    };
    let cases = [
        Case::rejected("all of it", replayed.clone(), other),
        Case::undecided("before there is one", invented.clone(), other),
        Case::rejected("in an envelope for this request", outer, other),
        Case::rejected("made out to this request", inner, SIGNATURE),
        Case::rejected("its verdict", member("decision"), SIGNATURE),
        Case::approved("its signature", member("signature"), SIGNATURE),
        Case::approved("its nonce", member("nonce"), SIGNATURE),
        Case::approved("its hints", member("policyHints"), SIGNATURE),
        Case::rejected("with this signature", only("signature"), SIGNATURE),
        Case::rejected("with this hash", only("artifactHash"), SIGNATURE),
    ];
    scene.all_denied(cases).await;
    scene
        .program_denied(Case::rejected("all of it", replayed, other))
        .await;
    let case = Case::undecided("before there is one", invented, other);
    scene.program_denied(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_device_in_force_decides() {
    let mut scene = HostileScene::start().await;
    let unendorsed = scene.unendorsed("tablet").await;
    let tablet = device_of(&scene.world, "tablet");
    assert_eq!(unendorsed.bundle(), &tablet.bundle);
    let (_, phone) = scene.added("phone").await;
    scene.alice.revoke_device(phone.keys.id()).await.unwrap();
    let bob = scene.world.approver("bob", "watch").await;
    let watch = device_of(&scene.world, "watch");
    assert_eq!(bob.bundle(), &watch.bundle);
    scene.remember(|record| record.checked_at.clear());
    let by = |keys| Lie::default().body(approve_as(keys));
    // In the name of the laptop, with another key.
    let borrowed = {
        let (key, laptop) = (scene.mallory.signing_key(), scene.laptop.id());
        Lie::default().body(move |body| {
            body["decision"] = "approve".into();
            body["signerKeyId"] = laptop.clone().into();
            *body = crate::support::signed(body.clone(), &key);
        })
    };
    let cases = [
        Case::rejected("a device of the gateway", by(&scene.mallory.keys), UNKNOWN),
        Case::rejected("nobody has added it", by(&tablet.keys), UNKNOWN),
        Case::rejected("revoked", by(&phone.keys), REVOKED),
        Case::rejected("of another approver", by(&watch.keys), UNKNOWN),
        Case::rejected("in the name of another", borrowed, SIGNATURE),
        Case::rejected(
            "no id",
            Lie::default().body(|body| {
                body["decision"] = "approve".into();
                body["signerKeyId"] = "".into();
            }),
            "the decision is not trusted",
        ),
    ];
    scene.all_denied(cases).await;
    let lie = by(&scene.mallory.keys);
    let case = Case::rejected("a device of the gateway", lie, UNKNOWN);
    scene.program_denied(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_device_signed_about_something_else_is_not_taken_for_this() {
    let scene = HostileScene::start().await;
    let old = earlier(&scene).await;
    let signing = |change: Box<dyn Fn(&mut Value) + Send + Sync>| {
        let laptop = device_of(&scene.world, "laptop");
        Lie::default().body(move |body| {
            body["decision"] = "approve".into();
            body.as_object_mut().unwrap().remove("policyHints");
            change(body);
            sign(body, &laptop);
        })
    };
    let set = |name: &'static str, value: Value| {
        signing(Box::new(move |body| body[name] = value.clone()))
    };
    let hints = "the approver's note on the decision cannot be read";
    let past = in_time(-1);
    let compact = {
        let laptop = device_of(&scene.world, "laptop");
        Lie::default().body(move |body| {
            *body = json!({
                "artifactHash": body["artifactHash"], "decision": "approve", "nonce": body["nonce"],
                "requestId": body["requestId"],
            });
            sign(body, &laptop);
        })
    };
    let cases = [
        Case::rejected(
            "other content, the same request",
            set("artifactHash", json!("a".repeat(64))),
            "the decision is about another artifact",
        ),
        Case::rejected(
            "another repository",
            set("repoRef", json!("repo:acme/other")),
            "the decision is about another repository",
        ),
        Case::rejected(
            "no repository",
            set("repoRef", json!("")),
            "the decision is about another repository",
        ),
        Case::rejected(
            "another request, the same content",
            set("requestId", json!("01J2V8V3K6B2Z9X6G1V7Y2QK8H")),
            "the decision is about another request",
        ),
        Case::rejected(
            "expired",
            set("expiresAt", json!(past)),
            "the decision has expired",
        ),
        Case::rejected("compact", compact, "in the compact form"),
        Case::rejected(
            "the hints of another decision",
            set("policyHints", old["body"]["policyHints"].clone()),
            hints,
        ),
        Case::rejected(
            "a condition that is not known",
            set("policyHints", json!({ "onlyIf": "tests pass" })),
            hints,
        ),
        Case::rejected(
            "encrypted hints with a condition beside them",
            set(
                "policyHints",
                json!({ "sealed": old["body"]["policyHints"]["sealed"], "onlyIf": 1 }),
            ),
            hints,
        ),
        Case::rejected(
            "one more member",
            set("until", json!("for ever")),
            "/until should be: no such member",
        ),
    ];
    scene.all_denied(cases).await;
    let lie = set("artifactHash", json!("a".repeat(64)));
    let cause = "the decision is about another artifact";
    scene
        .program_denied(Case::rejected("other content", lie, cause))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_was_held_back_does_not_count() {
    let lasting = ApproverChoice {
        scope: DecisionScope::Timebox,
        lasts: Some(Duration::from_secs(8 * 60 * 60)),
        hints: ArtifactHints {
            grant: Some(GrantMatch::Same),
            ..ArtifactHints::default()
        },
        ..because(Verdict::Approve, "go on")
    };
    for (says, cause) in [
        (
            because(Verdict::Approve, "go on"),
            "the decision has expired",
        ),
        (lasting, "the request expired before its decision arrived"),
    ] {
        let scene = HostileScene::start().await;
        let clock = scene.world.cluster.clock.clone();
        let late = Lie::default().decision(move |_| clock.advance(Duration::from_secs(11 * 60)));
        let case = Case {
            says: Some(says),
            ..Case::approved("held back", late, cause)
        };
        scene.all_denied([case]).await;
    }
}
