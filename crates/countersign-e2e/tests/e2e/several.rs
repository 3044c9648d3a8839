//! Several people about one call: an enforcer that has paired with Alice, Bob, Carol and Dave.

use std::path::Path;

use countersign_e2e::EnforcerKeys;
use countersign_e2e::{
    ApprovalRule, ArtifactHints, ArtifactRule, CommentDuty, DecisionContent, DeviceBundle,
    DeviceKeys, DeviceTrust, Error, EscalationStep, OpenedArtifact, OutcomeEffect, OutcomeKey,
    OutcomeStatement, OutcomeSubject, OwnRequest, PinnedEnforcer, PlainArtifact, Receipt,
    ReceiptPart, RuleAsk, RuleTerms, SetId, decision_digest, hints_key, open_artifact,
    seal_artifact, sign_decision,
};
use countersign_protocol::decision::Verdict;
use countersign_protocol::id::{ApproverId, RequestId, TextId as _};
use serde_json::{Map, Value, json};

use super::people::{ARTIFACT, bot, device, known, node, now, paired, ruling, tenant};

pub const NAMES: [&str; 4] = ["alice", "bob", "carol", "dave"];

pub fn person(name: &str) -> ApproverId {
    ApproverId::parse(name).unwrap()
}

pub fn people<const N: usize>(names: [&str; N]) -> std::collections::BTreeSet<ApproverId> {
    names.into_iter().map(person).collect()
}

pub fn ask<const N: usize>(approvals: u32, from: [&str; N]) -> RuleAsk {
    RuleAsk {
        approvals,
        from: people(from),
        team: None,
        escalate: Vec::new(),
    }
}

/// Two of Alice, Bob and Carol, later also Dave, with a comment.
pub fn two_of_three() -> RuleTerms {
    RuleTerms {
        asks: vec![RuleAsk {
            team: None,
            escalate: vec![EscalationStep {
                after_seconds: 180,
                from: people(["dave"]),
                team: None,
            }],
            ..ask(2, ["alice", "bob", "carol"])
        }],
        rejections: 1,
        comment: CommentDuty::Approve,
        not_by: people(["erin"]),
    }
}

pub fn one_of(terms: RuleTerms) -> RuleTerms {
    RuleTerms {
        asks: vec![ask(1, ["alice", "bob", "carol"])],
        ..terms
    }
}

pub fn set_id() -> SetId {
    SetId::generate(&mut known("set")).unwrap()
}

pub fn rule(terms: RuleTerms, seat: Option<&str>) -> ApprovalRule {
    ApprovalRule {
        enforcer: bot(),
        set: set_id(),
        seat: seat.map(person),
        terms,
    }
}

pub fn request_id(name: &str) -> RequestId {
    let place = NAMES.iter().position(|other| *other == name).unwrap();
    RequestId::parse(&format!("01J2V8V3K6B2Z9X6G1V7Y2QK8{place}")).unwrap()
}

/// The members of an artifact, with an outcome's key and maybe a rule.
pub fn members(key: &OutcomeKey, rule: Option<&ApprovalRule>) -> Map<String, Value> {
    let mut members: Map<String, Value> = serde_json::from_str(ARTIFACT).unwrap();
    key.name_in(&mut members);
    if let Some(rule) = rule {
        rule.name_in(&mut members);
        let seat = rule.seat.as_ref().map_or("alice", |seat| seat.as_str());
        members.insert("requestId".into(), json!(request_id(seat)));
    }
    members
}

pub fn complete(members: Map<String, Value>) -> Result<PlainArtifact, Error> {
    let text = Value::Object(members).to_string();
    PlainArtifact::complete(&text, &mut known("artifact"))
}

/// Reads a rule as it stands in an artifact.
pub fn read_rule(rule: &Value) -> Result<ArtifactRule, Error> {
    let mut members: Map<String, Value> = serde_json::from_str(ARTIFACT).unwrap();
    members.insert("extensions".into(), json!({ countersign_e2e::RULE: rule }));
    complete(members).map(|artifact| artifact.rule().unwrap().clone())
}

pub fn rule_json(rule: &ApprovalRule) -> Value {
    let mut members = Map::new();
    rule.name_in(&mut members);
    members["extensions"][countersign_e2e::RULE].clone()
}

pub struct Person {
    pub keys: DeviceKeys,
    pub bundle: DeviceBundle,
    pub trust: DeviceTrust,
}

pub fn member(name: &str) -> Person {
    let place = NAMES.iter().position(|other| *other == name).unwrap();
    let names = ["phone", "bob's phone", "carol's phone", "dave's phone"];
    let (keys, bundle) = device(names[place]);
    let own = vec![bundle.clone()];
    let trust = DeviceTrust::from_own_records(tenant(), person(name), own, [].into());
    Person {
        keys,
        bundle,
        trust,
    }
}

pub fn comment(text: &str) -> ArtifactHints {
    ArtifactHints {
        reason: Some(text.to_owned()),
        ..ArtifactHints::default()
    }
}

