//! Teams in terminals: they are made, joined, changed and left there, and a receipt of their
//! decisions is verified by the team's id alone.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use countersign::client::approver::Approver;
use countersign::protocol::decision::Verdict;
use serde_json::{Value, json};

use super::approver::{Ran, prepared, run};
use super::rules::policy;
use super::sets::{decided, path, results, verify};
use crate::client::people::{ClientScene, because, choice};

const OWNER: &str = "alice";

struct TeamTerminals {
    world: ClientScene,
    alice: Approver,
    bob: Approver,
    carol: Approver,
}

impl TeamTerminals {
    async fn start() -> Self {
        let world = ClientScene::start().await;
        world.enforcer("bot").await;
        let alice = world.approver("alice", "alice").await;
        let bob = world.approver("bob", "bob").await;
        let carol = world.approver("carol", "carol").await;
        Self {
            world,
            alice,
            bob,
            carol,
        }
    }

    /// Of three, two of whom must approve.
    async fn with_team() -> Self {
        let here = Self::start().await;
        here.team(OWNER, &["create", "payments", "--approvals", "2"])
            .expect(0);
        for name in ["bob", "carol"] {
            here.invite(OWNER, name);
            here.team(OWNER, &["add", "payments", "--yes"]).expect(0);
        }
        here
    }

    fn team(&self, profile: &str, arguments: &[&str]) -> Ran {
        run(&self.world, profile, &[&["team"], arguments].concat())
    }

    /// Somebody is invited, and answers.
    fn invite(&self, by: &str, name: &str) {
        let link = self
            .team(by, &["invite", "payments", "--id", name])
            .expect(0)
            .out;
        self.team(name, &["join", link.trim(), "--yes"]).expect(0);
    }

    fn shown(&self, profile: &str) -> Value {
        let shown = self.team(profile, &["show", "payments", "--json"]);
        shown.expect(0).json()
    }

