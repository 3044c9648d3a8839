//! The enforcer's signed statement about a decision. The key is made for one request and named in
//! the sealed artifact, so the approver need not believe the gateway, and the enforcer stores no
//! lasting key.
//!
//! The form is a DSSE envelope around an in-toto statement, which existing tools read. The signed
//! bytes begin with `DSSEv1`, so it can be no signature over canonical JSON.

use std::collections::BTreeSet;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey};
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use super::artifact::PlainArtifact;
use super::encoding::{self, canonical_text, parse, parse_canonical, read_version};
use super::error::{Error, Result};
use super::extensions::{OUTCOME, insert};
use super::random::{RandomSource, draw};
use super::rule::{ArtifactRule, SetId};
use countersign_protocol::canonical::{Sha256Hex, canonical_without};
use countersign_protocol::id::{EnforcerId, RequestId, TenantId};
use countersign_protocol::json::JsonNode;
use countersign_protocol::reader::{MemberReader, ReadResult};
use countersign_protocol::redacted;
use countersign_protocol::signature::{PublicKey, Signature};
use countersign_protocol::timestamp::Timestamp;
use countersign_protocol::words;

const ENVELOPE: &str = "the outcome";
const STATEMENT: &str = "the outcome's statement";
const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
const PREDICATE_TYPE: &str = "urn:countersign:outcome:v1";
/// A gateway takes no longer outcome.
const MAX_ENVELOPE_CHARS: usize = 16 << 10;
const MAX_DECISIONS: usize = 64;

words! {
    /// Why an enforcer denied a call that was decided.
    DenialCause {
        Rejected = "rejected",
        /// Too few approvals.
        Missing = "missing",
        /// The decision failed a check.
        Untrusted = "untrusted",
        Interrupted = "interrupted",
        /// The call would no longer have the effect that was shown.
        Changed = "changed",
    }
}

/// The answer that an enforcer gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomeEffect {
    Allowed,
    Denied(DenialCause),
}

impl OutcomeEffect {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Allowed => ("allowed", ""),
            Self::Denied(cause) => ("denied", cause.as_str()),
        }
    }

    fn parse(outcome: &str, cause: &str) -> Option<Self> {
        match (outcome, cause) {
            ("allowed", "") => Some(Self::Allowed),
            ("denied", cause) => DenialCause::parse(cause).map(Self::Denied),
            _ => None,
        }
    }
}

impl fmt::Display for OutcomeEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.words() {
            (outcome, "") => f.write_str(outcome),
            (outcome, cause) => write!(f, "{outcome}: {cause}"),
        }
    }
}

/// The digest of a signed decision: of the text that is signed, and of the signature. It is the
/// same for every spelling of the two.
pub fn decision_digest(decision: &JsonNode<'_>) -> Option<Sha256Hex> {
    let body = decision.as_object()?;
    let signature = Signature::parse(body.get("signature")?.as_str()?)?;
    let signed = canonical_without(body, "signature");
    Some(Sha256Hex::of(
        &[signed.as_bytes(), &signature.to_bytes()].concat(),
    ))
}

/// A decided request, as an outcome names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomeSubject {
    pub request_id: RequestId,
    pub artifact_hash: Sha256Hex,
}

/// The enforcer's statement about one request, or about the set that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomeStatement {
    pub request_id: RequestId,
    pub artifact_hash: Sha256Hex,
    pub tenant: TenantId,
    pub enforcer: EnforcerId,
    pub effect: OutcomeEffect,
    /// The digests of the decisions that it is about: of a set, of all its parts.
    pub decisions: Vec<Sha256Hex>,
    pub at: Timestamp,
}

/// A signed statement, with all its subjects.
pub(super) struct OutcomeContent {
    subjects: Vec<OutcomeSubject>,
    set: Option<SetId>,
    tenant: TenantId,
    enforcer: EnforcerId,
    effect: OutcomeEffect,
    decisions: Vec<Sha256Hex>,
    at: Timestamp,
}

impl OutcomeContent {
    fn of(statement: &OutcomeStatement, set: Option<SetId>, further: &[OutcomeSubject]) -> Self {
        let own = OutcomeSubject {
            request_id: statement.request_id.clone(),
            artifact_hash: statement.artifact_hash,
        };
        Self {
            subjects: [&[own], further].concat(),
            set,
            tenant: statement.tenant.clone(),
            enforcer: statement.enforcer.clone(),
            effect: statement.effect,
            decisions: statement.decisions.clone(),
            at: statement.at,
        }
    }

