//! Seats of several teams in one rule: nobody counts on two of them.

use std::time::Duration;

use countersign::client::approver::Approver;
use countersign::client::enforcer::{Enforcer, RuleDemand};
use countersign::e2e::{RuleTerms, TeamLink};
use countersign::protocol::decision::Verdict;
use countersign::protocol::timestamp::Timestamp;

use super::devices::asks;
use super::people::{ClientScene, choice, command, question};
use super::sets::ask_set;
use super::teams::{TEAM, TeamWorld, change, pair_team, team_of, two_of_team};

const OPERATIONS: &str = "operations";

/// A member names somebody from elsewhere for the next hour.
pub async fn name_stand_in(member: &Approver, team: &str, other: &Approver) {
    let chain = member.team(team).await.unwrap();
    let page = "https://page.example.org";
    let link = member.invite_to_team(&chain, other.id(), page);
    let link = TeamLink::parse(&link.await.unwrap()).unwrap();
    let seen = other.invited_team(&link).await.unwrap();
    other.join_team(&link, &seen).await.unwrap();
    let answers = member.team_answers(&chain).await.unwrap();
    let now = member.now().inner();
    let (from, until) = (
        now - Duration::from_secs(60),
        now + Duration::from_secs(3_600),
    );
    let (from, until) = (Timestamp::from(from), Timestamp::from(until));
    let named = member.name_stand_in(&chain, &answers[0], from, until);
    named.await.unwrap();
}

fn one_of_each(enforcer: &Enforcer) -> RuleTerms {
    let demand = |team: &str| RuleDemand::new(1, [format!("team:{team}")]);
    let demands = [demand(TEAM), demand(OPERATIONS)];
    enforcer.terms_of(&demands).unwrap().unwrap()
}

/// Alice and Bob are in one team, Carol and Dave in the other.
struct TwoTeams {
    scene: ClientScene,
    alice: Approver,
    bob: Approver,
    carol: Approver,
    dave: Approver,
    enforcer: Enforcer,
}

impl TwoTeams {
    async fn start() -> Self {
        let scene = ClientScene::start().await;
        let mut alice = scene.approver("alice", "alice").await;
        let bob = scene.approver("bob", "bob").await;
        let mut carol = scene.approver("carol", "carol").await;
        let dave = scene.approver("dave", "dave").await;
        team_of(&alice, TEAM, &[&bob]).await;
        team_of(&carol, OPERATIONS, &[&dave]).await;
        let mut enforcer = scene.enforcer("bot").await;
        pair_team(&mut enforcer, &mut alice, TEAM).await;
        pair_team(&mut enforcer, &mut carol, OPERATIONS).await;
        Self {
            scene,
            alice,
            bob,
            carol,
            dave,
            enforcer,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_with_a_seat_does_not_stand_in_on_another_one() {
    let world = TwoTeams::start().await;
    name_stand_in(&world.dave, OPERATIONS, &world.bob).await;
    let terms = one_of_each(&world.enforcer);
    let asked = ask_set(world.enforcer, terms).await;
    let own = asked.item(&world.bob).await;
    asked.item(&world.dave).await;
    let seen = world.bob.find("").await.unwrap();
    assert_eq!(seen.len(), 1, "the request to Dave's seat is not for Bob");
    world
        .bob
        .decide(&own, &choice(Verdict::Approve))
        .await
        .unwrap();
    asked.decide(&world.carol, &choice(Verdict::Approve)).await;
    asked.end().await.decided.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_stands_in_twice_counts_once() {
    let world = TwoTeams::start().await;
    let erin = world.scene.approver("erin", "erin").await;
    // With another device for the other seat.
    let phone = world.scene.device("erin", "phone").await;
    let request = asks(&phone).await;
    erin.add_device(&request).await.unwrap();
    name_stand_in(&world.bob, TEAM, &erin).await;
    name_stand_in(&world.dave, OPERATIONS, &erin).await;
    let terms = one_of_each(&world.enforcer);
    let asked = ask_set(world.enforcer, terms).await;
    for device in [&erin, &phone] {
        device.share_enforcers().await.unwrap();
    }
    for (device, seat) in [(&erin, "bob"), (&phone, "dave")] {
        let item = asked.item_on(device, seat).await;
        let approval = choice(Verdict::Approve);
        device.decide(&item, &approval).await.unwrap();
    }
    // One of them does not count, and does not keep others from deciding.
    asked.decide(&world.alice, &choice(Verdict::Approve)).await;
    asked.decide(&world.carol, &choice(Verdict::Approve)).await;
    asked.end().await.decided.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_team_that_wants_separation_is_not_asked_by_an_agent_of_unknown_operators() {
    let mut world = TeamWorld::start().await;
    let mut enforcer = world.scene.enforcer("bot").await;
    pair_team(&mut enforcer, &mut world.alice, TEAM).await;
    let terms = two_of_team(&enforcer);
    change(&world.alice, |it| it.minimum.separate = true).await;
    let denied = enforcer.prepare_set(question(command(&["git", "push"])), terms);
    let denial = denied.await.map(drop).unwrap_err();
    assert!(
        denial.to_string().contains("pair again with --operator"),
        "{denial}"
    );
    for person in [&world.alice, &world.bob, &world.carol] {
        assert!(person.find("").await.unwrap().is_empty(), "nobody is asked");
    }
}
