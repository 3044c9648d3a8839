//! The enforcer's signed statement about a decision. The key is made for one request and named in
//! the sealed artifact, so the approver need not believe the gateway, and the enforcer stores no
//! lasting key.
//!
//! The form is a DSSE envelope around an in-toto statement, which existing tools read. The signed
//! bytes begin with `DSSEv1`, so it can be no signature over canonical JSON.

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
use countersign_protocol::canonical::{Sha256Hex, canonical_without};
use countersign_protocol::id::{EnforcerId, RequestId, TenantId};
use countersign_protocol::json::JsonNode;
use countersign_protocol::reader::{MemberReader, ReadResult};
use countersign_protocol::redacted;
use countersign_protocol::signature::Signature;
use countersign_protocol::timestamp::Timestamp;
use countersign_protocol::words;

const ENVELOPE: &str = "the outcome";
const STATEMENT: &str = "the outcome's statement";
const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
const PREDICATE_TYPE: &str = "urn:countersign:outcome:v1";
/// A gateway takes no longer outcome.
const MAX_PAYLOAD_CHARS: usize = 16 << 10;
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

/// The enforcer's statement about one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomeStatement {
    pub request_id: RequestId,
    pub artifact_hash: Sha256Hex,
    pub tenant: TenantId,
    pub enforcer: EnforcerId,
    pub effect: OutcomeEffect,
    /// The digests of the decisions that it is about.
    pub decisions: Vec<Sha256Hex>,
    pub at: Timestamp,
}

impl OutcomeStatement {
    fn to_text(&self) -> Result<String> {
        let (outcome, cause) = self.effect.words();
        let decisions: Vec<_> = self.decisions.iter().map(ToString::to_string).collect();
        let members = json!({
            "_type": STATEMENT_TYPE,
            "predicateType": PREDICATE_TYPE,
            "subject": [{
                "name": self.request_id.as_str(),
                "digest": { "sha256": self.artifact_hash.to_string() },
            }],
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
        canonical_text(STATEMENT, &members)
    }

    fn parse(bytes: &[u8]) -> Result<Self> {
        let node = parse_canonical(STATEMENT, bytes)?;
        let mut statement = MemberReader::named(STATEMENT, &node)?;
        let mut predicate = statement.inner("predicate")?;
        read_version(&mut predicate)?;
        statement.constant("_type", STATEMENT_TYPE)?;
        statement.constant("predicateType", PREDICATE_TYPE)?;
        let mut subject = statement.only_item("subject", "one subject")?;
        let mut digest = subject.inner("digest")?;
        let (outcome, cause) = (predicate.str("outcome")?, predicate.str("cause")?);
        let effect = OutcomeEffect::parse(outcome, cause)
            .ok_or_else(|| predicate.refusal("outcome", "allowed, or denied with a cause"))?;
        let expected = "1 to 64 digests";
        let decisions = predicate.array("decisions", expected)?.iter();
        let decisions = decisions.map(|node| Sha256Hex::parse(node.as_str()?));
        let decisions: Option<Vec<_>> = decisions.collect();
        let decisions = decisions.filter(|list| (1..=MAX_DECISIONS).contains(&list.len()));
        let read = Self {
            request_id: subject.id("name")?,
            artifact_hash: digest.hash("sha256")?,
            tenant: predicate.id("tenantId")?,
            enforcer: predicate.id("enforcerId")?,
            effect,
            decisions: decisions.ok_or_else(|| predicate.refusal("decisions", expected))?,
            at: predicate.timestamp("at")?,
        };
        for reader in [statement, subject, digest, predicate] {
            reader.finish()?;
        }
        Ok(read)
    }
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
        let payload = statement.to_text()?;
        let signature = self.0.sign(&signed_bytes(payload.as_bytes())).to_bytes();
        let envelope = json!({
            "payload": STANDARD.encode(payload),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{ "sig": STANDARD.encode(signature) }],
        });
        canonical_text(ENVELOPE, &envelope)
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
/// and about this decision.
pub fn verify_outcome(
    envelope: &str,
    artifact: &PlainArtifact,
    tenant: &TenantId,
    enforcer: &EnforcerId,
    decision: &JsonNode<'_>,
) -> Result<OutcomeStatement> {
    let key = artifact.outcome_key().ok_or(Error::NoOutcomeKey)?;
    let node = parse(ENVELOPE, envelope.as_bytes())?;
    let (payload, signature) = read_envelope(&node)?;
    if !key.verifies(&signed_bytes(&payload), &signature) {
        return Err(Error::OutcomeSignature);
    }
    let statement = OutcomeStatement::parse(&payload)?;
    let same = [
        ("request", statement.request_id == *artifact.request_id()),
        ("artifact", statement.artifact_hash == artifact.hash()),
        ("tenant", statement.tenant == *tenant),
        ("enforcer", statement.enforcer == *enforcer),
        (
            "decision",
            decision_digest(decision).is_some_and(|digest| statement.decisions.contains(&digest)),
        ),
    ];
    match same.into_iter().find(|(_, is_same)| !is_same) {
        Some((what, _)) => Err(Error::OtherOutcome { what }),
        None => Ok(statement),
    }
}

fn read_envelope(node: &JsonNode<'_>) -> ReadResult<(Vec<u8>, Signature)> {
    let mut envelope = MemberReader::named(ENVELOPE, node)?;
    envelope.constant("payloadType", PAYLOAD_TYPE)?;
    let payload = STANDARD.decode(envelope.bounded_str("payload", 1, MAX_PAYLOAD_CHARS)?);
    let payload = payload.map_err(|_| envelope.refusal("payload", "base64"))?;
    let mut signature = envelope.only_item("signatures", "one signature")?;
    let bytes = STANDARD.decode(signature.str("sig")?).ok();
    let read = bytes.and_then(|bytes| Signature::from_bytes(&bytes));
    signature.finish()?;
    envelope.finish()?;
    let read = read.ok_or_else(|| signature.refusal("sig", "64 bytes in base64"))?;
    Ok((payload, read))
}
