//! Several people decide about one call, over a real gateway, and over one that lies.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::client::ClientError;
use countersign::client::approver::{
    AcceptedDecision, Approver, ApproverChoice, DeliveryConfirmation, EnrolmentProgress,
    InboxRequest,
};
use countersign::client::enforcer::{AcceptedSet, ApprovalDenial, Enforcer};
use countersign::client::profile::{ApproverProfile, Profile, ProfileError};
use countersign::e2e::{
    CommentDuty, DenialCause, DeviceName, OutcomeEffect, Receipt, RuleAsk, RuleTerms,
};
use countersign::protocol::decision::Verdict;
use countersign::protocol::id::{ApproverId, TextId as _};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::devices::asks;
use super::people::{ClientScene, PATIENCE, because, choice, command, pair, question};
use super::tamper::Tamper;
use crate::hostile::meddler::{Meddler, Reply};
use crate::hostile::scene::{approve_as, device_of};
use crate::support::until;

const APPROVE: Verdict = Verdict::Approve;

type SignAgain = Box<dyn Fn(&mut Value) + Send + Sync>;

pub fn terms(approvals: u32, people: &[&str]) -> RuleTerms {
    let from = people.iter().map(|id| ApproverId::parse(id).unwrap());
    RuleTerms {
        asks: vec![RuleAsk {
            approvals,
            from: from.collect(),
            team: None,
            escalate: Vec::new(),
        }],
        rejections: 1,
        comment: CommentDuty::None,
        not_by: BTreeSet::new(),
    }
}

/// The first device of each, which has the person's name.
pub async fn team(world: &ClientScene, enforcer: &mut Enforcer, names: &[&str]) -> Vec<Approver> {
    let mut people = Vec::new();
    for name in names {
        let mut person = world.approver(name, name).await;
        pair(enforcer, &mut person).await;
        people.push(person);
    }
    people
}

pub struct SetEnd {
    pub decided: Result<AcceptedSet, ApprovalDenial>,
    pub receipt: Option<Receipt>,
}

/// A set that waits for decisions.
pub struct AskedSet {
    /// Of each person's request.
    ids: Vec<(String, String)>,
    waiting: JoinHandle<SetEnd>,
}

pub async fn ask_set(mut enforcer: Enforcer, terms: RuleTerms) -> AskedSet {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let waiting = tokio::spawn(async move {
        let asked = question(command(&["git", "push"]));
        let mut pending = enforcer.prepare_set(asked, terms).await.unwrap();
        let people = pending.asked().map(ToString::to_string);
        let ids = people.zip(pending.request_ids().map(ToString::to_string));
        sender.send(ids.collect()).unwrap();
        let decided = pending.decision().await;
        let receipt = pending.receipt().await.unwrap();
        SetEnd { decided, receipt }
    });
    let ids = receiver.await.expect("it was prepared");
    AskedSet { ids, waiting }
}

impl AskedSet {
    /// As the path of a call has it.
    fn path_id(&self, person: &str) -> String {
        in_path(self.id(person))
    }

    fn id(&self, person: &str) -> &str {
        let found = self.ids.iter().find(|(seat, _)| seat == person);
        &found.expect("a part for this person").1
    }

    pub async fn item(&self, device: &Approver) -> InboxRequest {
        self.item_on(device, device.id().as_str()).await
    }

    /// The request to another seat, as this device sees it.
    pub async fn item_on(&self, device: &Approver, seat: &str) -> InboxRequest {
        let id = self.id(seat);
        until("the request is in the inbox", PATIENCE, async || {
            !device.find(id).await.unwrap().is_empty()
        })
        .await;
        device.find(id).await.unwrap().remove(0)
    }

    pub async fn decide(
        &self,
        device: &Approver,
        choice: &ApproverChoice,
    ) -> (InboxRequest, AcceptedDecision) {
        let item = self.item(device).await;
        let decided = device.decide(&item, choice).await.unwrap();
        (item, decided)
    }

