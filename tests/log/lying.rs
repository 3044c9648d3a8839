//! A gateway that shows one client another log than the rest, or an older one.

use countersign::client::log::{LogScope, LogState};
use countersign::e2e::{LogCheckpoint, LogOrigin, LogSigner, TreeHash, verifier_key};
use countersign::protocol::id::{TenantId, TextId as _};

use super::checking::{LogScene, deadline};
use super::signer;
use crate::hostile::meddler::{Meddler, Reply};

/// A checkpoint of another tree, signed.
fn forged(origin: LogOrigin, size: u64, signer: &LogSigner) -> String {
    signer.sign(&LogCheckpoint {
        origin,
        size,
        root: TreeHash([8; 32]),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tree_a_shorter_one_and_a_foreign_one_are_noticed_and_kept() {
    let scene = LogScene::start().await;
    let origin = |tenant: &TenantId, epoch| LogOrigin::new("gateway.test", tenant, epoch).unwrap();
    let own = &scene.world.cluster.tenant;
    let other = TenantId::parse("another").unwrap();
    let stranger = LogSigner::from_secret(&[99; 32]);
    let elsewhere = LogOrigin::new("other.test", own, 1).unwrap();
    let node = scene.world.cluster.urls()[0].clone();
    for (name, note, said) in [
        (
            "another tree of the same size",
            Some(forged(origin(own, 1), 4, &signer())),
            "rewritten",
        ),
        (
            "another tree that is longer",
            Some(forged(origin(own, 1), 5, &signer())),
            "rewritten",
        ),
        (
            "a shorter tree",
            Some(forged(origin(own, 1), 3, &signer())),
            "shorter",
        ),
        (
            "another key",
            Some(forged(origin(own, 1), 4, &stranger)),
            "the key that was seen first",
        ),
        (
            "the log of another tenant",
            Some(forged(origin(&other, 1), 4, &signer())),
            "another tenant",
        ),
        (
            "the log of another deployment",
            Some(forged(elsewhere, 4, &signer())),
            "another log",
        ),
        (
            "an epoch before",
            Some(forged(origin(own, 0), 4, &signer())),
            "another log",
        ),
        (
            "no checkpoint",
            Some("nothing".to_owned()),
            "the key that was seen first",
        ),
        ("no log", None, "no log any more"),
    ] {
        let (key, shown) = (
            verifier_key(&origin(own, 1), &stranger.key().unwrap()),
            note.clone(),
        );
        let liar = Meddler::start(&node, move |call, gateway| {
            let (key, note) = (key.clone(), shown.clone());
            async move {
                if call.path != "/v1/log/checkpoint" {
                    let mut reply = gateway.pass(&call).await;
                    // It has no proof of what it claims; the best is that of the true tree.
                    if call.path.contains("to=5") {
                        reply = Reply::new(200, r#"{"hashes":[]}"#);
                    }
                    return reply;
                }
                let Some(note) = note else {
                    return Reply::new(404, "{}");
                };
                let mut reply = Reply::new(200, note);
                reply
                    .headers
                    .insert("countersign-log-key", key.parse().unwrap());
                reply
            }
        })
        .await;
        let deceived = scene.world.through("laptop", vec![liar.url.clone()]);
        for _ in 0..2 {
            let report = deceived
                .log_check(deadline())
                .run(LogScope::New)
                .await
                .unwrap();
            assert_eq!(report.state, LogState::Failed, "{name}");
            assert!(report.problems[0].contains(said), "{name}: {report:?}");
        }
        let kept =
            std::fs::read_to_string(scene.world.file("laptop").path().with_extension("log.json"))
                .unwrap();
        let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
        let newest = kept["logs"][own.as_str()]["evidence"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .clone();
        let notes = newest["notes"].as_array().unwrap();
        assert_eq!(notes.len(), 1 + usize::from(note.is_some()), "{name}");
        assert_eq!(
            notes.last().unwrap().as_str(),
            note.as_deref().or(notes[0].as_str()),
            "{name}"
        );
    }
    // None of this has replaced what is known.
    let honest = scene.world.through("laptop", vec![node]);
    let report = honest
        .log_check(deadline())
        .run(LogScope::All)
        .await
        .unwrap();
    assert!(report.problems.is_empty(), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approver_notices_that_the_agents_machine_was_shown_another_log() {
    let mut scene = LogScene::start().await;
    let compared = async |scene: &LogScene| {
        let opened = scene.item.as_ref().unwrap().content.as_ref().unwrap();
        let check = scene.alice.log_check(deadline());
        check.compare(opened.artifact()).await.unwrap()
    };
    assert_eq!(compared(&scene).await, None);
    // The request before this one carried an older state.
    scene = scene.approve().await;
    assert_eq!(compared(&scene).await, None);
    let own = scene.world.cluster.tenant.clone();
    let path = scene.world.file("bot").path().with_extension("log.json");
    for (epoch, signed_by) in [
        (1, signer()),
        (2, signer()),
        (1, LogSigner::from_secret(&[99; 32])),
    ] {
        let origin = LogOrigin::new("gateway.test", &own, epoch).unwrap();
        let mut kept: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let note = forged(origin, 4, &signed_by);
        kept["logs"][own.as_str()]["checkpoints"] = serde_json::json!({ epoch.to_string(): note });
        std::fs::write(&path, kept.to_string()).unwrap();
        scene = scene.approve().await;
        let problem = compared(&scene).await.unwrap();
        assert!(
            problem.contains("another log than this device"),
            "{problem}"
        );
        let seen =
            std::fs::read_to_string(scene.world.file("laptop").path().with_extension("log.json"))
                .unwrap();
        let seen: serde_json::Value = serde_json::from_str(&seen).unwrap();
        let evidence = seen["logs"][own.as_str()]["evidence"].as_array().unwrap();
        assert_eq!(evidence.last().unwrap()["notes"][1], note);
    }
}