    fn to_text(&self) -> Result<String> {
        let (outcome, cause) = self.effect.words();
        let decisions: Vec<_> = self.decisions.iter().map(ToString::to_string).collect();
        let subjects = self.subjects.iter().map(|subject| {
            json!({
                "name": subject.request_id.as_str(),
                "digest": { "sha256": subject.artifact_hash.to_string() },
            })
        });
        let mut members = json!({
            "_type": STATEMENT_TYPE,
            "predicateType": PREDICATE_TYPE,
            "subject": subjects.collect::<Value>(),
            "predicate": {
                "v": 1,
                "tenantId": self.tenant.as_str(),
                "enforcerId": self.enforcer.as_str(),
                "outcome": outcome,
                "cause": cause,
                "decisions": decisions,
                "at": self.at.to_string(),
            },
        });
        if let Some(set) = self.set {
            members["predicate"]["set"] = set.to_string().into();
        }
        canonical_text(STATEMENT, &members)
    }

    fn parse(bytes: &[u8]) -> Result<Self> {
        let node = parse_canonical(STATEMENT, bytes)?;
        let mut statement = MemberReader::named(STATEMENT, &node)?;
        let mut predicate = statement.inner("predicate")?;
        read_version(&mut predicate)?;
        statement.constant("_type", STATEMENT_TYPE)?;
        statement.constant("predicateType", PREDICATE_TYPE)?;
        let (outcome, cause) = (predicate.str("outcome")?, predicate.str("cause")?);
        let effect = OutcomeEffect::parse(outcome, cause)
            .ok_or_else(|| predicate.refusal("outcome", "allowed, or denied with a cause"))?;
        let expected = "1 to 64 digests";
        let decisions = predicate.array("decisions", expected)?.iter();
        let decisions = decisions.map(|node| Sha256Hex::parse(node.as_str()?));
        let decisions: Option<Vec<_>> = decisions.collect();
        let decisions = decisions.filter(|list| (1..=MAX_DECISIONS).contains(&list.len()));
        let set = predicate.optional_parsed("set", "16 bytes in base64url", |text| {
            SetId::parse(text).ok()
        })?;
        let read = Self {
            subjects: read_subjects(&mut statement)?,
            set,
            tenant: predicate.id("tenantId")?,
            enforcer: predicate.id("enforcerId")?,
            effect,
            decisions: decisions.ok_or_else(|| predicate.refusal("decisions", expected))?,
            at: predicate.timestamp("at")?,
        };
        statement.finish()?;
        predicate.finish()?;
        match read.set {
            None if read.subjects.len() > 1 => Err(statement.refusal("subject", "one subject"))?,
            Some(_) if read.subjects.len() != read.decisions.len() => {
                Err(predicate.refusal("decisions", "one digest for each subject"))?
            }
            Some(_) | None => Ok(read),
        }
    }

    pub(super) fn part_count(&self) -> usize {
        self.subjects.len()
    }

    /// The statement about one request, if it is among the subjects.
    pub(super) fn about(
        &self,
        artifact: &PlainArtifact,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        decision: &JsonNode<'_>,
    ) -> Result<OutcomeStatement> {
        let mut subjects = self.subjects.iter();
        let place = subjects.position(|it| it.request_id == *artifact.request_id());
        let own = place.and_then(|place| self.subjects.get(place));
        let digest = decision_digest(decision);
        let is_same_decision = match (self.set, place) {
            (Some(_), Some(place)) => digest.as_ref() == self.decisions.get(place),
            _ => digest.is_some_and(|digest| self.decisions.contains(&digest)),
        };
        let is_same_set = match artifact.rule() {
            None => self.set.is_none(),
            Some(ArtifactRule::Known(rule)) => self.set == Some(rule.set),
            Some(ArtifactRule::Unknown) => true,
        };
        let same = [
            ("request", own.is_some()),
            (
                "artifact",
                own.is_some_and(|own| own.artifact_hash == artifact.hash()),
            ),
            ("tenant", self.tenant == *tenant),
            ("enforcer", self.enforcer == *enforcer),
            ("set", is_same_set),
            ("decision", is_same_decision),
        ];
        if let Some((what, _)) = same.into_iter().find(|(_, is_same)| !is_same) {
            return Err(Error::OtherOutcome { what });
        }
        Ok(OutcomeStatement {
            request_id: artifact.request_id().clone(),
            artifact_hash: artifact.hash(),
            tenant: self.tenant.clone(),
            enforcer: self.enforcer.clone(),
            effect: self.effect,
            decisions: self.decisions.clone(),
            at: self.at,
        })
    }
}

fn read_subjects(statement: &mut MemberReader<'_, '_>) -> ReadResult<Vec<OutcomeSubject>> {
    let list = statement.items("subject", MAX_DECISIONS, "subjects")?;
    let read = |node| {
        let mut subject = statement.item("subject", node)?;
        let mut digest = subject.inner("digest")?;
        let read = OutcomeSubject {
            request_id: subject.id("name")?,
            artifact_hash: digest.hash("sha256")?,
        };
        digest.finish()?;
        subject.finish()?;
        Ok(read)
    };
    let subjects: Vec<_> = list.iter().map(read).collect::<ReadResult<_>>()?;
    let names: BTreeSet<_> = subjects.iter().map(|it| &it.request_id).collect();
    if names.len() < subjects.len() {
        return Err(statement.refusal("subject", "no request twice"));
    }
    Ok(subjects)
}

