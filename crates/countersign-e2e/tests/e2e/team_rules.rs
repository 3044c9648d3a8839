//! Rules with teams: their form, who may approve under them, and the minimum of a team.

use countersign_e2e::{
    ApprovalRule, CommentDuty, DeviceId, Error, RuleAsk, RuleDecider, RuleRefusal, RuleTerms,
    SetId, TeamHead, TeamMinimum,
};
use countersign_protocol::id::ApproverId;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::people::{bot, known, time};
use super::several::{person, read_rule, rule_json};
use super::team_scene::{TeamScene, key, own, stand_in};
use super::texts::parsed;

fn team_rule(head: TeamHead, change: impl FnOnce(&mut RuleTerms)) -> ApprovalRule {
    let mut terms = RuleTerms {
        asks: vec![RuleAsk {
            approvals: 2,
            from: [].into(),
            team: Some(head),
            escalate: Vec::new(),
        }],
        rejections: 1,
        comment: CommentDuty::None,
        not_by: [].into(),
    };
    change(&mut terms);
    ApprovalRule {
        enforcer: bot(),
        set: SetId::generate(&mut known("set")).unwrap(),
        seat: Some(person("carol")),
        terms,
    }
}

struct DeciderCase {
    approver: &'static str,
    device: DeviceId,
    operators: Vec<ApproverId>,
    at: &'static str,
}

fn decider(approver: &'static str, device: &'static str) -> DeciderCase {
    DeciderCase {
        approver,
        device: key(device).id(),
        operators: Vec::new(),
        at: "2026-02-22T12:00:00Z",
    }
}

pub fn approval_vectors() -> Value {
    let mut scene = TeamScene::new(1);
    let old = scene.chain.head();
    scene.accept(&["alice"], |it| {
        it.minimum = TeamMinimum {
            approvals: 2,
            separate: true,
            ..it.minimum
        }
    });
    scene.accept(&["carol"], |it| {
        own(it, "carol").stand_in = Some(stand_in("erin"));
    });
    let head = scene.chain.head();
    let seat = |id: &'static str| move |rule: &mut ApprovalRule| rule.seat = Some(person(id));
    let (same, one) = (
        |_: &mut RuleTerms| {},
        |it: &mut RuleTerms| it.asks[0].approvals = 1,
    );
    let not_by = |id: &'static str| move |it: &mut RuleTerms| it.not_by = [person(id)].into();
    let operators = |ids: [&str; 1]| DeciderCase {
        operators: ids.map(person).to_vec(),
        ..decider("carol", "carol")
    };
    let dave = {
        let mut rule = team_rule(head, same);
        seat("dave")(&mut rule);
        rule
    };
    let late = DeciderCase {
        at: "2026-02-28T12:00:00Z",
        ..decider("erin", "erin")
    };
    let early = DeciderCase {
        at: "2026-02-21T11:59:59Z",
        ..decider("erin", "erin")
    };
    let first = DeciderCase {
        at: "2026-02-21T12:00:00Z",
        ..decider("erin", "erin")
    };
    let newer = TeamHead { seq: 3, ..head };
    let forked = TeamHead {
        digest: old.digest,
        ..head
    };
    let cases = [
        (
            "the member",
            team_rule(head, same),
            decider("carol", "carol"),
            None,
        ),
        (
            "the member, by an older state",
            team_rule(old, same),
            decider("carol", "carol"),
            None,
        ),
        (
            "a device that is not on the seat",
            team_rule(head, same),
            decider("carol", "new"),
            Some(RuleRefusal::OtherSeat),
        ),
        (
            "another member",
            team_rule(head, same),
            decider("dave", "dave"),
            Some(RuleRefusal::OtherSeat),
        ),
        (
            "the stand-in",
            team_rule(head, same),
            decider("erin", "erin"),
            None,
        ),
        (
            "the stand-in, at the first moment",
            team_rule(head, same),
            first,
            None,
        ),
        (
            "the stand-in, too late",
            team_rule(head, same),
            late,
            Some(RuleRefusal::OtherSeat),
        ),
        (
            "the stand-in, too early",
            team_rule(head, same),
            early,
            Some(RuleRefusal::OtherSeat),
        ),
        (
            "the stand-in, on another seat",
            dave,
            decider("erin", "erin"),
            Some(RuleRefusal::OtherSeat),
        ),
        (
            "the stand-in is excluded",
            team_rule(head, not_by("erin")),
            decider("erin", "erin"),
            Some(RuleRefusal::NotBy),
        ),
        (
            "the stand-in of an excluded member",
            team_rule(head, not_by("carol")),
            decider("erin", "erin"),
            Some(RuleRefusal::NotBy),
        ),
        (
            "too few approvals",
            team_rule(head, one),
            decider("carol", "carol"),
            Some(RuleRefusal::BelowMinimum),
        ),
        (
            "an operator who is not excluded",
            team_rule(head, same),
            operators(["dave"]),
            Some(RuleRefusal::BelowMinimum),
        ),
        (
            "an operator who is excluded",
            team_rule(head, not_by("dave")),
            operators(["dave"]),
            None,
        ),
        (
            "a newer state that is not known",
            team_rule(newer, same),
            decider("carol", "carol"),
            Some(RuleRefusal::WithheldTeam),
        ),
        (
            "another state of the same number",
            team_rule(forked, same),
            decider("carol", "carol"),
            Some(RuleRefusal::ForkedTeam),
        ),
        (
            "a team that is not known",
            team_rule(TeamScene::new(2).chain.head(), same),
            decider("carol", "carol"),
            Some(RuleRefusal::NotAsked),
        ),
    ];
    let teams = [scene.chain.clone()];
    let rows = cases.into_iter().map(|(name, rule, decider, refusal)| {
        let text = rule_json(&rule);
        let rule = read_rule(&text).unwrap();
        let approver = person(decider.approver);
        let known = RuleDecider {
            approver: &approver,
            device: decider.device,
            operators: &decider.operators,
            teams: &teams,
            now: time(decider.at),
        };
        assert_eq!(rule.check_approval(&bot(), &known, None).err(), refusal, "{name}");
        json!({
            "name": name, "rule": text, "approverId": decider.approver, "deviceId": decider.device.to_string(),
            "operators": decider.operators, "at": decider.at, "refusal": refusal.map(RuleRefusal::as_str),
        })
    });
    let rows: Value = rows.collect();
    let states = scene.states.iter().map(|text| parsed(text));
    json!({ "enforcerId": "build-bot", "states": states.collect::<Value>(), "rows": rows })
}

