//! Sets that go on when their call has ended: the next one about the same resumes them, once.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use countersign::client::approver::Approver;
use countersign::client::enforcer::{AcceptedSet, ApprovalDenial, ApprovalRequest, Enforcer};
use countersign::e2e::{EscalationStep, RuleTerms};
use countersign::protocol::decision::Verdict;
use countersign::protocol::id::{ApproverId, SessionId, TextId as _};
use serde_json::json;
use tokio::time::sleep;

use super::devices::asks;
use super::people::{ClientScene, PATIENCE, choice, command, question};
use super::sets::{team, terms};
use crate::support::until;

const NAMES: [&str; 3] = ["alice", "bob", "carol"];
const HOUR: Duration = Duration::from_secs(3_600);
/// Nobody decides in this time.
const SHORT: Duration = Duration::from_secs(3);

struct ParkScene {
    world: ClientScene,
    people: Vec<Approver>,
}

impl ParkScene {
    async fn start() -> Self {
        let world = ClientScene::start().await;
        let mut enforcer = world.enforcer("bot").await;
        let people = team(&world, &mut enforcer, &NAMES).await;
        Self { world, people }
    }

    fn enforcer(&self) -> Enforcer {
        Enforcer::open(&self.world.file("bot"), &self.world.cluster.clock).unwrap()
    }

    fn beside(&self, extension: &str) -> PathBuf {
        self.world.file("bot").path().with_extension(extension)
    }

    /// The files of the sets.
    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.beside("sets")).into_iter().flatten();
        let paths = entries.map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = paths
            .filter(|path| path.extension().is_some_and(|it| it == "json"))
            .collect();
        files.sort_unstable();
        files
    }

    async fn call(
        &self,
        request: ApprovalRequest,
        terms: RuleTerms,
        park: Duration,
    ) -> Result<AcceptedSet, ApprovalDenial> {
        let mut enforcer = self.enforcer();
        let mut pending = enforcer.open_set(request, terms, Some(park)).await?;
        pending.decision().await
    }

    /// A call that ends before anybody decides.
    async fn park(&self) {
        is_parked(self.call(push(SHORT), two(), HOUR).await);
    }

    async fn resume(&self) -> Result<AcceptedSet, ApprovalDenial> {
        self.call(push(PATIENCE), two(), HOUR).await
    }

    async fn asks_anew(&self) {
        let before = self.waiting(0).await;
        self.park().await;
        let after = self.waiting(0).await;
        let is_new = after.iter().any(|id| !before.contains(id));
        assert!(is_new, "{before:?} {after:?}");
    }

    /// The ids of the requests that wait for this person.
    async fn waiting(&self, person: usize) -> Vec<String> {
        let found = self.people[person].find("").await.unwrap();
        found.iter().map(|it| it.request_id.to_string()).collect()
    }

    async fn decide(&self, person: usize, verdict: Verdict) {
        decide(&self.people[person], verdict).await;
    }

    async fn both_approve(&self) {
        self.decide(0, Verdict::Approve).await;
        self.decide(1, Verdict::Approve).await;
    }
}

async fn decide(person: &Approver, verdict: Verdict) {
    until("one request waits", PATIENCE, async || {
        person.find("").await.unwrap().len() == 1
    })
    .await;
    let item = person.find("").await.unwrap().remove(0);
    person.decide(&item, &choice(verdict)).await.unwrap();
}

fn push(timeout: Duration) -> ApprovalRequest {
    ApprovalRequest {
        timeout,
        ..question(command(&["git", "push"]))
    }
}

fn two() -> RuleTerms {
    terms(2, &NAMES)
}

fn is_parked(decided: Result<AcceptedSet, ApprovalDenial>) -> String {
    match decided {
        Err(denial @ ApprovalDenial::Parked { .. }) => denial.to_string(),
        other => panic!("{other:?}"),
    }
}