/// The key for the outcome of one request. It is stored only with a request that outlives its
/// process.
#[derive(Clone)]
pub struct OutcomeKey(SigningKey);

impl OutcomeKey {
    pub fn generate(random: &mut impl RandomSource) -> Result<Self> {
        Ok(Self(SigningKey::from_bytes(&*draw(random)?)))
    }

    pub fn parse(text: &str) -> Result<Self> {
        let seed = Zeroizing::new(encoding::decode_array("the outcome's key", text)?);
        Ok(Self(SigningKey::from_bytes(&seed)))
    }

    /// The private key, as text.
    pub fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(encoding::encode(self.0.as_bytes()))
    }

    /// Names the key in the members of an artifact, before it is sealed.
    pub fn name_in(&self, members: &mut Map<String, Value>) {
        let key = encoding::encode(self.0.verifying_key().as_bytes());
        insert(members, OUTCOME, json!({ "v": 1, "key": key }));
    }

    /// Signs the statement; returns the DSSE envelope.
    pub fn sign(&self, statement: &OutcomeStatement) -> Result<String> {
        self.envelope(&OutcomeContent::of(statement, None, &[]).to_text()?)
    }

    /// Signs the statement for a set. `further` are its other decided parts. The statement's
    /// `decisions` has one digest for each part: its own first, then theirs in the same order.
    pub fn sign_set(
        &self,
        statement: &OutcomeStatement,
        set: SetId,
        further: &[OutcomeSubject],
    ) -> Result<String> {
        let payload = OutcomeContent::of(statement, Some(set), further).to_text()?;
        // A device must be able to read it.
        OutcomeContent::parse(payload.as_bytes())?;
        self.envelope(&payload)
    }

    fn envelope(&self, payload: &str) -> Result<String> {
        let signature = self.0.sign(&signed_bytes(payload.as_bytes())).to_bytes();
        let envelope = json!({
            "payload": STANDARD.encode(payload),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{ "sig": STANDARD.encode(signature) }],
        });
        let text = canonical_text(ENVELOPE, &envelope)?;
        if text.len() > MAX_ENVELOPE_CHARS {
            let limit = MAX_ENVELOPE_CHARS;
            return Err(Error::LongOutcome { limit });
        }
        Ok(text)
    }
}

redacted! { OutcomeKey = "OutcomeKey(redacted)" }

/// DSSE's pre-authentication encoding.
fn signed_bytes(payload: &[u8]) -> Vec<u8> {
    let (type_length, length) = (PAYLOAD_TYPE.len(), payload.len());
    let head = format!("DSSEv1 {type_length} {PAYLOAD_TYPE} {length} ");
    [head.as_bytes(), payload].concat()
}

/// Verifies an envelope as the gateway serves it: the enforcer that sealed `artifact` signed it,
/// and about this decision. Of a set, only this part need be known.
pub fn verify_outcome(
    envelope: &str,
    artifact: &PlainArtifact,
    tenant: &TenantId,
    enforcer: &EnforcerId,
    decision: &JsonNode<'_>,
) -> Result<OutcomeStatement> {
    let key = artifact.outcome_key().ok_or(Error::NoOutcomeKey)?;
    open_outcome(envelope, key)?.about(artifact, tenant, enforcer, decision)
}

/// The time in an envelope whose signature nobody has verified.
pub(super) fn claimed_time(envelope: &str) -> Option<Timestamp> {
    let node = parse(ENVELOPE, envelope.as_bytes()).ok()?;
    let (payload, _) = read_envelope(&node).ok()?;
    Some(OutcomeContent::parse(&payload).ok()?.at)
}

pub(super) fn open_outcome(envelope: &str, key: &PublicKey) -> Result<OutcomeContent> {
    let node = parse(ENVELOPE, envelope.as_bytes())?;
    let (payload, signature) = read_envelope(&node)?;
    if !key.verifies(&signed_bytes(&payload), &signature) {
        return Err(Error::OutcomeSignature);
    }
    OutcomeContent::parse(&payload)
}

fn read_envelope(node: &JsonNode<'_>) -> ReadResult<(Vec<u8>, Signature)> {
    let mut envelope = MemberReader::named(ENVELOPE, node)?;
    envelope.constant("payloadType", PAYLOAD_TYPE)?;
    let payload = STANDARD.decode(envelope.bounded_str("payload", 1, MAX_ENVELOPE_CHARS)?);
    let payload = payload.map_err(|_| envelope.refusal("payload", "base64"))?;
    let mut signature = envelope.only_item("signatures", "one signature")?;
    let bytes = STANDARD.decode(signature.str("sig")?).ok();
    let read = bytes.and_then(|bytes| Signature::from_bytes(&bytes));
    signature.finish()?;
    envelope.finish()?;
    let read = read.ok_or_else(|| signature.refusal("sig", "64 bytes in base64"))?;
    Ok((payload, read))
}
