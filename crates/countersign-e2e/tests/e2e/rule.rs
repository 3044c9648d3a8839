//! The rule of an artifact: its form, joining two, and what a device may approve under it.
//! `tests/vectors/rule.json` is for other implementers; after a deliberate change, run this once
//! with `WRITE_VECTORS=1`.

use countersign_e2e::{
    ApprovalRule, ArtifactHints, ArtifactRule, CommentDuty, DecisionContent, Error, EscalationStep,
    RULE, RuleAsk, RuleDecider, RuleRefusal, RuleTerms, open_artifact, seal_artifact,
    sign_decision,
};
use countersign_protocol::decision::Verdict;
use countersign_protocol::id::{EnforcerId, TextId as _};
use serde_json::{Value, json};

use super::people::{bot, known, now, ruling, world};
use super::rule_cases::{accepted, approvals, joins, refused, unknown};
use super::several::{
    Person, SetScene, check_vectors, comment, complete, member, members, people, person, read_rule,
    request_id, rule, rule_json, two_of_three,
};
use super::vote_cases::count_vectors;

#[test]
fn a_rule_is_read_strictly_and_the_vectors_are_what_the_code_computes() {
    let accepted = accepted().into_iter().map(|(name, rule)| {
        let text = rule_json(&rule);
        assert_eq!(
            read_rule(&text).unwrap(),
            ArtifactRule::Known(rule),
            "{name}"
        );
        json!({ "name": name, "rule": text })
    });
    let unknown = unknown().into_iter().map(|(name, text)| {
        assert_eq!(read_rule(&text).unwrap(), ArtifactRule::Unknown, "{name}");
        json!({ "name": name, "rule": text })
    });
    let refused = refused().into_iter().map(|(name, text)| {
        let refused = read_rule(&text);
        assert!(
            matches!(refused, Err(Error::Member(_))),
            "{name}: {refused:?}"
        );
        json!({ "name": name, "rule": text })
    });
    let approvals = approvals().into_iter().map(|case| {
        let rule = read_rule(&case.rule).unwrap();
        let (enforcer, approver) = (
            EnforcerId::parse(case.enforcer).unwrap(),
            person(case.approver),
        );
        let operators: Vec<_> = case.operators.iter().map(|id| person(id)).collect();
        let decider = RuleDecider {
            approver: &approver,
            device: world().phone.id(),
            operators: &operators,
            teams: &[],
            now: now(),
        };
        let result = rule.check_approval(&enforcer, &decider, case.comment);
        assert_eq!(
            result.err(),
            case.refusal,
            "{} {:?}",
            case.approver,
            case.comment
        );
        json!({
            "rule": case.rule, "enforcerId": case.enforcer, "approverId": case.approver,
            "operators": case.operators, "comment": case.comment, "refusal": case.refusal.map(RuleRefusal::as_str),
        })
    });
    let joins = joins().into_iter().map(|[one, other]| {
        let joined = rule_json(&rule(one.clone().join(other.clone()), Some("alice")));
        let [one, other] = [one, other].map(|terms| rule_json(&rule(terms, Some("alice"))));
        json!({ "rules": [one, other], "joined": joined })
    });
    let scene = SetScene::new(Some(two_of_three()));
    let part = scene.artifact_of("carol");
    let vectors = json!({
        "about": "The rule of an artifact (docs/encryption.md, Rules). accepted, unknown and refused: the \
            extension countersign.rule. approvals: whether a device that knows these operators of the enforcer \
            may approve, or why not. joins: two \
            rules at once. part: an artifact, and that of another part of its set. counts: votes in their \
            order, and the state after the last.",
        "accepted": accepted.collect::<Value>(),
        "unknown": unknown.collect::<Value>(),
        "refused": refused.collect::<Value>(),
        "approvals": approvals.collect::<Value>(),
        "joins": joins.collect::<Value>(),
        "part": {
            "artifact": scene.artifact.text(), "requestId": part.request_id(), "seat": "carol",
            "result": part.text(),
        },
        "counts": count_vectors(),
    });
    check_vectors("rule.json", &vectors);
}

#[test]
fn joining_takes_the_stricter_of_each() {
    let [two, one] = &joins()[0];
    let joined = two.clone().join(one.clone());
    assert_eq!(joined.asks, [two.asks[0].clone(), one.asks[0].clone()]);
    assert_eq!(joined.rejections, 1);
    assert_eq!(joined.comment, CommentDuty::Always);
    assert_eq!(joined.not_by, people(["dave", "erin"]));
    assert_eq!(two.clone().join(two.clone()), *two);
    for duty in CommentDuty::ALL {
        let terms = |comment| RuleTerms {
            comment,
            ..two_of_three()
        };
        let join = |one, other| terms(one).join(terms(other)).comment;
        assert_eq!(join(duty, duty), duty);
        assert_eq!(join(duty, CommentDuty::None), duty);
        assert_eq!(join(CommentDuty::None, duty), duty);
        assert_eq!(join(duty, CommentDuty::Always), CommentDuty::Always);
    }
}

