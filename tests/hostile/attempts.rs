//! Attempts at pairing that the gateway mixes up, breaks off or never lets end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::e2e::{PairingLink, ReceivedAnswer};
use serde_json::Value;

use super::meddler::{Content, Lie, Reply, Route};
use super::pairing::{PROOF, assert_unpaired, attempt, initiate, replacing, status};
use super::scene::HostileScene;

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_another_attempt_completes_none() {
    let mut scene = HostileScene::start().await;
    // The device answers one attempt; the gateway passes it off as the answer to the next.
    let seen = Arc::new(Mutex::new((Value::Null, Value::Null)));
    let (first, second) = (Arc::clone(&seen), Arc::clone(&seen));
    let remember = Lie::default()
        .reply(Route::Initiate, move |reply| {
            first.lock().unwrap().0 = reply.json();
        })
        .reply(Route::Status, move |reply| {
            second.lock().unwrap().1 = reply.json();
        });
    let (_, answer) = attempt(&mut scene, remember).await;
    assert!(answer.unwrap().is_some(), "the first is fine");
    let (offered, answered) = seen.lock().unwrap().clone();
    let nonce = offered["nonce"].clone();
    let old = answered.to_string();
    let whole = Lie::default().instead(Route::Status, move |_| Some(Reply::new(200, old.clone())));
    let old = answered["publicKey"].clone();
    let key = status(move |it| it["publicKey"] = old.clone());
    let late = initiate(move |it| it["nonce"] = nonce.clone());
    for (what, lie) in [("the answer", whole), ("its key", key), ("its nonce", late)] {
        let urls = vec![scene.meddler.url.clone()];
        let enforcer = scene.world.enforcer_at("novice", urls).await;
        scene.lie(lie);
        let begun = enforcer.begin_pairing(None, None).await.unwrap();
        let link = PairingLink::parse(&begun.link("https://page.example.org")).unwrap();
        // With the nonce of another attempt the device completes that one, or is refused.
        let _refused = scene.alice.pair_by_link_with(&link, replacing()).await;
        let refused = enforcer.wait_for_answer(begun).await.err().expect(what);
        let expected = refused.to_string();
        let named = expected.contains(PROOF) || expected.contains("has been revoked");
        assert!(named, "{what}: {expected}");
        assert_unpaired(&scene, &enforcer, what);
    }
    // The code of another enforcer: the link's fingerprint is not that of its key.
    let foreign = scene.world.enforcer("foreign").await;
    let theirs = foreign.begin_pairing(None, None).await.unwrap();
    let code = theirs.code().to_string();
    let urls = vec![scene.meddler.url.clone()];
    let enforcer = scene.world.enforcer_at("novice", urls).await;
    scene.lie(initiate(move |it| it["code"] = code.clone().into()));
    let begun = enforcer.begin_pairing(None, None).await.unwrap();
    let link = PairingLink::parse(&begun.link("https://page.example.org")).unwrap();
    let refused = scene
        .alice
        .pair_by_link_with(&link, replacing())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("the enforcer's key is not the one in the link"),
        "{refused}"
    );
    assert!(
        !scene
            .alice
            .enforcers()
            .iter()
            .any(|known| known.id == "foreign")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_was_replaced_leads_to_nobody() {
    let mut scene = HostileScene::start().await;
    let token = scene.enforcer().approvers()[0].routing_token.clone();
    for other in ["invented", &token] {
        let other = other.to_owned();
        let lie = status(move |it| it["routingToken"] = other.clone().into());
        let (mut enforcer, answer) = attempt(&mut scene, lie).await;
        let (received, pairing) = answer.unwrap().unwrap().split();
        let ReceivedAnswer::Proven(device) = received else {
            panic!("the keys are those of the device");
        };
        assert_eq!(device.bundle(), scene.alice.bundle());
        enforcer.pin(&device, pairing).unwrap();
        let asked = scene.ask_with(enforcer, Duration::from_secs(60), async |_| {});
        let denial = asked.await.unwrap_err().to_string();
        assert!(denial.contains("422 NO_APPROVER"), "{denial}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_comes_to_nothing_pairs_nobody() {
    let mut scene = HostileScene::start().await;
    let answers: [(&str, Reply, Option<&str>); 9] = [
        ("expired", Reply::new(200, r#"{"status": "expired"}"#), None),
        ("404", Reply::new(404, ""), Some("status 404")),
        ("500", Reply::new(500, ""), Some("status 500")),
        (
            "redirect",
            Reply::new(302, "").with("location", "/"),
            Some("status 302"),
        ),
        (
            "nothing",
            Reply::new(200, ""),
            Some("not what was expected"),
        ),
        (
            "cut off",
            Reply::new(200, "{\"status\":"),
            Some("not what was expected"),
        ),
        (
            "no JSON",
            Reply::new(200, "completed"),
            Some("not what was expected"),
        ),
        (
            "something after it",
            Reply::new(200, "{} {}"),
            Some("not what was expected"),
        ),
        (
            "without an end",
            Reply {
                body: Content::Flood,
                ..Reply::new(200, "")
            },
            Some("at most 32 MiB"),
        ),
    ];
    for (what, reply, cause) in answers {
        for route in [Route::Initiate, Route::Status] {
            if route == Route::Initiate && cause.is_none() {
                continue;
            }
            let reply = reply.clone();
            let lie = Lie::default().instead(route, move |_| Some(reply.clone()));
            let (enforcer, answer) = attempt(&mut scene, lie).await;
            match (answer, cause) {
                (Ok(None), None) => {}
                (Err(error), Some(cause)) if error.to_string().contains(cause) => {}
                (Err(error), _) => panic!("{route:?} {what}: {error}"),
                (Ok(_), _) => panic!("{route:?} {what}: accepted"),
            }
            assert_unpaired(&scene, &enforcer, what);
        }
    }
    // One that never gets further than this ends with the code.
    let clock = scene.world.cluster.clock.clone();
    let lie = Lie::default().instead(Route::Status, move |_| {
        clock.advance(Duration::from_secs(11 * 60));
        Some(Reply::new(200, r#"{"status": "approved"}"#))
    });
    let (enforcer, answer) = attempt(&mut scene, lie).await;
    assert!(answer.unwrap().is_none());
    assert_unpaired(&scene, &enforcer, "a status that is not known");
}
