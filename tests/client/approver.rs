//! From the question to the decision: what an approver reads, signs, and sees of it afterwards.

use std::time::Duration;

use countersign::client::approver::{
    ApproverChoice, DeliveryConfirmation, OpenFailure, requested_actions,
};
use countersign::client::enforcer::ApprovalDenial;
use countersign::client::{ClientError, DecisionRecord};
use countersign::e2e::{
    self, ArtifactHints, DecisionScope, GrantMatch, GrantOutcome, OutcomeEffect,
};
use countersign::protocol::decision::Verdict;
use serde_json::{Map, Value, json};

use super::people::{ClientScene, ask, because, choice, command, pair, question};
use crate::support::{open, request_id};

#[tokio::test(flavor = "multi_thread")]
async fn a_person_reads_approves_and_sees_it_delivered() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    let asked = ask(enforcer, question(command(&["git", "push"])), &alice).await;
    let item = asked.item(&alice).await;
    assert_eq!(item.label.as_deref(), Some("build machine"));
    assert!(item.is_paired);
    let opened = item.content.as_ref().unwrap();
    let shown: Value = serde_json::from_str(opened.artifact().text()).unwrap();
    assert_eq!(shown["payload"]["argv"], json!(["git", "push"]));

    let because = because(Verdict::Approve, "fine");
    let decided = alice.decide(&item, &because).await.unwrap();
    let (_, outcome) = asked.end().await;
    let accepted = outcome.unwrap();
    assert_eq!(accepted.approval.hints.reason.as_deref(), Some("fine"));
    assert_eq!(accepted.approval.device, alice.device_id());
    assert_eq!(accepted.decision, decided.body, "byte for byte");
    let patience = Duration::from_secs(20);
    let confirmation = alice.delivered(&item, &decided, patience).await;
    let allowed = DeliveryConfirmation::ByEnforcer(OutcomeEffect::Allowed);
    assert_eq!(confirmation.unwrap(), allowed);
    assert!(alice.find("").await.unwrap().is_empty());

    let again = alice
        .decide(&item, &choice(Verdict::Reject))
        .await
        .unwrap_err();
    assert!(matches!(again, ClientError::AlreadyDecided), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_carries_its_reason_to_the_enforcer_and_nobody_else() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    let asked = ask(enforcer, question(command(&["rm", "-rf", "/"])), &alice).await;
    let item = asked.item(&alice).await;
    let reason = "certainly not that";
    let decided = alice
        .decide(&item, &because(Verdict::Reject, reason))
        .await
        .unwrap();
    assert!(
        !decided.body.contains(reason),
        "the gateway does not read it"
    );
    match asked.end().await.1 {
        Err(ApprovalDenial::Rejected(rejection)) => {
            assert_eq!(rejection.hints.reason.as_deref(), Some(reason));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permission_beyond_the_request_says_what_and_for_how_long() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    let asked = ask(enforcer, question(command(&["git", "commit"])), &alice).await;
    let item = asked.item(&alice).await;
    let words = GrantMatch::prefix(vec!["git".to_owned(), "commit".to_owned()]).unwrap();
    let with = |scope, hours: Option<u64>, grant: Option<GrantMatch>| ApproverChoice {
        scope,
        lasts: hours.map(|hours| Duration::from_secs(hours * 3_600)),
        hints: ArtifactHints {
            grant,
            ..ArtifactHints::default()
        },
        ..choice(Verdict::Approve)
    };
    for refused in [
        with(DecisionScope::Timebox, None, Some(words.clone())),
        with(DecisionScope::Timebox, Some(1), None),
        with(DecisionScope::Session, Some(25), Some(words.clone())),
        with(DecisionScope::Once, Some(1), None),
    ] {
        let error = alice.decide(&item, &refused).await.unwrap_err();
        assert!(
            matches!(error, ClientError::Choice(_)),
            "{refused:?}: {error}"
        );
    }
    let good = with(DecisionScope::Session, Some(2), Some(words.clone()));
    alice.decide(&item, &good).await.unwrap();
    match asked.end().await.1.unwrap().approval.grant {
        GrantOutcome::Given(grant) => {
            assert_eq!(grant.matches, words);
            assert!(grant.session_only);
            let left = grant.until.inner() - world.cluster.clock.now().inner();
            assert!(left > time::Duration::minutes(119) && left <= time::Duration::hours(2));
        }
        GrantOutcome::NotGiven(reason) => panic!("{reason}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offered_action_is_chosen_for_its_own_decision_only() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    let mut asking = question(command(&["deploy"]));
    let actions = json!({ "version": 1, "actions": [
        { "id": "staging", "caption": "To staging", "decision": "approve" },
        { "id": "no", "caption": "Not today", "decision": "reject" },
    ]});
    asking.members = Map::from_iter([(
        "extensions".to_owned(),
        json!({ "org.proto.requestedActions": actions }),
    )]);
    let asked = ask(enforcer, asking, &alice).await;
    let item = asked.item(&alice).await;
    let offered = requested_actions(item.content.as_ref().unwrap().artifact());
    assert_eq!(offered.len(), 2);
    assert_eq!(
        (offered[1].id.as_str(), offered[1].verdict),
        ("no", Verdict::Reject)
    );
    let choose = |verdict, id: &str| ApproverChoice {
        hints: ArtifactHints {
            action_id: Some(id.to_owned()),
            ..ArtifactHints::default()
        },
        ..choice(verdict)
    };
    for (verdict, id) in [
        (Verdict::Approve, "no"),
        (Verdict::Reject, "staging"),
        (Verdict::Approve, "Staging"),
        (Verdict::Approve, "production"),
    ] {
        let error = alice.decide(&item, &choose(verdict, id)).await.unwrap_err();
        assert!(matches!(error, ClientError::Choice(_)), "{id}: {error}");
    }
    alice
        .decide(&item, &choose(Verdict::Approve, "staging"))
        .await
        .unwrap();
    let accepted = asked.end().await.1.unwrap();
    assert_eq!(
        accepted.approval.hints.action_id.as_deref(),
        Some("staging")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_encrypted_or_not_from_a_paired_enforcer_can_only_be_rejected() {
    let world = ClientScene::start().await;
    let alice = world.approver("alice", "laptop").await;
    let plain = world.cluster.enforcer("plain").await;
    let (first, second) = (request_id(), request_id());
    plain
        .submit(&first, "alice", open(&first))
        .await
        .expect(202);
    plain
        .submit(&second, "alice", crate::support::sealed())
        .await
        .expect(202);
    for (id, expected) in [
        (&first, OpenFailure::NotEncrypted),
        (&second, OpenFailure::NotPaired),
    ] {
        let item = alice.find(id).await.unwrap().remove(0);
        assert_eq!(item.content.as_ref().unwrap_err(), &expected);
        assert!(!item.is_paired);
        let refused = alice
            .decide(&item, &choice(Verdict::Approve))
            .await
            .unwrap_err();
        assert!(
            matches!(refused, ClientError::NotApprovable(_)),
            "{refused}"
        );
        let to_nobody = because(Verdict::Reject, "who are you?");
        let refused = alice.decide(&item, &to_nobody).await.unwrap_err();
        assert!(matches!(
            refused,
            ClientError::Crypto(e2e::Error::HintsForNobody)
        ));
        alice.decide(&item, &choice(Verdict::Reject)).await.unwrap();
        assert_eq!(plain.state(id).await, "decided");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_is_found_by_a_unique_prefix_on_any_page() {
    let world = ClientScene::start().await;
    let alice = world.approver("alice", "laptop").await;
    let plain = world.cluster.enforcer("plain").await;
    let ids: Vec<_> = (0..120).map(|number| format!("job-{number:03}")).collect();
    for id in &ids {
        plain
            .submit(id, "alice", crate::support::sealed())
            .await
            .expect(202);
    }
    let mut seen = Vec::new();
    alice
        .inbox(|item| seen.push(item.request_id.to_string()))
        .await
        .unwrap();
    assert_eq!(seen, ids, "all pages, oldest first");
    assert_eq!(alice.find("job-119").await.unwrap().len(), 1);
    assert_eq!(alice.find("job-11").await.unwrap().len(), 10);
    assert!(alice.find("job-2").await.unwrap().is_empty());
    plain
        .submit("job-11", "alice", crate::support::sealed())
        .await
        .expect(202);
    let exact = alice.find("job-11").await.unwrap();
    assert_eq!(exact.len(), 1, "a whole id wins over longer ones");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_was_withdrawn_or_expired_is_not_decided() {
    let world = ClientScene::start().await;
    let alice = world.approver("alice", "laptop").await;
    let plain = world.cluster.enforcer("plain").await;
    let id = request_id();
    plain
        .submit(&id, "alice", crate::support::sealed())
        .await
        .expect(202);
    let item = alice.find(&id).await.unwrap().remove(0);
    let withdrawn = plain.client.call(
        reqwest::Method::POST,
        &format!("/v1/exchanges/{id}/withdraw"),
    );
    withdrawn.send().await.expect(200);
    let refused = alice
        .decide(&item, &choice(Verdict::Reject))
        .await
        .unwrap_err();
    assert!(
        matches!(refused, ClientError::GoneAfterSigning),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_decision_is_verified_offline_and_says_when_anything_was_changed() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    let asked = ask(enforcer, question(command(&["git", "push"])), &alice).await;
    let item = asked.item(&alice).await;
    let decided = alice
        .decide(&item, &choice(Verdict::Approve))
        .await
        .unwrap();
    let opened = item.content.as_ref().unwrap();
    let record = alice.record(opened, &decided).await;
    let text = record.to_text().unwrap();
    let read = DecisionRecord::parse(text.as_bytes()).unwrap();
    let verified = read.verify().unwrap();
    assert_eq!(verified.verdict.verdict, Verdict::Approve);
    assert_eq!(verified.artifact.hash(), opened.artifact().hash());
    let (enforcer, _) = asked.end().await;
    let known = enforcer.approvers()[0]
        .trust(world.cluster.tenant.clone())
        .unwrap();
    read.is_trusted_by(&known).unwrap();

    let whole: Value = serde_json::from_str(&text).unwrap();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut changed = whole.clone();
        change(&mut changed);
        DecisionRecord::parse(changed.to_string().as_bytes())
    };
    let replace = |member: &'static str, from: &'static str, to: &'static str| {
        move |value: &mut Value| {
            let text = value[member].as_str().unwrap();
            assert!(text.contains(from), "{text}");
            value[member] = text.replace(from, to).into();
        }
    };
    for (what, changed) in [
        ("the command", with(&replace("artifact", "push", "pull"))),
        (
            "the verdict",
            with(&replace("decision", "approve", "reject")),
        ),
        ("the scope", with(&replace("decision", "once", "session"))),
        (
            "a member of the decision",
            with(&replace("decision", "\"nonce\"", "\"other\"")),
        ),
    ] {
        assert!(changed.unwrap().verify().is_err(), "{what}");
    }
    let (_, other) = (0, world.approver("bob", "phone").await);
    let forged = with(&|value| value["device"] = other.bundle().to_text().unwrap().into()).unwrap();
    assert!(forged.verify().is_err(), "another device did not sign it");
    let foreign = with(&|value| value["approverId"] = "bob".into()).unwrap();
    assert_eq!(
        foreign.is_trusted_by(&known).unwrap_err(),
        e2e::Error::OtherApprover
    );
    for (what, changed) in [
        ("a version", with(&|value| value["v"] = 2.into())),
        ("a further member", with(&|value| value["w"] = 1.into())),
        ("no device", with(&|value| value["device"] = "x".into())),
        ("no text", with(&|value| value["artifact"] = json!({}))),
        ("no list", with(&|value| value["statements"] = "x".into())),
    ] {
        let refused = changed.unwrap_err();
        assert!(
            matches!(refused, ClientError::Record(_)),
            "{what}: {refused}"
        );
    }
}
