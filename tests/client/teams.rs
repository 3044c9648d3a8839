//! Teams over a real gateway, and over one that lies: the enforcer was paired with one owner's device
//! and learns everything else from signed states.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use countersign::client::approver::{Approver, PairingChoice};
use countersign::client::enforcer::{ApprovalDenial, Enforcer, RuleDemand};
use countersign::e2e::{
    PairingLink, ReceivedAnswer, RuleTerms, SignedTeamState, TeamContent, TeamLink, TeamMinimum,
    TeamState,
};
use countersign::protocol::decision::Verdict;
use countersign::protocol::id::{ApproverId, TextId as _};
use countersign::protocol::timestamp::Timestamp;
use serde_json::Value;

use super::people::{ClientScene, choice, command, question};
use super::sets::ask_set;
use super::tamper::Tamper;
use crate::hostile::scene::device_of;

const APPROVE: Verdict = Verdict::Approve;
pub const TEAM: &str = "payments";

fn id(name: &str) -> ApproverId {
    ApproverId::parse(name).unwrap()
}

/// Alice's team. The others join by invitation.
pub async fn team_of(owner: &Approver, name: &str, others: &[&Approver]) {
    let content = TeamContent {
        name: name.to_owned(),
        changes: 1,
        minimum: TeamMinimum::default(),
        stand_ins: true,
        seats: Vec::new(),
    };
    owner.create_team(content).await.unwrap();
    for person in others {
        let chain = owner.team(name).await.unwrap();
        let link = owner.invite_to_team(&chain, person.id(), "https://page.example.org");
        let link = TeamLink::parse(&link.await.unwrap()).unwrap();
        let seen = person.invited_team(&link).await.unwrap();
        assert_eq!(seen.head(), chain.head());
        person.join_team(&link, &seen).await.unwrap();
        let answers = owner.team_answers(&chain).await.unwrap();
        assert_eq!(answers.len(), 1);
        assert_eq!(answers[0].consent.approver(), person.id());
        owner.admit(&chain, &answers[0]).await.unwrap();
        assert!(owner.team_answers(&chain).await.unwrap().is_empty());
    }
}

pub async fn pair_team(enforcer: &mut Enforcer, owner: &mut Approver, team: &str) {
    let attempt = enforcer.begin_pairing(None, None).await.unwrap();
    let link = PairingLink::parse(&attempt.link("https://page.example.org")).unwrap();
    let choice = PairingChoice {
        team: Some(owner.team(team).await.unwrap().head()),
        ..PairingChoice::default()
    };
    owner.pair_by_link_with(&link, choice).await.unwrap();
    owner.share_enforcers().await.unwrap();
    let completed = enforcer.wait_for_answer(attempt).await.unwrap().unwrap();
    let (received, pairing) = completed.split();
    let ReceivedAnswer::Proven(device) = received else {
        panic!("a link proves");
    };
    enforcer.pin_team(&device, pairing).await.unwrap();
}

pub fn two_of_team(enforcer: &Enforcer) -> RuleTerms {
    let demand = RuleDemand::new(2, ["team:payments".to_owned()]);
    enforcer.terms_of(&[demand]).unwrap().unwrap()
}

pub async fn change(owner: &Approver, change: impl FnOnce(&mut TeamContent)) {
    let chain = owner.team(TEAM).await.unwrap();
    let changed = owner.change_team(&chain, |content| {
        change(content);
        Ok(())
    });
    changed.await.unwrap();
}

pub fn without(name: &str) -> impl FnOnce(&mut TeamContent) {
    let gone = id(name);
    move |content| content.seats.retain(|seat| seat.approver != gone)
}

pub struct TeamWorld {
    pub scene: ClientScene,
    pub alice: Approver,
    pub bob: Approver,
    pub carol: Approver,
}

