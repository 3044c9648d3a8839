//! Teams over a longer time: calls that are parked, people who leave, and the end of a pairing.

use std::time::Duration;

use countersign::client::enforcer::{AcceptedSet, ApprovalDenial, ApprovalRequest, Enforcer};
use countersign::e2e::RuleTerms;
use countersign::protocol::decision::Verdict;

use super::people::{PATIENCE, choice, command, question};
use super::teams::{TEAM, TeamWorld, change, pair_team, team_of, two_of_team, without};
use crate::support::until;

const HOUR: Duration = Duration::from_secs(3_600);
/// Nobody decides in this time.
const SHORT: Duration = Duration::from_secs(3);

async fn push(
    enforcer: &mut Enforcer,
    terms: RuleTerms,
    timeout: Duration,
) -> Result<AcceptedSet, ApprovalDenial> {
    let request = ApprovalRequest {
        timeout,
        ..question(command(&["git", "push"]))
    };
    let mut pending = enforcer.open_set(request, terms, Some(HOUR)).await?;
    pending.decision().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_call_goes_on_with_the_same_requests_to_the_team() {
    let mut world = TeamWorld::start().await;
    let mut enforcer = world.scene.enforcer("bot").await;
    pair_team(&mut enforcer, &mut world.alice, TEAM).await;
    let terms = two_of_team(&enforcer);
    let parked = push(&mut enforcer, terms.clone(), SHORT).await;
    let denial = parked.unwrap_err();
    assert!(matches!(denial, ApprovalDenial::Parked { .. }), "{denial}");
    for person in [&world.bob, &world.carol] {
        let item = person.find("").await.unwrap().remove(0);
        let approval = choice(Verdict::Approve);
        person.decide(&item, &approval).await.unwrap();
    }
    let accepted = push(&mut enforcer, terms, PATIENCE).await.unwrap();
    let who = accepted.approvals.iter().map(|it| it.approver.as_str());
    assert_eq!(who.collect::<Vec<_>>(), ["bob", "carol"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_team_that_changed_has_a_parked_call_asked_anew() {
    let mut world = TeamWorld::start().await;
    let mut enforcer = world.scene.enforcer("bot").await;
    pair_team(&mut enforcer, &mut world.alice, TEAM).await;
    let terms = two_of_team(&enforcer);
    push(&mut enforcer, terms.clone(), SHORT).await.unwrap_err();
    let before = world.carol.find("").await.unwrap().remove(0);
    change(&world.alice, without("bob")).await;
    push(&mut enforcer, terms, SHORT).await.unwrap_err();
    until("only the new request waits", PATIENCE, async || {
        let waiting = world.carol.find("").await.unwrap();
        matches!(waiting.as_slice(), [only] if only.request_id != before.request_id)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn former_members_still_learn_of_their_own_agents() {
    let mut world = TeamWorld::start().await;
    world.bob.leave_team(TEAM).await.unwrap();
    assert!(world.bob.teams().unwrap().is_empty());
    change(&world.alice, without("carol")).await;
    let mut enforcer = world.scene.enforcer("bot").await;
    pair_team(&mut enforcer, &mut world.alice, TEAM).await;
    for person in [&world.bob, &world.carol] {
        person.share_enforcers().await.unwrap();
        assert!(person.enforcers().is_empty(), "it is not theirs any more");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_rule_two_teams_are_too_many_until_one_is_unpaired() {
    let mut world = TeamWorld::start().await;
    team_of(&world.carol, "operations", &[&world.bob]).await;
    let mut enforcer = world.scene.enforcer("bot").await;
    pair_team(&mut enforcer, &mut world.alice, TEAM).await;
    pair_team(&mut enforcer, &mut world.carol, "operations").await;
    assert!(enforcer.asks_teams_only());
    assert!(enforcer.terms_of(&[]).is_err());
    assert!(enforcer.unpair_team("operations").await.unwrap());
    assert!(!enforcer.unpair_team("operations").await.unwrap());
    let terms = enforcer.terms_of(&[]).unwrap().unwrap();
    assert_eq!(terms.asks.len(), 1);
}
