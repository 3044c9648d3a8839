//! Rules that are read, and rules that are refused, for `rule`.

use countersign_e2e::{ApprovalRule, CommentDuty, RuleAsk, RuleRefusal, RuleTerms};
use serde_json::{Value, json};

use super::several::{ask, one_of, people, person, rule, rule_json, two_of_three};

pub fn accepted() -> Vec<(&'static str, ApprovalRule)> {
    let mut joined = two_of_three();
    joined.asks.push(ask(1, ["bob", "frank"]));
    let bare = RuleTerms {
        comment: CommentDuty::None,
        not_by: [].into(),
        ..one_of(two_of_three())
    };
    let many: Vec<_> = (0..64).map(|it| person(&format!("p{it}"))).collect();
    let largest = RuleTerms {
        asks: vec![RuleAsk {
            approvals: 64,
            from: many.iter().cloned().collect(),
            team: None,
            escalate: Vec::new(),
        }],
        rejections: 64,
        ..bare.clone()
    };
    vec![
        (
            "two of three, then Dave too",
            rule(two_of_three(), Some("bob")),
        ),
        (
            "the seat of an escalation step",
            rule(two_of_three(), Some("dave")),
        ),
        ("two asks", rule(joined, Some("frank"))),
        ("one of three, in one exchange", rule(bare.clone(), None)),
        ("one of three, for one person", rule(bare, Some("carol"))),
        ("64 people", rule(largest, Some("p63"))),
    ]
}

pub fn unknown() -> Vec<(&'static str, Value)> {
    vec![("a later version", json!({ "v": 2, "anything": [] }))]
}

pub fn refused() -> Vec<(&'static str, Value)> {
    let good = rule_json(&rule(two_of_three(), Some("bob")));
    let with = |pointer: &str, value: Value| {
        let mut changed = good.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        changed
    };
    let add = |pointer: &str, name: &str, value: Value| {
        let mut changed = good.clone();
        changed.pointer_mut(pointer).unwrap()[name] = value;
        changed
    };
    let without = |pointer: &str, name: &str| {
        let mut changed = good.clone();
        let part = changed
            .pointer_mut(pointer)
            .unwrap()
            .as_object_mut()
            .unwrap();
        part.remove(name).unwrap();
        changed
    };
    let step = |after: u32| json!({ "after": after, "from": ["dave"] });
    let many: Vec<_> = (0..65).map(|it| format!("p{it}")).collect();
    let (half, rest) = many.split_at(40);
    let split = json!([
        { "approvals": 1, "from": half }, { "approvals": 1, "from": rest },
    ]);
    let mut spread = with("/asks", split);
    spread["seat"] = json!("p1");
    let mut crowd = with("/asks", json!([{ "approvals": 1, "from": many }]));
    crowd["seat"] = json!("p1");
    vec![
        ("no object", json!("two")),
        ("no version", without("", "v")),
        ("no enforcer", without("", "enforcerId")),
        ("no set", without("", "set")),
        ("no asks", without("", "asks")),
        ("no rejections", without("", "rejections")),
        ("no comment", without("", "comment")),
        ("no seat for two approvals", without("", "seat")),
        ("no approvals", without("/asks/0", "approvals")),
        ("no people", without("/asks/0", "from")),
        ("no time of a step", without("/asks/0/escalate/0", "after")),
        ("no people of a step", without("/asks/0/escalate/0", "from")),
        ("a further member", add("", "more", json!(1))),
        (
            "a further member of an ask",
            add("/asks/0", "more", json!(1)),
        ),
        (
            "a further member of a step",
            add("/asks/0/escalate/0", "more", json!(1)),
        ),
        ("a short set", with("/set", json!("AAAA"))),
        ("an empty list of asks", with("/asks", json!([]))),
        (
            "17 asks",
            with("/asks", vec![good["asks"][0].clone(); 17].into()),
        ),
        ("0 approvals", with("/asks/0/approvals", json!(0))),
        ("65 approvals", with("/asks/0/approvals", json!(65))),
        ("half an approval", with("/asks/0/approvals", json!(1.5))),
        ("approvals as text", with("/asks/0/approvals", json!("2"))),
        ("0 rejections", with("/rejections", json!(0))),
        ("65 rejections", with("/rejections", json!(65))),
        ("nobody is asked", with("/asks/0/from", json!([]))),
        (
            "somebody twice",
            with("/asks/0/from", json!(["bob", "bob"])),
        ),
        ("an empty id", with("/asks/0/from", json!(["bob", ""]))),
        ("a number as id", with("/asks/0/from", json!(["bob", 1]))),
        ("65 people in an ask", crowd),
        ("65 people in two asks", spread),
        ("an unknown duty", with("/comment", json!("maybe"))),
        ("an empty notBy", with("/notBy", json!([]))),
        (
            "somebody twice in notBy",
            with("/notBy", json!(["erin", "erin"])),
        ),
        ("65 people in notBy", with("/notBy", json!(many))),
        (
            "a seat of nobody who is asked",
            with("/seat", json!("erin")),
        ),
        ("an empty seat", with("/seat", json!(""))),
        ("no steps", with("/asks/0/escalate", json!([]))),
        (
            "nine steps",
            with("/asks/0/escalate", (1..10).map(step).collect()),
        ),
        (
            "steps at one time",
            with("/asks/0/escalate", json!([step(60), step(60)])),
        ),
        (
            "steps in the wrong order",
            with("/asks/0/escalate", json!([step(61), step(60)])),
        ),
        ("a step at once", with("/asks/0/escalate/0/after", json!(0))),
        (
            "a step after a day",
            with("/asks/0/escalate/0/after", json!(86_401)),
        ),
        (
            "nobody in a step",
            with("/asks/0/escalate/0/from", json!([])),
        ),
    ]
}