/// A set of requests, and the decisions about them.
pub struct SetScene {
    pub enforcer: EnforcerKeys,
    pub pinned: PinnedEnforcer,
    pub key: OutcomeKey,
    /// Of the first part.
    pub artifact: PlainArtifact,
    has_seats: bool,
}

pub struct PartDecision {
    pub artifact: PlainArtifact,
    pub part: ReceiptPart,
}

impl SetScene {
    pub fn new(terms: Option<RuleTerms>) -> Self {
        let enforcer = EnforcerKeys::generate(&mut known("enforcer")).unwrap();
        let (_, pinned) = paired(&enforcer, &member("alice").bundle);
        let key = OutcomeKey::generate(&mut known("outcome")).unwrap();
        let has_seats = terms.as_ref().is_some_and(RuleTerms::needs_seats);
        let rule = terms.map(|terms| rule(terms, has_seats.then_some("alice")));
        Self {
            artifact: complete(members(&key, rule.as_ref())).unwrap(),
            enforcer,
            pinned,
            key,
            has_seats,
        }
    }

    pub fn artifact_of(&self, name: &str) -> PlainArtifact {
        if !self.has_seats {
            return self.artifact.clone();
        }
        let seat = person(name);
        let part = self.artifact.for_part(&request_id(name), Some(&seat));
        part.unwrap()
    }

    pub fn opened(&self, name: &str) -> OpenedArtifact {
        self.opened_by(name, &member(name))
    }

    fn opened_by(&self, name: &str, person: &Person) -> OpenedArtifact {
        let artifact = self.artifact_of(name);
        let random = &mut known("seal");
        let sealed = seal_artifact(&self.enforcer, &bot(), &artifact, &[&person.trust], random);
        let context = artifact.context(bot());
        open_artifact(&person.keys, &self.pinned, &context, &sealed.unwrap()).unwrap()
    }

    pub fn decide(&self, name: &str, verdict: Verdict, hints: ArtifactHints) -> PartDecision {
        self.decide_by(name, &member(name), verdict, hints)
    }

    /// A decision on the seat of `name`, by this device.
    pub fn decide_by(
        &self,
        name: &str,
        person: &Person,
        verdict: Verdict,
        hints: ArtifactHints,
    ) -> PartDecision {
        let content = DecisionContent {
            hints,
            ..ruling(verdict)
        };
        let place = NAMES.iter().position(|other| *other == name).unwrap();
        let random = &mut known(NAMES[place]);
        let opened = self.opened_by(name, person);
        let decision = sign_decision(&opened, &content, &person.keys, random).unwrap();
        let artifact = self.artifact_of(name);
        let own = OwnRequest::of(&artifact, bot());
        let key = hints_key(&node(&decision), &own, &self.enforcer, &person.bundle).unwrap();
        let approver = ApproverId::parse(name).unwrap();
        let part = ReceiptPart {
            request_id: artifact.request_id().clone(),
            seat: self.has_seats.then(|| approver.clone()),
            approver,
            decision,
            device: person.bundle.clone(),
            hints_key: key,
        };
        PartDecision { artifact, part }
    }

    pub fn outcome(&self, decided: &[PartDecision], effect: OutcomeEffect) -> String {
        let statement = outcome_statement(decided, effect);
        if self.artifact.rule().is_none() {
            return self.key.sign(&statement).unwrap();
        }
        let further = subjects(&decided[1..]);
        self.key.sign_set(&statement, set_id(), &further).unwrap()
    }

    pub fn receipt(&self, decided: &[PartDecision], effect: OutcomeEffect) -> Receipt {
        Receipt {
            tenant: tenant(),
            enforcer: bot(),
            artifact: Some(decided[0].artifact.text().to_owned()),
            parts: decided.iter().map(|it| it.part.clone()).collect(),
            devices: Vec::new(),
            teams: Vec::new(),
            outcome: Some(self.outcome(decided, effect)),
            log: Vec::new(),
        }
    }
}

pub fn outcome_statement(decided: &[PartDecision], effect: OutcomeEffect) -> OutcomeStatement {
    let decisions = decided.iter().map(|it| &it.part.decision);
    let decisions = decisions.map(|text| decision_digest(&node(text)).unwrap());
    OutcomeStatement {
        request_id: decided[0].artifact.request_id().clone(),
        artifact_hash: decided[0].artifact.hash(),
        tenant: tenant(),
        enforcer: bot(),
        effect,
        decisions: decisions.collect(),
        at: now(),
    }
}

pub fn subjects(decided: &[PartDecision]) -> Vec<OutcomeSubject> {
    let subjects = decided.iter().map(|it| OutcomeSubject {
        request_id: it.artifact.request_id().clone(),
        artifact_hash: it.artifact.hash(),
    });
    subjects.collect()
}

/// Compares a file of vectors with what the code computes; with `WRITE_VECTORS=1`, writes it.
pub fn check_vectors(name: &str, vectors: &Value) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors");
    let (file, text) = (folder.join(name), format!("{vectors:#}\n"));
    if std::env::var_os("WRITE_VECTORS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    assert!(
        std::fs::read_to_string(file).unwrap() == text,
        "{name} differs"
    );
}