    pub async fn end(self) -> SetEnd {
        let ended = tokio::time::timeout(PATIENCE, self.waiting).await;
        ended.expect("an answer").unwrap()
    }
}

fn in_path(id: &str) -> String {
    id.replace('-', "%2D")
}

fn too_few(end: SetEnd) -> String {
    match end.decided {
        Err(ApprovalDenial::TooFew(lacking)) => lacking,
        other => panic!("{other:?}"),
    }
}

async fn confirmed(
    device: &Approver,
    (item, decided): &(InboxRequest, AcceptedDecision),
) -> DeliveryConfirmation {
    device.delivered(item, decided, PATIENCE).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_of_three_suffice_and_the_third_is_no_longer_asked() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let names = ["alice", "bob", "carol"];
    let people = team(&world, &mut enforcer, &names).await;
    let asked = ask_set(enforcer, terms(2, &names)).await;
    let of_bob = asked.id("bob").to_owned();
    let by_alice = asked.decide(&people[0], &choice(APPROVE)).await;
    assert!(
        people[0].find(&of_bob).await.unwrap().is_empty(),
        "each person is asked on one seat only"
    );
    let waiting = people[0].delivered(&by_alice.0, &by_alice.1, Duration::from_secs(1));
    assert_eq!(
        waiting.await.unwrap(),
        DeliveryConfirmation::Missing,
        "nobody is told before the call is allowed"
    );
    assert!(asked.item(&people[2]).await.content.is_ok());
    let by_bob = asked.decide(&people[1], &because(APPROVE, "fine")).await;
    let end = asked.end().await;
    let accepted = end.decided.unwrap();
    let who = accepted.approvals.iter().map(|it| it.approver.as_str());
    assert_eq!(who.collect::<Vec<_>>(), ["alice", "bob"]);
    assert!(people[2].find("").await.unwrap().is_empty(), "withdrawn");
    let allowed = DeliveryConfirmation::ByEnforcer(OutcomeEffect::Allowed);
    assert_eq!(confirmed(&people[0], &by_alice).await, allowed);
    assert_eq!(confirmed(&people[1], &by_bob).await, allowed);
    assert_eq!(end.receipt.unwrap().parts.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_rejection_denies_whatever_was_approved() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let names = ["alice", "bob", "carol"];
    let people = team(&world, &mut enforcer, &names).await;
    let asked = ask_set(enforcer, terms(2, &names)).await;
    let by_alice = asked.decide(&people[0], &choice(APPROVE)).await;
    let by_bob = asked
        .decide(&people[1], &because(Verdict::Reject, "no"))
        .await;
    let end = asked.end().await;
    let Err(ApprovalDenial::Rejected(rejection)) = end.decided else {
        panic!("{:?}", end.decided);
    };
    assert_eq!(rejection.approver.as_str(), "bob");
    assert!(people[2].find("").await.unwrap().is_empty(), "withdrawn");
    let denied = OutcomeEffect::Denied(DenialCause::Rejected);
    let denied = DeliveryConfirmation::ByEnforcer(denied);
    assert_eq!(confirmed(&people[0], &by_alice).await, denied);
    assert_eq!(confirmed(&people[1], &by_bob).await, denied);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_few_people_are_told_at_once_and_nobody_is_asked() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let people = team(&world, &mut enforcer, &["alice"]).await;
    let question = question(command(&["git", "push"]));
    let denied = enforcer.prepare_set(question.clone(), terms(2, &["alice", "bob"]));
    let Err(ApprovalDenial::TooFew(lacking)) = denied.await.map(drop) else {
        panic!("bob cannot be asked");
    };
    assert!(lacking.contains("bob: not paired"), "{lacking}");
    let mut without = terms(1, &["alice"]);
    without.not_by = without.asks[0].from.clone();
    let denied = enforcer.prepare_set(question.clone(), without).await;
    assert!(matches!(denied, Err(ApprovalDenial::TooFew(_))));
    let denied = enforcer.prepare_set(question, terms(0, &["alice"])).await;
    assert!(denied.is_err(), "nobody would have to approve");
    assert!(people[0].find("").await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_decisions_the_set_ends_by_its_time() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let people = team(&world, &mut enforcer, &["alice", "bob"]).await;
    let mut question = question(command(&["git", "push"]));
    question.timeout = Duration::from_secs(3);
    let set = enforcer.prepare_set(question, terms(2, &["alice", "bob"]));
    let denial = set.await.unwrap().decision().await.unwrap_err();
    assert!(denial.is_timeout(), "{denial}");
    assert!(people[0].find("").await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_without_the_comment_that_the_rule_demands_does_not_count() {
    let world = ClientScene::start().await;
    let node = world.cluster.urls()[0].clone();
    let keys: Arc<Mutex<Option<(String, SignAgain)>>> = Arc::default();
    let careless = Arc::clone(&keys);
    // A device with other software signs an approval without a comment.
    let through = Tamper::start(&node, move |path, answer| {
        if let Some((id, sign)) = &*careless.lock().unwrap()
            && path.contains(id.as_str())
            && answer["msgType"] == "decision.deliver"
        {
            sign(&mut answer["body"]);
        }
    })
    .await;
    let mut enforcer = world.enforcer_at("bot", vec![through.url.clone()]).await;
    let people = team(&world, &mut enforcer, &["alice", "bob"]).await;
    let mut rule = terms(2, &["alice", "bob"]);
    rule.comment = CommentDuty::Approve;
    let asked = ask_set(enforcer, rule).await;
    let signs = approve_as(&device_of(&world, "bob").keys);
    *keys.lock().unwrap() = Some((asked.path_id("bob"), Box::new(signs)));
    let item = asked.item(&people[0]).await;
    for silent in [choice(APPROVE), because(APPROVE, " \u{200b}")] {
        let refused = people[0].decide(&item, &silent).await.unwrap_err();
        assert!(matches!(refused, ClientError::Choice(_)), "{refused}");
    }
    asked
        .decide(&people[0], &because(APPROVE, "reviewed"))
        .await;
    asked.decide(&people[1], &because(APPROVE, "me too")).await;
    let lacking = too_few(asked.end().await);
    assert!(lacking.contains("bob: approved it without"), "{lacking}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_decision_of_one_person_is_not_counted_for_another() {
    let world = ClientScene::start().await;
    let node = world.cluster.urls()[0].clone();
    let ids: Arc<Mutex<Option<(String, String)>>> = Arc::default();
    let swapped = Arc::clone(&ids);
    let liar = Meddler::start(&node, move |mut call, gateway| {
        let swapped = swapped.lock().unwrap().clone();
        async move {
            if let Some((of_alice, of_bob)) = swapped
                && call.path.contains("/wait")
            {
                call.path = call.path.replace(&of_bob, &of_alice);
            }
            gateway.pass(&call).await
        }
    })
    .await;
    let mut enforcer = world.enforcer_at("bot", vec![liar.url.clone()]).await;
    let people = team(&world, &mut enforcer, &["alice", "bob"]).await;
    let asked = ask_set(enforcer, terms(2, &["alice", "bob"])).await;
    let both = (asked.path_id("alice"), asked.path_id("bob"));
    // Before the enforcer waits: a request is in the inbox once it was submitted.
    *ids.lock().unwrap() = Some(both);
    asked.decide(&people[0], &choice(APPROVE)).await;
    let lacking = too_few(asked.end().await);
    assert!(
        lacking.contains("bob: the decision is not trusted"),
        "{lacking}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_by_a_device_that_was_revoked_since_does_not_count() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let people = team(&world, &mut enforcer, &["alice", "bob"]).await;
    let phone = world.device("alice", "phone").await;
    let request = asks(&phone).await;
    people[0].add_device(&request).await.unwrap();
    people[0].share_enforcers().await.unwrap();
    let asked = ask_set(enforcer, terms(2, &["alice", "bob"])).await;
    let by_alice = asked.decide(&phone, &choice(APPROVE)).await;
    // The enforcer has counted it by now, or does so before it counts that of bob.
    tokio::time::sleep(Duration::from_secs(1)).await;
    people[0].revoke_device(phone.device_id()).await.unwrap();
    asked.decide(&people[1], &choice(APPROVE)).await;
    let lacking = too_few(asked.end().await);
    assert!(
        lacking.contains("alice: the decision is not trusted"),
        "{lacking}"
    );
    let untrusted = OutcomeEffect::Denied(DenialCause::Untrusted);
    let told = confirmed(&phone, &by_alice).await;
    assert_eq!(told, DeliveryConfirmation::ByEnforcer(untrusted));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_that_is_found_at_the_end_denies() {
    let world = ClientScene::start().await;
    let node = world.cluster.urls()[0].clone();
    let held: Arc<Mutex<Option<String>>> = Arc::default();
    let holding = Arc::clone(&held);
    let slow = Meddler::start(&node, move |call, gateway| {
        let mut held = holding.lock().unwrap();
        let is_about = held.as_ref().is_some_and(|id| call.path.contains(id));
        if is_about && call.path.ends_with("/withdraw") {
            held.take();
        }
        let withholds = is_about && call.path.contains("/wait");
        drop(held);
        async move {
            if withholds {
                tokio::time::sleep(Duration::from_millis(100)).await;
                return Reply::new(204, "");
            }
            gateway.pass(&call).await
        }
    })
    .await;
    let mut enforcer = world.enforcer_at("bot", vec![slow.url.clone()]).await;
    let names = ["alice", "bob", "carol"];
    let people = team(&world, &mut enforcer, &names).await;
    let question = question(command(&["git", "push"]));
    let mut pending = enforcer
        .prepare_set(question, terms(2, &names))
        .await
        .unwrap();
    let ids: Vec<_> = pending.request_ids().map(ToString::to_string).collect();
    *held.lock().unwrap() = Some(in_path(&ids[2]));
    let deciding = async {
        for (place, verdict) in [(2, Verdict::Reject), (0, APPROVE), (1, APPROVE)] {
            let (person, id) = (&people[place], &ids[place]);
            until("the request is in the inbox", PATIENCE, async || {
                !person.find(id).await.unwrap().is_empty()
            })
            .await;
            let item = person.find(id).await.unwrap().remove(0);
            person.decide(&item, &choice(verdict)).await.unwrap();
        }
    };
    let (decided, ()) = tokio::join!(pending.decision(), deciding);
    let Err(ApprovalDenial::Rejected(rejection)) = decided else {
        panic!("{decided:?}");
    };
    assert_eq!(rejection.approver.as_str(), "carol");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_two_people_have_counts_once() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let alice = team(&world, &mut enforcer, &["alice"]).await.remove(0);
    world.device("bob", "bob").await;
    let keys = device_of(&world, "alice").keys;
    let file = world.file("bob");
    file.update(|whole: &mut Profile| {
        let bob = whole.approver.take().unwrap();
        let (id, name) = (bob.id().unwrap(), DeviceName::parse("bob").unwrap());
        whole.approver = Some(ApproverProfile::new(&id, &keys, &name, bob.gateway));
        Ok::<_, ProfileError>(())
    })
    .unwrap();
    let mut bob = Approver::open(&file, &world.cluster.clock).unwrap();
    let enrolled = bob.enrol().await.unwrap();
    assert!(matches!(enrolled, EnrolmentProgress::InForce));
    pair(&mut enforcer, &mut bob).await;
    assert_eq!(alice.device_id(), bob.device_id());
    let asked = ask_set(enforcer, terms(2, &["alice", "bob"])).await;
    asked.decide(&alice, &choice(APPROVE)).await;
    asked.decide(&bob, &choice(APPROVE)).await;
    let lacking = too_few(asked.end().await);
    assert!(
        lacking.contains("bob: the decision is not trusted"),
        "{lacking}"
    );
}
