//! The rule of a call: how many of which people must approve it. It stands in the sealed artifact,
//! so every signature covers it, and the gateway can neither drop nor weaken it.
//!
//! Conditions are only ever joined by *and*: a further rule can make a call harder to approve,
//! never easier.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value, json};

use super::encoding::{decode_array, encode};
use super::error::Result;
use super::extensions::{extension, insert};
use super::random::{RandomSource, draw};
use super::rule_refusal::RuleRefusal;
use countersign_protocol::id::{ApproverId, EnforcerId, TextId as _};
use countersign_protocol::json::{JsonNode, JsonObject, JsonValue};
use countersign_protocol::reader::{MemberReader, ReadResult};
use countersign_protocol::text::is_invisible;
use countersign_protocol::words;

/// The extension that holds the rule.
pub const RULE: &str = "countersign.rule";
/// Most people in a set, those of its escalation steps included.
pub const MAX_RULE_PEOPLE: usize = 64;
const MAX_COUNT: u32 = 64;
const MAX_ASKS: usize = 16;
const MAX_STEPS: usize = 8;
/// No request waits longer.
const MAX_AFTER_SECONDS: u32 = 24 * 60 * 60;
const PEOPLE: &str = "1 to 64 ids of approvers, none twice";

words! {
    /// The decisions that need a comment.
    CommentDuty {
        None = "none",
        Reject = "reject",
        Approve = "approve",
        Always = "always",
    }
}

impl CommentDuty {
    /// Whether an approval counts only with a comment. A rejection counts without one.
    pub fn covers_approval(self) -> bool {
        matches!(self, Self::Approve | Self::Always)
    }

    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, duty) | (duty, Self::None) => duty,
            (own, other) if own == other => own,
            _ => Self::Always,
        }
    }
}

/// The exchanges by which one call is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetId([u8; 16]);

impl SetId {
    pub fn generate(random: &mut impl RandomSource) -> Result<Self> {
        Ok(Self(*draw(random)?))
    }

    pub fn parse(text: &str) -> Result<Self> {
        decode_array("the id of a set", text).map(Self)
    }
}

impl fmt::Display for SetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&encode(&self.0))
    }
}

/// People who are asked later, if an ask is still open then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EscalationStep {
    pub after_seconds: u32,
    pub from: BTreeSet<ApproverId>,
}

/// Approvals by so many different people among these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleAsk {
    pub approvals: u32,
    pub from: BTreeSet<ApproverId>,
    /// In the order of time. Its people count towards the same number.
    pub escalate: Vec<EscalationStep>,
}

impl RuleAsk {
    /// Everyone whose approval may count, now or after an escalation.
    pub fn people(&self) -> impl Iterator<Item = &ApproverId> {
        let later = self.escalate.iter().flat_map(|step| &step.from);
        self.from.iter().chain(later)
    }
}

/// The conditions of a rule. All asks must be satisfied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleTerms {
    pub asks: Vec<RuleAsk>,
    /// As many end it.
    pub rejections: u32,
    pub comment: CommentDuty,
    /// Approvals by these people do not count.
    pub not_by: BTreeSet<ApproverId>,
}

impl RuleTerms {
    /// Both rules at once, which is never weaker than either of them.
    #[must_use]
    pub fn join(mut self, other: Self) -> Self {
        for ask in other.asks {
            if !self.asks.contains(&ask) {
                self.asks.push(ask);
            }
        }
        self.rejections = self.rejections.min(other.rejections);
        self.comment = self.comment.join(other.comment);
        self.not_by.extend(other.not_by);
        self
    }

    /// Everyone who may be asked.
    pub fn people(&self) -> BTreeSet<&ApproverId> {
        self.asks.iter().flat_map(RuleAsk::people).collect()
    }

    /// The seconds after which this person is asked: the most that any ask has them wait. Asked sooner for one, they would decide
    /// the other before its people had their time.
    pub fn seconds_until_asked(&self, person: &ApproverId) -> u32 {
        let after = self.asks.iter().filter_map(|ask| {
            if ask.from.contains(person) {
                return Some(0);
            }
            let mut steps = ask.escalate.iter();
            let step = steps.find(|step| step.from.contains(person));
            step.map(|step| step.after_seconds)
        });
        after.max().unwrap_or_default()
    }

    /// Whether each person needs an exchange of their own.
    pub fn needs_seats(&self) -> bool {
        let one = matches!(self.asks.as_slice(), [ask] if ask.approvals == 1);
        !one || self.rejections != 1
    }

