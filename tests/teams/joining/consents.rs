//! Consents: nobody is seated without one, and it counts once. Invitations end with the seat of the
//! member who made them.

use std::time::Duration;

use countersign::e2e::{StandIn, TeamContent};
use countersign::protocol::timestamp::Timestamp;

use super::{AREAS, DAY};
use crate::teams::scene::{Person, Team, TeamScene, first_state};

/// Names a stand-in on the seat of a member.
fn stand_in(content: &mut TeamContent, member: &Person, other: &Person) {
    let [from, until] = ["2026-02-21T12:00:00Z", "2026-02-24T12:00:00Z"];
    let [from, until] = [from, until].map(|text| Timestamp::parse(text).unwrap());
    content.seat_mut(&member.id()).unwrap().stand_in = Some(StandIn {
        approver: other.id(),
        devices: vec![other.device.bundle.clone()],
        from,
        until,
    });
}

/// Tries to publish the next state, which must be refused because this person has not consented.
async fn refused(team: &Team, by: &Person, person: &Person, change: impl FnOnce(&mut TeamContent)) {
    let next = team.next(&by.device, change);
    let answer = by.post(&team.path("states"), &next.to_text()).await;
    let answer = answer.refused_at(403, "POLICY_DENY", "/statement/seats");
    assert_eq!(answer.detail("approverId"), person.approver.id);
}

fn without(content: &mut TeamContent, gone: &Person) {
    content.seats.retain(|seat| seat.approver != gone.id());
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_seated_without_an_answered_invitation() {
    let scene = TeamScene::new(2).await;
    let (alice, bob, carol) = (&scene.alice, &scene.bob, &scene.carol);
    // Not by creating a team.
    let counts = scene.cluster.database.counts().await;
    let seats = vec![alice.seat(true), bob.seat(true), carol.seat(false)];
    let first = first_state(&scene.cluster.tenant, "ours", seats, &alice.device);
    let answer = alice.post("/v1/teams", &first.to_text()).await;
    let answer = answer.refused_at(403, "POLICY_DENY", "/statement/seats");
    assert_eq!(answer.detail("approverId"), "bob");
    assert_eq!(scene.cluster.database.counts().await, counts);
    let list = bob.client().get("/v1/approvers/bob/teams").await;
    assert_eq!(list.expect(200).json()["teams"], serde_json::json!([]));

    // Not by changing one, as a member, an owner or a stand-in.
    let mut team = scene.create("payments").await;
    let other = scene.create("oncall").await;
    scene.agree(&other, alice, carol).await;
    let (_, text) = scene.invite(&team, alice, carol).await;
    let counts = scene.cluster.database.counts().await;
    for owner in [false, true] {
        let seat = carol.seat(owner);
        refused(&team, alice, carol, |content| content.seats.push(seat)).await;
    }
    refused(&team, bob, carol, |content| stand_in(content, bob, carol)).await;
    assert_eq!(scene.cluster.database.counts().await, counts);

    // Any owner may act on a consent, and a state that was published is there.
    carol.post(&team.path("consents"), &text).await.expect(201);
    let next = team.next(&bob.device, |content| stand_in(content, bob, carol));
    for status in [201, 200] {
        let answer = bob.post(&team.path("states"), &next.to_text()).await;
        answer.expect(status);
    }
    team.state = next.state().clone();
    // Somebody who is in the team needs no further one to get another kind of seat.
    team.publish(alice, |content| {
        content.seat_mut(&bob.id()).unwrap().stand_in = None;
        content.seats.push(carol.seat(false));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consent_counts_once_and_for_a_week() {
    let scene = TeamScene::new(2).await;
    let (alice, bob, carol) = (&scene.alice, &scene.bob, &scene.carol);
    let mut team = scene.create("payments").await;
    scene.admit(&mut team, alice, carol).await;
    // When she is removed, she has answered a second invitation and not a third one.
    scene.agree(&team, bob, carol).await;
    let (_, late) = scene.invite(&team, bob, carol).await;
    team.publish(alice, |content| without(content, carol)).await;
    carol
        .client()
        .get(&team.path("states"))
        .await
        .refused(404, "NOT_FOUND");
    carol
        .post(&team.path("consents"), &late)
        .await
        .refused(404, "NOT_FOUND");
    let seat = || carol.seat(false);
    refused(&team, bob, carol, |content| content.seats.push(seat())).await;
    refused(&team, bob, carol, |content| stand_in(content, bob, carol)).await;
    // A new invitation brings her back. Alice and Bob need none.
    scene.admit(&mut team, bob, carol).await;
    // The same for a stand-in.
    let dora = Person::new(&scene.cluster, "dora").await;
    scene.agree(&team, carol, &dora).await;
    team.publish(carol, |content| stand_in(content, carol, &dora))
        .await;
    team.publish(carol, |content| {
        content.seat_mut(&carol.id()).unwrap().stand_in = None;
    })
    .await;
    refused(&team, carol, &dora, |content| {
        stand_in(content, carol, &dora);
    })
    .await;
    scene.agree(&team, carol, &dora).await;
    scene.cluster.pass(DAY * 7 + Duration::from_secs(1));
    refused(&team, carol, &dora, |content| {
        stand_in(content, carol, &dora);
    })
    .await;
    scene.agree(&team, carol, &dora).await;
    team.publish(carol, |content| stand_in(content, carol, &dora))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invitations_end_with_the_seat_of_the_member_who_made_them() {
    let scene = TeamScene::new(2).await;
    let (alice, bob, carol) = (&scene.alice, &scene.bob, &scene.carol);
    let mut team = scene.create("payments").await;
    scene.admit(&mut team, alice, carol).await;
    let dora = Person::new(&scene.cluster, "dora").await;
    let erin = Person::new(&scene.cluster, "erin").await;
    let (_, own) = scene.invite(&team, carol, carol).await;
    let (_, doras) = scene.invite(&team, carol, &dora).await;
    let (_, erins) = scene.invite(&team, bob, &erin).await;
    let (states, consents) = (team.path("states"), team.path("consents"));
    for invited in [&dora, &erin] {
        invited.client().get(&states).await.expect(200);
    }
    dora.post(&consents, &doras).await.expect(201);
    // One who stands in invites nobody either.
    team.publish(bob, |content| {
        without(content, carol);
        stand_in(content, bob, carol);
    })
    .await;
    let closed = async |person: &Person, text: &str| {
        for area in AREAS {
            let answer = person.client().get(&team.path(area)).await;
            answer.refused(404, "NOT_FOUND");
        }
        let answer = person.post(&consents, text).await;
        answer.refused(404, "NOT_FOUND");
    };
    closed(&dora, &doras).await;
    let next = team.next(&bob.device, |content| {
        content.seat_mut(&bob.id()).unwrap().stand_in = None;
    });
    bob.post(&states, &next.to_text()).await.expect(201);
    closed(&dora, &doras).await;
    closed(carol, &own).await;
    erin.client().get(&states).await.expect(200);
    erin.post(&consents, &erins).await.expect(201);
}