/// Otherwise a further rule would have the later people decide at once.
#[test]
fn somebody_of_a_later_step_is_not_asked_sooner_by_another_rule() {
    let [two, _] = &joins()[0];
    let later = person("dave");
    let wait = two.seconds_until_asked(&later);
    assert!(wait > 0);
    let mut other = two.clone();
    other.asks = vec![RuleAsk {
        approvals: 1,
        from: people(["dave"]),
        team: None,
        escalate: Vec::new(),
    }];
    assert_eq!(other.seconds_until_asked(&later), 0);
    for joined in [two.clone().join(other.clone()), other.join(two.clone())] {
        assert_eq!(joined.seconds_until_asked(&later), wait);
        assert_eq!(joined.seconds_until_asked(&person("alice")), 0);
    }
}

#[test]
fn the_parts_of_a_set_differ_in_request_seat_and_hash_only() {
    let scene = SetScene::new(Some(two_of_three()));
    let (own, part) = (&scene.artifact, scene.artifact_of("carol"));
    let same = own.for_part(own.request_id(), Some(&person("alice")));
    assert_eq!(same.unwrap(), *own);
    let [mut one, mut other] =
        [own.text(), part.text()].map(|text| serde_json::from_str::<Value>(text).unwrap());
    assert_ne!(own.hash(), part.hash());
    assert_eq!(other["requestId"], json!(request_id("carol")));
    assert_eq!(other["extensions"][RULE]["seat"], "carol");
    for value in [&mut one, &mut other] {
        value["requestId"].take();
        value["artifactHash"].take();
        value["extensions"][RULE]["seat"].take();
    }
    assert_eq!(one, other);
    assert!(
        own.for_part(&request_id("bob"), Some(&person("erin")))
            .is_err()
    );
    assert!(own.for_part(&request_id("bob"), None).is_err());
    let plain = SetScene::new(None).artifact;
    assert!(plain.for_part(&request_id("bob"), None).is_err());
}

#[test]
fn no_approval_is_signed_against_a_rule() {
    let scene = SetScene::new(Some(two_of_three()));
    let Person { keys, .. } = member("bob");
    let sign = |opened: &_, verdict, hints| {
        let content = DecisionContent {
            hints,
            ..ruling(verdict)
        };
        sign_decision(opened, &content, &keys, &mut known("decision"))
    };
    let opened = scene.opened("bob");
    let silent = sign(&opened, Verdict::Approve, ArtifactHints::default());
    assert_eq!(silent, Err(Error::Rule(RuleRefusal::MissingComment)));
    assert!(sign(&opened, Verdict::Approve, comment("fine")).is_ok());
    assert!(sign(&opened, Verdict::Reject, ArtifactHints::default()).is_ok());

    let other = EnforcerId::parse("another").unwrap();
    let strange = ApprovalRule {
        enforcer: other,
        ..rule(two_of_three(), Some("bob"))
    };
    let mut later = members(&scene.key, None);
    later["extensions"][RULE] = json!({ "v": 2 });
    let strange = members(&scene.key, Some(&strange));
    for (members, refusal) in [
        (later, RuleRefusal::UnknownVersion),
        (strange, RuleRefusal::OtherEnforcer),
    ] {
        let artifact = complete(members).unwrap();
        let (random, trust) = (&mut known("seal"), member("bob").trust);
        let sealed = seal_artifact(&scene.enforcer, &bot(), &artifact, &[&trust], random).unwrap();
        let context = artifact.context(bot());
        let opened = open_artifact(&keys, &scene.pinned, &context, &sealed).unwrap();
        let approval = sign(&opened, Verdict::Approve, comment("fine"));
        assert_eq!(approval, Err(Error::Rule(refusal)));
        assert!(sign(&opened, Verdict::Reject, comment("no")).is_ok());
    }
}

#[test]
fn a_rule_beyond_the_limits_completes_no_artifact() {
    let step = |after_seconds| EscalationStep {
        after_seconds,
        from: people(["dave"]),
        team: None,
    };
    let mut late = two_of_three();
    late.asks[0].escalate = vec![step(86_401)];
    let nobody = RuleTerms {
        asks: Vec::new(),
        ..two_of_three()
    };
    let scene = SetScene::new(None);
    for terms in [late, nobody] {
        let members = members(&scene.key, Some(&rule(terms, Some("alice"))));
        assert!(matches!(complete(members), Err(Error::Member(_))));
    }
}
