//! Calls under a rule: several people decide, whatever one of them has permitted before.

use countersign::agent::Agent;
use countersign::client::approver::{Approver, ApproverChoice};
use countersign::client::enforcer::Enforcer;
use countersign::e2e::{DecisionScope, GrantMatch};
use countersign::protocol::decision::Verdict;
use serde_json::json;

use super::process::{HookScene, artifact, end};
use crate::client::grants::permits;
use crate::client::people::{PATIENCE, because, choice, pair};
use crate::client::teams::{TEAM, pair_team, team_of};
use crate::support::until;

const RULE: &str = "[[rule]]\ncommands = [\"make deploy\"]\nfrom = [\"alice\", \"bob\", \"carol\"]\napprovals = 2\n";

/// Alice is paired already.
pub async fn with_others(scene: &HookScene) -> [Approver; 2] {
    let mut enforcer =
        Enforcer::open(&scene.world.file("bot"), &scene.world.cluster.clock).unwrap();
    let mut others = [
        scene.world.approver("bob", "bobs").await,
        scene.world.approver("carol", "carols").await,
    ];
    for person in &mut others {
        pair(&mut enforcer, person).await;
    }
    others
}

pub async fn decide(person: &Approver, choice: &ApproverChoice) {
    until("one request waits", PATIENCE, async || {
        person.find("").await.unwrap().len() == 1
    })
    .await;
    let item = person.find("").await.unwrap().remove(0);
    person.decide(&item, choice).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_of_three_approve_the_call_of_every_agent() {
    let scene = HookScene::start().await;
    let [bob, carol] = with_others(&scene).await;
    scene.policy(RULE);
    let approve = choice(Verdict::Approve);
    let cwd = scene.project();
    let gemini = json!({
        "session_id": "s", "cwd": cwd, "hook_event_name": "BeforeTool",
        "tool_name": "run_shell_command", "tool_input": { "command": "make deploy" },
    });
    for (agent, input) in [
        (Agent::Claude, scene.bash("make deploy")),
        (Agent::Codex, scene.bash("/usr/bin/make -j2 deploy")),
        (Agent::Gemini, gemini.to_string()),
    ] {
        let child = scene.start_hook(agent, &[], &input);
        let item = scene.item().await;
        let rule = &artifact(&item)["extensions"]["countersign.rule"];
        assert_eq!(rule["asks"][0]["approvals"], 2, "{agent}");
        assert_eq!(rule["seat"], "alice", "{agent}");
        scene.alice.decide(&item, &approve).await.unwrap();
        decide(&carol, &because(Verdict::Approve, "Fine.")).await;
        let ran = end(child).await;
        assert_eq!(ran.code, 0, "{agent}: {}", ran.err);
        if agent == Agent::Claude {
            let own = &ran.json()["hookSpecificOutput"];
            assert_eq!(own["permissionDecision"], "allow");
            let reason = "approved by alice, carol: carol says: Fine.";
            assert_eq!(own["permissionDecisionReason"], reason);
        }
        assert!(bob.find("").await.unwrap().is_empty(), "{agent}: withdrawn");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_of_the_policy_asks_a_team_beside_the_person_who_is_paired() {
    let scene = HookScene::start().await;
    let mut owner = scene.world.approver("bob", "bobs").await;
    let carol = scene.world.approver("carol", "carols").await;
    team_of(&owner, TEAM, &[&carol]).await;
    let (file, clock) = (scene.world.file("bot"), &scene.world.cluster.clock);
    let mut enforcer = Enforcer::open(&file, clock).unwrap();
    pair_team(&mut enforcer, &mut owner, TEAM).await;
    carol.share_enforcers().await.unwrap();
    scene.policy(
        "[[rule]]\ncommands = [\"make deploy\"]\nfrom = [\"team:payments\"]\napprovals = 2\n",
    );
    let input = scene.bash("make deploy");
    let child = scene.start_hook(Agent::Claude, &[], &input);
    for person in [&owner, &carol] {
        decide(person, &choice(Verdict::Approve)).await;
    }
    let ran = end(child).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let own = &ran.json()["hookSpecificOutput"];
    assert_eq!(own["permissionDecisionReason"], "approved by bob, carol");
    scene.nobody_was_asked().await;
    // A team that is not paired denies, and is named nowhere as an approver.
    scene.policy("[[rule]]\nfrom = [\"team:operations\"]\n");
    let ran = scene.hook(Agent::Claude, &[], &input).await;
    ran.is_denied(Agent::Claude, "not paired with");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_approval_or_a_rejection_denies_and_the_agent_is_told_what_is_missing() {
    let scene = HookScene::start().await;
    let [bob, _carol] = with_others(&scene).await;
    scene.policy(RULE);
    let input = scene.bash("make deploy");
    let child = scene.start_hook(Agent::Claude, &["--timeout", "20s"], &input);
    scene.decide(&choice(Verdict::Approve)).await;
    let ran = end(child).await;
    ran.is_denied(Agent::Claude, "it needs 2 approvals and lacks 1");
    ran.is_denied(Agent::Claude, "bob: did not decide in time");

    let child = scene.start_hook(Agent::Claude, &[], &input);
    scene.decide(&choice(Verdict::Approve)).await;
    decide(&bob, &because(Verdict::Reject, "Not today.")).await;
    let ran = end(child).await;
    ran.is_denied(Agent::Claude, "bob rejected it: Not today.");
    scene.nobody_was_asked().await;

    // Too few can be asked.
    scene.policy("[[rule]]\nfrom = [\"alice\", \"dave\"]\napprovals = 2\n");
    let ran = scene.hook(Agent::Claude, &[], &input).await;
    ran.is_denied(Agent::Claude, "dave: not paired with this machine");
    scene.nobody_was_asked().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_grant_covers_a_call_under_a_rule_and_none_is_made() {
    let scene = HookScene::start().await;
    let [bob, _carol] = with_others(&scene).await;
    let input = scene.bash("make deploy");
    // One person permits it for the session, before there is a rule.
    let child = scene.start_hook(Agent::Claude, &[], &input);
    let permit = permits(DecisionScope::Session, GrantMatch::Same);
    scene.decide(&permit).await;
    assert_eq!(end(child).await.code, 0);
    assert_eq!(scene.hook(Agent::Claude, &[], &input).await.code, 0);
    bob.find("").await.unwrap();

    scene.policy(RULE);
    let child = scene.start_hook(Agent::Claude, &[], &input);
    let item = scene.item().await;
    // Nor can one be given with an approval.
    scene.alice.decide(&item, &permit).await.unwrap_err();
    decide(&bob, &choice(Verdict::Reject)).await;
    end(child).await.is_denied(Agent::Claude, "bob rejected it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changes_before_the_last_approval_denies_the_edit() {
    let scene = HookScene::start().await;
    let [bob, _carol] = with_others(&scene).await;
    scene.policy("[[rule]]\ntools = [\"edit\"]\napprovals = 2\n");
    let file = scene.write("a.txt", "1\n");
    let edit = json!({ "file_path": file, "content": "2\n" });
    let child = scene.start_hook(Agent::Claude, &[], &scene.claude("Write", &edit));
    scene.decide(&choice(Verdict::Approve)).await;
    std::fs::write(&file, "3\n").unwrap();
    decide(&bob, &choice(Verdict::Approve)).await;
    let ran = end(child).await;
    ran.is_denied(Agent::Claude, "changed after the approver saw the edit");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comment_that_a_rule_demands_must_be_there() {
    let scene = HookScene::start().await;
    scene.policy("[[rule]]\ncomment = \"approve\"\n");
    let child = scene.start_hook(Agent::Claude, &[], &scene.bash("make"));
    let item = scene.item().await;
    let silent = choice(Verdict::Approve);
    scene.alice.decide(&item, &silent).await.unwrap_err();
    let reasoned = because(Verdict::Approve, "Reviewed.");
    scene.alice.decide(&item, &reasoned).await.unwrap();
    assert_eq!(end(child).await.code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn people_of_a_later_step_are_asked_when_it_is_due() {
    let scene = HookScene::start().await;
    let [bob, carol] = with_others(&scene).await;
    scene.policy(
        "[[rule]]\nfrom = [\"alice\"]\nescalate = [{ after = \"2s\", from = [\"bob\"] }, { after = \"5m\", from = [\"carol\"] }]\n",
    );
    let child = scene.start_hook(Agent::Claude, &[], &scene.bash("make"));
    scene.item().await;
    assert!(bob.find("").await.unwrap().is_empty(), "not yet");
    decide(&bob, &choice(Verdict::Approve)).await;
    let ran = end(child).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("approved by bob"), "{}", ran.out);
    scene.nobody_was_asked().await;
    assert!(carol.find("").await.unwrap().is_empty());
}
