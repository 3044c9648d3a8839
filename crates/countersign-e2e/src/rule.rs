//! The rule of a call: how many of which people must approve it. It stands in the sealed artifact,
//! so every signature covers it, and the gateway can neither drop nor weaken it.
//!
//! Conditions are only ever joined by *and*: a further rule can make a call harder to approve,
//! never easier.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value, json};

use super::comment_duty::CommentDuty;
use super::encoding::{decode_array, encode, read_number};
use super::error::Result;
use super::extensions::{extension, insert};
use super::random::{RandomSource, draw};
use super::team::TeamMinimum;
use super::team_chain::TeamChain;
use super::team_head::{TeamHead, TeamId};
use countersign_protocol::id::{ApproverId, EnforcerId, TextId as _};
use countersign_protocol::json::{JsonNode, JsonValue};
use countersign_protocol::reader::{MemberReader, ReadResult};

/// The extension that holds the rule.
pub const RULE: &str = "countersign.rule";
/// Most people in a set, those of its escalation steps included.
pub const MAX_RULE_PEOPLE: usize = 64;
const MAX_COUNT: u32 = 64;
const MAX_ASKS: usize = 16;
const MAX_STEPS: usize = 8;
/// No request waits longer.
const MAX_AFTER_SECONDS: u32 = 24 * 60 * 60;
const TEAM: &str = "team";
const PEOPLE: &str = "1 to 64 ids of approvers, none twice";

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
    /// Of a team: its seats, once `RuleTerms::resolve` has filled them in.
    pub from: BTreeSet<ApproverId>,
    pub team: Option<TeamHead>,
}

/// Approvals by so many different people among these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleAsk {
    pub approvals: u32,
    /// Of a team: its seats, once `RuleTerms::resolve` has filled them in.
    pub from: BTreeSet<ApproverId>,
    pub team: Option<TeamHead>,
    /// In the order of time. Its people count towards the same number.
    pub escalate: Vec<EscalationStep>,
}

impl RuleAsk {
    /// The heads of its own team and of those of its steps.
    pub fn teams(&self) -> impl Iterator<Item = &TeamHead> {
        let later = self.escalate.iter().filter_map(|step| step.team.as_ref());
        self.team.iter().chain(later)
    }

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

    /// The heads of the teams in the asks and their steps.
    pub fn teams(&self) -> impl Iterator<Item = &TeamHead> {
        self.asks.iter().flat_map(RuleAsk::teams)
    }

    /// Both this and the minimum of a team, which is never weaker than either.
    #[must_use]
    pub fn join_minimum(mut self, team: TeamId, minimum: &TeamMinimum) -> Self {
        for ask in &mut self.asks {
            if ask.teams().any(|head| head.team == team) {
                ask.approvals = ask.approvals.max(minimum.approvals);
            }
        }
        self.rejections = self.rejections.min(minimum.rejections);
        self.comment = self.comment.join(minimum.comment);
        self
    }

    /// Fills in the seats of the teams, by these chains. A team without a chain keeps those it has.
    #[must_use]
    pub fn resolve(mut self, chains: &[TeamChain]) -> Self {
        let fill = |team: &Option<TeamHead>, from: &mut BTreeSet<ApproverId>| {
            let chain = chains.iter();
            let chain =
                team.and_then(|it| chain.clone().find(|chain| chain.head().team == it.team));
            if let Some(chain) = chain {
                let seats = chain.content().seats.iter();
                *from = seats.map(|seat| seat.approver.clone()).collect();
            }
        };
        for ask in &mut self.asks {
            fill(&ask.team, &mut ask.from);
            for step in &mut ask.escalate {
                fill(&step.team, &mut step.from);
            }
        }
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
        let one = one && self.teams().next().is_none();
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
            let steps = ask.escalate.iter().map(|step| {
                named(
                    json!({ "after": step.after_seconds }),
                    &step.from,
                    step.team,
                )
            });
            let members = json!({ "approvals": ask.approvals });
            let mut members = named(members, &ask.from, ask.team);
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
        let has_teams = read.terms.teams().next().is_some();
        match &read.seat {
            // The seats of a team are not known here.
            Some(_) if has_teams => Ok(read),
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
            let (from, team) = read_source(&mut step)?;
            step.finish()?;
            Ok(EscalationStep {
                after_seconds,
                from,
                team,
            })
        };
        let escalate: Vec<_> = steps.iter().map(read_step).collect::<ReadResult<_>>()?;
        if !escalate.is_sorted_by(|one, next| one.after_seconds < next.after_seconds) {
            return Err(ask.refusal("escalate", "steps in the order of time"));
        }
        let (from, team) = read_source(&mut ask)?;
        let read = Self {
            approvals: read_number(&mut ask, "approvals", MAX_COUNT)?,
            from,
            team,
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
    /// Of another version. It can be rejected, and never approved.
    Unknown,
}

impl ArtifactRule {
    /// Whether people are asked because of their seats in a team.
    pub fn names_team(&self) -> bool {
        matches!(self, Self::Known(rule) if rule.terms.teams().next().is_some())
    }

    pub(super) fn read(extensions: &mut Option<MemberReader<'_, '_>>) -> ReadResult<Option<Self>> {
        let Some(mut rule) = extension(extensions, RULE)? else {
            return Ok(None);
        };
        let is_known = rule.required("v", "1")?.value == JsonValue::Number(1.0);
        if !is_known {
            return Ok(Some(Self::Unknown));
        }
        ApprovalRule::read(rule).map(|rule| Some(Self::Known(rule)))
    }
}

/// The people or the team of an ask or a step, among its other members.
fn named(mut members: Value, from: &BTreeSet<ApproverId>, team: Option<TeamHead>) -> Value {
    match team {
        Some(team) => members[TEAM] = team.to_json(),
        None => members["from"] = json!(from),
    }
    members
}

/// Either people or a team.
fn read_source(
    reader: &mut MemberReader<'_, '_>,
) -> ReadResult<(BTreeSet<ApproverId>, Option<TeamHead>)> {
    let team = reader.optional_as(TEAM, "the head of a team", TeamHead::read)?;
    let from = match team {
        Some(_) => BTreeSet::new(),
        None => required_people(reader)?,
    };
    Ok((from, team))
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
