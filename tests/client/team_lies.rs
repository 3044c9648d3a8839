//! Teams over a gateway that lies: teams of its own, states and introductions that it withholds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::client::approver::{Approver, PairingChoice};
use countersign::client::enforcer::{ApprovalDenial, ApprovalRequest, Enforcer, RuleDemand};
use countersign::e2e::{
    DeviceBundle, DeviceKeys, DeviceName, PairingLink, ReceivedAnswer, RuleTerms, SignedTeamState,
    TeamContent, TeamMinimum, TeamSeat, TeamState,
};
use countersign::protocol::decision::Verdict;
use countersign::protocol::id::{ApproverId, TenantId, TextId as _};
use serde_json::{Value, json};

use super::devices::asks;
use super::people::{ClientScene, PATIENCE, choice, command, question};
use super::sets::ask_set;
use super::tamper::Tamper;
use super::teams::{TEAM, TeamWorld, change, pair_team, two_of_team, without};
use crate::hostile::meddler::{Meddler, Reply};
use crate::hostile::scene::device_of;
use crate::support::until;

const APPROVE: Verdict = Verdict::Approve;

/// The first state of a team whose only owner the gateway has made up.
fn invented(tenant: &TenantId, now: &Approver) -> SignedTeamState {
    let mut random = countersign::client::random;
    let keys = DeviceKeys::generate(&mut random).unwrap();
    let name = DeviceName::parse("server").unwrap();
    let content = TeamContent {
        name: TEAM.to_owned(),
        changes: 1,
        minimum: TeamMinimum::default(),
        stand_ins: true,
        seats: vec![TeamSeat {
            approver: ApproverId::parse("mallory").unwrap(),
            owner: true,
            devices: vec![DeviceBundle::of(&keys, name).unwrap()],
            stand_in: None,
        }],
    };
    let first = TeamState::first(tenant, &content, now.now(), &mut random).unwrap();
    SignedTeamState::sign(first, &keys).unwrap()
}