    /// Whether one exchange asks everyone at once, and the first decision settles it.
    pub fn takes_first_decision(&self) -> bool {
        let is_at_once = self.asks.iter().all(|ask| ask.escalate.is_empty());
        is_at_once && !self.needs_seats()
    }
}

/// A rule as it stands in one artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRule {
    pub enforcer: EnforcerId,
    pub set: SetId,
    /// The person whose decision this exchange asks for, if it asks one only.
    pub seat: Option<ApproverId>,
    pub terms: RuleTerms,
}

impl ApprovalRule {
    /// Puts the rule into the members of an artifact, before it is completed. That refuses a rule
    /// beyond the limits.
    pub fn name_in(&self, members: &mut Map<String, Value>) {
        let asks = self.terms.asks.iter().map(|ask| {
            let steps = ask
                .escalate
                .iter()
                .map(|step| json!({ "after": step.after_seconds, "from": &step.from }));
            let mut members = json!({ "approvals": ask.approvals, "from": &ask.from });
            if !ask.escalate.is_empty() {
                members["escalate"] = steps.collect();
            }
            members
        });
        let mut rule = json!({
            "v": 1,
            "enforcerId": &self.enforcer,
            "set": self.set.to_string(),
            "asks": asks.collect::<Value>(),
            "rejections": self.terms.rejections,
            "comment": self.terms.comment.as_str(),
        });
        if let Some(seat) = &self.seat {
            rule["seat"] = json!(seat);
        }
        if !self.terms.not_by.is_empty() {
            rule["notBy"] = json!(self.terms.not_by);
        }
        insert(members, RULE, rule);
    }

    fn read(mut rule: MemberReader<'_, '_>) -> ReadResult<Self> {
        let set = rule.parsed("set", "16 bytes in base64url", |it| SetId::parse(it).ok())?;
        let asks = rule.items("asks", MAX_ASKS, "asks")?.iter();
        let asks = asks.map(|node| RuleAsk::read(rule.item("asks", node)?));
        let terms = RuleTerms {
            asks: asks.collect::<ReadResult<_>>()?,
            rejections: read_number(&mut rule, "rejections", MAX_COUNT)?,
            comment: rule.word("comment")?,
            not_by: rule
                .optional_as("notBy", PEOPLE, read_people)?
                .unwrap_or_default(),
        };
        let read = Self {
            enforcer: rule.id("enforcerId")?,
            set,
            seat: rule.optional_id("seat")?,
            terms,
        };
        rule.finish()?;
        let people = read.terms.people();
        if people.len() > MAX_RULE_PEOPLE {
            return Err(rule.refusal("asks", "at most 64 people"));
        }
        match &read.seat {
            Some(seat) if !people.contains(seat) => {
                Err(rule.refusal("seat", "one of the people in the asks"))
            }
            None if read.terms.needs_seats() => {
                let expected = "a seat, unless one approval and one rejection suffice";
                Err(rule.refusal("seat", expected))
            }
            Some(_) | None => Ok(read),
        }
    }
}

impl RuleAsk {
    fn read(mut ask: MemberReader<'_, '_>) -> ReadResult<Self> {
        let steps = match ask.object().get("escalate") {
            Some(_) => ask.items("escalate", MAX_STEPS, "steps")?,
            None => &[],
        };
        let read_step = |node| {
            let mut step = ask.item("escalate", node)?;
            let after_seconds = read_number(&mut step, "after", MAX_AFTER_SECONDS)?;
            let from = required_people(&mut step)?;
            step.finish()?;
            Ok(EscalationStep {
                after_seconds,
                from,
            })
        };
        let escalate: Vec<_> = steps.iter().map(read_step).collect::<ReadResult<_>>()?;
        if !escalate.is_sorted_by(|one, next| one.after_seconds < next.after_seconds) {
            return Err(ask.refusal("escalate", "steps in the order of time"));
        }
        let read = Self {
            approvals: read_number(&mut ask, "approvals", MAX_COUNT)?,
            from: required_people(&mut ask)?,
            escalate,
        };
        ask.finish()?;
        Ok(read)
    }
}

/// The rule of an artifact, as far as this program knows its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArtifactRule {
    Known(ApprovalRule),
    /// Of another version, or with teams. It can be rejected, and never approved.
    Unknown,
}