pub struct ApprovalCase {
    pub rule: Value,
    pub enforcer: &'static str,
    pub approver: &'static str,
    /// As far as the device knows.
    pub operators: &'static [&'static str],
    pub comment: Option<&'static str>,
    pub refusal: Option<RuleRefusal>,
}

pub fn approvals() -> Vec<ApprovalCase> {
    let seated = rule_json(&rule(two_of_three(), Some("bob")));
    let shared = rule_json(&rule(one_of(two_of_three()), None));
    let excluded = RuleTerms {
        not_by: people(["bob"]),
        ..two_of_three()
    };
    let excluded = rule_json(&rule(excluded, Some("bob")));
    let open = RuleTerms {
        not_by: people([]),
        ..two_of_three()
    };
    let open = rule_json(&rule(open, Some("bob")));
    let silent = |duty| RuleTerms {
        comment: duty,
        ..two_of_three()
    };
    let duty = |duty| rule_json(&rule(silent(duty), Some("bob")));
    let case = |rule: &Value, approver, comment, refusal| ApprovalCase {
        rule: rule.clone(),
        enforcer: "build-bot",
        approver,
        operators: &[],
        comment,
        refusal,
    };
    let fine = Some("fine");
    vec![
        case(&seated, "bob", fine, None),
        case(&seated, "alice", fine, Some(RuleRefusal::OtherSeat)),
        case(&seated, "bob", None, Some(RuleRefusal::MissingComment)),
        case(&seated, "bob", Some(""), Some(RuleRefusal::MissingComment)),
        case(
            &seated,
            "bob",
            Some(" \n\t\u{a0}\u{3000}"),
            Some(RuleRefusal::MissingComment),
        ),
        case(
            &seated,
            "bob",
            Some("\u{200b}\u{feff}"),
            Some(RuleRefusal::MissingComment),
        ),
        case(
            &duty(CommentDuty::Always),
            "bob",
            None,
            Some(RuleRefusal::MissingComment),
        ),
        case(&duty(CommentDuty::Reject), "bob", None, None),
        case(&duty(CommentDuty::None), "bob", None, None),
        case(&shared, "carol", fine, None),
        case(&shared, "dave", fine, Some(RuleRefusal::NotAsked)),
        case(&excluded, "bob", fine, Some(RuleRefusal::NotBy)),
        ApprovalCase {
            operators: &["carol", "bob"],
            ..case(&seated, "bob", None, Some(RuleRefusal::NotBy))
        },
        ApprovalCase {
            operators: &["carol"],
            ..case(&seated, "bob", fine, None)
        },
        // A rule that excludes nobody lets operators approve for their own agent.
        ApprovalCase {
            operators: &["bob"],
            ..case(&open, "bob", fine, None)
        },
        case(
            &json!({ "v": 2 }),
            "bob",
            fine,
            Some(RuleRefusal::UnknownVersion),
        ),
        ApprovalCase {
            enforcer: "another",
            ..case(&seated, "bob", fine, Some(RuleRefusal::OtherEnforcer))
        },
    ]
}

pub fn joins() -> Vec<[RuleTerms; 2]> {
    let plain = RuleTerms {
        asks: vec![ask(1, ["alice"])],
        rejections: 3,
        comment: CommentDuty::Reject,
        not_by: people(["dave"]),
    };
    vec![
        [two_of_three(), plain.clone()],
        [plain, two_of_three()],
        [two_of_three(), two_of_three()],
    ]
}
