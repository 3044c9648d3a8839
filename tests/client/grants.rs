//! Grants beyond one request: used as far as they go, and never further.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use countersign::client::ClientError;
use countersign::client::approver::{Approver, ApproverChoice, EnrolmentProgress};
use countersign::client::enforcer::{AcceptedApproval, Enforcer, GrantSubject, UsedGrant};
use countersign::client::profile::{Profile, ProfileError};
use countersign::e2e::{
    ArtifactHints, DecisionScope, EndorsementRequest, Grant, GrantMatch, GrantOutcome,
    PlainArtifact,
};
use countersign::protocol::decision::Verdict;
use countersign::protocol::id::SessionId;
use countersign::protocol::session::EndReason;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::people::{ClientScene, PATIENCE, ask, choice, command, pair, question, refusing};
use super::tamper::Tamper;
use crate::support::crowd;

const HOUR: Duration = Duration::from_secs(3_600);

pub fn permits(scope: DecisionScope, grant: GrantMatch) -> ApproverChoice {
    ApproverChoice {
        scope,
        lasts: Some(HOUR),
        hints: ArtifactHints {
            grant: Some(grant),
            ..ArtifactHints::default()
        },
        ..choice(Verdict::Approve)
    }
}

pub fn prefix(words: &[&str]) -> GrantMatch {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    GrantMatch::prefix(words).unwrap()
}

fn act(words: &[&str]) -> GrantSubject {
    act_in("repo:acme/widgets", &command(words))
}

fn act_in(repository: &str, payload: &Map<String, Value>) -> GrantSubject {
    GrantSubject::of(payload, repository).unwrap()
}

fn with(mut payload: Map<String, Value>, name: &str, value: &str) -> Map<String, Value> {
    payload.insert(name.to_owned(), value.into());
    payload
}

struct GrantScene {
    world: ClientScene,
    alice: Approver,
    enforcer: Enforcer,
}

impl GrantScene {
    async fn start() -> Self {
        let world = ClientScene::start().await;
        let mut enforcer = world.enforcer("bot").await;
        let mut alice = world.approver("alice", "laptop").await;
        pair(&mut enforcer, &mut alice).await;
        Self {
            world,
            alice,
            enforcer,
        }
    }

    /// Asks for a command, which alice approves so.
    async fn approved(self, words: &[&str], choice: &ApproverChoice) -> (Self, AcceptedApproval) {
        let Self {
            world,
            alice,
            enforcer,
        } = self;
        let mut question = question(command(words));
        if choice.scope == DecisionScope::Session {
            let session = enforcer.session("claude", "one").unwrap();
            (question.members).insert("sessionId".to_owned(), session.as_str().into());
        }
        let asking = ask(enforcer, question, &alice).await;
        let item = asking.item(&alice).await;
        alice.decide(&item, choice).await.unwrap();
        let (enforcer, outcome) = asking.end().await;
        let scene = Self {
            world,
            alice,
            enforcer,
        };
        (scene, outcome.unwrap())
    }

    /// A grant that is kept.
    async fn granted(words: &[&str], choice: &ApproverChoice) -> Self {
        let (scene, accepted) = Self::start().await.approved(words, choice).await;
        let kept = scene.enforcer.keep(&accepted).unwrap();
        assert!(kept.is_some());
        scene
    }

    async fn uses(&mut self, act: &GrantSubject) -> Result<Option<UsedGrant>, ClientError> {
        self.uses_in(None, act).await
    }

    async fn uses_in(
        &mut self,
        session: Option<&SessionId>,
        act: &GrantSubject,
    ) -> Result<Option<UsedGrant>, ClientError> {
        let deadline = Instant::now() + PATIENCE;
        self.enforcer.granted(act, session, deadline).await
    }

    fn beside(&self, extension: &str) -> PathBuf {
        self.world.file("bot").path().with_extension(extension)
    }