impl ArtifactRule {
    pub(super) fn read(extensions: &mut Option<MemberReader<'_, '_>>) -> ReadResult<Option<Self>> {
        let Some(mut rule) = extension(extensions, RULE)? else {
            return Ok(None);
        };
        let is_known = rule.required("v", "1")?.value == JsonValue::Number(1.0);
        if !is_known || names_team(rule.object()) {
            return Ok(Some(Self::Unknown));
        }
        ApprovalRule::read(rule).map(|rule| Some(Self::Known(rule)))
    }

    /// The rule, if this program knows it and the enforcer that sealed the artifact made it.
    fn of(&self, enforcer: &EnforcerId) -> Result<&ApprovalRule, RuleRefusal> {
        match self {
            Self::Unknown => Err(RuleRefusal::UnknownVersion),
            Self::Known(rule) if rule.enforcer != *enforcer => Err(RuleRefusal::OtherEnforcer),
            Self::Known(rule) => Ok(rule),
        }
    }

    /// The checks of an approval that do not depend on the approver.
    pub(super) fn check_content(
        &self,
        enforcer: &EnforcerId,
        comment: Option<&str>,
    ) -> Result<(), RuleRefusal> {
        let needs_comment = self.of(enforcer)?.terms.comment.covers_approval();
        if needs_comment && !has_comment(comment) {
            return Err(RuleRefusal::MissingComment);
        }
        Ok(())
    }

    /// Whether a device of `approver` may approve, with this comment. `enforcer` is the one whose
    /// key opened the artifact, and `operators` are the people who work with it as far as the device
    /// knows: they are excluded wherever the rule excludes anybody. The comment is checked last.
    pub fn check_approval(
        &self,
        enforcer: &EnforcerId,
        approver: &ApproverId,
        operators: &[ApproverId],
        comment: Option<&str>,
    ) -> Result<(), RuleRefusal> {
        let rule = self.of(enforcer)?;
        if rule.seat.as_ref().is_some_and(|seat| seat != approver) {
            return Err(RuleRefusal::OtherSeat);
        }
        if !rule.terms.people().contains(approver) {
            return Err(RuleRefusal::NotAsked);
        }
        let not_by = &rule.terms.not_by;
        let is_operator = !not_by.is_empty() && operators.contains(approver);
        if is_operator || not_by.contains(approver) {
            return Err(RuleRefusal::NotBy);
        }
        self.check_content(enforcer, comment)
    }
}

/// Whether the text has a character that people can see.
pub(super) fn has_comment(text: Option<&str>) -> bool {
    let is_visible = |it: char| !it.is_whitespace() && !is_invisible(it);
    text.is_some_and(|text| text.chars().any(is_visible))
}

/// A team in the place of people, in an ask or an escalation step. Its members are not known here.
fn names_team(rule: &JsonObject<'_>) -> bool {
    let is_team = |node: &JsonNode<'_>| {
        let ask = node.as_object();
        ask.is_some_and(|ask| ask.get("team").is_some() || any_item(ask, "escalate", has_team))
    };
    any_item(rule, "asks", is_team)
}

fn has_team(step: &JsonNode<'_>) -> bool {
    let step = step.as_object();
    step.is_some_and(|step| step.get("team").is_some())
}

fn any_item(object: &JsonObject<'_>, name: &str, test: impl Fn(&JsonNode<'_>) -> bool) -> bool {
    let items = object.get(name).and_then(JsonNode::as_array);
    items.is_some_and(|items| items.iter().any(test))
}

fn required_people(reader: &mut MemberReader<'_, '_>) -> ReadResult<BTreeSet<ApproverId>> {
    let people = reader.optional_as("from", PEOPLE, read_people)?;
    people.ok_or_else(|| reader.refusal("from", PEOPLE))
}

fn read_people(node: &JsonNode<'_>) -> Option<BTreeSet<ApproverId>> {
    let list = node.as_array()?;
    let people = list.iter().map(|node| ApproverId::parse(node.as_str()?));
    let people: BTreeSet<_> = people.collect::<Option<_>>()?;
    let is_sound = people.len() == list.len() && (1..=MAX_RULE_PEOPLE).contains(&list.len());
    is_sound.then_some(people)
}

fn read_number(reader: &mut MemberReader<'_, '_>, name: &'static str, max: u32) -> ReadResult<u32> {
    let value = &reader.required(name, "a number")?.value;
    let mut numbers = 1..=max;
    let found = numbers.find(|number| *value == JsonValue::Number(f64::from(*number)));
    found.ok_or_else(|| reader.refusal(name, format!("a whole number from 1 to {max}")))
}
