//! The devices of a person on their seat in a team: added, stolen, revoked.

use countersign::client::approver::{Approver, SeatNotice};
use countersign::e2e::{DeviceBundle, DeviceKeys, DeviceName, TeamChain};

use super::devices::asks;
use super::team_seats::name_stand_in;
use super::teams::{TEAM, TeamWorld};

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
    // The last one cannot leave, and its person is told.
    let notices = phone.revoke_device(phone.device_id()).await.unwrap();
    assert!(
        matches!(notices.as_slice(), [SeatNotice::LastDevice { team }] if team == TEAM),
        "{notices:?}"
    );
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