fn who(decided: Result<AcceptedSet, ApprovalDenial>) -> Vec<String> {
    let accepted = decided.unwrap();
    let approvals = accepted.approvals.iter();
    approvals.map(|it| it.approver.to_string()).collect()
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_set_is_decided_afterwards_and_allows_one_call() {
    let scene = ParkScene::start().await;
    let told = is_parked(scene.call(push(SHORT), two(), HOUR).await);
    assert!(
        told.contains("waiting for 2 approvals from alice, bob, carol; open until"),
        "{told}"
    );
    let asked = scene.waiting(0).await;
    scene.decide(0, Verdict::Approve).await;
    // One is not enough, and nothing is asked again.
    let told = is_parked(scene.call(push(SHORT), two(), HOUR).await);
    assert!(told.contains("1 approval from bob, carol"), "{told}");
    assert_eq!(scene.waiting(1).await.len(), 1);
    scene.decide(1, Verdict::Approve).await;
    // Also in another session of the agent.
    let mut later = push(PATIENCE);
    let session = SessionId::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap();
    (later.members).insert("sessionId".to_owned(), json!(session));
    let decided = scene.call(later, two(), HOUR).await;
    assert_eq!(who(decided), ["alice", "bob"]);
    assert!(scene.files().is_empty());
    assert!(scene.waiting(2).await.is_empty(), "withdrawn");
    scene.park().await;
    assert!(!asked.contains(&scene.waiting(0).await[0]), "asked anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_differs_in_anything_does_not_go_on_with_a_set() {
    let scene = ParkScene::start().await;
    scene.park().await;
    scene.both_approve().await;
    let mut other = push(SHORT);
    other.payload = command(&["git", "push", "--force"]);
    let mut elsewhere = push(SHORT);
    elsewhere.repository.push('x');
    let mut kind = push(SHORT);
    kind.artifact_type = "plan.review".to_owned();
    let mut offers = push(SHORT);
    offers
        .members
        .insert("metadata".to_owned(), json!({ "a": 1 }));
    for request in [other, elsewhere, kind, offers] {
        is_parked(scene.call(request, two(), HOUR).await);
    }
    assert_eq!(who(scene.resume().await), ["alice", "bob"]);
    assert_eq!(scene.files().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn under_another_rule_the_set_is_withdrawn_and_everyone_is_asked_again() {
    let scene = ParkScene::start().await;
    let mut without = two();
    without.not_by.extend(ApproverId::parse("carol"));
    for (terms, park) in [
        (terms(3, &NAMES), HOUR),
        (terms(1, &NAMES), HOUR),
        (terms(2, &NAMES[..2]), HOUR),
        (without, HOUR),
        // The time of the rule is over.
        (two(), Duration::from_secs(1)),
    ] {
        scene.park().await;
        let before = scene.waiting(2).await;
        scene.both_approve().await;
        let request = push(SHORT);
        let mut enforcer = scene.enforcer();
        let mut pending = enforcer.open_set(request, terms, Some(park)).await.unwrap();
        let decided = pending.decision().await;
        assert!(decided.is_err(), "{decided:?}");
        let after = scene.waiting(2).await;
        assert!(before.iter().all(|id| !after.contains(id)), "withdrawn");
        for set in scene.enforcer().open_sets().unwrap() {
            scene.enforcer().withdraw_set(&set.id).await.unwrap();
        }
    }
    // A rule that no longer parks.
    scene.park().await;
    scene.both_approve().await;
    let mut enforcer = scene.enforcer();
    let mut pending = enforcer.open_set(push(SHORT), two(), None).await.unwrap();
    let denial = pending.decision().await.unwrap_err();
    assert!(denial.is_timeout(), "{denial}");
    assert!(scene.files().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_were_edited_cut_or_taken_from_another_enforcer_gain_nothing() {
    let scene = ParkScene::start().await;
    scene.park().await;
    scene.both_approve().await;
    let [file]: [PathBuf; 1] = scene.files().try_into().unwrap();
    let genuine = fs::read_to_string(&file).unwrap();
    let renamed = file.with_file_name("01890a5d-ac96-774b-bcce-b302099a8057.json");
    let lies = [
        genuine.replace("\"isEveryoneAsked\":true", "\"isEveryoneAsked\":false"),
        genuine.replace("git", "hub"),
        genuine.replace("\"v\":1", "\"v\":2"),
        genuine.replacen("\"proof\":\"", "\"proof\":\"A", 1),
        genuine[..genuine.len() / 2].to_owned(),
        String::new(),
    ];
    for lie in lies {
        assert_ne!(lie, genuine);
        fs::write(&file, lie).unwrap();
        scene.asks_anew().await;
        for new in scene.files().iter().filter(|it| **it != file) {
            fs::remove_file(new).unwrap();
        }
        assert!(scene.enforcer().open_sets().unwrap()[0].artifact.is_none());
    }
    // Its name is that of its lock.
    fs::write(&file, &genuine).unwrap();
    fs::rename(&file, &renamed).unwrap();
    scene.asks_anew().await;
    fs::rename(&renamed, &file).unwrap();

    let mut other = scene.world.enforcer("other").await;
    let mut people = vec![];
    for name in NAMES {
        people.push(Approver::open(&scene.world.file(name), &scene.world.cluster.clock).unwrap());
    }
    for person in &mut people {
        super::people::pair(&mut other, person).await;
    }
    let theirs = scene.world.file("other").path().with_extension("sets");
    copy_folder(&scene.beside("sets"), &theirs);
    let mut pending = (other.open_set(push(SHORT), two(), Some(HOUR)).await).unwrap();
    is_parked(pending.decision().await);

    // In place it counts.
    for new in scene.files().iter().filter(|it| **it != file) {
        fs::remove_file(new).unwrap();
    }
    assert_eq!(who(scene.resume().await), ["alice", "bob"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_put_back_after_its_use_allows_nothing() {
    let scene = ParkScene::start().await;
    scene.park().await;
    scene.both_approve().await;
    let kept = scene.world.directory.path().join("kept");
    copy_folder(&scene.beside("sets"), &kept);
    assert_eq!(who(scene.resume().await), ["alice", "bob"]);
    copy_folder(&kept, &scene.beside("sets"));
    scene.asks_anew().await;
    assert_eq!(scene.files().len(), 1, "the old one is removed");
    fs::remove_file(&scene.files()[0]).unwrap();
    // Even if what was used is forgotten here: the gateway has the outcome.
    fs::remove_dir_all(scene.beside("used")).unwrap();
    copy_folder(&kept, &scene.beside("sets"));
    scene.asks_anew().await;
    assert_eq!(scene.files().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_calls_at_once_one_is_allowed() {
    let scene = ParkScene::start().await;
    scene.park().await;
    scene.both_approve().await;
    let call = || scene.call(push(Duration::from_secs(8)), two(), HOUR);
    let (one, other) = tokio::join!(call(), call());
    assert_eq!([one, other].iter().filter(|it| it.is_ok()).count(), 1);
    for file in scene.files() {
        fs::remove_file(file).unwrap();
    }
    for person in 0..3 {
        let item = scene.people[person].find("").await.unwrap().remove(0);
        let reject = choice(Verdict::Reject);
        (scene.people[person].decide(&item, &reject).await).unwrap();
    }

    // Even if both have it, because somebody has removed the lock.
    scene.park().await;
    scene.both_approve().await;
    let (mut one, mut other) = (scene.enforcer(), scene.enforcer());
    let first = one.open_set(push(PATIENCE), two(), Some(HOUR)).await;
    fs::remove_file(scene.files()[0].with_extension("lock")).unwrap();
    let second = other.open_set(push(PATIENCE), two(), Some(HOUR)).await;
    let (mut first, mut second) = (first.unwrap(), second.unwrap());
    let same: Vec<_> = first.request_ids().zip(second.request_ids()).collect();
    assert!(same.iter().all(|(one, other)| one == other));
    let (one, other) = tokio::join!(first.decision(), second.decision());
    let denied = match (one, other) {
        (Ok(_), Err(denied)) | (Err(denied), Ok(_)) => denied,
        both => panic!("{both:?}"),
    };
    assert!(matches!(denied, ApprovalDenial::AlreadyUsed), "{denied}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_ends_a_parked_set() {
    let scene = ParkScene::start().await;
    scene.park().await;
    scene.decide(0, Verdict::Approve).await;
    scene.decide(1, Verdict::Reject).await;
    scene.decide(2, Verdict::Approve).await;
    let denied = scene.resume().await.unwrap_err();
    assert!(matches!(denied, ApprovalDenial::Rejected(_)), "{denied}");
    assert!(scene.files().is_empty());
    scene.asks_anew().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_by_a_device_that_was_revoked_while_the_set_was_parked_does_not_count() {
    let scene = ParkScene::start().await;
    let phone = scene.world.device("alice", "phone").await;
    let request = asks(&phone).await;
    scene.people[0].add_device(&request).await.unwrap();
    scene.people[0].share_enforcers().await.unwrap();
    let both = terms(2, &NAMES[..2]);
    is_parked(scene.call(push(SHORT), both.clone(), HOUR).await);
    decide(&phone, Verdict::Approve).await;
    scene.decide(1, Verdict::Approve).await;
    scene.people[0]
        .revoke_device(phone.device_id())
        .await
        .unwrap();
    let denied = scene.call(push(PATIENCE), both, HOUR).await.unwrap_err();
    let told = denied.to_string();
    assert!(
        told.contains("alice: the decision is not trusted"),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_end_of_a_call_people_of_later_steps_are_asked_and_count() {
    let scene = ParkScene::start().await;
    let mut later = terms(1, &NAMES[..1]);
    for (place, name) in NAMES[1..].iter().enumerate() {
        later.asks[0].escalate.push(EscalationStep {
            after_seconds: 600 + u32::try_from(place).unwrap(),
            from: ApproverId::parse(name).into_iter().collect(),
            team: None,
        });
    }
    is_parked(scene.call(push(SHORT), later.clone(), HOUR).await);
    for person in 0..3 {
        assert_eq!(scene.waiting(person).await.len(), 1, "{person}");
    }
    scene.decide(2, Verdict::Approve).await;
    let decided = scene.call(push(PATIENCE), later, HOUR).await;
    assert_eq!(who(decided), ["carol"]);
    assert!(scene.waiting(0).await.is_empty() && scene.waiting(1).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_killed_goes_on_also_if_not_everyone_was_asked() {
    let scene = ParkScene::start().await;
    // Before anybody was asked.
    let mut enforcer = scene.enforcer();
    let pending = (enforcer.open_set(push(PATIENCE), two(), Some(HOUR)).await).unwrap();
    let ids: Vec<_> = pending.request_ids().map(ToString::to_string).collect();
    drop(pending);
    let deciding = async {
        scene.decide(0, Verdict::Approve).await;
    };
    let (decided, ()) = tokio::join!(scene.call(push(SHORT * 2), two(), HOUR), deciding);
    is_parked(decided);
    assert_eq!(scene.waiting(1).await, ids[1..2], "the same requests");
    // While it waits. The requests stay.
    let mut enforcer = scene.enforcer();
    let mut pending = (enforcer.open_set(push(PATIENCE), two(), Some(HOUR)).await).unwrap();
    let killed = tokio::time::timeout(Duration::from_secs(2), pending.decision()).await;
    killed.unwrap_err();
    drop(pending);
    scene.decide(1, Verdict::Approve).await;
    assert_eq!(who(scene.resume().await), ["alice", "bob"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_call_withdraws_its_set() {
    let scene = ParkScene::start().await;
    scene.park().await;
    let mut enforcer = scene.enforcer();
    let mut pending = (enforcer.open_set(push(PATIENCE), two(), Some(HOUR)).await).unwrap();
    pending.interrupt().await;
    assert!(scene.files().is_empty());
    assert!(scene.waiting(0).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_is_withdrawn_by_hand_allows_nothing_also_while_a_call_waits() {
    let scene = ParkScene::start().await;
    scene.park().await;
    let open = scene.enforcer().open_sets().unwrap();
    assert!(!open[0].is_awaited && open[0].artifact.is_some());
    let kept = scene.world.directory.path().join("kept");
    copy_folder(&scene.beside("sets"), &kept);
    let waiting = async {
        until("a call waits", PATIENCE, async || {
            scene.enforcer().open_sets().unwrap()[0].is_awaited
        })
        .await;
        scene.enforcer().withdraw_set(&open[0].id).await.unwrap();
    };
    let (decided, ()) = tokio::join!(scene.resume(), waiting);
    let denied = decided.unwrap_err();
    assert!(!matches!(denied, ApprovalDenial::Parked { .. }), "{denied}");
    assert!(scene.waiting(0).await.is_empty());
    copy_folder(&kept, &scene.beside("sets"));
    scene.asks_anew().await;
    let open = scene.enforcer().open_sets().unwrap();
    assert_eq!(open.len(), 1);
    scene.enforcer().withdraw_set(&open[0].id).await.unwrap();
    assert!(scene.waiting(0).await.is_empty());
    assert!(scene.files().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_has_expired_is_removed_and_asked_again() {
    let scene = ParkScene::start().await;
    let short = Duration::from_secs(15);
    is_parked(scene.call(push(SHORT), two(), short).await);
    let [file]: [PathBuf; 1] = scene.files().try_into().unwrap();
    scene.both_approve().await;
    sleep(short).await;
    is_parked(scene.call(push(SHORT), two(), HOUR).await);
    assert!(!file.exists());
    assert_eq!(scene.files().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_too_many_sets_the_further_ones_end_with_their_call() {
    let scene = ParkScene::start().await;
    scene.park().await;
    for number in 0..31 {
        let name = format!("01890a5d-ac96-774b-bcce-b302099a80{number:02}.json");
        fs::write(scene.beside("sets").join(name), "").unwrap();
    }
    let mut other = push(SHORT);
    other.payload = command(&["git", "pull"]);
    let denied = scene.call(other, two(), HOUR).await.unwrap_err();
    assert!(denied.is_timeout(), "{denied}");
    scene.both_approve().await;
    assert_eq!(who(scene.resume().await), ["alice", "bob"]);
}