    fn members(&self, profile: &str) -> Vec<String> {
        let shown = self.shown(profile);
        let seats = shown["seats"].as_array().unwrap().iter();
        seats
            .map(|seat| seat["approverId"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The agent's machine shows a link, with which an owner pairs it with the team.
    fn pair(&self) -> Ran {
        let mut machine = prepared(&self.world, "bot", &["pair"]);
        let mut machine = machine.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(machine.stderr.take().unwrap()).lines();
        let link = lines.find_map(|line| {
            let line = line.unwrap();
            let (_, rest) = line.split_once("countersign pair '")?;
            rest.split_once('\'').map(|(link, _)| link.to_owned())
        });
        let link = link.unwrap();
        let paired = run(&self.world, OWNER, &["pair", &link, "--team", "payments"]);
        lines.for_each(drop);
        assert!(machine.wait().unwrap().success());
        paired
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_team_that_was_made_in_terminals_decides_and_its_receipt_needs_only_its_id() {
    let here = TeamTerminals::with_team().await;
    assert_eq!(here.members("carol"), ["alice", "bob", "carol"]);
    here.pair().expect(0);
    let (file, saved) = path(&here.world, "receipt.json");
    let rule = [
        "run",
        "--approvals",
        "1",
        "--from",
        "team:payments",
        "--save",
        &saved,
    ];
    let command = [&rule[..], &["--", "true"]].concat();
    let approve = || choice(Verdict::Approve);
    let decisions = [
        (&here.bob, because(Verdict::Approve, "fine")),
        (&here.carol, approve()),
    ];
    let ended = decided(&here.world, &command, &decisions).await.expect(0);
    assert!(
        ended.err.contains("approved by bob, carol"),
        "{}",
        ended.err
    );

    // On a machine that knows nothing but the team's id.
    let id = here.shown("bob")["teamId"].as_str().unwrap().to_owned();
    let anchor = [saved.as_str(), "--team", &id, "--json"];
    let verified = verify(&here.world, "nobody", &anchor).expect(0).json();
    assert_eq!(verified["approverIds"], json!(["bob", "carol"]));
    for (fact, expected) in [
        ("teams", vec!["proven"]),
        ("device", vec!["proven", "proven"]),
        ("outcome", vec!["proven"]),
        ("complete", vec!["proven"]),
        ("count", vec!["proven"]),
    ] {
        assert_eq!(results(&verified, fact), expected, "{fact}");
    }
    let unknown = verify(&here.world, "nobody", &[&saved, "--json"]);
    let unknown = unknown.expect(77).json();
    assert_eq!(results(&unknown, "teams"), ["absent"]);
    let other = ["--team", "AAAAAAAAAAAAAAAAAAAAAA"];
    verify(
        &here.world,
        "nobody",
        &[&[saved.as_str()], &other[..]].concat(),
    )
    .expect(77);
    verify(&here.world, "nobody", &[&saved, "--team", "payments"]).expect(64);
    // By a file of what a member knows.
    let (anchors, named) = path(&here.world, "anchors.json");
    let listed = run(&here.world, OWNER, &["anchors"]).expect(0);
    assert_eq!(listed.json()["teams"], json!([id]));
    std::fs::write(&anchors, &listed.out).unwrap();
    verify(&here.world, "nobody", &[&saved, "--anchors", &named]).expect(0);
    std::fs::write(&anchors, listed.out.replace(&id, "AAAAAAAAAAAAAAAAAAAAAA")).unwrap();
    verify(&here.world, "nobody", &[&saved, "--anchors", &named]).expect(77);
    std::fs::write(&anchors, "{}").unwrap();
    verify(&here.world, "nobody", &[&saved, "--anchors", &named]).expect(65);
    // By what the machine and a member know.
    for profile in ["bot", "alice"] {
        verify(&here.world, profile, &[&saved]).expect(0);
    }

    // A state that somebody has changed, and a file without its last one.
    let text = std::fs::read_to_string(&file).unwrap();
    let mut changed: Value = serde_json::from_str(&text).unwrap();
    let states = changed["teams"].as_array_mut().unwrap();
    assert_eq!(states.len(), 3);
    states.pop();
    std::fs::write(&file, changed.to_string()).unwrap();
    let cut = verify(&here.world, "nobody", &anchor).expect(77).json();
    assert_eq!(results(&cut, "teams"), ["failed"]);
    std::fs::write(&file, text).unwrap();

    // Once Bob has left, those who know it want a proof that it was before.
    here.team("bob", &["leave", "payments"]).expect(64);
    here.team("bob", &["leave", "payments", "--yes"]).expect(0);
    assert_eq!(here.members(OWNER), ["alice", "carol"]);
    let later = verify(&here.world, OWNER, &[&saved]).expect(77);
    assert!(
        later.err.contains("has left its seat since"),
        "{}",
        later.err
    );
    verify(&here.world, "nobody", &anchor).expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stand_in_is_named_in_the_receipt_beside_the_seat() {
    let here = TeamTerminals::with_team().await;
    let dave = here.world.approver("dave", "dave").await;
    here.invite("bob", "dave");
    let named = [
        "stand-in", "payments", "--to", "dave", "--until", "14d", "--yes",
    ];
    let shown = here.team("bob", &named).expect(0).out;
    assert!(shown.contains("dave stands in from"), "{shown}");
    here.pair().expect(0);
    let (_, saved) = path(&here.world, "receipt.json");
    let command = [
        "run",
        "--approvals",
        "2",
        "--from",
        "team:payments",
        "--save",
        &saved,
        "--",
        "true",
    ];
    let decisions = [
        (&dave, choice(Verdict::Approve)),
        (&here.alice, choice(Verdict::Approve)),
    ];
    decided(&here.world, &command, &decisions).await.expect(0);
    let id = here.shown("carol")["teamId"].as_str().unwrap().to_owned();
    let text = verify(&here.world, "nobody", &[&saved, "--team", &id])
        .expect(0)
        .out;
    for expected in [
        "dave (for bob) approved",
        "belongs to dave, who stood in for bob",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let by_name = |people| {
        let demands = ["--team", &id, "--approvals", "2", "--from", people];
        verify(
            &here.world,
            "nobody",
            &[&[saved.as_str()], &demands[..]].concat(),
        )
    };
    by_name("alice,bob").expect(0);
    // Bob alone says that it was Dave, and could name anybody.
    by_name("alice,dave").expect(77);
    here.team("bob", &["stand-in", "payments", "--end"])
        .expect(0);
    assert_eq!(here.shown(OWNER)["seats"][1]["standIn"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_team_changes_only_as_its_owners_say() {
    let here = TeamTerminals::with_team().await;
    let number = |profile: &str| here.shown(profile)["minimum"]["approvals"].clone();
    here.team("bob", &["set", "payments", "--approvals", "1", "--yes"])
        .expect(77);
    here.team("bob", &["remove", "payments", "carol", "--yes"])
        .expect(77);
    assert_eq!(number("carol"), 2);
    // Nothing changes without an answer at a terminal.
    let set = ["set", "payments", "--approvals", "3", "--yes"];
    here.team(OWNER, &set[..4]).expect(64);
    assert_eq!(number("carol"), 2);
    let shown = here.team(OWNER, &set).expect(0).out;
    assert!(shown.contains("at least 3 of 3"), "{shown}");
    assert_eq!(number("carol"), 3);
    // A change that changes nothing is a mistake, and so is an unknown id beside one that does.
    for (idle, expected) in [
        (&["set", "payments"][..], "changes nothing"),
        (&["set", "payments", "--owner", "erin"], "no member"),
        (
            &["set", "payments", "--owner", "erin", "--approvals", "2"],
            "no member",
        ),
        (&["remove", "payments", "erin"], "no member"),
    ] {
        let refused = here.team(OWNER, idle).expect(64);
        assert!(refused.err.contains(expected), "{}", refused.err);
    }
    assert_eq!(number("carol"), 3);
    let leave = ["leave", "payments", "--yes"];
    let refused = here.team(OWNER, &leave).expect(64);
    assert!(refused.err.contains("last owner"), "{}", refused.err);
    here.team(OWNER, &["set", "payments", "--owner", "bob", "--yes"])
        .expect(0);
    here.team("bob", &["remove", "payments", OWNER, "--yes"])
        .expect(0);
    assert_eq!(here.members("carol"), ["bob", "carol"]);
    let listed = here.team(OWNER, &["list", "--json"]).expect(0).json();
    assert_eq!(
        listed[0]["seats"].as_array().map(Vec::len),
        Some(3),
        "as it knew it"
    );
    // Without an answer at a terminal, nobody takes part, and nobody is admitted.
    let link = here
        .team("bob", &["invite", "payments", "--id", OWNER])
        .expect(0)
        .out;
    here.team(OWNER, &["join", link.trim()]).expect(64);
    here.team(OWNER, &["join", link.trim(), "--yes"]).expect(0);
    here.team("bob", &["add", "payments"]).expect(64);
    assert_eq!(here.members("carol"), ["bob", "carol"]);
    here.team("bob", &["add", "payments", "--yes"]).expect(0);
    assert_eq!(here.members("carol"), ["bob", "carol", "alice"]);
    // Once used, a link is dead.
    here.team("bob", &["join", link.trim(), "--yes"]).expect(77);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_terminal_names_the_team_and_says_when_it_cannot_decide() {
    let here = TeamTerminals::with_team().await;
    here.pair().expect(0);
    policy(
        &here.world,
        "[[rule]]\nfrom = [\"team:payments\"]\nescalate = [{ after = \"1m\", from = [\"team:payments\"] }]\n",
    );
    let tried = ["policy", "try", "true"];
    let shown = run(&here.world, "bot", &tried).expect(0).out;
    assert!(shown.contains("from team:payments"), "{shown}");
    let doctor = run(&here.world, "bot", &["doctor"]);
    assert!(
        doctor.out.contains("3 members decide, at least 2 of them"),
        "{}",
        doctor.out
    );
    let set = ["set", "payments", "--approvals", "4", "--yes"];
    here.team(OWNER, &set).expect(0);
    let doctor = run(&here.world, "bot", &["doctor"]);
    assert!(
        doctor.out.contains("nothing can be approved"),
        "{}",
        doctor.out
    );
    // Its members stop being asked only if somebody says so.
    let unpair = ["unpair", "bot", "--yes"];
    run(&here.world, OWNER, &unpair[..2]).expect(64);
    run(&here.world, "carol", &["pairings"]).expect(0);
    run(&here.world, OWNER, &unpair).expect(0);
    let ask = ["run", "--approvals", "1", "--from", "team:payments"];
    let ended = run(&here.world, "bot", &[&ask[..], &["--", "true"]].concat());
    let ended = ended.expect(77).err;
    assert!(ended.contains("refused"), "{ended}");
}
