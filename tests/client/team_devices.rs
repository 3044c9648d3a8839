//! The devices of a person on their seat in a team: added, stolen, revoked.

use countersign::client::approver::{Approver, SeatNotice};
use countersign::e2e::{DeviceBundle, DeviceKeys, DeviceName, TeamChain, TeamLink};
use serde_json::{Value, json};

use super::devices::asks;
use super::tamper::Tamper;
use super::team_seats::name_stand_in;
use super::teams::{TEAM, TeamWorld};
use crate::hostile::meddler::{Meddler, Reply};
use crate::hostile::scene::device_of;

/// A further device of Bob's, on his seat.
async fn phone_of_bob(world: &TeamWorld) -> Approver {
    let phone = world.scene.device("bob", "phone").await;
    let request = asks(&phone).await;
    world.bob.add_device(&request).await.unwrap();
    assert!(world.bob.add_to_seats().await.unwrap().is_empty());
    phone.share_enforcers().await.unwrap();
    assert_eq!(devices_of(world, "bob").await.len(), 2);
    phone
}

async fn seen(world: &TeamWorld) -> TeamChain {
    world.alice.team(TEAM).await.unwrap()
}

async fn devices_of(world: &TeamWorld, name: &str) -> Vec<String> {
    let chain = seen(world).await;
    let mut seats = chain.content().seats.iter();
    let seat = seats.find(|seat| seat.approver.as_str() == name).unwrap();
    let ids = seat.devices.iter().map(|device| device.id().to_string());
    ids.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_takes_off_what_a_thief_has_put_on_the_seat() {
    let world = TeamWorld::start().await;
    let erin = world.scene.approver("erin", "erin").await;
    let phone = phone_of_bob(&world).await;
    let keys = DeviceKeys::generate(&mut countersign::client::random).unwrap();
    let name = DeviceName::parse("burner").unwrap();
    let burner = DeviceBundle::of(&keys, name).unwrap();
    let chain = phone.team(TEAM).await.unwrap();
    let stolen = phone.change_team(&chain, |content| {
        let mut seats = content.seats.iter_mut();
        let own = seats.find(|seat| seat.approver.as_str() == "bob").unwrap();
        own.devices.push(burner);
        Ok(())
    });
    stolen.await.unwrap();
    name_stand_in(&phone, TEAM, &erin).await;
    // And takes the stolen device off, so that nothing points to it.
    let chain = phone.team(TEAM).await.unwrap();
    let gone = phone.device_id();
    let hidden = phone.change_team(&chain, |content| {
        let mut seats = content.seats.iter_mut();
        let own = seats.find(|seat| seat.approver.as_str() == "bob").unwrap();
        own.devices.retain(|device| device.id() != gone);
        Ok(())
    });
    hidden.await.unwrap();

    let notices = world.bob.revoke_device(phone.device_id()).await.unwrap();
    assert_eq!(
        devices_of(&world, "bob").await,
        [world.bob.device_id().to_string()]
    );
    let chain = seen(&world).await;
    assert!(chain.content().seats.iter().all(|it| it.stand_in.is_none()));
    let [first, second] = notices.as_slice() else {
        panic!("{notices:?}");
    };
    assert!(first.to_string().contains("burner"), "{first}");
    assert!(second.to_string().contains("erin"), "{second}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_revokes_itself_leaves_its_seats_first() {
    let world = TeamWorld::start().await;
    let phone = phone_of_bob(&world).await;
    let notices = world.bob.revoke_device(world.bob.device_id()).await;
    assert!(notices.unwrap().is_empty());
    let left = devices_of(&world, "bob").await;
    assert_eq!(left, [phone.device_id().to_string()]);
    // The last one cannot leave, and its person is told. Its stand-in ends.
    let erin = world.scene.approver("erin", "erin").await;
    name_stand_in(&phone, TEAM, &erin).await;
    let notices = phone.revoke_device(phone.device_id()).await.unwrap();
    let [
        SeatNotice::LastDevice { team },
        SeatNotice::StandInEnded { .. },
    ] = notices.as_slice()
    else {
        panic!("{notices:?}");
    };
    assert_eq!(team, TEAM);
    let chain = seen(&world).await;
    assert!(chain.content().seats.iter().all(|it| it.stand_in.is_none()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_reaches_teams_that_another_device_has_joined() {
    let world = TeamWorld::start().await;
    // The phone has looked for no teams until now.
    let phone = world.scene.device("bob", "phone").await;
    let request = asks(&phone).await;
    world.bob.add_device(&request).await.unwrap();
    world.bob.add_to_seats().await.unwrap();
    phone.devices().await.unwrap();
    assert!(phone.teams().unwrap().is_empty());
    let laptop = world.bob.device_id();
    assert!(phone.revoke_device(laptop).await.unwrap().is_empty());
    let left = devices_of(&world, "bob").await;
    assert_eq!(left, [phone.device_id().to_string()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_team_that_only_a_revoked_device_has_joined_is_told() {
    let world = TeamWorld::start().await;
    // As when the consent is older than the gateway keeps it.
    let node = world.scene.cluster.urls()[0].clone();
    let tamper = Tamper::start(&node, |path, answer| {
        if path.ends_with("/consents")
            && let Some(consents) = answer["consents"].as_array_mut()
        {
            consents.clear();
        }
    });
    let tamper = tamper.await;
    let urls = vec![tamper.url.clone()];
    let phone = world.scene.device_at("bob", "phone", urls).await;
    let request = asks(&phone).await;
    world.bob.add_device(&request).await.unwrap();
    phone.devices().await.unwrap();
    let laptop = world.bob.device_id();
    // Repeated, it says so again.
    for _ in 0..2 {
        let notices = phone.revoke_device(laptop).await.unwrap();
        let [notice @ SeatNotice::NotJoined { team }] = notices.as_slice() else {
            panic!("{notices:?}");
        };
        assert_eq!(team, TEAM);
        assert!(notice.is_failure());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_could_not_be_taken_off_goes_with_the_next_revocation() {
    let world = TeamWorld::start().await;
    let phone = phone_of_bob(&world).await;
    let node = world.scene.cluster.urls()[0].clone();
    let refusing = Meddler::start(&node, |call, gateway| async move {
        if call.path.ends_with("/states") && call.method == "POST" {
            return Reply::new(500, "{}");
        }
        gateway.pass(&call).await
    });
    let refusing = refusing.await;
    let bob = world.scene.through("bob", vec![refusing.url.clone()]);
    let notices = bob.revoke_device(phone.device_id()).await.unwrap();
    assert!(
        matches!(notices.as_slice(), [SeatNotice::NotRevoked { .. }]),
        "{notices:?}"
    );
    assert_eq!(devices_of(&world, "bob").await.len(), 2);
    let bob = world.scene.through("bob", world.scene.cluster.urls());
    let tablet = world.scene.device("bob", "tablet").await;
    bob.add_device(&asks(&tablet).await).await.unwrap();
    bob.revoke_device(tablet.device_id()).await.unwrap();
    let left = devices_of(&world, "bob").await;
    assert_eq!(left, [bob.device_id().to_string()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_who_lists_a_device_of_another_one_stops_no_other_change_of_the_seat() {
    let world = TeamWorld::start().await;
    let tablet = world.scene.device("bob", "tablet").await;
    let request = asks(&tablet).await;
    let taken = device_of(&world.scene, "tablet").bundle;
    let chain = world.carol.team(TEAM).await.unwrap();
    let listed = world.carol.change_team(&chain, |content| {
        let mut seats = content.seats.iter_mut();
        let own = seats
            .find(|seat| seat.approver.as_str() == "carol")
            .unwrap();
        own.devices.push(taken);
        Ok(())
    });
    listed.await.unwrap();
    // Nor do they keep another new device from the seat.
    let phone = world.scene.device("bob", "phone").await;
    for request in [request, asks(&phone).await] {
        world.bob.add_device(&request).await.unwrap();
    }
    let notices = world.bob.add_to_seats().await.unwrap();
    assert!(
        matches!(notices.as_slice(), [SeatNotice::NotAdded { .. }]),
        "{notices:?}"
    );
    let ids = [world.bob.device_id(), phone.device_id()].map(|id| id.to_string());
    assert_eq!(devices_of(&world, "bob").await, ids);
    let notices = world.bob.revoke_device(phone.device_id()).await.unwrap();
    assert!(notices.is_empty(), "{notices:?}");
    let left = devices_of(&world, "bob").await;
    assert_eq!(left, [world.bob.device_id().to_string()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_invitation_ends_the_stand_in_of_the_seat() {
    let world = TeamWorld::start().await;
    let erin = world.scene.approver("erin", "erin").await;
    name_stand_in(&world.bob, TEAM, &erin).await;
    let chain = seen(&world).await;
    let page = "https://page.example.org";
    let link = world.alice.invite_to_team(&chain, world.bob.id(), page);
    let link = TeamLink::parse(&link.await.unwrap()).unwrap();
    let invited = world.bob.invited_team(&link).await.unwrap();
    world.bob.join_team(&link, &invited).await.unwrap();
    let answers = world.alice.team_answers(&chain).await.unwrap();
    world.alice.admit(&chain, &answers[0]).await.unwrap();
    let chain = seen(&world).await;
    assert!(chain.content().seats.iter().all(|it| it.stand_in.is_none()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_record_of_teams_stops_no_revocation() {
    let world = TeamWorld::start().await;
    let phone = phone_of_bob(&world).await;
    let directory = world.scene.directory.path().join("countersign");
    std::fs::write(directory.join("bob.joined.json"), "{").unwrap();
    let notices = world.bob.revoke_device(phone.device_id()).await.unwrap();
    assert!(!notices.is_empty());
    for notice in &notices {
        assert!(notice.is_failure());
        assert!(notice.to_string().contains("cannot be used"), "{notice}");
    }
    let known = world.bob.devices().await.unwrap();
    let revoked = known.find(phone.device_id());
    assert!(revoked.is_none_or(|device| !device.standing.is_in_force()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forked_team_is_not_forgotten_and_learned_again_as_if_it_were_whole() {
    let world = TeamWorld::start().await;
    let file = world
        .scene
        .directory
        .path()
        .join("countersign/bob.joined.json");
    let mut kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    kept["teams"][0]["fork"] = json!(["one state", "another"]);
    std::fs::write(&file, kept.to_string()).unwrap();
    let refused = world.bob.leave_team(TEAM).await.unwrap_err().to_string();
    assert!(refused.contains("contradictory"), "{refused}");
    world.bob.share_enforcers().await.unwrap();
    let problem = world.bob.team(TEAM).await.unwrap_err();
    assert!(problem.to_string().contains("contradict"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_stands_in_learns_where_a_revoked_device_still_decides() {
    let world = TeamWorld::start().await;
    let erin = world.scene.approver("erin", "erin").await;
    let phone = world.scene.device("erin", "phone").await;
    let request = asks(&phone).await;
    erin.add_device(&request).await.unwrap();
    name_stand_in(&world.bob, TEAM, &erin).await;
    let notices = erin.revoke_device(phone.device_id()).await.unwrap();
    let [notice] = notices.as_slice() else {
        panic!("{notices:?}");
    };
    assert!(notice.to_string().contains("stands in for bob"), "{notice}");
    assert!(erin.leave_team(TEAM).await.is_err(), "only Bob ends it");
    let chain = world.bob.team(TEAM).await.unwrap();
    world.bob.end_stand_in(&chain).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_owner_cannot_leave_and_one_of_two_can() {
    let world = TeamWorld::start().await;
    let refused = world.alice.leave_team(TEAM).await.unwrap_err();
    assert!(refused.to_string().contains("last owner"), "{refused}");
    super::teams::change(&world.alice, |content| {
        for seat in &mut content.seats {
            seat.owner |= seat.approver.as_str() == "bob";
        }
    })
    .await;
    world.alice.leave_team(TEAM).await.unwrap();
    assert!(world.alice.teams().unwrap().is_empty());
    // A person who was removed only forgets the team.
    super::teams::change(&world.bob, super::teams::without("carol")).await;
    world.carol.leave_team(TEAM).await.unwrap();
    assert!(world.carol.teams().unwrap().is_empty());
}
