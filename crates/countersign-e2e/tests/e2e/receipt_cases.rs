//! Receipts with the gaps of their proofs, for `receipt`.

use countersign_e2e::{
    ArtifactHints, CommentDuty, DenialCause, OutcomeEffect, OutcomeKey, Receipt, RuleTerms,
};
use countersign_protocol::decision::Verdict;
use countersign_protocol::id::{EnforcerId, RequestId, TenantId, TextId as _};

use super::people::{add, device, known};
use super::several::{
    PartDecision, SetScene, comment, member, one_of, outcome_statement, person, set_id, subjects,
    two_of_three,
};

pub const ALLOWED: OutcomeEffect = OutcomeEffect::Allowed;
pub const REJECTED: OutcomeEffect = OutcomeEffect::Denied(DenialCause::Rejected);

pub fn approve(scene: &SetScene, name: &str) -> PartDecision {
    scene.decide(name, Verdict::Approve, comment(&format!("{name} agrees")))
}

pub fn reject(scene: &SetScene, name: &str) -> PartDecision {
    scene.decide(name, Verdict::Reject, ArtifactHints::default())
}

pub fn two(scene: &SetScene) -> [PartDecision; 2] {
    [approve(scene, "alice"), approve(scene, "bob")]
}

/// Two of three have approved.
pub fn good() -> Receipt {
    let scene = SetScene::new(Some(two_of_three()));
    scene.receipt(&two(&scene), ALLOWED)
}

pub fn single(verdict: Verdict, effect: OutcomeEffect) -> Receipt {
    let scene = SetScene::new(None);
    let decided = [scene.decide("alice", verdict, comment("because"))];
    scene.receipt(&decided, effect)
}

fn changed(change: &dyn Fn(&mut Receipt)) -> Receipt {
    let mut receipt = good();
    change(&mut receipt);
    receipt
}

pub struct ReceiptCase {
    pub name: &'static str,
    pub receipt: Receipt,
    /// Beside `asked`, which nothing proves.
    pub gaps: &'static [&'static str],
}