impl TeamWorld {
    pub async fn start() -> Self {
        let scene = ClientScene::start().await;
        let alice = scene.approver("alice", "alice").await;
        let bob = scene.approver("bob", "bob").await;
        let carol = scene.approver("carol", "carol").await;
        team_of(&alice, TEAM, &[&bob, &carol]).await;
        Self {
            scene,
            alice,
            bob,
            carol,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enforcer_that_was_paired_with_one_owner_accepts_two_members() {
    let mut world = TeamWorld::start().await;
    let mut enforcer = world.scene.enforcer("bot").await;
    pair_team(&mut enforcer, &mut world.alice, TEAM).await;
    assert!(enforcer.approvers().is_empty(), "nobody is paired directly");
    let terms = two_of_team(&enforcer);
    let asked = ask_set(enforcer, terms).await;
    asked.decide(&world.bob, &choice(APPROVE)).await;
    asked.decide(&world.carol, &choice(APPROVE)).await;
    let accepted = asked.end().await.decided.unwrap();
    let who = accepted.approvals.iter().map(|it| it.approver.as_str());
    assert_eq!(who.collect::<Vec<_>>(), ["bob", "carol"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_rule_the_only_team_is_asked_and_of_several_none() {
    let mut world = TeamWorld::start().await;
    let mut enforcer = world.scene.enforcer("bot").await;
    assert!(enforcer.terms_of(&[]).unwrap().is_none());
    pair_team(&mut enforcer, &mut world.alice, TEAM).await;
    let terms = enforcer.terms_of(&[]).unwrap().unwrap();
    assert_eq!(terms.asks[0].approvals, 1);
    let asked = ask_set(enforcer, terms).await;
    asked.decide(&world.bob, &choice(APPROVE)).await;
    asked.end().await.decided.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_raises_the_number_for_all_enforcers_at_once() {
    let mut world = TeamWorld::start().await;
    let mut enforcer = world.scene.enforcer("bot").await;
    pair_team(&mut enforcer, &mut world.alice, TEAM).await;
    let one = RuleDemand::new(1, ["team:payments".to_owned()]);
    let terms = enforcer.terms_of(&[one]).unwrap().unwrap();
    change(&world.alice, |it| it.minimum.approvals = 2).await;
    let asked = ask_set(enforcer, terms).await;
    asked.decide(&world.bob, &choice(APPROVE)).await;
    asked.decide(&world.alice, &choice(APPROVE)).await;
    let accepted = asked.end().await.decided.unwrap();
    assert_eq!(accepted.approvals.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_member_does_not_count_though_the_gateway_hides_the_removal() {
    let mut world = TeamWorld::start().await;
    let node = world.scene.cluster.urls()[0].clone();
    let hides = Arc::new(AtomicBool::new(false));
    let hiding = Arc::clone(&hides);
    let liar = Tamper::start(&node, move |path, answer| {
        if hiding.load(Ordering::Relaxed)
            && path.contains("/states")
            && let Some(states) = answer["states"].as_array_mut()
        {
            states.clear();
        }
    })
    .await;
    let urls = vec![liar.url.clone()];
    let mut enforcer = world.scene.enforcer_at("bot", urls).await;
    pair_team(&mut enforcer, &mut world.alice, TEAM).await;
    let terms = two_of_team(&enforcer);
    hides.store(true, Ordering::Relaxed);
    let asked = ask_set(enforcer, terms).await;
    asked.decide(&world.bob, &choice(APPROVE)).await;
    change(&world.alice, without("bob")).await;
    // Carol's device knows the removal, and says so to the enforcer.
    asked.decide(&world.carol, &choice(APPROVE)).await;
    let denial = asked.end().await.decided.unwrap_err();
    assert!(denial.to_string().contains("withholds"), "{denial}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_by_somebody_who_was_removed_since_does_not_count() {
    let mut world = TeamWorld::start().await;
    let mut enforcer = world.scene.enforcer("bot").await;
    pair_team(&mut enforcer, &mut world.alice, TEAM).await;
    let terms = two_of_team(&enforcer);
    let asked = ask_set(enforcer, terms).await;
    asked.decide(&world.bob, &choice(APPROVE)).await;
    change(&world.alice, without("bob")).await;
    asked.decide(&world.carol, &choice(APPROVE)).await;
    let denial = asked.end().await.decided.unwrap_err();
    assert!(matches!(denial, ApprovalDenial::TooFew(_)), "{denial}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stand_in_decides_on_the_seat_and_the_seat_counts_once() {
    let mut world = TeamWorld::start().await;
    let dave = world.scene.approver("dave", "dave").await;
    let now = world.alice.now().inner();
    let at = |hours| Timestamp::from(now + time::Duration::hours(hours));
    // Dave agrees to it by the link of an invitation, as a member does.
    let chain = world.bob.team(TEAM).await.unwrap();
    let (invited, page) = (id("dave"), "https://page.example.org");
    let link = world.bob.invite_to_team(&chain, &invited, page);
    let link = TeamLink::parse(&link.await.unwrap()).unwrap();
    let seen = dave.invited_team(&link).await.unwrap();
    dave.join_team(&link, &seen).await.unwrap();
    let answers = world.bob.team_answers(&chain).await.unwrap();
    let named = world.bob.name_stand_in(&chain, &answers[0], at(-1), at(1));
    named.await.unwrap();
    assert!(world.bob.team_answers(&chain).await.unwrap().is_empty());
    let mut enforcer = world.scene.enforcer("bot").await;
    pair_team(&mut enforcer, &mut world.alice, TEAM).await;
    let terms = two_of_team(&enforcer);
    let asked = ask_set(enforcer, terms).await;
    let item = asked.item_on(&dave, "bob").await;
    dave.decide(&item, &choice(APPROVE)).await.unwrap();
    asked.decide(&world.carol, &choice(APPROVE)).await;
    let accepted = asked.end().await.decided.unwrap();
    let who = accepted.approvals.iter().map(|it| it.approver.as_str());
    assert_eq!(who.collect::<Vec<_>>(), ["dave", "carol"]);
}

/// A state that an owner's device signs although it has signed another one.
fn forked(world: &TeamWorld, after: &TeamState) -> SignedTeamState {
    let mut content = after.content().clone();
    content.minimum.approvals = 3;
    let keys = device_of(&world.scene, "alice").keys;
    SignedTeamState::sign(after.next(&content, world.alice.now()).unwrap(), &keys).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_fork_nothing_of_the_team_counts_until_it_is_paired_again() {
    let mut world = TeamWorld::start().await;
    let before = world.alice.team(TEAM).await.unwrap();
    let other = forked(&world, before.state());
    let other: Value = serde_json::from_str(&other.to_text()).unwrap();
    let node = world.scene.cluster.urls()[0].clone();
    let lies = Arc::new(AtomicBool::new(false));
    let lying = Arc::clone(&lies);
    let liar = Tamper::start(&node, move |path, answer| {
        if lying.load(Ordering::Relaxed) && path.contains("/states?after") {
            answer["states"] = serde_json::json!([other]);
        }
    })
    .await;
    change(&world.alice, |it| it.minimum.rejections = 2).await;
    let urls = vec![liar.url.clone()];
    let mut enforcer = world.scene.enforcer_at("bot", urls).await;
    pair_team(&mut enforcer, &mut world.alice, TEAM).await;
    let terms = two_of_team(&enforcer);
    lies.store(true, Ordering::Relaxed);
    for _ in 0..2 {
        let asked = question(command(&["git", "push"]));
        let denied = enforcer.prepare_set(asked, terms.clone()).await;
        let denial = denied.map(drop).unwrap_err();
        assert!(denial.to_string().contains("contradict"), "{denial}");
        lies.store(false, Ordering::Relaxed);
    }
    assert!(
        enforcer
            .terms_of(&[RuleDemand::new(2, ["team:payments".to_owned()])])
            .is_err()
    );
    pair_team(&mut enforcer, &mut world.alice, TEAM).await;
    let asked = ask_set(enforcer, terms).await;
    asked.decide(&world.bob, &choice(APPROVE)).await;
    asked.decide(&world.carol, &choice(APPROVE)).await;
    asked.end().await.decided.unwrap();
}