/// The same statement, as if this device had signed it.
fn as_signed_by(state: &SignedTeamState, device: &str) -> Value {
    let mut copy: Value = serde_json::from_str(&state.to_text()).unwrap();
    copy["signatures"][0]["by"] = device.into();
    copy
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_puts_nobody_into_a_team_of_its_own() {
    let scene = ClientScene::start().await;
    let bob = scene.approver("bob", "bob").await;
    let tenant = scene.file("bob").load().unwrap().approver.unwrap();
    let tenant = TenantId::parse(&tenant.gateway.tenant).unwrap();
    let state = invented(&tenant, &bob);
    let team = state.state().head().team.to_string();
    let copy = as_signed_by(&state, &device_of(&scene, "bob").id());
    let original: Value = serde_json::from_str(&state.to_text()).unwrap();
    let states = json!({ "states": [original, copy] });
    let listed = json!({ "teams": [{ "teamId": team, "name": TEAM, "seq": 0 }] });
    let is_read = Arc::new(AtomicBool::new(false));
    let reading = Arc::clone(&is_read);
    let node = scene.cluster.urls()[0].clone();
    let liar = Meddler::start(&node, move |call, gateway| {
        let (states, listed, reading) = (states.clone(), listed.clone(), Arc::clone(&reading));
        async move {
            let path = call.path.clone();
            if path.ends_with("/approvers/bob/teams") {
                return Reply::new(200, listed.to_string());
            }
            if path.contains("/states") {
                reading.store(true, Ordering::Relaxed);
                let none = json!({ "states": [] });
                let found = if path.contains("after") { none } else { states };
                return Reply::new(200, found.to_string());
            }
            if path.contains("/v1/teams/") && path.ends_with("/consents") {
                return Reply::new(200, json!({ "consents": [] }).to_string());
            }
            gateway.pass(&call).await
        }
    })
    .await;
    let bob = scene.through("bob", vec![liar.url.clone()]);
    bob.share_enforcers().await.unwrap();
    assert!(is_read.load(Ordering::Relaxed), "the lie was told");
    assert!(bob.teams().unwrap().is_empty());
}

/// The gateway for the enforcer alone: it can withhold new states.
struct HidingGateway {
    hides: Arc<AtomicBool>,
    tamper: Tamper,
}

impl HidingGateway {
    async fn before(scene: &ClientScene) -> Self {
        let hides = Arc::new(AtomicBool::new(false));
        let hiding = Arc::clone(&hides);
        let node = scene.cluster.urls()[0].clone();
        let tamper = Tamper::start(&node, move |path, answer| {
            if hiding.load(Ordering::Relaxed)
                && path.contains("/states")
                && let Some(states) = answer["states"].as_array_mut()
            {
                states.clear();
            }
        });
        let tamper = tamper.await;
        Self { hides, tamper }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_team_whose_changes_are_withheld_stays_denied_until_they_are_known() {
    let mut world = TeamWorld::start().await;
    let gateway = HidingGateway::before(&world.scene).await;
    let urls = vec![gateway.tamper.url.clone()];
    let mut enforcer = world.scene.enforcer_at("bot", urls).await;
    pair_team(&mut enforcer, &mut world.alice, TEAM).await;
    let one = RuleDemand::new(1, ["team:payments".to_owned()]);
    let two = two_of_team(&enforcer);
    gateway.hides.store(true, Ordering::Relaxed);
    let asked = ask_set(enforcer, two).await;
    asked.decide(&world.bob, &choice(APPROVE)).await;
    change(&world.alice, without("bob")).await;
    asked.decide(&world.carol, &choice(APPROVE)).await;
    let denial = asked.end().await.decided.unwrap_err().to_string();
    assert!(denial.contains("withholds"), "{denial}");
    assert!(denial.contains("carol"), "{denial}");
    // Carol is not even asked this time, and Bob alone would suffice.
    let (file, clock) = (world.scene.file("bot"), &world.scene.cluster.clock);
    let mut enforcer = Enforcer::open(&file, clock).unwrap();
    let terms = enforcer.terms_of(&[one]).unwrap().unwrap();
    let denied = enforcer.prepare_set(question(command(&["git", "push"])), terms.clone());
    let denial = denied.await.map(drop).unwrap_err().to_string();
    assert!(denial.contains("withholds"), "{denial}");
    gateway.hides.store(false, Ordering::Relaxed);
    let asked = ask_set(enforcer, terms).await;
    asked.decide(&world.carol, &choice(APPROVE)).await;
    asked.end().await.decided.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_call_remembers_the_newer_states_that_it_has_heard_of() {
    let mut world = TeamWorld::start().await;
    let gateway = HidingGateway::before(&world.scene).await;
    let urls = vec![gateway.tamper.url.clone()];
    let mut enforcer = world.scene.enforcer_at("bot", urls).await;
    pair_team(&mut enforcer, &mut world.alice, TEAM).await;
    let terms = two_of_team(&enforcer);
    gateway.hides.store(true, Ordering::Relaxed);
    change(&world.alice, without("bob")).await;
    let request = ApprovalRequest {
        timeout: Duration::from_secs(10),
        ..question(command(&["git", "push"]))
    };
    let kept = Some(Duration::from_secs(3_600));
    let mut pending = enforcer.open_set(request, terms, kept).await.unwrap();
    let (decided, ()) = tokio::join!(pending.decision(), async {
        until("Carol is asked", PATIENCE, async || {
            world.carol.share_enforcers().await.unwrap();
            !world.carol.find("").await.unwrap().is_empty()
        })
        .await;
        let item = world.carol.find("").await.unwrap().remove(0);
        world.carol.decide(&item, &choice(APPROVE)).await.unwrap();
    });
    let denial = decided.unwrap_err();
    assert!(matches!(denial, ApprovalDenial::Parked { .. }), "{denial}");
    drop(pending);
    let one = RuleDemand::new(1, ["team:payments".to_owned()]);
    let terms = enforcer.terms_of(&[one]).unwrap().unwrap();
    let denied = enforcer.prepare_set(question(command(&["git", "fetch"])), terms);
    let denial = denied.await.map(drop).unwrap_err().to_string();
    assert!(denial.contains("withholds"), "{denial}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_former_owner_pairs_no_enforcer_that_knows_of_the_removal() {
    let mut world = TeamWorld::start().await;
    change(&world.alice, |content| {
        for seat in &mut content.seats {
            seat.owner |= seat.approver.as_str() == "bob";
        }
    })
    .await;
    // The gateway keeps Bob's removal to itself, and shows it to the enforcer once.
    let removal = Arc::new(Mutex::new(None::<Value>));
    let hides = Arc::new(AtomicBool::new(false));
    let (taken, hiding) = (Arc::clone(&removal), Arc::clone(&hides));
    let node = world.scene.cluster.urls()[0].clone();
    let liar = Meddler::start(&node, move |call, gateway| {
        let (taken, hides) = (Arc::clone(&taken), hiding.load(Ordering::Relaxed));
        async move {
            if call.method == "POST" && call.path.ends_with("/states") {
                let state = serde_json::from_slice(&call.body).unwrap();
                *taken.lock().unwrap() = Some(state);
                return Reply::new(201, "{}");
            }
            let mut reply = gateway.pass(&call).await;
            let removal = taken.lock().unwrap().clone().filter(|_| !hides);
            if let Some(removal) = removal.filter(|_| call.path.contains("/states")) {
                reply.edit(|answer| answer["states"].as_array_mut().unwrap().push(removal));
            }
            reply
        }
    })
    .await;
    let urls = vec![liar.url.clone()];
    let mut enforcer = world.scene.enforcer_at("bot", urls.clone()).await;
    pair_team(&mut enforcer, &mut world.alice, TEAM).await;
    let alice = world.scene.through("alice", urls.clone());
    let carol = world.scene.through("carol", urls);
    change(&alice, without("bob")).await;
    let terms = two_of_team(&enforcer);
    let asked = ask_set(enforcer, terms).await;
    asked.decide(&alice, &choice(APPROVE)).await;
    asked.decide(&carol, &choice(APPROVE)).await;
    asked.end().await.decided.unwrap();
    hides.store(true, Ordering::Relaxed);
    let (file, clock) = (world.scene.file("bot"), &world.scene.cluster.clock);
    let mut enforcer = Enforcer::open(&file, clock).unwrap();
    let attempt = enforcer.begin_pairing(None, None).await.unwrap();
    let link = PairingLink::parse(&attempt.link("https://page.example.org")).unwrap();
    let choice = PairingChoice {
        team: Some(world.bob.team(TEAM).await.unwrap().head()),
        ..PairingChoice::default()
    };
    world.bob.pair_by_link_with(&link, choice).await.unwrap();
    let completed = enforcer.wait_for_answer(attempt).await.unwrap().unwrap();
    let (received, pairing) = completed.split();
    let ReceivedAnswer::Proven(device) = received else {
        panic!("a link proves");
    };
    let refused = enforcer.pin_team(&device, pairing).await.unwrap_err();
    assert!(refused.to_string().contains("owner"), "{refused}");
}

async fn introduced_by_bob() -> TeamWorld {
    let mut world = TeamWorld::start().await;
    change(&world.alice, |content| {
        for seat in &mut content.seats {
            seat.owner |= seat.approver.as_str() == "bob";
        }
    })
    .await;
    let mut enforcer = world.scene.enforcer("bot").await;
    pair_team(&mut enforcer, &mut world.bob, TEAM).await;
    world.carol.share_enforcers().await.unwrap();
    assert_eq!(world.carol.enforcers().len(), 1);
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enforcer_of_a_former_owner_is_forgotten() {
    let world = introduced_by_bob().await;
    change(&world.alice, without("bob")).await;
    world.carol.share_enforcers().await.unwrap();
    assert!(world.carol.enforcers().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enforcer_stays_if_another_owner_vouches_for_it() {
    let world = introduced_by_bob().await;
    // Not by itself: then no malicious owner's agent would ever be forgotten.
    world.alice.share_enforcers().await.unwrap();
    let chain = world.alice.team(TEAM).await.unwrap();
    let bob = ApproverId::parse("bob").unwrap();
    let resting = world.alice.resting_on(&chain, &bob).await.unwrap();
    assert_eq!(resting.len(), 1);
    world.alice.vouch(&chain, &resting[0]).await.unwrap();
    assert!(
        world
            .alice
            .resting_on(&chain, &bob)
            .await
            .unwrap()
            .is_empty()
    );
    change(&world.alice, without("bob")).await;
    for person in [&world.carol, &world.alice] {
        person.share_enforcers().await.unwrap();
        assert_eq!(person.enforcers().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn members_keep_an_agent_whose_owner_has_lost_the_device() {
    let mut world = TeamWorld::start().await;
    let mut enforcer = world.scene.enforcer("bot").await;
    pair_team(&mut enforcer, &mut world.alice, TEAM).await;
    world.carol.share_enforcers().await.unwrap();
    let phone = world.scene.device("alice", "phone").await;
    let request = asks(&phone).await;
    world.alice.add_device(&request).await.unwrap();
    world.alice.add_to_seats().await.unwrap();
    world.alice.share_enforcers().await.unwrap();
    phone.devices().await.unwrap();
    phone.share_enforcers().await.unwrap();
    let laptop = world.alice.device_id();
    assert!(phone.revoke_device(laptop).await.unwrap().is_empty());
    world.carol.share_enforcers().await.unwrap();
    assert_eq!(world.carol.enforcers().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_newer_state_that_somebody_knows_is_remembered() {
    let mut world = TeamWorld::start().await;
    let gateway = HidingGateway::before(&world.scene).await;
    let urls = vec![gateway.tamper.url.clone()];
    let mut enforcer = world.scene.enforcer_at("bot", urls).await;
    pair_team(&mut enforcer, &mut world.alice, TEAM).await;
    let two = two_of_team(&enforcer);
    gateway.hides.store(true, Ordering::Relaxed);
    let asked = ask_set(enforcer, two).await;
    asked.decide(&world.bob, &choice(APPROVE)).await;
    change(&world.alice, without("bob")).await;
    // A rejection says it, too.
    asked.decide(&world.carol, &choice(Verdict::Reject)).await;
    asked.end().await.decided.unwrap_err();
    let (file, clock) = (world.scene.file("bot"), &world.scene.cluster.clock);
    let mut enforcer = Enforcer::open(&file, clock).unwrap();
    let one = RuleDemand::new(1, ["team:payments".to_owned()]);
    let terms = enforcer.terms_of(&[one]).unwrap().unwrap();
    let denied = enforcer.prepare_set(question(command(&["git", "push"])), terms);
    let denial = denied.await.map(drop).unwrap_err().to_string();
    assert!(denial.contains("withholds"), "{denial}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_was_removed_still_approves_what_names_them_directly() {
    let mut world = TeamWorld::start().await;
    let mut enforcer = world.scene.enforcer("bot").await;
    super::people::pair(&mut enforcer, &mut world.bob).await;
    pair_team(&mut enforcer, &mut world.alice, TEAM).await;
    world.carol.share_enforcers().await.unwrap();
    change(&world.alice, without("bob")).await;
    let demands = [
        RuleDemand::new(1, ["bob".to_owned()]),
        RuleDemand::new(1, ["team:payments".to_owned()]),
    ];
    let terms: RuleTerms = enforcer.terms_of(&demands).unwrap().unwrap();
    let asked = ask_set(enforcer, terms).await;
    asked.decide(&world.bob, &choice(APPROVE)).await;
    asked.decide(&world.carol, &choice(APPROVE)).await;
    asked.end().await.decided.unwrap();
}