fn case(name: &'static str, receipt: Receipt, gaps: &'static [&'static str]) -> ReceiptCase {
    ReceiptCase {
        name,
        receipt,
        gaps,
    }
}

/// A rejection says nothing about the enforcer, and so nothing about its key.
pub const NOBODY_VOUCHES: &[&str] = &["enforcer: absent", "outcome: absent", "complete: absent"];

/// Receipts with nothing false in them.
pub fn consistent() -> Vec<ReceiptCase> {
    let scene = SetScene::new(Some(two_of_three()));
    let shared = SetScene::new(Some(one_of(two_of_three())));
    let tolerant = SetScene::new(Some(RuleTerms {
        rejections: 2,
        ..two_of_three()
    }));
    let (laptop, bundle) = device("laptop");
    let added = add(&member("alice").keys, &laptop, &bundle).to_text();
    let with_laptop = {
        let mut receipt = single(Verdict::Approve, ALLOWED);
        receipt.devices = vec![added, "no statement".to_owned()];
        receipt
    };
    let three = [
        approve(&tolerant, "alice"),
        reject(&tolerant, "bob"),
        approve(&tolerant, "dave"),
    ];
    let silent = SetScene::new(Some(RuleTerms {
        comment: CommentDuty::None,
        ..two_of_three()
    }));
    let mut without_key = silent.receipt(&two(&silent), ALLOWED);
    without_key.parts[0].hints_key = None;
    let [one, other] = two(&scene);
    let mut left_out = scene.receipt(&[one, other, reject(&scene, "carol")], ALLOWED);
    left_out.parts.pop();
    vec![
        case(
            "one person, no rule",
            single(Verdict::Approve, ALLOWED),
            &["enforcer: absent"],
        ),
        case(
            "one rejection, no rule",
            single(Verdict::Reject, REJECTED),
            NOBODY_VOUCHES,
        ),
        case(
            "rejected, and nobody has approved",
            scene.receipt(&[reject(&scene, "bob")], REJECTED),
            NOBODY_VOUCHES,
        ),
        case(
            "statements about devices",
            with_laptop,
            &["enforcer: absent"],
        ),
        case("two of three", good(), &[]),
        case(
            "one exchange for three",
            shared.receipt(&[approve(&shared, "carol")], ALLOWED),
            &[],
        ),
        case(
            "two in spite of a rejection",
            tolerant.receipt(&three, ALLOWED),
            &[],
        ),
        case(
            "rejected",
            scene.receipt(&[approve(&scene, "alice"), reject(&scene, "bob")], REJECTED),
            &[],
        ),
        case(
            "too few",
            scene.receipt(
                &[approve(&scene, "alice")],
                OutcomeEffect::Denied(DenialCause::Missing),
            ),
            &[],
        ),
        case(
            "denied although two have approved",
            scene.receipt(
                &two(&scene),
                OutcomeEffect::Denied(DenialCause::Interrupted),
            ),
            &[],
        ),
        case(
            "no outcome",
            changed(&|it| it.outcome = None),
            &["outcome: absent", "complete: absent"],
        ),
        case(
            "no artifact",
            changed(&|it| it.artifact = None),
            &[
                "artifact: absent",
                "enforcer: absent",
                "outcome: absent",
                "complete: absent",
                "count: absent",
            ],
        ),
        case(
            "no key of the hints",
            changed(&|it| it.parts[1].hints_key = None),
            &["hints 1: absent", "count: absent"],
        ),
        case(
            "no key of the hints, and no comment is needed",
            without_key,
            &["hints 0: absent", "count: absent"],
        ),
        case(
            "a rejection of the outcome is left out",
            left_out,
            &["complete: absent", "count: absent"],
        ),
        case(
            "a decision of the outcome is left out",
            changed(&|it| drop(it.parts.pop())),
            &["complete: absent", "count: absent"],
        ),
    ]
}

const FIRST_IS_FALSE: &[&str] = &[
    "decision 0: failed",
    "hints 0: absent",
    "outcome: failed",
    "complete: absent",
    "count: absent",
];
const SECOND_IS_FOREIGN: &[&str] = &[
    "decision 1: failed",
    "device 1: failed",
    "hints 1: absent",
    "outcome: failed",
    "complete: absent",
    "count: absent",
];

/// Receipts that claim something false.
pub fn false_claims() -> Vec<ReceiptCase> {
    let scene = SetScene::new(Some(two_of_three()));
    let silent = SetScene::new(Some(RuleTerms {
        comment: CommentDuty::None,
        ..two_of_three()
    }));
    let chosen = |name, action: &str| {
        let hints = ArtifactHints {
            action_id: Some(action.to_owned()),
            ..comment("mine")
        };
        scene.decide(name, Verdict::Approve, hints)
    };
    let excluded = SetScene::new(Some(RuleTerms {
        not_by: [person("bob")].into(),
        ..two_of_three()
    }));
    // Bob's device signs for another seat.
    let mut impostor = good();
    impostor.parts[1].seat = Some(person("carol"));
    impostor.parts[1].approver = person("carol");
    let mut seated = single(Verdict::Approve, ALLOWED);
    seated.parts[0].seat = Some(person("alice"));
    let mut stand_in = good();
    stand_in.parts[1].approver = person("carol");
    let other_key = SetScene::new(Some(two_of_three()));
    let mut foreign = good();
    let strange = OutcomeKey::generate(&mut known("another")).unwrap();
    let statement = outcome_statement(&two(&other_key), ALLOWED);
    let further = subjects(&two(&other_key)[1..]);
    let signed = strange.sign_set(&statement, set_id(), &further);
    foreign.outcome = Some(signed.unwrap());
    let alter = |text: &Option<String>, from: &str, to: &str| {
        let text = text.as_ref().unwrap();
        assert!(text.contains(from));
        Some(text.replace(from, to))
    };
    vec![
        case(
            "another payload",
            changed(&|it| it.artifact = alter(&it.artifact, "build", "home")),
            &[
                "artifact: failed",
                "enforcer: absent",
                "outcome: absent",
                "complete: absent",
                "count: absent",
            ],
        ),
        case(
            "the artifact of another part",
            changed(&|it| it.artifact = Some(scene.artifact_of("carol").text().to_owned())),
            FIRST_IS_FALSE,
        ),
        case(
            "another verdict",
            changed(&|it| {
                it.parts[0].decision = it.parts[0].decision.replace("\"approve\"", "\"reject\"");
            }),
            FIRST_IS_FALSE,
        ),
        case(
            "another device",
            changed(&|it| it.parts[0].device = member("carol").bundle),
            &[
                "decision 0: failed",
                "device 0: failed",
                "hints 0: absent",
                "outcome: failed",
                "complete: absent",
                "count: absent",
            ],
        ),
        case("Bob on Carol's seat", impostor, SECOND_IS_FOREIGN),
        case("Carol on Bob's seat", stand_in, SECOND_IS_FOREIGN),
        case(
            "a seat without a rule",
            seated,
            &[
                "decision 0: failed",
                "hints 0: absent",
                "enforcer: absent",
                "outcome: absent",
                "complete: absent",
                "count: absent",
            ],
        ),
        case(
            "another request, and no artifact",
            changed(&|it| {
                it.artifact = None;
                it.parts[0].request_id = RequestId::parse("another").unwrap();
            }),
            &[
                "artifact: absent",
                "decision 0: failed",
                "hints 0: absent",
                "enforcer: absent",
                "outcome: absent",
                "complete: absent",
                "count: absent",
            ],
        ),
        case(
            "a decision for two parts",
            changed(&|it| it.parts[1].decision = it.parts[0].decision.clone()),
            &[
                "decision 1: failed",
                "hints 1: absent",
                "outcome: failed",
                "complete: absent",
                "count: absent",
            ],
        ),
        case(
            "another key of the hints",
            changed(&|it| it.parts[0].hints_key = it.parts[1].hints_key.clone()),
            &["hints 0: failed", "count: failed"],
        ),
        case(
            "another enforcer",
            changed(&|it| it.enforcer = EnforcerId::parse("another").unwrap()),
            &[
                "hints 0: failed",
                "hints 1: failed",
                "enforcer: failed",
                "outcome: failed",
                "complete: absent",
                "count: failed",
            ],
        ),
        case(
            "another tenant",
            changed(&|it| it.tenant = TenantId::parse("another").unwrap()),
            &[
                "device 0: absent",
                "device 1: absent",
                "enforcer: absent",
                "outcome: absent",
                "complete: absent",
                "count: absent",
            ],
        ),
        case(
            "an outcome under another key",
            foreign,
            &["outcome: failed", "complete: absent"],
        ),
        case(
            "an outcome about other decisions",
            changed(&|it| {
                let others = [approve(&scene, "alice"), approve(&scene, "carol")];
                it.outcome = Some(scene.outcome(&others, ALLOWED));
            }),
            &["outcome: failed", "complete: absent"],
        ),
        case(
            "allowed by one approval",
            scene.receipt(&[approve(&scene, "alice")], ALLOWED),
            &["count: failed"],
        ),
        case(
            "allowed in spite of a rejection",
            scene.receipt(
                &[
                    approve(&scene, "alice"),
                    approve(&scene, "bob"),
                    reject(&scene, "carol"),
                ],
                ALLOWED,
            ),
            &["count: failed"],
        ),
        case(
            "allowed by different choices",
            scene.receipt(&[chosen("alice", "a"), chosen("bob", "b")], ALLOWED),
            &["count: failed"],
        ),
        case(
            "allowed by somebody in notBy",
            excluded.receipt(&two(&excluded), ALLOWED),
            &["count: failed"],
        ),
        case(
            "rejected without a rejection",
            scene.receipt(&two(&scene), REJECTED),
            &["count: failed"],
        ),
        case(
            "missing although two have approved",
            silent.receipt(&two(&silent), OutcomeEffect::Denied(DenialCause::Missing)),
            &["count: failed"],
        ),
    ]
}
