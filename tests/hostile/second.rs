//! Two devices of one approver, with an honest gateway and with one that lets everything through.

use std::time::Duration;

use countersign::client::ClientError;
use countersign::protocol::decision::Verdict;

use super::meddler::Lie;
use super::scene::{Hold, HostileScene, REVOKED, UNKNOWN, approve_as, device_of};
use crate::client::people::{choice, pair};

const TIME: Duration = Duration::from_secs(600);

#[tokio::test(flavor = "multi_thread")]
async fn either_device_decides_and_an_added_one_without_pairing_again() {
    let scene = HostileScene::start().await;
    let (phone, _) = scene.added("phone").await;
    let before = scene.enforcer_now().approvers()[0].devices.clone();
    assert_eq!(before.len(), 1, "the enforcer was paired with the laptop");
    for device in [&scene.alice, &phone] {
        let accepted = scene.ask_with(scene.enforcer(), TIME, async |id| {
            for reader in [&scene.alice, &phone] {
                let item = scene.item(reader, &id).await;
                assert!(item.content.is_ok(), "it opens on both");
            }
            let item = scene.item(device, &id).await;
            let decided = device.decide(&item, &choice(Verdict::Approve)).await;
            decided.unwrap();
        });
        let approval = accepted.await.unwrap().approval;
        assert_eq!(approval.device, device.device_id());
    }
    let (ran, ended) = scene
        .run(Lie::default(), async |id| {
            let item = scene.item(&phone, &id).await;
            let decided = phone.decide(&item, &choice(Verdict::Approve)).await;
            decided.unwrap();
        })
        .await;
    assert!(ran, "{}", ended.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_device_decides_nothing_whatever_the_gateway_lets_through() {
    let mut scene = HostileScene::start().await;
    let (mut approver, phone) = scene.added("phone").await;
    let mut enforcer = scene.enforcer();
    pair(&mut enforcer, &mut approver).await;
    // It asks while the phone is in force, and the phone is revoked before it decides.
    let hold = Hold::default();
    let forged = approve_as(&phone.keys);
    scene.lie(hold.lie().body(forged));
    let denied = scene.ask_with(scene.enforcer_now(), TIME, async |id| {
        let item = scene.item(&approver, &id).await;
        assert!(item.content.is_ok());
        scene.alice.revoke_device(phone.keys.id()).await.unwrap();
        let refused = approver.decide(&item, &choice(Verdict::Approve)).await;
        let refused = refused.unwrap_err();
        let expected = matches!(refused, ClientError::RefusedAfterSigning);
        assert!(expected, "the gateway refuses it: {refused}");
        // A gateway that lets it through: the enforcer looks at the list again after a minute at
        // the latest.
        scene.decide(&id, &choice(Verdict::Reject)).await;
        scene.world.cluster.pass(Duration::from_secs(61));
        hold.release();
    });
    let denial = Box::pin(denied).await.unwrap_err().to_string();
    assert!(denial.contains(REVOKED), "{denial}");

    // From now on the enforcer knows, and nothing is encrypted to it.
    let record = scene.enforcer_now().approvers()[0].clone();
    assert!(record.revoked.contains(&phone.id()));
    scene.remember(|known| *known = record);
    scene.lie(Lie::default().body(approve_as(&phone.keys)));
    let denied = scene.ask_with(scene.enforcer(), TIME, async |id| {
        let item = scene.item(&approver, &id).await;
        assert!(item.content.is_err(), "it is not a recipient any more");
        scene.decide(&id, &choice(Verdict::Reject)).await;
    });
    let denial = Box::pin(denied).await.unwrap_err().to_string();
    assert!(denial.contains(REVOKED), "{denial}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_none_has_added_never_decides() {
    let scene = HostileScene::start().await;
    let tablet = scene.unendorsed("tablet").await;
    let keys = device_of(&scene.world, "tablet").keys;
    for lie in [Lie::default(), Lie::default().body(approve_as(&keys))] {
        scene.lie(lie);
        let denied = scene.ask_with(scene.enforcer(), TIME, async |id| {
            let item = scene.item(&tablet, &id).await;
            assert!(item.content.is_err(), "it is not a recipient");
            let refused = tablet.decide(&item, &choice(Verdict::Approve)).await;
            assert!(matches!(refused, Err(ClientError::NotApprovable(_))));
            let refused = tablet.decide(&item, &choice(Verdict::Reject)).await;
            assert!(matches!(refused, Err(ClientError::RefusedAfterSigning)));
            scene.decide(&id, &choice(Verdict::Reject)).await;
        });
        let denial = Box::pin(denied).await.unwrap_err().to_string();
        let expected = denial.contains(UNKNOWN) || denial.contains("alice rejected it");
        assert!(expected, "{denial}");
    }
    let (ran, ended) = scene
        .run(Lie::default().body(approve_as(&keys)), async |id| {
            scene.decide(&id, &choice(Verdict::Reject)).await;
        })
        .await;
    assert!(!ran);
    assert_eq!(ended.code, 77, "{}", ended.err);
    assert!(ended.err.contains(UNKNOWN), "{}", ended.err);
}