pub fn minimum_vectors() -> Value {
    let head = TeamScene::new(1).chain.head();
    let minimum = |approvals, rejections, comment| TeamMinimum {
        approvals,
        rejections,
        comment,
        separate: false,
    };
    let comments = |it: &mut RuleTerms| it.comment = CommentDuty::Reject;
    let rows = [
        (team_rule(head, |_| {}), TeamMinimum::default()),
        (team_rule(head, |_| {}), minimum(3, 1, CommentDuty::None)),
        (
            team_rule(head, |it| it.rejections = 4),
            minimum(1, 2, CommentDuty::None),
        ),
        (
            team_rule(head, comments),
            minimum(1, 32, CommentDuty::Approve),
        ),
    ];
    let rows = rows.map(|(rule, minimum)| {
        let terms = rule.terms.clone().join_minimum(head.team, &minimum);
        let joined = ApprovalRule {
            terms,
            ..rule.clone()
        };
        let minimum = json!({
            "approvals": minimum.approvals, "rejections": minimum.rejections,
            "comment": minimum.comment.as_str(), "separate": minimum.separate,
        });
        json!({ "rule": rule_json(&rule), "minimum": minimum, "joined": rule_json(&joined) })
    });
    json!(rows)
}

#[test]
fn a_rule_with_teams_needs_seats_and_either_people_or_a_team() {
    let rule = team_rule(TeamScene::new(1).chain.head(), |it| {
        it.asks[0].approvals = 1;
    });
    assert!(rule.terms.needs_seats());
    let good = rule_json(&rule);
    assert!(read_rule(&good).is_ok());
    let mut no_seat = good.clone();
    no_seat.as_object_mut().unwrap().remove("seat");
    let mut both = good.clone();
    both["asks"][0]["from"] = json!(["carol"]);
    let mut broken = good.clone();
    broken["asks"][0]["team"]["teamId"] = json!("…");
    for text in [no_seat, both, broken] {
        assert!(matches!(read_rule(&text), Err(Error::Member(_))), "{text}");
    }
}

proptest! {
    #[test]
    fn a_minimum_never_makes_a_rule_weaker(
        approvals in 1..6_u32, rejections in 1..6_u32, floor in 1..6_u32, ceiling in 1..6_u32,
        duty in 0..4_usize, own in 0..4_usize,
    ) {
        let head = TeamScene::new(1).chain.head();
        let terms = team_rule(head, |it| {
            it.asks[0].approvals = approvals;
            it.rejections = rejections;
            it.comment = CommentDuty::ALL[own];
        }).terms;
        let minimum = TeamMinimum { approvals: floor, rejections: ceiling, comment: CommentDuty::ALL[duty], separate: false };
        let joined = terms.clone().join_minimum(head.team, &minimum);
        prop_assert!(joined.asks[0].approvals >= approvals.max(floor));
        prop_assert!(joined.rejections <= rejections.min(ceiling));
        for duty in [minimum.comment, terms.comment] {
            prop_assert!(joined.comment.covers_approval() || !duty.covers_approval());
        }
        prop_assert_eq!(joined.clone().join_minimum(head.team, &minimum), joined);
    }
}