    fn stored(&self) -> Value {
        let text = std::fs::read_to_string(self.beside("grants.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn store(&self, grants: &Value) {
        std::fs::write(self.beside("grants.json"), grants.to_string()).unwrap();
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.beside("grants.log")).unwrap_or_default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_for_a_time_is_used_until_its_end_logged_and_reported() {
    let choice = permits(DecisionScope::Timebox, GrantMatch::Same);
    let mut scene = GrantScene::granted(&["git", "push", "secret-branch"], &choice).await;
    let push = act(&["git", "push", "secret-branch"]);
    for _ in 0..2 {
        let used = scene.uses(&push).await.unwrap().expect("a grant");
        assert_eq!(used.approver.as_str(), "alice");
        assert_eq!(used.grant.matches, GrantMatch::Same);
    }
    let log = scene.log();
    assert_eq!(log.lines().count(), 2, "{log}");
    assert!(!log.contains("secret-branch"), "{log}");
    let line: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!(line["approverId"], "alice");
    let mode = |extension| {
        let metadata = std::fs::metadata(scene.beside(extension)).unwrap();
        metadata.permissions().mode() & 0o777
    };
    assert_eq!([mode("grants.json"), mode("grants.log")], [0o600, 0o600]);

    let id = line["grant"].as_str().unwrap();
    let session = scene.enforcer.session("grant", id).unwrap();
    let admin = scene.world.cluster.admin().await;
    let shown = admin.get(&format!("/v1/session/{session}")).await;
    let shown = shown.expect(200).json();
    assert_eq!(shown["snapshots"].as_array().unwrap().len(), 2, "{shown}");

    let words = ["git", "push", "secret-branch"];
    let here = "repo:acme/widgets";
    for other in [
        act(&["git", "push", "other-branch"]),
        act_in(here, &with(command(&words), "program", "/tmp/git")),
        act_in(here, &with(command(&words), "directory", "/tmp")),
        act_in("repo:acme/other", &command(&words)),
    ] {
        assert_eq!(scene.uses(&other).await.unwrap(), None, "{other:?}");
    }
    scene.world.cluster.pass(Duration::from_secs(59 * 60));
    assert!(scene.uses(&push).await.unwrap().is_some());
    scene.world.cluster.pass(Duration::from_secs(61));
    assert_eq!(scene.uses(&push).await.unwrap(), None);
    assert_eq!(scene.stored()["grants"], json!([]), "it is forgotten");
    assert_eq!(scene.log().lines().count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_covers_plain_commands_that_begin_with_it_word_for_word() {
    let choice = permits(DecisionScope::Timebox, prefix(&["git", "commit"]));
    let mut scene = GrantScene::granted(&["git", "commit", "-a"], &choice).await;
    for covered in [
        &["git", "commit"][..],
        &["git", "commit", "-m", "it's; done"],
    ] {
        assert!(scene.uses(&act(covered)).await.unwrap().is_some());
    }
    for other in [
        &["git"][..],
        &["git", "commitx"],
        &["git", "", "commit"],
        &["git", "commit-tree"],
        &["git", "push"],
        &["git commit"],
        &["/usr/bin/git", "commit"],
        &["env", "git", "commit"],
        // Later words that choose what runs, or what is read or written.
        &["git", "commit", "--output=/home/dev/.bashrc"],
        &["git", "commit", "-F", "/etc/passwd"],
        &["git", "commit", "--templ", "x"],
        &["git", "commit", "a=b"],
        &["git", "commit", "foreach", "x"],
        &[],
    ] {
        assert_eq!(scene.uses(&act(other)).await.unwrap(), None, "{other:?}");
    }
    let commit = || command(&["git", "commit"]);
    let bash =
        json!({ "agent": "claude", "tool": "Bash", "kind": "command", "command": "git commit" });
    let here = "repo:acme/widgets";
    for other in [
        act_in(here, &with(commit(), "program", "/bin/sh")),
        act_in(here, &with(commit(), "program", "/tmp/git")),
        act_in(here, bash.as_object().unwrap()),
        act_in("repo:acme/other", &commit()),
    ] {
        assert_eq!(scene.uses(&other).await.unwrap(), None, "{other:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_prefix_is_granted_for_other_words_for_shells_or_for_what_is_no_command() {
    let scene = GrantScene::start().await;
    let GrantScene {
        world: _world,
        alice,
        enforcer,
    } = scene;
    let shell = json!({ "kind": "command", "command": "git commit && rm -rf /", "directory": "/" });
    let plan = json!({ "kind": "plan", "text": "git commit" });
    let mut enforcer = Some(enforcer);
    for (payload, words, cause) in [
        (command(&["git", "push"]), vec!["git", "commit"], "begin"),
        (
            command(&["sh", "-c", "ls"]),
            vec!["sh", "-c"],
            "choose what runs",
        ),
        (command(&["sudo", "ls"]), vec!["sudo"], "choose what runs"),
        (
            shell.as_object().unwrap().clone(),
            vec!["git"],
            "plain words",
        ),
        (
            plan.as_object().unwrap().clone(),
            vec!["git"],
            "plain words",
        ),
    ] {
        let asking = ask(enforcer.take().unwrap(), question(payload), &alice).await;
        let item = asking.item(&alice).await;
        let refused = alice
            .decide(&item, &permits(DecisionScope::Timebox, prefix(&words)))
            .await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(cause), "{refused}");
        alice.decide(&item, &choice(Verdict::Reject)).await.unwrap();
        enforcer = Some(asking.end().await.0);
    }
    let text = json!({ "kind": "command", "command": "git commit -a", "directory": "/" });
    let payload = text.as_object().unwrap().clone();
    let asking = ask(enforcer.take().unwrap(), question(payload), &alice).await;
    let item = asking.item(&alice).await;
    let granted = permits(DecisionScope::Timebox, prefix(&["git", "commit"]));
    alice.decide(&item, &granted).await.unwrap();
    asking.end().await.1.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_enforcer_keeps_no_grant_that_does_not_fit_what_was_asked() {
    let choice = permits(DecisionScope::Timebox, GrantMatch::Same);
    let (scene, accepted) = GrantScene::start()
        .await
        .approved(&["git", "push"], &choice)
        .await;
    let GrantOutcome::Given(grant) = accepted.approval.grant.clone() else {
        panic!("a grant");
    };
    let instead = |matches: GrantMatch, session_only: bool| {
        let mut accepted = accepted.clone();
        accepted.approval.grant = GrantOutcome::Given(Grant {
            matches,
            session_only,
            ..grant.clone()
        });
        accepted
    };
    let keep = |accepted: &AcceptedApproval| scene.enforcer.keep(accepted).unwrap();
    assert!(keep(&accepted).is_some());
    assert!(keep(&instead(prefix(&["git"]), false)).is_some());
    for (matches, session_only) in [
        (prefix(&["git", "commit"]), false),
        (prefix(&["sh"]), false),
        (GrantMatch::Same, true),
    ] {
        assert_eq!(
            keep(&instead(matches.clone(), session_only)),
            None,
            "{matches:?}"
        );
    }
    let mut once = accepted.clone();
    once.approval.grant = GrantOutcome::NotGiven("it is for one request only");
    assert_eq!(keep(&once), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_for_a_session_counts_in_that_session_and_until_it_ends() {
    let choice = permits(DecisionScope::Session, GrantMatch::Same);
    let (mut scene, accepted) = GrantScene::start()
        .await
        .approved(&["git", "push"], &choice)
        .await;
    let push = act(&["git", "push"]);
    let (one, other) = (
        scene.enforcer.session("claude", "one").unwrap(),
        scene.enforcer.session("claude", "other").unwrap(),
    );
    let kept = scene.enforcer.keep(&accepted).unwrap();
    assert!(kept.unwrap().session_only);
    assert!(scene.uses_in(Some(&one), &push).await.unwrap().is_some());
    assert_eq!(scene.uses_in(Some(&other), &push).await.unwrap(), None);
    assert_eq!(scene.uses(&push).await.unwrap(), None);
    // The session is in the signed artifact. An edited file moves the grant to no other.
    let mut stored = scene.stored();
    for session in [json!(other), Value::Null] {
        stored["grants"][0]["sessionId"] = session;
        scene.store(&stored);
        assert_eq!(scene.uses_in(Some(&other), &push).await.unwrap(), None);
        assert_eq!(scene.uses(&push).await.unwrap(), None);
    }
    stored["grants"][0]["sessionId"] = json!(one);
    scene.store(&stored);
    assert!(scene.uses_in(Some(&one), &push).await.unwrap().is_some());
    let deadline = Instant::now() + PATIENCE;
    let ended = scene
        .enforcer
        .end_session(&one, EndReason::UserEnd, deadline);
    ended.await.unwrap();
    assert_eq!(scene.uses_in(Some(&one), &push).await.unwrap(), None);
    assert_eq!(scene.stored()["grants"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_is_revoked_ends_its_grants() {
    let choice = permits(DecisionScope::Timebox, GrantMatch::Same);
    let mut scene = GrantScene::granted(&["git", "push"], &choice).await;
    let push = act(&["git", "push"]);
    let phone = scene.world.device("alice", "phone").await;
    let EnrolmentProgress::Asks(request) = phone.enrol().await.unwrap() else {
        panic!("another device has to add it");
    };
    let link = request.link(&phone.page()).unwrap();
    let request = EndorsementRequest::parse(&link).unwrap();
    scene.alice.add_device(&request).await.unwrap();
    assert!(scene.uses(&push).await.unwrap().is_some());
    phone.revoke_device(scene.alice.device_id()).await.unwrap();
    scene.world.cluster.pass(Duration::from_secs(61));
    assert_eq!(scene.uses(&push).await.unwrap(), None);
    let listed = scene.enforcer.grants().unwrap();
    let problem = listed[0].standing.as_ref().unwrap_err().to_string();
    assert!(problem.contains("revoked"), "{problem}");
    // The pairing lists the device that is left.
    let known = scene.enforcer.known_devices(&scene.enforcer.approvers()[0]);
    let [left] = &known.unwrap()[..] else {
        panic!("one device");
    };
    assert_eq!(left.to_string(), format!("phone ({})", phone.device_id()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_pairing_ends_its_grants() {
    let choice = permits(DecisionScope::Timebox, GrantMatch::Same);
    let mut scene = GrantScene::granted(&["git", "push"], &choice).await;
    let push = act(&["git", "push"]);
    assert!(scene.uses(&push).await.unwrap().is_some());
    assert!(scene.enforcer.unpair("alice").await.unwrap());
    assert_eq!(scene.uses(&push).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_changed_permits_no_more_than_was_signed() {
    let choice = permits(DecisionScope::Timebox, GrantMatch::Same);
    let mut scene = GrantScene::granted(&["git", "push"], &choice).await;
    let push = act(&["git", "push"]);
    let whole = scene.stored();
    let decision = whole["grants"][0]["decision"].as_str().unwrap().to_owned();
    let changed = |from: &str, to: &str| json!(decision.replace(from, to));
    let artifact = whole["grants"][0]["artifact"].as_str().unwrap().to_owned();
    let another = |from: &str, to: &str| {
        let changed = artifact.replace(from, to);
        assert_ne!(changed, artifact);
        json!(changed)
    };
    // Its hash is right, but nobody has signed it.
    let unsigned = PlainArtifact::parse(artifact.as_bytes()).unwrap();
    let unsigned = json!(another_request(&unsigned, unsigned.request_id().as_str(), "pull").text());
    let future = "2999-01-01T00:00:00Z";
    for (member, value) in [
        ("acceptedAt", json!(future)),
        ("acceptedAt", json!("never")),
        ("requestId", json!("another")),
        ("artifact", another("widgets", "other")),
        ("artifact", another("push", "pull")),
        ("artifact", unsigned),
        ("artifact", json!("{}")),
        ("approverId", json!("bob")),
        ("decision", changed("approve", "reject")),
        ("decision", changed("timebox", "session")),
        ("decision", json!("{}")),
        ("until", json!("never")),
    ] {
        let mut grants = whole.clone();
        grants["grants"][0][member] = value.clone();
        scene.store(&grants);
        for words in [["git", "push"], ["git", "pull"]] {
            let used = scene.uses(&act(&words)).await.unwrap();
            assert_eq!(used, None, "{member} {value}");
        }
    }
    // Neither does a prefix in the file reach further than what was signed.
    let mut wider = whole.clone();
    wider["grants"][0]["prefix"] = json!(["git"]);
    scene.store(&wider);
    assert_eq!(scene.uses(&act(&["git", "pull"])).await.unwrap(), None);
    // A later end in the file is not what was signed.
    let mut longer = whole.clone();
    longer["grants"][0]["until"] = json!(future);
    scene.store(&longer);
    assert!(scene.uses(&push).await.unwrap().is_some());
    scene.world.cluster.pass(HOUR);
    assert_eq!(scene.uses(&push).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_trusted_permits_nothing_and_is_named() {
    let choice = permits(DecisionScope::Timebox, GrantMatch::Same);
    let mut scene = GrantScene::granted(&["git", "push"], &choice).await;
    let push = act(&["git", "push"]);
    let whole = scene.stored();
    let path = scene.beside("grants.json");
    let modes = |mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&path, permissions).unwrap();
    };
    for mode in [0o644, 0o660, 0o602] {
        modes(mode);
        let refused = scene.uses(&push).await.unwrap_err();
        assert!(matches!(refused, ClientError::Grants { .. }), "{refused}");
    }
    modes(0o600);
    let mut unknown = whole.clone();
    unknown["grants"][0]["more"] = json!(1);
    for text in [
        String::new(),
        "{".to_owned(),
        json!([]).to_string(),
        json!({ "v": 3, "grants": [] }).to_string(),
        unknown.to_string(),
    ] {
        std::fs::write(&path, &text).unwrap();
        let refused = scene.uses(&push).await.unwrap_err().to_string();
        assert!(refused.contains("forget --all"), "{text}: {refused}");
    }
    // Its grants were not tied to the signed artifact.
    std::fs::write(&path, json!({ "v": 1, "grants": [{}] }).to_string()).unwrap();
    assert_eq!(scene.uses(&push).await.unwrap(), None);
    scene.enforcer.delete_all_grants().unwrap();
    assert_eq!(scene.uses(&push).await.unwrap(), None);
    // A use that cannot be logged is refused.
    scene.store(&whole);
    modes(0o600);
    std::fs::create_dir(scene.beside("grants.log")).unwrap();
    let refused = scene.uses(&push).await.unwrap_err().to_string();
    assert!(refused.contains("logged"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_back_brings_no_grant_back() {
    let choice = permits(DecisionScope::Timebox, GrantMatch::Same);
    let mut scene = GrantScene::granted(&["git", "push"], &choice).await;
    let push = act(&["git", "push"]);
    // Written by a clock that was an hour ahead of the one now.
    let ahead = std::fs::File::open(scene.beside("grants.json")).unwrap();
    let written = ahead.metadata().unwrap().modified().unwrap();
    ahead.set_modified(written + HOUR).unwrap();
    assert_eq!(scene.uses(&push).await.unwrap(), None);
    ahead.set_modified(written).unwrap();
    assert!(scene.uses(&push).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_away_or_withholds_devices_leaves_no_grant() {
    let choice = permits(DecisionScope::Timebox, GrantMatch::Same);
    let scene = GrantScene::granted(&["git", "push"], &choice).await;
    let push = act(&["git", "push"]);
    let (_held, nowhere) = refusing();
    let node = scene.world.cluster.nodes[0].url.clone();
    let liar = Tamper::start(&node, |path, answer| {
        if path.contains("/devices") {
            answer["statements"] = json!("none");
        }
    })
    .await;
    // A list that is a minute old has to be read again.
    scene.world.cluster.pass(Duration::from_secs(61));
    for url in [nowhere, liar.url.clone()] {
        let file = scene.world.file("bot");
        file.update(|profile: &mut Profile| {
            profile.enforcer.as_mut().unwrap().gateway.urls = vec![url];
            Ok::<_, ProfileError>(())
        })
        .unwrap();
        let mut enforcer = Enforcer::open(&file, &scene.world.cluster.clock).unwrap();
        let deadline = Instant::now() + Duration::from_secs(3);
        enforcer.granted(&push, None, deadline).await.unwrap_err();
    }
    assert_eq!(scene.log(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_takes_no_report_changes_nothing() {
    let choice = permits(DecisionScope::Timebox, GrantMatch::Same);
    let scene = GrantScene::granted(&["git", "push"], &choice).await;
    let node = scene.world.cluster.nodes[0].url.clone();
    let liar = crate::hostile::meddler::Meddler::start(&node, |call, gateway| async move {
        let mut reply = gateway.pass(&call).await;
        if call.path.contains("/session/") {
            reply.status = 500;
        }
        reply
    })
    .await;
    let file = scene.world.file("bot");
    file.update(|profile: &mut Profile| {
        profile.enforcer.as_mut().unwrap().gateway.urls = vec![liar.url.clone()];
        Ok::<_, ProfileError>(())
    })
    .unwrap();
    let mut enforcer = Enforcer::open(&file, &scene.world.cluster.clock).unwrap();
    let deadline = Instant::now() + PATIENCE;
    let push = act(&["git", "push"]);
    let used = enforcer.granted(&push, None, deadline);
    assert!(used.await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_at_once_lose_no_grant_and_each_gets_its_answer() {
    let choice = permits(DecisionScope::Timebox, GrantMatch::Same);
    let (scene, accepted) = GrantScene::start()
        .await
        .approved(&["git", "push"], &choice)
        .await;
    let file = scene.world.file("bot");
    let open = || Enforcer::open(&file, &scene.world.cluster.clock).unwrap();
    let keeping = (0..100).map(|number| {
        let (enforcer, mut accepted) = (open(), accepted.clone());
        tokio::task::spawn_blocking(move || {
            accepted.artifact = another_request(&accepted.artifact, &uuid(number), "pull");
            enforcer.keep(&accepted)
        })
    });
    for kept in keeping.collect::<Vec<_>>() {
        assert!(kept.await.unwrap().unwrap().is_some());
    }
    let push = act(&["git", "push"]);
    scene.enforcer.keep(&accepted).unwrap();
    assert_eq!(scene.enforcer.grants().unwrap().len(), 101);
    let _crowd = crowd(100).await;
    let using = (0..100).map(|_| {
        let (mut enforcer, push) = (open(), push.clone());
        tokio::spawn(async move {
            let deadline = Instant::now() + PATIENCE;
            enforcer.granted(&push, None, deadline).await
        })
    });
    for used in using.collect::<Vec<_>>() {
        assert!(used.await.unwrap().unwrap().is_some());
    }
    assert_eq!(scene.log().lines().count(), 100);
    // The oldest are dropped before the file grows without end.
    let mut last = String::new();
    for number in 0..150 {
        let mut accepted = accepted.clone();
        accepted.artifact = another_request(&accepted.artifact, &uuid(1_000 + number), "push");
        assert!(scene.enforcer.keep(&accepted).unwrap().is_some());
        last = accepted.artifact.request_id().to_string();
    }
    let listed = scene.enforcer.grants().unwrap();
    assert_eq!(listed.len(), 200);
    assert_eq!(listed.last().unwrap().request_id, last);
}

fn uuid(number: usize) -> String {
    format!("00000000-0000-7000-8000-{number:012}")
}

/// The same artifact under another id, for another command.
fn another_request(artifact: &PlainArtifact, id: &str, word: &str) -> PlainArtifact {
    let text = artifact.text().replace("push", word);
    let mut members: Map<String, Value> = serde_json::from_str(&text).unwrap();
    members.remove("artifactHash");
    members.insert("requestId".to_owned(), id.into());
    let text = Value::Object(members).to_string();
    PlainArtifact::complete(&text, &mut countersign::client::random).unwrap()
}
